"""Trained encoders of one session: each is trained once, and looked at by many figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from likewise.data.views import Policy, Views, prepare
from likewise.evaluation import knn_accuracy, linear_probe
from likewise.reproduce.setting import Pictures, Setting, Split, pictures
from likewise.reproduce.trainings import Trained, Training, train
from likewise.reproduce.trials import one_thread

CHUNK = 1024
"""Images that are embedded at a time."""
PENALTY = 1e-3
"""lambda of the linear probe: one for all, so that a probe takes a second."""


@dataclass
class Encoders:
    """A setting with what has been trained in it so far."""

    setting: Setting
    _trained: dict[Training, Trained] = field(default_factory=dict, repr=False)

    @property
    def pictures(self) -> Pictures:
        """The images."""
        return pictures(self.setting)

    def prepare(
        self,
        trainings: Iterable[Training],
        *,
        jobs: int = 1,
        advance: Callable[[], object] | None = None,
    ) -> None:
        """Train what is not there yet, in so many processes (on a GPU in this one)."""
        missing = [one for one in dict.fromkeys(trainings) if one not in self._trained]
        if self.setting.device != "cpu":
            jobs = 1
        for one, trained in zip(missing, _train_all(missing, self.setting, jobs), strict=True):
            self._trained[one] = trained
            if advance is not None:
                advance()

    def missing(self, trainings: Iterable[Training]) -> int:
        """How many of these have not been trained yet."""
        return sum(one not in self._trained for one in dict.fromkeys(trainings))

    def of(self, training: Training) -> Trained:
        """The trained network, which is trained now where it has not been."""
        if training not in self._trained:
            self.prepare([training])
        return self._trained[training]

    def embed(
        self, training: Training, at: float = 1.0, split: Split = "test"
    ) -> tuple[Tensor, Tensor]:
        """Encoder and projector outputs (n, d) of images as they are."""
        found, size = self.pictures, self.setting.size
        return _both(
            self.of(training).network(at),
            (
                prepare(part, size, found.mean, found.std)
                for part in found.split(split).pixels.split(CHUNK)
            ),
        )

    def embed_views(
        self,
        training: Training,
        at: float = 1.0,
        split: Split = "test",
        *,
        n_views: int = 2,
        policy: Policy | str | None = None,
        most: int | None = None,
        seed: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Encoder and projector outputs of augmented images, sample-major (n V, d).

        Args:
            training: whose network, and whose views unless `policy` says otherwise.
            at: the share of the training.
            split: which images.
            n_views: V.
            policy: other views.
            most: the first so many images only.
            seed: of the views.
        """
        found = self.pictures
        pixels = found.split(split).pixels[:most]
        views = Views(
            policy or training.views, self.setting.size, n_views, mean=found.mean, std=found.std
        )
        generator = torch.Generator(pixels.device).manual_seed(seed)
        return _both(
            self.of(training).network(at),
            (views(part, generator=generator)[0] for part in pixels.split(CHUNK)),
        )

    def probe(self, training: Training, at: float = 1.0) -> float:
        """Accuracy of a linear probe on the encoder's output, on the test images."""
        train_rows, test_rows = (self.embed(training, at, split)[0] for split in ("train", "test"))
        labels, test_labels = (self.pictures.labels(split) for split in ("train", "test"))
        found = linear_probe(train_rows, labels, test_rows, test_labels, penalty=PENALTY)
        return float(found.accuracy)

    def neighbors(self, training: Training, at: float = 1.0, *, k: int = 20) -> float:
        """Accuracy of a vote of the k nearest training images, on the test images."""
        train_rows, test_rows = (self.embed(training, at, split)[0] for split in ("train", "test"))
        labels, test_labels = (self.pictures.labels(split) for split in ("train", "test"))
        return knn_accuracy(train_rows, labels, test_rows, test_labels, k=k)


def coarse_labels(found: Pictures, split: Split = "test") -> np.ndarray:
    """Loop or none (digits), vehicle or animal (CIFAR-10)."""
    return found.coarse[found.labels(split)]


@torch.no_grad()
def _both(network: nn.Module, batches: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    features, projected = [], []
    for images in batches:
        h = network.encoder(images.contiguous(memory_format=torch.channels_last))  # type: ignore[operator]
        features.append(h.float())
        projected.append(network.projector(h).float())  # type: ignore[operator]
    return torch.cat(features), torch.cat(projected)


def _train_all(trainings: list[Training], setting: Setting, jobs: int) -> Iterator[Trained]:
    jobs = min(jobs, len(trainings))
    if jobs <= 1:
        for one in trainings:
            with one_thread():
                yield train(one, setting)
        return
    from joblib import (  # type: ignore[import-untyped]
        Parallel,
        delayed,
        parallel_config,
    )

    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        yield from Parallel(return_as="generator")(
            delayed(train)(one, setting) for one in trainings
        )
