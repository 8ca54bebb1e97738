"""Neural collapse: do classes shrink to points, and do the points form a simplex?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.diagnostics.classes import ONE_CLASS, Classes, classes_of
from likewise.diagnostics.figures import UNDEFINED, Figures
from likewise.diagnostics.given import rows_of, weight_of, wide_chunks
from likewise.graph.arrays import Array, as_tensor, in_kind, is_numpy
from likewise.information.precision import rounding


@dataclass(frozen=True)
class NeuralCollapse(Figures):
    """What :func:`neural_collapse` found; each of the four is 0 at full neural collapse.

    Attributes:
        nc1: variability collapse, Tr(Sigma_W Sigma_B^+) / K.
        nc2: distance of the class means to a simplex ETF (:func:`etf_distance`).
        nc2_norms: coefficient of variation of |mu_c - mu_G|.
        nc2_angles: mean |cos(mu_c - mu_G, mu_c' - mu_G) + 1 / (K - 1)| over pairs of classes.
        nc3: self-duality, |W / |W| - M / |M||_F^2 with M the centred class means.
        nc4: share of rows that the classifier and the nearest class mean put into other classes.
        nearest_mean_accuracy: share of rows whose nearest class mean is their own.
        classes: K.
        class_sizes: rows of each class, in the order of the class indices.
    """

    nc1: float
    nc2: float
    nc2_norms: float
    nc2_angles: float
    nc3: float
    nc4: float
    nearest_mean_accuracy: float
    classes: int
    class_sizes: Any


@torch.no_grad()
def neural_collapse(
    z: Array, labels: Any, *, weight: Array | None = None, bias: Array | None = None
) -> NeuralCollapse:
    r"""The four measures of neural collapse.

    With the class means :math:`\mu_c`, the mean of all rows :math:`\mu_G`,
    :math:`\Sigma_W = \frac1n \sum_i (z_i - \mu_{y_i})(\cdot)^\top` and
    :math:`\Sigma_B = \frac1K \sum_c (\mu_c - \mu_G)(\cdot)^\top`:

    .. math:: \mathrm{NC1} = \tfrac1K \mathrm{Tr}(\Sigma_W \Sigma_B^+), \qquad
        \mathrm{NC3} = \Bigl|\frac{W}{|W|_F} - \frac{M}{|M|_F}\Bigr|_F^2, \qquad
        \mathrm{NC4} = \tfrac1n \#\{i : \arg\max_c (W z_i + b)_c \ne
        \arg\min_c |z_i - \mu_c|\}

    Paper: matrix-ssl, appendix D, in words; the formulas are those of Papyan, Han and Donoho 2020.
    Eigenvalues of Sigma_B that are round-off count as zero in its pseudo-inverse.

    Args:
        z: embeddings (n, d).
        labels: class indices (n,), -1 where unknown (left out).
        weight: (K, d) of a linear classifier whose row c is the c-th class in the order of the
            indices that occur; without it NC3 and NC4 are undefined.
        bias: (K,) of that classifier; default 0.

    >>> from likewise.information import simplex_etf
    >>> frame = simplex_etf(3)
    >>> found = neural_collapse(frame[[0, 0, 1, 1, 2, 2]], [0, 0, 1, 1, 2, 2], weight=frame)
    >>> [abs(round(x, 6)) for x in (found.nc1, found.nc2, found.nc3, found.nc4)]
    [0.0, 0.0, 0.0, 0.0]
    """
    groups = classes_of(z, labels)
    k, dim = groups.means.shape
    notes = [f"{groups.unlabelled} rows without a label are left out"] * bool(groups.unlabelled)
    classifier = _classifier(weight, bias, k, dim, groups.rows.device)
    if weight is None:
        notes.append("no classifier is given: NC3 and NC4 are undefined")
    centred = groups.centered_means
    nearest, other = _nearest_means(groups, classifier)
    nc1 = norms = angles = nc3 = UNDEFINED
    spread = float(torch.linalg.vector_norm(centred))
    scale = float(torch.linalg.vector_norm(groups.means))
    if k == 1:
        notes.append(ONE_CLASS)
    elif spread <= rounding(groups.rows.dtype) * scale or spread == 0:
        notes.append("all class means are equal: what lies between classes is undefined")
    else:
        lengths = torch.linalg.vector_norm(centred, dim=1)
        norms = float(lengths.std(correction=0) / lengths.mean())
        if bool((groups.counts == 1).all()):
            notes.append("every class has one row: the variance within classes is undefined")
        else:
            nc1 = _ratio_of_scatters(groups.within, centred, scale)
        if bool((lengths <= rounding(groups.rows.dtype) * scale).any()):
            notes.append("a class mean is the global mean: it has no direction, angles undefined")
        else:
            directions = centred / lengths[:, None]
            cosines = (directions @ directions.T)[~torch.eye(k, dtype=torch.bool)]
            angles = float((cosines + 1 / (k - 1)).abs().mean())
        if classifier is not None:
            matrix = classifier[0]
            size = torch.linalg.vector_norm(matrix)
            if bool(size == 0):
                notes.append("the classifier is zero: NC3 is undefined")
            else:
                nc3 = float((matrix / size - centred / spread).square().sum())
    return NeuralCollapse(
        notes=tuple(notes),
        nc1=nc1,
        nc2=UNDEFINED if math.isnan(norms) else _etf_distance(centred),
        nc2_norms=norms,
        nc2_angles=angles,
        nc3=nc3,
        nc4=UNDEFINED if k == 1 else other,
        nearest_mean_accuracy=UNDEFINED if k == 1 else nearest,
        classes=k,
        class_sizes=in_kind(groups.counts.long(), is_numpy(z)),
    )


def _ratio_of_scatters(within: Tensor, centred: Tensor, scale: float) -> float:
    """Tr(Sigma_W Sigma_B^+) / K by the singular vectors of the class means, d x K.

    The centred means have one dependence (their weighted sum is 0), so that at most K - 1
    directions are real; others are round-off of means of the size `scale`.
    """
    k = len(centred)
    _, values, directions = torch.linalg.svd(centred, full_matrices=False)
    values, directions = values[: k - 1], directions[: k - 1]
    kept = values > 8 * max(centred.shape) * torch.finfo(torch.float64).eps * scale
    directions, values = directions[kept], values[kept]
    mass = ((directions @ within) * directions).sum(dim=1)
    return float((mass / values.square()).sum())


def _classifier(
    weight: Array | None, bias: Array | None, k: int, dim: int, device: torch.device
) -> tuple[Tensor, Tensor] | None:
    if weight is None:
        if bias is not None:
            raise ValueError("bias is given without weight: give both, or neither")
        return None
    matrix = weight_of(weight).to(device)
    if matrix.shape != (k, dim):
        raise ValueError(
            f"weight has shape {tuple(matrix.shape)}, but there are {k} classes in {dim} "
            f"dimensions: give one row per class that occurs, ({k}, {dim})"
        )
    if bias is None:
        return matrix, torch.zeros(k, dtype=torch.float64, device=device)
    shift = as_tensor(bias).detach().to(device, torch.float64)
    if shift.shape != (k,):
        raise ValueError(f"bias has shape {tuple(shift.shape)} for {k} classes: give ({k},)")
    return matrix, shift


def _nearest_means(
    groups: Classes, classifier: tuple[Tensor, Tensor] | None
) -> tuple[float, float]:
    """Accuracy of the nearest class mean, and the share where the classifier says otherwise."""
    right = other = 0
    # |z - mu|^2 without |z|^2; centred first, so that a common shift costs no digits.
    middle = groups.global_mean
    means = groups.centered_means
    squares = means.square().sum(dim=1)
    for start, chunk in wide_chunks(groups.rows):
        found = (squares - 2 * (chunk - middle) @ means.T).argmin(dim=1)
        right += int((found == groups.codes[start : start + len(chunk)]).sum())
        if classifier is not None:
            said = (chunk @ classifier[0].T + classifier[1]).argmax(dim=1)
            other += int((said != found).sum())
    n = len(groups.rows)
    return right / n, UNDEFINED if classifier is None else other / n


@torch.no_grad()
def etf_distance(means: Array) -> float:
    r"""Distance of K class means to a simplex equiangular tight frame, whatever scale and rotation.

    .. math:: \Bigl| \frac{M M^\top}{|M M^\top|_F}
        - \frac{1}{\sqrt{K-1}}\bigl(I - \tfrac1K 1 1^\top\bigr) \Bigr|_F

    with M the means less their mean. Between 0 and sqrt(2).

    Paper: matrix-ssl, definitions D.1 and D.2; the distance is NC2 of Zhu et al. 2021. Errata:
    K - 1 dimensions suffice for a simplex.

    Args:
        means: (K, d), K >= 2, not all equal.

    >>> etf_distance(torch.eye(4)) < 1e-12  # centred, a basis is a simplex
    True
    """
    rows = rows_of(means, "means", at_least=2).double()
    centred = rows - rows.mean(dim=0)
    size = torch.linalg.vector_norm(centred)
    if bool(size <= rounding(as_tensor(means).dtype) * torch.linalg.vector_norm(rows)):
        raise ValueError("means are all equal: a simplex needs points that differ")
    return _etf_distance(centred)


def _etf_distance(centred: Tensor) -> float:
    k = len(centred)
    gram = centred @ centred.T
    identity = torch.eye(k, dtype=gram.dtype, device=gram.device)
    frame = (identity - 1 / k) / math.sqrt(k - 1)
    return float(torch.linalg.vector_norm(gram / torch.linalg.vector_norm(gram) - frame))
