"""What the loop asks over may learn, too: a kernel machine or an encoder, taught by the answers.

The probe is trained again after every answer, over rows that stay as they are. An update makes new
rows every so often (``pal`` algorithm 1, "update the representation").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.graph import Graph
from likewise.oracles.beliefs import Beliefs

if TYPE_CHECKING:
    import torch


class Update(ABC):
    """A representation that learns from answers: ``PAL(inputs, ..., update=..., every=10)``."""

    @abstractmethod
    def rows(self, inputs: ArrayLike) -> NDArray[np.floating]:
        """(n, d) the rows of some inputs, as things stand."""

    @abstractmethod
    def learn(self, inputs: NDArray[Any], beliefs: Beliefs) -> None:
        """Learn from all that is known about the inputs."""


class KernelUpdate(Update):
    """The closed form of a kernel machine, refitted on who is alike.

    Rows are those given, each centred block scaled to unit mean length, beside the embedding
    f(x) of :class:`likewise.kernel.SpectralEmbedding` under the signed graph of the beliefs, of
    which only what is known counts (``masked``). What was answered pulls items of one class
    together; how they lie otherwise is not forgotten.

    Args:
        weight: of the learned part beside the given one; 0 leaves the rows as they are.
        least: learn from so many known items a class on.
        options: of the embedding, such as ``kernel`` or ``regularization``.

    >>> update = KernelUpdate()
    >>> update.rows(np.eye(3)).shape  # nothing learned yet: the inputs
    (3, 3)
    """

    def __init__(self, *, weight: float = 1.0, least: int = 2, **options: Any) -> None:
        if weight < 0 or least < 1:
            raise ValueError(
                f"weight is {weight} and least is {least}: give a weight of 0 or more, and at "
                "least 1 known item a class"
            )
        self.weight, self.least, self.options = weight, least, options
        self._model: Any = None
        self._scales = (1.0, 1.0)

    def rows(self, inputs: ArrayLike) -> NDArray[np.floating]:
        """The inputs, and beside them what was learned."""
        given = _flat(inputs)
        if self._model is None:
            return given
        learned = np.asarray(self._model.transform(given))
        return np.concatenate(
            [given / self._scales[0], self.weight * learned / self._scales[1]], axis=1
        )

    def learn(self, inputs: NDArray[Any], beliefs: Beliefs) -> None:
        """Refit on all that is known."""
        from likewise.kernel import SpectralEmbedding

        labels, n_classes = beliefs.labels(), beliefs.n_classes
        if n_classes < 2 or (labels >= 0).sum() < self.least * n_classes:
            return
        given = _flat(inputs)
        settings = {"n_components": n_classes, "masked": True, "regularization": 1e-2}
        self._model = SpectralEmbedding(**(settings | self.options)).fit(given, beliefs.graph())
        learned = np.asarray(self._model.transform(given))
        self._scales = (_spread(given), _spread(learned))


class FineTune(Update):
    """An encoder, trained a little further on who is alike.

    Args:
        encoder: a module that maps a batch of inputs to embeddings.
        objective: called as ``objective(z, graph)``; default: spectral contrastive on embeddings
            of length 1, which needs no projector.
        steps: of the optimiser, at every update.
        batch: inputs of a step: half of them known, half any others.
        lr: of Adam.
        known_weight: of the answers beside "everything is alike to itself".
        view: makes an augmented view of a batch of inputs; without, an input is its own view.
        seed: of the batches.
    """

    def __init__(
        self,
        encoder: torch.nn.Module,
        *,
        objective: Callable[[Any, Graph], Any] | None = None,
        steps: int = 50,
        batch: int = 128,
        lr: float = 1e-3,
        known_weight: float = 0.5,
        view: Callable[[Any], Any] | None = None,
        seed: int = 0,
    ) -> None:
        import torch

        from likewise.objectives import SpectralContrastive

        if steps < 1 or batch < 4:
            raise ValueError(f"steps is {steps} and batch is {batch}: give at least 1 and 4")
        if not 0 < known_weight <= 1:
            raise ValueError(f"known_weight is {known_weight}: give a share above 0, up to 1")
        self.encoder, self.steps, self.batch = encoder, steps, batch
        self.objective = SpectralContrastive() if objective is None else objective
        self.known_weight, self.view = known_weight, view
        self._optimizer = torch.optim.Adam(encoder.parameters(), lr=lr)
        self._rng = np.random.default_rng(seed)

    def _tensor(self, inputs: NDArray[Any]) -> torch.Tensor:
        """Inputs in the encoder's own precision: features are often float64, weights never."""
        import torch

        given = torch.as_tensor(inputs)
        weights = next(self.encoder.parameters())
        return given.to(weights.dtype) if given.is_floating_point() else given

    def rows(self, inputs: ArrayLike) -> NDArray[np.floating]:
        """The embeddings of the encoder, in evaluation mode."""
        import torch

        given = self._tensor(np.asarray(inputs))
        device = next(self.encoder.parameters()).device
        training = self.encoder.training
        self.encoder.eval()
        with torch.no_grad():
            parts = [self.encoder(part.to(device)).float().cpu() for part in given.split(1024)]
        self.encoder.train(training)
        return torch.cat(parts).numpy()

    def learn(self, inputs: NDArray[Any], beliefs: Beliefs) -> None:
        """Some steps on batches of which half is known."""
        import torch

        labels = beliefs.labels()
        known, others = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        if beliefs.n_classes < 2:
            return
        graph = beliefs.graph()
        device = next(self.encoder.parameters()).device
        self.encoder.train()
        for _ in range(self.steps):
            half = min(len(known), self.batch // 2)
            rest = min(len(others), self.batch - half)
            chosen = np.concatenate(
                [
                    self._rng.choice(known, half, replace=False),
                    self._rng.choice(others, rest, replace=False),
                ]
            )
            batch = self._tensor(inputs[chosen]).to(device)
            views = [batch, batch] if self.view is None else [self.view(batch), self.view(batch)]
            both = torch.stack(views, dim=1).flatten(0, 1)  # sample-major
            z = torch.nn.functional.normalize(self.encoder(both).float(), dim=1)
            part = torch.as_tensor(np.asarray(graph.subset(chosen).dense()), dtype=z.dtype)
            mixed = (1 - self.known_weight) * Graph.identity(len(chosen)) + (
                self.known_weight * Graph.from_matrix(part)
            )
            loss = self.objective(z, mixed.views(2).to(device))
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
        self.encoder.eval()


def _flat(inputs: ArrayLike) -> NDArray[np.floating]:
    rows = np.asarray(inputs)
    return rows.reshape(len(rows), -1)


def _spread(rows: NDArray[np.floating]) -> float:
    """The mean distance from the mean."""
    return max(float(np.linalg.norm(rows - rows.mean(axis=0), axis=1).mean()), 1e-12)
