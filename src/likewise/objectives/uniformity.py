"""Uniformity of one set of rows: its second moment is pushed to I / d."""

from __future__ import annotations

import math
from typing import Any, Literal

from torch import Tensor

from likewise.information import log_det_identity_plus
from likewise.objectives.base import Objective, Reduction, one_of, positive
from likewise.objectives.batch import Batch
from likewise.objectives.coding_rate import row_sets


class UniformityMCE(Objective):
    r"""Uniformity by matrix cross-entropy, to the second moment I / d of the whole sphere.

    .. math::
        \mathrm{MCE}\bigl(\tfrac1d I + \lambda I,\; \tfrac1N Z^\top Z + \lambda I\bigr)
        = -(\tfrac1d + \lambda) \log\det(\tfrac1N Z^\top Z + \lambda I)
          + \tfrac1N |Z|_F^2 + d\lambda

    on rows of norm 1, through a log-determinant of the smaller of :math:`Z^\top Z` and
    :math:`Z Z^\top`. The graph only says which rows are views of one sample. It is
    :math:`\frac{2(1+d\lambda)}{d}` times the total coding rate loss with
    :math:`\epsilon^2 = \lambda d`, and a constant. `reduction` changes nothing.

    Paper: matrix-ssl, equation 16.
    Errata: lambda = 0 is not possible (with log(0) := 0 a collapsed batch would score best); the
    factor on the coding rate in theorem 4.4 is printed d times too large.

    Args:
        regularization: lambda, above 0.
        views: "stacked" takes all rows together, "separate" the mean of one value a view.
        reduction: see :class:`Objective`.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> z = torch.eye(4)
        >>> UniformityMCE(regularization=0.25)(z, Graph.identity(4))  # 2 log 2 + 2
        tensor(3.3863)
    """

    self_pairs = True
    accepts_target = False

    def __init__(
        self,
        regularization: float = 0.01,
        views: Literal["stacked", "separate"] = "stacked",
        *,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.regularization = positive("regularization", regularization)
        self.views = one_of("views", views, ("stacked", "separate"))

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        constant = batch.dim * self.regularization
        return {"uniformity": self._offset_from(batch, 0.0) + constant}

    def _offset_from(self, batch: Batch, log_target: float) -> Tensor:
        r""":math:`p\,(d \log q - \log\det Q) + |Z|^2/N` with p = 1/d + lambda and a constant q."""
        sets = row_sets(batch, self.views)
        rows, dim = sets.shape[-2:]
        weight = 1 / dim + self.regularization
        # log det Q - d log q, with the large constants taken from one another first.
        offset = dim * (math.log(self.regularization) - log_target)
        log_det = log_det_identity_plus(sets, 1 / (rows * self.regularization)) + offset
        return (sets.square().sum(dim=(-2, -1)) / rows - weight * log_det).mean()


class UniformityMKL(UniformityMCE):
    r"""Uniformity by matrix KL divergence, to the second moment I / d of the whole sphere.

    .. math::
        \mathrm{MKL}\bigl(\tfrac1d I + \lambda I \,\|\, \tfrac1N Z^\top Z + \lambda I\bigr)
        = (\tfrac1d + \lambda) \Bigl(d \log(\tfrac1d + \lambda)
          - \log\det(\tfrac1N Z^\top Z + \lambda I)\Bigr) + \tfrac1N |Z|_F^2 - 1

    on rows of norm 1: :class:`UniformityMCE` less a constant, so that the least value is 0, for
    rows that fill the sphere evenly.

    Paper: matrix-ssl, equation 17.
    Errata: as for equation 16, lambda must be above 0.

    Args:
        regularization: lambda, above 0.
        views: "stacked" takes all rows together, "separate" the mean of one value a view.
        reduction: see :class:`Objective`.

    Example:
        >>> import torch
        >>> from likewise import Graph
        >>> objective = UniformityMKL(regularization=0.25)
        >>> round(objective(torch.eye(4), Graph.identity(4)).item(), 6)
        0.0
    """

    def _terms(self, batch: Batch, **extra: Any) -> dict[str, Tensor]:
        log_target = math.log(1 / batch.dim + self.regularization)
        return {"uniformity": self._offset_from(batch, log_target) - 1}
