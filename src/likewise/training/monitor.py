"""Looks at the representation while it is learned: effective rank, kNN accuracy, collapse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightning as L
import torch
from torch import Tensor

from likewise.data import Images
from likewise.evaluation import knn_accuracy
from likewise.information import effective_rank
from likewise.runs import Preparation, embed_images
from likewise.training.advice import collapse_advice
from likewise.training.recipe import Recipe

COLLAPSE = 0.02
"""An effective rank below this share of the dimensions is called a collapse."""


class Monitor(L.Callback):
    """Embeds a fixed sample of images every few epochs and says how the representation is.

    Args:
        images: the sample (a few thousand), with labels where they are known.
        preparation: how images become the encoder's input.
        recipe: what is trained, which advice has to suit.
        every: epochs between two looks.
        neighbors: the largest k of the kNN accuracy, each image against all others of the sample;
            where classes are smaller, k is how many mates an image of the median class has, or
            those of other classes would have the majority among any k.
        say: where a warning goes.
    """

    def __init__(
        self,
        images: Images,
        preparation: Preparation,
        recipe: Recipe,
        *,
        every: int,
        neighbors: int = 20,
        say: Callable[[str], None] = print,
    ) -> None:
        self.images = images
        self.preparation = preparation
        self.recipe = recipe
        self.every = every
        self.neighbors = neighbors
        self.say = say
        self.last: dict[str, float] = {}
        self.history: list[dict[str, float]] = []
        self._warned = False
        self._seen = False

    def state_dict(self) -> dict[str, Any]:
        """What was seen so far, for a run that is resumed."""
        return {"history": list(self.history), "warned": self._warned, "seen": self._seen}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take it up again."""
        self.history, self._warned = list(state_dict["history"]), state_dict["warned"]
        self._seen = state_dict["seen"]
        if self.history:
            seen = self.history[-1]
            self.last = {name: value for name, value in seen.items() if name != "epoch"}

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: Any) -> None:
        """Look, where it is time."""
        epoch = trainer.current_epoch + 1
        if self.every and (epoch % self.every == 0 or epoch == trainer.max_epochs):
            pl_module.check_finite()  # by all processes: one that raises alone leaves the others
            self.look(trainer, pl_module, epoch)

    def look(self, trainer: L.Trainer, pl_module: Any, epoch: int) -> None:
        """Embed the sample, and record its figures."""
        if not trainer.is_global_zero:
            return
        preparation = self.preparation
        h = embed_images(
            pl_module.learner.encoder,
            self.images,
            size=preparation.size,
            mean=preparation.mean,
            std=preparation.std,
            device=pl_module.device,
        ).to(pl_module.device)
        if not bool(h.isfinite().all()):
            # The last step of an epoch can be the one that spoils the weights.
            raise pl_module.diverged("features are not finite", trainer.global_step)
        self.last = self.figures(h)
        self.history.append({"epoch": epoch, **self.last})
        for logger in trainer.loggers:
            metrics = {f"monitor/{name}": value for name, value in self.last.items()}
            logger.log_metrics({**metrics, "epoch": epoch}, step=trainer.global_step)
        last = epoch == trainer.max_epochs
        self._warn(h, warm=epoch >= pl_module.optimization.warmup_epochs, last=last)

    def figures(self, h: Tensor) -> dict[str, float]:
        """Effective rank of the centred features, and kNN accuracy where labels are known."""
        centred = h - h.mean(dim=0)
        found = {"effective_rank": float(effective_rank(centred.T @ centred / len(h)))}
        labels = self.images.labels
        if labels is not None and (labels >= 0).sum() > 1:
            known = torch.as_tensor(labels >= 0)
            rows, y = h[known.to(h.device)], torch.as_tensor(labels)[known].to(h.device)
            sizes = y.unique(return_counts=True)[1]
            neighbors = max(1, min(self.neighbors, int(sizes.median()) - 1))
            found["knn"] = float(knn_accuracy(rows, y, rows, y, k=neighbors, exclude_self=True))
        return found

    def _warn(self, h: Tensor, *, warm: bool, last: bool) -> None:
        """Say that features collapse, once.

        Few dimensions are in use at the start of many a good training: that is said where it is
        seen at two looks in a row after the warm-up of the learning rate, or at the last one.
        """
        rank, dim = self.last["effective_rank"], h.shape[1]
        spread = float((h - h.mean(dim=0)).norm() / h.norm().clamp(min=1e-12))
        full = spread < 1e-3
        if full:
            what = "all images get nearly the same features (full collapse)"
        elif rank < max(2.0, COLLAPSE * dim):
            what = f"features fill about {rank:.1f} of {dim} dimensions (dimensional collapse)"
        else:
            self._warned = self._seen = False
            return
        stays = self._seen or last
        self._seen = warm
        if not self._warned and (full or (warm and stays)):
            self.say(f"collapse: {what}. {collapse_advice(self.recipe, full=full)}")
            self._warned = True
