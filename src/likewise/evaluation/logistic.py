r"""Multinomial logistic regression on all rows at once.

.. math::
    \min_{W, b} \frac1n \sum_i \Big[ \log \sum_c e^{x_i^\top w_c + b_c}
        - x_i^\top w_{y_i} - b_{y_i} \Big] + \frac\lambda2 |W|_F^2

by L-BFGS (Liu and Nocedal 1989) with three things that suit this problem. The penalty does not
mind a rotation, so rows are turned to their principal axes, where the covariance of the rows is a
diagonal matrix; times the mean of p (1 - p), and with the penalty, it stands for the Hessian until
moves tell more (Boehning 1992 has 1/2 in place of that mean, as a bound). Logits are linear in the
step, so a line search reads them and never the rows: an iteration costs two products with the
rows, however many lengths it tries, and waits for the device once for each of them. And logits
have a row per class, which on a CPU is many times faster with few classes.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import torch
from torch import Tensor

from likewise.pairwise.products import matmul_precision

HISTORY = 10
TRIES = 20
LARGEST_EIGENPROBLEM = 8192
"""Beyond this width the axes are left as they are: their eigenvectors would cost more."""

TOO_LARGE = (
    "the loss is not finite: the rows are too large for float32; use scaling='feature' or "
    "'global', or divide them by a number"
)

LOGITS_AT_ONCE = {"cpu": 2**18, "cuda": 2**26}


class Axes(NamedTuple):
    """Rows turned to their principal axes: `rows` = given rows @ `directions`."""

    rows: Tensor
    directions: Tensor | None  # None: the axes as they were

    def back(self, weight: Tensor) -> Tensor:
        """Weights (classes, axes) as weights (classes, d) of the given columns."""
        return weight if self.directions is None else weight @ self.directions.T


def principal_axes(rows: Tensor) -> Axes:
    """Turn centred rows (n, d) to their principal axes, of which there are at most min(n, d).

    With a penalty, weights outside the span of the rows are 0 at the optimum: leaving those
    directions out changes nothing.
    """
    n, d = rows.shape
    if min(n, d) > LARGEST_EIGENPROBLEM:
        return Axes(rows, None)
    with matmul_precision(rows.device, "ieee"):
        directions = None
        if d > n:
            directions = torch.linalg.qr(rows.T).Q
            rows = rows @ directions
        gram = rows.T @ rows
        if not bool(torch.isfinite(gram).all()):
            raise ValueError(TOO_LARGE)
        turn = torch.linalg.eigh(gram.double()).eigenvectors.to(rows.dtype)
        return Axes(rows @ turn, turn if directions is None else directions @ turn)


class Minimum(NamedTuple):
    """Where the descent ended."""

    weight: Tensor  # (classes, d + 1); the last column is the offset
    gap: float  # about how far the loss is above its minimum
    iterations: int
    converged: bool


class LogisticRegression:
    """The loss of one set of rows, to be minimised for several penalties.

    Args:
        rows: (n, d), centred, best in their principal axes.
        labels: (n,) from 0 to n_classes - 1.
        n_classes: how many.

    >>> rows = torch.tensor([[-1.0], [-0.5], [0.5], [1.0]])
    >>> fit = LogisticRegression(rows, torch.tensor([0, 0, 1, 1]), 2).minimise(0.1)
    >>> fit.converged, bool(fit.weight[1, 0] > 0)
    (True, True)
    """

    def __init__(self, rows: Tensor, labels: Tensor, n_classes: int) -> None:
        self.rows = rows
        self.labels = labels[None]
        self.n_classes = n_classes
        self.variance = torch.cat([rows.square().mean(dim=0), rows.new_ones(1)])

    def minimise(
        self,
        penalty: float,
        start: Tensor | None = None,
        *,
        tolerance: float = 1e-7,
        iterations: int = 500,
    ) -> Minimum:
        """Descend until the loss is within `tolerance` (nats a row) of its minimum, or so it seems.

        Args:
            penalty: lambda.
            start: (classes, d + 1) to start from; default: zeros.
            tolerance: the gap at which to stop, estimated as half of g^T H^-1 g.
            iterations: the most to do.
        """
        with matmul_precision(self.rows.device, "ieee"):
            return self._minimise(penalty, start, tolerance, iterations)

    def _minimise(
        self, penalty: float, start: Tensor | None, tolerance: float, iterations: int
    ) -> Minimum:
        shape = (self.n_classes, self.rows.shape[1] + 1)
        weight = self.rows.new_zeros(shape) if start is None else start.clone()
        penalties = weight.new_full((1, shape[1]), penalty)
        penalties[0, -1] = 0.0  # the offset is free
        logits = self._product(weight)
        residual, spread = self._residual(logits)
        gradient = self._transposed(residual) + penalties * weight
        pairs: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=HISTORY)
        gap, restarted = float("inf"), False
        for iteration in range(iterations):
            # Newton's diagonal, with the average curvature of the loss in place of each row's own.
            diagonal = (spread * self.variance + penalties).clamp_min_(1e-12).reciprocal_()
            step = -_two_loops(gradient, pairs, diagonal)
            change = self._product(step)
            length, gap = self._line_search(logits, change, weight, step, penalties, gradient)
            if math.isnan(gap):
                raise ValueError(TOO_LARGE)
            if gap <= tolerance:
                return Minimum(weight, gap, iteration, True)
            if length == 0.0:
                # Round-off has spoilt the history, or has the last word.
                if restarted or not pairs:
                    return Minimum(weight, gap, iteration, gap <= 100 * tolerance)
                pairs.clear()
                restarted = True
                continue
            restarted = False
            weight = weight.add(step, alpha=length)
            logits = logits.add_(change, alpha=length)
            residual, spread = self._residual(logits)
            new = self._transposed(residual) + penalties * weight
            moved, bent = length * step, new - gradient
            pairs.append((moved, bent, (moved * bent).sum()))
            gradient = new
        return Minimum(weight, gap, iterations, False)

    def _product(self, weight: Tensor) -> Tensor:
        return torch.addmm(weight[:, -1:], weight[:, :-1], self.rows.T)

    def _transposed(self, residual: Tensor) -> Tensor:
        total = torch.cat([residual @ self.rows, residual.sum(dim=1, keepdim=True)], dim=1)
        return total / len(self.rows)

    def _residual(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities less the labels, and the mean of p (1 - p)."""
        residual = logits.softmax(dim=0)
        spread = (residual - residual.square()).mean()
        one = residual.new_ones(1, 1).expand_as(self.labels)
        return residual.scatter_add_(0, self.labels, -one), spread

    def _line_search(
        self,
        logits: Tensor,
        change: Tensor,
        weight: Tensor,
        step: Tensor,
        penalties: Tensor,
        gradient: Tensor,
    ) -> tuple[float, float]:
        """A length at which the loss along `step` is nearly flat (0.0: none), and the gap.

        Newton's method on the length, kept inside a bracket: the loss is convex along the step.
        """
        fixed = torch.stack(
            [
                (penalties * weight * step).sum(),
                (penalties * step * step).sum(),
                (gradient * step).sum(),
            ]
        )
        low, high, length = 0.0, float("inf"), 1.0
        slope_at_0 = gap = 0.0
        for attempt in range(TRIES):
            change_of_loss, slope, bend, cross, square, first = torch.cat(
                [self._along(logits, change, length), fixed]
            ).tolist()
            if attempt == 0:
                slope_at_0, gap = first, -first / 2
                if not slope_at_0 < 0:
                    # A step that does not descend says nothing of the gap, unless nothing is left.
                    return 0.0, float("inf") if slope_at_0 > 0 else gap
            change_of_loss += length * cross + length**2 * square / 2
            slope += cross + length * square
            bend += square
            small = -0.5 * slope_at_0
            if abs(slope) <= small and (slope <= 0 or change_of_loss <= 0):
                return length, gap
            if slope < 0:
                low = length
            else:
                high = length
            newton = length - slope / bend if bend > 0 else float("inf")
            if not low < newton < high:
                newton = 2 * low + 1 if high == float("inf") else (low + high) / 2
            length = min(newton, 10 * length)
        return low, gap

    def _along(self, logits: Tensor, change: Tensor, length: float) -> Tensor:
        """Mean change of the loss at `length`, its slope and its curvature."""
        most = LOGITS_AT_ONCE.get(logits.device.type, LOGITS_AT_ONCE["cpu"])
        size = max(most // self.n_classes, 1)
        total = logits.new_zeros(3, dtype=torch.float64)
        for at, step, label in zip(
            *(x.split(size, dim=1) for x in (logits, change, self.labels)), strict=True
        ):
            moved = torch.add(at, step, alpha=length)
            own = step.gather(0, label)[0]
            rise = moved.logsumexp(dim=0) - at.logsumexp(dim=0) - length * own
            share = moved.softmax(dim=0)
            mean = (share * step).sum(dim=0)
            bend = (share * (step - mean).square()).sum(dim=0)
            total += torch.stack([part.double().sum() for part in (rise, mean - own, bend)])
        return total / logits.shape[1]


def _two_loops(
    gradient: Tensor, pairs: deque[tuple[Tensor, Tensor, Tensor]], diagonal: Tensor
) -> Tensor:
    """The inverse Hessian that `diagonal` and the last moves suggest, times the gradient."""
    vector, kept = gradient, []
    for moved, bent, product in reversed(pairs):
        share = (moved * vector).sum() / product
        vector = vector - share * bent
        kept.append(share)
    vector = diagonal * vector
    for (moved, bent, product), share in zip(pairs, reversed(kept), strict=True):
        vector = vector + (share - (bent * vector).sum() / product) * moved
    return vector
