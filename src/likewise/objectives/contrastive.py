"""The contrastive objectives by name: what each puts into the common formula."""

from __future__ import annotations

from typing_extensions import Unpack

from likewise.objectives.base import positive
from likewise.objectives.contrast import Contrastive, ContrastiveOptions
from likewise.objectives.denominators import Denominator


class NTXent(Contrastive):
    r"""The normalised temperature-scaled cross-entropy of SimCLR, on any graph.

    .. math::
        \frac1N \sum_i \sum_j A_{ij} \Big[ -s_{ij}/\tau
            + \log \sum_{k \ne i} e^{s_{ik}/\tau} \Big]

    ``pal`` theorem 1 in its corrected form (zero diagonal, k != i, temperature kept): with two
    views this is NT-Xent exactly (``matrix-ssl`` eq. 1). With ``positives="mean"`` and labels it
    is SupCon.

    See :class:`~likewise.objectives.contrast.Contrastive` for the options that all contrastive
    objectives share.

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.eye(4).repeat_interleave(2, dim=0)
    >>> round(NTXent(0.5)(z, Graph.identity(4).views(2)).item(), 4)
    0.5944
    """

    def __init__(
        self,
        temperature: float = 0.5,
        *,
        denominator: Denominator = "all",
        **options: Unpack[ContrastiveOptions],
    ) -> None:
        super().__init__(
            1.0 / positive("temperature", temperature),
            1.0,
            divide=False,
            denominator=denominator,
            **options,
        )


class DecoupledContrastive(Contrastive):
    r"""NT-Xent without the positive in the denominator (Yeh et al., 2022).

    .. math::
        \frac1N \sum_i \sum_j A_{ij} \Big[ -s_{ij}/\tau
            + \log \sum_{k \text{ not alike}} e^{s_{ik}/\tau} \Big]

    With ``denominator="other-view"`` this is ``balanced`` eq. 14 and ``pal`` eq. 3.

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.eye(4).repeat_interleave(2, dim=0)
    >>> round(DecoupledContrastive(0.5)(z, Graph.identity(4).views(2)).item(), 4)
    -0.2082
    """

    def __init__(
        self,
        temperature: float = 0.1,
        *,
        denominator: Denominator = "negatives",
        **options: Unpack[ContrastiveOptions],
    ) -> None:
        super().__init__(
            1.0 / positive("temperature", temperature),
            1.0,
            divide=False,
            denominator=denominator,
            **options,
        )


class InfoNCE(Contrastive):
    r"""InfoNCE as in ``geometry`` eq. 1: first views against both views of the others.

    .. math::
        -\frac1n \sum_i \log \frac{e^{\beta f_i^{(1)} \cdot f_i^{(2)}}}
            {\sum_{j \ne i,\, k = 1, 2} e^{\beta f_i^{(1)} \cdot f_j^{(k)}}}

    Args:
        inverse_temperature: :math:`\beta` (the paper calls it a temperature; it is the inverse).
        symmetric: take every view as an anchor; then it is :math:`\beta` times
            ``BalancedContrastive(beta, 1)``.

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.eye(4).repeat_interleave(2, dim=0)
    >>> round(InfoNCE(2.0)(z, Graph.identity(4).views(2)).item(), 4)
    -0.2082
    """

    def __init__(
        self,
        inverse_temperature: float = 2.0,
        *,
        symmetric: bool = False,
        denominator: Denominator = "negatives",
        **options: Unpack[ContrastiveOptions],
    ) -> None:
        super().__init__(
            positive("inverse_temperature", inverse_temperature),
            1.0,
            divide=False,
            denominator=denominator,
            **options,
        )
        self.symmetric = symmetric

    @property
    def _first_view(self) -> bool:
        return not self.symmetric


class BalancedContrastive(Contrastive):
    r"""The balanced contrastive loss, ``balanced`` eq. 17.

    .. math::
        \frac1N \sum_i \sum_j A_{ij} \Big[ -s_{ij}
            + \frac{\lambda}{\alpha} \log \sum_{k \text{ not alike}} e^{\alpha s_{ik}} \Big]

    Args:
        alpha: the inverse temperature: how much more the similar negatives are repelled.
        weight: the paper's :math:`\lambda`, repulsion against attraction.

    The several-transform form (eq. 12-13, with the corrected numerator) is
    ``denominator="other-view", positives="mean"``; the averaged-view target (section 5.5) is
    ``positives="average"``.

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.eye(4).repeat_interleave(2, dim=0)
    >>> round(BalancedContrastive(2.0, 1.0)(z, Graph.identity(4).views(2)).item(), 4)
    -0.1041
    """

    def __init__(
        self,
        alpha: float = 4.0,
        weight: float = 2.0,
        *,
        denominator: Denominator = "negatives",
        **options: Unpack[ContrastiveOptions],
    ) -> None:
        super().__init__(
            positive("alpha", alpha),
            positive("weight", weight),
            divide=True,
            denominator=denominator,
            **options,
        )


class GeneralizedNTXent(BalancedContrastive):
    r"""The balanced loss with the positive in the denominator (``balanced`` section 6).

    With :math:`\lambda = 1` it is NT-Xent divided by :math:`\alpha` (the paper drops the factor).

    >>> import torch
    >>> from likewise import Graph
    >>> z = torch.eye(4).repeat_interleave(2, dim=0)
    >>> round(GeneralizedNTXent(2.0, 1.0)(z, Graph.identity(4).views(2)).item(), 4)
    0.2972
    """

    def __init__(
        self,
        alpha: float = 2.0,
        weight: float = 2.0,
        *,
        denominator: Denominator = "all",
        **options: Unpack[ContrastiveOptions],
    ) -> None:
        super().__init__(alpha, weight, denominator=denominator, **options)
