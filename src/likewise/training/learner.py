"""What learns: an encoder with the heads, the second branch and the objective of a recipe."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from likewise.distributed import gather_rows, world_size
from likewise.graph import Graph
from likewise.models import MLP, MomentumTeacher, Queue
from likewise.objectives import SwAV
from likewise.training.named_objective import build_objective, objective_class
from likewise.training.recipe import Recipe


class Branch(nn.Module):
    """Encoder, projector and, where there is one, predictor: from images to embeddings."""

    def __init__(self, encoder: nn.Module, projector: MLP, predictor: MLP | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projector
        self.predictor = predictor

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The projector's output, and the predictor's (the projector's where there is none)."""
        z = self.projector(self.encoder(images))
        return z, z if self.predictor is None else self.predictor(z)


class Learner(nn.Module):
    """A recipe made real around an encoder: from views of a batch and its graph to a loss.

    Args:
        recipe: the method.
        encoder: any module with `dim`, from images (n, 3, s, s) to features (n, dim).
        options: arguments of the objective, over those of the recipe.
        projector: widths in place of the recipe's.
        classes: how many classes the labels have, for recipes that regress on them.
        seed: of what the queue starts with.
        micro_batch: embed so many views at a time, and again for the gradient: memory for
            activations is that of a part, and the loss and its gradient are those of the whole
            batch (GradCache, Gao et al. 2021). Batch norm then normalises each part by itself; a
            part holds one view of a sample, as far as it is no larger than the batch.

    >>> from likewise.models import build_encoder
    >>> from likewise.training import recipe
    >>> learner = Learner(recipe("simclr"), build_encoder("tiny"))
    >>> crops = [torch.rand(8, 3, 32, 32)]  # two views of four images
    >>> sorted(learner(crops, Graph.identity(4)))
    ['attraction', 'repulsion']
    """

    def __init__(
        self,
        recipe: Recipe,
        encoder: nn.Module,
        *,
        options: Mapping[str, Any] | None = None,
        projector: Sequence[int] | None = None,
        classes: int | None = None,
        seed: int = 0,
        micro_batch: int | None = None,
    ) -> None:
        super().__init__()
        self.recipe = recipe
        if micro_batch is not None and micro_batch < 2:
            raise ValueError(f"micro_batch is {micro_batch}: give at least 2 views")
        self.micro_batch = micro_batch
        widths = list(recipe.projector if projector is None else projector)
        kind = objective_class(recipe.objective)
        wanted = inspect.signature(kind).parameters
        if recipe.regresses:
            if classes is None:
                raise ValueError(
                    f"recipe {recipe.title!r} regresses on labels, and there are none: "
                    "give labels (folder names, a column, or a CSV file)"
                )
            widths.append(classes)
        head = MLP([cast(int, encoder.dim), *widths], last_norm=recipe.projector_ends_normalized)
        predictor = None
        if recipe.predictor is not None:
            predictor = MLP([head.out_dim, *recipe.predictor, head.out_dim])
        self.student = Branch(encoder, head, predictor)
        self.teacher: MomentumTeacher | None = None
        if recipe.teacher == "momentum":
            self.teacher = MomentumTeacher(Branch(encoder, head, None))
        self.queue: Queue | None = None
        if recipe.keeps_queue:
            self.queue = Queue(head.out_dim, recipe.queue, seed=seed)
        given = {**recipe.options, **(options or {})}
        filled = {"dim": head.out_dim, "classes": classes}
        filled = {name: value for name, value in filled.items() if name in wanted}
        for name in filled:
            if name in given:
                raise ValueError(
                    f"objective: {name} is {given[name]!r}, and is known already ({filled[name]}: "
                    "the projector's last width, or the number of classes): leave it out"
                )
        given.update(filled)
        self.objective = build_objective(kind, given)
        self._identities: dict[tuple[int, int], Graph] = {}

    @property
    def encoder(self) -> nn.Module:
        """The student's encoder: what is kept after training."""
        return self.student.encoder

    @property
    def dim(self) -> int:
        """The dimensions in which rows are compared."""
        return self.student.projector.out_dim

    def embed(self, crops: Sequence[Tensor], samples: int) -> tuple[Tensor, Tensor]:
        """The projector's and the predictor's rows of all views, sample-major."""
        outputs = [self._rows(self.student, crop, samples) for crop in crops]
        z, p = ([pair[place] for pair in outputs] for place in (0, 1))
        return _sample_major(z, samples), _sample_major(p, samples)

    def _rows(self, branch: nn.Module, crop: Tensor, samples: int) -> tuple[Tensor, Tensor]:
        """What a branch gives for the views of one size, whole or in parts."""
        if self.micro_batch is None:
            z, p = branch(crop)
            return z, p
        return embed_in_parts(branch, crop, self.micro_batch, samples=samples)

    def forward(
        self,
        crops: Sequence[Tensor],
        graph: Graph,
        *,
        generator: torch.Generator | None = None,
        parts: bool = True,
    ) -> dict[str, Tensor]:
        """The named parts of the loss; with parts=False its total alone, which is quicker.

        Args:
            crops: a tensor of views for each crop size, sample-major. What others are compared
                with (the second branch, the codes of SwAV) comes from the first of them: with
                multi-crop, the global views. Objectives without either compare all with all.
            graph: over the samples of the batch of all ranks.
            generator: for objectives that draw.
            parts: whether to tell the parts apart.
        """
        # Every rank holds the views of its own samples; the graph is over those of all ranks.
        samples = graph.n // world_size()
        z, p = self.embed(crops, samples)
        target, negatives = self._other_branch(crops, z, samples)
        rows = z if self.recipe.teacher == "none" else p
        arguments: dict[str, Any] = {"target": target, "generator": generator}
        if negatives is not None:
            arguments["negatives"] = negatives
        lifted = self._lifted(graph, len(rows) // samples)
        if parts:
            terms = self.objective.terms(rows, lifted, **arguments)
        else:
            terms = {"loss": self.objective(rows, lifted, **arguments)}
        if not self.recipe.dimension_power:
            return terms
        scale = float(self.dim) ** self.recipe.dimension_power
        return {name: scale * term for name, term in terms.items()}

    def _lifted(self, graph: Graph, views: int) -> Graph:
        """The graph over views. Identities of one size are all the same: what an objective has
        worked out about the first, which waits for the device, serves for all."""
        if not graph.is_identity:
            return graph.views(views)
        return self._identities.setdefault((graph.n, views), graph.views(views))

    def _other_branch(
        self, crops: Sequence[Tensor], z: Tensor, samples: int
    ) -> tuple[Tensor | None, Tensor | None]:
        """What z is compared with, and the extra negatives; the queue takes the new rows in."""
        recipe = self.recipe
        if recipe.teacher == "none":
            # A small crop shows too little for a code of its own (Caron et al. 2020).
            small = len(crops) > 1 and isinstance(self.objective, SwAV)
            return _global_rows(z, crops, samples) if small else None, None
        if self.teacher is not None:
            target, _ = self._rows(self.teacher, crops[0], samples)
        else:
            target = _global_rows(z, crops, samples)
        if self.queue is None:
            return target, None
        own = target
        negatives = None
        if recipe.neighbors:
            target = self.queue.nearest(own).rows
        else:
            negatives = self.queue.rows()
        # One view of every sample, so that a sample is not its own neighbour twice.
        first = own.reshape(samples, -1, own.shape[1])[:, 0]
        self.queue.push(nn.functional.normalize(gather_rows(first.float()), dim=1))
        return target, negatives

    def follow(self, momentum: float) -> None:
        """After a step: the teacher moves towards the student."""
        if self.teacher is not None:
            student = Branch(self.student.encoder, self.student.projector, None)
            self.teacher.update(student, momentum)


def embed_in_parts(
    branch: nn.Module, images: Tensor, size: int, *, samples: int
) -> tuple[Tensor, Tensor]:
    """What `branch` gives for all images, holding the activations of one part at a time.

    The parts take the first view of all samples, then the second: where two views of a sample are
    in one batch norm, taking off its mean drives apart what the loss brings together.
    """
    by_view = torch.arange(len(images), device=images.device).reshape(samples, -1).T.flatten()
    outputs = [
        checkpoint(
            branch,
            images[rows],
            use_reentrant=False,
            # The second forward must not count in the running statistics again.
            context_fn=lambda: (nullcontext(), frozen_statistics(branch)),
        )
        for rows in by_view.split(size)
    ]
    back = by_view.argsort()
    z, p = (torch.cat(part)[back] for part in zip(*outputs, strict=True))
    return z, p


@contextmanager
def frozen_statistics(module: nn.Module) -> Iterator[None]:
    """Batch norms normalise by their batch, and remember nothing of it."""
    norms = [part for part in module.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


def _global_rows(z: Tensor, crops: Sequence[Tensor], samples: int) -> Tensor:
    """The rows of the first crop size, without a gradient: those of a second branch."""
    views = len(crops[0]) // samples
    return z.detach().unflatten(0, (samples, -1))[:, :views].flatten(0, 1)


def _sample_major(parts: list[Tensor], samples: int) -> Tensor:
    """Rows of several crop sizes, each sample-major, as one sample-major block."""
    if len(parts) == 1:
        return parts[0]
    return torch.cat([part.reshape(samples, -1, part.shape[1]) for part in parts], dim=1).flatten(
        0, 1
    )
