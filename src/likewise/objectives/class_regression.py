"""Plain supervised regression on one-hot labels: the far end of the spectrum of graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.objectives.base import Objective, Reduction
from likewise.objectives.batch import Batch


class ClassRegression(Objective):
    r"""The squared error of z itself, one column a class, against one-hot labels.

    .. math:: \frac1m \sum_{i\,:\,y_i \text{ known}} |z_i - e_{y_i}|^2

    This is :class:`AbsoluteRegression` with a head that is trained along with the encoder, as
    ordinary supervised learning does it, rather than solved for (``pal`` appendix C.3). The graph
    must be one of labels, :meth:`Graph.from_labels`; rows without a label do not count, and m is
    the number of those that do.

    Args:
        classes: how many classes there are; z has as many columns.
        reduction: "sum" leaves out the division by m.

    >>> import torch
    >>> from likewise import Graph
    >>> graph = Graph.from_labels(torch.tensor([0, 1, -1]))
    >>> ClassRegression(classes=2)(torch.tensor([[1.0, 0.0], [0.0, 0.0], [9.0, 9.0]]), graph)
    tensor(0.5000)
    """

    self_pairs = True
    accepts_target = False

    def __init__(self, classes: int, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        if not isinstance(classes, int) or classes < 2:
            raise ValueError(f"classes is {classes!r}: give a whole number of at least 2")
        self.classes = classes

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        labels = batch.graph.class_labels
        if labels is None:
            raise ValueError(
                "the graph is not one of labels: ClassRegression needs Graph.from_labels(y), "
                "without another graph added to it"
            )
        if batch.dim != self.classes:
            raise ValueError(
                f"z has {batch.dim} columns and there are {self.classes} classes: give one each"
            )
        if int(labels.max()) >= self.classes:
            raise ValueError(
                f"the graph has the label {int(labels.max())} and there are {self.classes} "
                "classes: labels run from 0 to classes - 1"
            )
        known = labels >= 0
        classes = torch.arange(self.classes, device=labels.device)
        target = (labels[:, None] == classes).to(batch.z.dtype)
        error = ((batch.z - target).square().sum(dim=1) * known).sum()
        return {
            "regression": error if self.reduction == "sum" else error / known.sum().clamp(min=1)
        }
