"""What a method is: a value that says which parts it has and how they are trained."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from likewise.data.views.policies import LARGE_IMAGE
from likewise.training.named_objective import objective_class

Teacher = Literal["none", "stopped", "momentum"]


@dataclass(frozen=True)
class Recipe:
    """A method: objective, heads, second branch, views and optimiser.

    A recipe holds plain values only, so that it can be printed, saved and read from top to
    bottom. Every recipe takes any graph over samples; what it does with two views of every sample
    and nothing else is the method of its paper.

    Args:
        title: the method's name as its authors write it.
        paper: who made it.
        objective: a class of :mod:`likewise.objectives`.
        options: the arguments of the objective; the learner fills in `dim` and `classes` where
            it has them.
        projector: widths of the layers after the encoder; () compares the encoder's own output.
        projector_ends_normalized: whether a batch norm follows the projector's last layer.
        predictor: hidden widths of the student's extra head, which ends with the projector's
            width; None for no predictor.
        teacher: what z is compared with: "none" (itself), "stopped" (the projector's output
            without a gradient) or "momentum" (a copy of the network that follows it slowly).
        momentum: of the teacher at the first step; it rises to 1 along a cosine.
        queue: rows of earlier batches that are kept, as negatives or as neighbours.
        neighbors: compare with the nearest row of the queue in place of the sample itself.
        views: the policy (see :mod:`likewise.data.views`).
        large_views: that of views of 64 pixels and more, where it is another.
        n_views: views of every sample in a batch, for policies that leave it open.
        optimizer: "sgd", "lars" or "adamw".
        lr: learning rate for 256 samples a batch; it grows in proportion to the batch.
        weight_decay: not applied to biases and normalisation.
        trust_coefficient: of LARS.
        dimension_power: the loss is multiplied by dimensions ** power. Objectives keep sums over
            dimensions; -1 gives the means that a paper's learning rate is for, and 1 undoes a
            mean over dimensions.
        needs_labels: whether it is of use only with labels in the graph.
        remark: what differs from the paper, and why.
    """

    title: str
    paper: str
    objective: str
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    projector: tuple[int, ...] = (2048, 128)
    projector_ends_normalized: bool = False
    predictor: tuple[int, ...] | None = None
    teacher: Teacher = "none"
    momentum: float = 0.996
    queue: int = 0
    neighbors: bool = False
    views: str = "simclr"
    large_views: str | None = None
    n_views: int = 2
    optimizer: Literal["sgd", "lars", "adamw"] = "sgd"
    lr: float = 0.12
    weight_decay: float = 5e-4
    trust_coefficient: float = 0.001
    dimension_power: int = 0
    needs_labels: bool = False
    remark: str = ""

    def views_of(self, size: int) -> str:
        """The policy for views of `size` pixels a side."""
        return self.large_views or self.views if size >= LARGE_IMAGE else self.views

    @property
    def regresses(self) -> bool:
        """Whether labels are its targets, taken as they are, and no part of a graph."""
        return "classes" in inspect.signature(objective_class(self.objective)).parameters

    @property
    def keeps_queue(self) -> bool:
        """Whether rows of earlier batches are kept."""
        return self.queue > 0
