r"""With which probability samples are in a batch that known pairs are brought into.

The batch is the known samples A that were drawn, and as many samples of a shuffled batch as are
needed to fill it, A left out. With :math:`q_i` the probability that i is not in A, :math:`q_{ij}`
that neither is, a the mean size of A, and :math:`f = (b-a)/(n-a)`,
:math:`f_2 = f\,(b-a-1)/(n-a-1)` the chance of one and of two samples to be filled in,

.. math::
    \pi_i = 1 - q_i (1 - f), \qquad
    \pi_{ij} = 1 - (q_i + q_j)(1 - f) + q_{ij} (1 - 2f + f_2).
"""

from __future__ import annotations

import numpy as np

from likewise.training.batches.draws import EdgeDraw, LabelDraw
from likewise.training.batches.knowledge import random_pair


class Inclusion:
    """Probabilities, and what they are divided into: the weights of a batch's entries.

    Exact where A has the same size at every step: for labels that are drawn one by one, and for
    edges that share no ends. Otherwise its size varies a little around a, and f with it, which is
    neglected: an error of 1 % was seen for two hubs in batches of 8, and less in larger ones.

    Args:
        n: samples in all.
        batch_size: b.
        edges, labels: what is drawn; None where there is nothing of the kind.
    """

    def __init__(
        self, n: int, batch_size: int, edges: EdgeDraw | None, labels: LabelDraw | None
    ) -> None:
        self.edges, self.labels = edges, labels
        self._random = batch_size / n
        self._random_pair = random_pair(n, batch_size)
        self._edge_missed = np.ones(n) if edges is None else edges.sample_missed()
        self._label_missed = np.ones(n)
        if labels is not None:
            self._label_missed[labels.nodes] = 1 - labels.drawn
        self._missed = self._edge_missed * self._label_missed
        self.known_samples = float((1 - self._missed).sum())
        """The mean size of A."""
        open_places, others = batch_size - self.known_samples, n - self.known_samples
        self._fill = open_places / others if others > 0 else 1.0
        more = (open_places - 1) / (others - 1) if others > 1 else 1.0
        self._fill_both = self._fill * max(more, 0.0)

    # --- probabilities -----------------------------------------------------------------------

    def _single(self, missed: np.ndarray | float) -> np.ndarray:
        return np.asarray(1 - missed * (1 - self._fill))

    def _pair(
        self, first: np.ndarray | float, second: np.ndarray | float, both: np.ndarray | float
    ) -> np.ndarray:
        neither_filled = 1 - 2 * self._fill + self._fill_both
        return np.asarray(1 - (first + second) * (1 - self._fill) + both * neither_filled)

    @property
    def sample(self) -> np.ndarray:
        """pi_i of every sample."""
        return self._single(self._missed)

    def pair(self, i: np.ndarray, j: np.ndarray, joined: np.ndarray) -> np.ndarray:
        """pi_ij of pairs of two samples; `joined`: whether they are an edge."""
        both = self._labels_missed(i, j)
        if self.edges is not None:
            both = both * self.edges.pair_missed(i, j, joined)
        return self._pair(self._missed[i], self._missed[j], both)

    def _labels_missed(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """The probability that the draw of labels brings neither i nor j."""
        labels = self.labels
        if labels is None:
            return np.ones(len(i))
        place = np.full(len(self._missed), -1)
        place[labels.nodes] = np.arange(len(labels.nodes))
        a, b = place[i], place[j]
        both = (a >= 0) & (b >= 0)
        same = both & (labels.classes[a] == labels.classes[b])
        drawn = np.where(same, labels.classmates_drawn[labels.classes[a]], labels.strangers_drawn)
        one_each = self._label_missed[i] * self._label_missed[j]
        return np.where(both, 1 - 2 * labels.drawn + drawn, one_each)

    def _labelled_pair(self, drawn: np.ndarray | float) -> np.ndarray:
        """pi_ij of two labelled samples that no edge touches, `drawn` together with that
        probability."""
        alone = 0.0 if self.labels is None else self.labels.drawn
        return self._pair(1 - alone, 1 - alone, 1 - 2 * alone + drawn)

    def labelled_pairs(self, pairs: float) -> float:
        """How many of `pairs` classmates a batch holds, on average (edges left aside)."""
        if self.labels is None:
            return pairs * float(self._labelled_pair(0.0))
        sizes = np.bincount(self.labels.classes)
        together = self._labelled_pair(self.labels.classmates_drawn)
        return float((sizes * (sizes - 1) / 2 * together).sum())

    # --- weights: the probability in a shuffled batch over that in these ----------------------

    @property
    def sample_weight(self) -> np.ndarray:
        """pi0_i / pi_i of every sample."""
        return self._random / self.sample

    def pair_weight(self, i: np.ndarray, j: np.ndarray, joined: np.ndarray) -> np.ndarray:
        """pi0_ij / pi_ij of pairs of two samples."""
        return self._random_pair / self.pair(i, j, joined)

    @property
    def strangers_weight(self) -> float:
        """pi0_ij / pi_ij of two labelled samples of different classes."""
        drawn = 0.0 if self.labels is None else self.labels.strangers_drawn
        return float(self._random_pair / self._labelled_pair(drawn))

    @property
    def classmates_weight(self) -> np.ndarray:
        """The same of two samples of a class, for every class."""
        assert self.labels is not None
        return np.asarray(self._random_pair / self._labelled_pair(self.labels.classmates_drawn))

    def factors(self) -> list[tuple[float, np.ndarray]]:
        r"""The weight of any two labelled samples, drawn one by one, as a sum of products:
        pairs :math:`(c, s)` with :math:`\pi^0_{ij} / \pi_{ij} = \sum c\, s_i s_j`.

        With :math:`e_i` the probability that no edge brings i, :math:`\pi_{ij}` is
        :math:`p_i p_j + \epsilon e_i e_j`, where :math:`p_i = 1 - \beta e_i` and
        :math:`\epsilon` is small: two samples hinder each other a little in drawing. Its inverse
        is expanded to first order, such that samples that no edge touches (e = 1) have their
        exact weight; for the others the relative error is below :math:`1 / (4 g^2)`, if g
        samples are drawn."""
        alone, drawn = 0.0, 0.0
        if self.labels is not None:
            alone, drawn = self.labels.drawn, self.labels.strangers_drawn
        missed = (1 - self._fill) * (1 - alone)
        both_missed = (1 - 2 * self._fill + self._fill_both) * (1 - 2 * alone + drawn)
        hindrance = both_missed - missed**2
        untouched = hindrance / (1 - missed) ** 2
        present = 1 - missed * self._edge_missed
        return [
            (self._random_pair, 1 / present),
            (
                -self._random_pair * hindrance / (1 + untouched),
                self._edge_missed / present**2,
            ),
        ]
