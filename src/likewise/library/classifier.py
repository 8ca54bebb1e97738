"""A classifier from a few known items: what a linear function says, and what neighbours say."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.evaluation.penalty import fit_logistic
from likewise.library.exact import Rows
from likewise.library.neighborhood import NEIGHBORS, Neighborhood, centred, pool_of

REACH = 0.99
"""How far labels spread over the graph: (1 - reach) is lost at every step."""

STRENGTH = 5.0
"""The penalty of the linear function is this over the number of answers. Nothing is chosen by the
answers: what is chosen by them does better on them than on others, and expectations would be too
high."""

LEAST = 1e-6
"""The least probability that one of the two gives: either may be wrong."""


Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]


class FewLabels:
    r"""Logistic regression times label propagation.

    .. math::
        l_{ic} = \log p^{\mathrm{linear}}_{ic} + \log p^{\mathrm{neighbours}}_{ic}

    The linear function is fitted to the known rows alone, the neighbours see all rows; their
    product is better calibrated and at most labels more accurate than either
    (`docs/use.md`). Of more than 20,000 rows, the graph holds the known ones and a sample; the
    others take what their neighbours in it have.

    Args:
        rows: (n, d) of length 1.
        needed: places that the graph has to hold: those of which a label is known.
        seed: of the sample.
    """

    def __init__(self, rows: Rows, needed: NDArray[np.int64], *, seed: int = 0) -> None:
        self.rows, self.seed = rows, seed
        unit = centred(rows)
        self.pool = pool_of(len(rows), needed, seed)
        self.graph = Neighborhood(unit[self.pool])
        self.place = np.full(len(rows), -1, dtype=np.int64)
        self.place[self.pool] = np.arange(len(self.pool))
        self._rest = np.setdiff1d(np.arange(len(rows)), self.pool, assume_unique=True)
        self._near: tuple[NDArray[np.int64], Matrix] | None = None
        if len(self._rest):
            found = [
                self.graph.weights_of(unit[self._rest[begin : begin + 20_000]], NEIGHBORS)
                for begin in range(0, len(self._rest), 20_000)
            ]
            self._near = (
                np.concatenate([places for places, _ in found]),
                np.concatenate([weights for _, weights in found]),
            )

    def logits(
        self,
        known: NDArray[np.int64],
        labels: Labels,
        n_classes: int,
        at: NDArray[np.int64],
        penalty: float,
    ) -> Matrix:
        """(len(at), n_classes) from the known places and their labels.

        `penalty` is that of all answers, also where some are held out: fits with and without them
        have to be sure of themselves alike, or the temperature of one would not suit the other.
        Classes of which no item is known get the least probability.
        """
        present, codes = np.unique(labels, return_inverse=True)
        found = np.full((len(at), n_classes), 2 * np.log(LEAST))
        if len(present) == 1:
            found[:, present[0]] = 0.0
            return found
        linear = self._linear(known, codes, len(present), at, penalty)
        spread = self._spread(known, codes, len(present))[at]
        found[:, present] = np.log(np.maximum(linear, LEAST)) + np.log(np.maximum(spread, LEAST))
        return found

    def _standard(
        self, known: NDArray[np.int64]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The known rows with mean 0 and deviation 1 in every column, and both."""
        rows = torch.from_numpy(self.rows[known])
        mean, deviation = rows.mean(dim=0), rows.std(dim=0).clamp_min(1e-4)
        return (rows - mean) / deviation, mean, deviation

    def _linear(
        self, known: Labels, codes: Labels, size: int, at: NDArray[np.int64], penalty: float
    ) -> Matrix:
        standard, mean, deviation = self._standard(known)
        options = {"penalty": [penalty], "tolerance": 1e-5, "iterations": 200}
        weight, bias, _ = fit_logistic(standard, torch.from_numpy(codes), size, self.seed, options)
        parts = [
            (((torch.from_numpy(self.rows[some]) - mean) / deviation) @ weight.T + bias)
            .double()
            .softmax(dim=1)
            .numpy()
            for some in np.array_split(at, max(1, len(at) // 100_000))
        ]
        return np.concatenate(parts)

    def _spread(self, known: Labels, codes: Labels, size: int) -> Matrix:
        inside = self.place[known]
        start = np.zeros((len(self.pool), size))
        there = inside >= 0
        start[inside[there], codes[there]] = 1.0
        scores = np.maximum(self.graph.propagate(start, REACH), 0.0)
        # All classes get the same mass: one with more known items is not more frequent.
        scores /= np.maximum(scores.sum(axis=0), 1e-12)
        total = scores.sum(axis=1, keepdims=True)
        shares = np.where(total > 1e-15, scores / np.maximum(total, 1e-15), 1.0 / size)
        found = np.zeros((len(self.rows), size))
        found[self.pool] = shares
        if self._near is not None:
            places, weights = self._near
            found[self._rest] = np.einsum("qk,qkc->qc", weights, shares[places])
        return found
