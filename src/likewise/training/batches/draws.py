r"""How known pairs are drawn, and with which probability a sample is left out.

Both kinds of knowledge are drawn without replacement, in rounds: a random order of all edges (of
all teams of labelled samples) is dealt out over the steps, and when less than a hand is left, all
are shuffled again. What one step gets is then a simple random sample, and over the steps all come
up equally often.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from likewise.training.batches.plan import EDGES, LABELS, stream


class EdgeDraw:
    r"""M of the E known edges, both ends of each.

    A set of D edges is missed with probability :math:`\binom{E-D}{M} / \binom{E}{M}`; a sample
    is missed where all its edges are.

    Args:
        n: samples in all.
        i, j: the ends of the edges.
        samples: how many samples the edges are to bring, on average (edges share ends).
        room: how many they may bring at most.
    """

    def __init__(self, n: int, i: np.ndarray, j: np.ndarray, samples: int, room: int) -> None:
        self.i, self.j = i, j
        self.degrees = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
        few, many = 1, min(len(i), room // 2)
        while few < many:
            size = (few + many + 1) // 2
            if self._touched(size) <= samples + 1e-6:
                few = size
            else:
                many = size - 1
        self.size = few
        self._missed = self._missing(few)

    def _missing(self, size: int) -> np.ndarray:
        """The probability that D given edges are all missed, for every D that can be asked."""
        edges = len(self.i)
        most = min(2 * int(self.degrees.max()), edges)
        fewer = np.arange(most)
        ratio = np.clip(edges - size - fewer, 0, None) / (edges - fewer)
        return np.concatenate([[1.0], np.cumprod(ratio)])

    def _touched(self, size: int) -> float:
        return float((1 - self._missing(size)[self.degrees]).sum())

    def sample_missed(self) -> np.ndarray:
        """The probability of every sample that no edge brings it."""
        return self._missed[self.degrees]

    def pair_missed(self, i: np.ndarray, j: np.ndarray, joined: np.ndarray) -> np.ndarray:
        """The probability of pairs that no edge brings either; `joined`: the pair is an edge."""
        return self._missed[self.degrees[i] + self.degrees[j] - joined]

    def steps(self, seed: int, epoch: int, start: int) -> Iterator[np.ndarray]:
        """The samples that are brought at every step from `start` on (some several times)."""
        current, order = -1, self.i
        for number, hand in _rounds(len(self.i), self.size, start):
            if number != current:
                current, order = number, stream(seed, epoch, EDGES, number).permutation(len(self.i))
            drawn = order[hand]
            yield np.concatenate([self.i[drawn], self.j[drawn]])


class LabelDraw:
    r"""Some of the labelled samples, so that both classmates and others meet.

    Where classes are many, samples come in teams: every class is shuffled and cut into teams of t
    classmates (the last one may be smaller), and g of the T teams are drawn. With t = 1 this is a
    simple random sample. A sample is drawn with probability g/T, two samples of different teams
    with g(g - 1) / (T(T - 1)), and two classmates are in one team with probability
    :math:`(f t(t-1) + r(r-1)) / (n_c(n_c-1))`, where :math:`n_c = f t + r`.

    Args:
        nodes: the labelled samples.
        classes: the class of each; None: nobody knows, and samples come alone.
        samples: how many samples are to be brought.
        room: how many may be brought at most.
    """

    classmates = 3
    """How many classmates a labelled sample should meet: where it would meet fewer by chance,
    samples come in teams of one more."""

    def __init__(
        self, nodes: np.ndarray, classes: np.ndarray | None, samples: int, room: int
    ) -> None:
        total = len(nodes)
        samples = min(samples, total)
        self.team = 1
        sizes = np.array([total])
        self.classes = np.zeros(total, dtype=np.int64)
        if classes is not None:
            _, self.classes = np.unique(classes, return_inverse=True)
            sizes = np.bincount(self.classes)
            by_chance = (samples - 1) * (sizes * (sizes - 1)).sum() / max(total * (total - 1), 1)
            if by_chance < self.classmates:
                self.team = min(1 + self.classmates, samples)
        self.nodes = nodes
        whole, rest = np.divmod(sizes, self.team)
        together = whole * self.team * (self.team - 1) + rest * (rest - 1)
        same_team = together / np.maximum(sizes * (sizes - 1), 1)
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        within = np.arange(total) - np.repeat(first, sizes)
        self._starts = np.flatnonzero(within % self.team == 0)
        self._sizes = np.diff(np.append(self._starts, total))
        teams = len(self._starts)
        self.size = max(1, min(samples * teams // total, room // self.team, teams))
        self.largest = self.size * self.team
        """How many samples are brought at most."""
        self.drawn = self.size / teams
        """The probability that a labelled sample is drawn."""
        self.strangers_drawn = self.size * (self.size - 1) / max(teams * (teams - 1), 1)
        """The probability that two samples of different classes are drawn."""
        self.classmates_drawn = same_team * self.drawn + (1 - same_team) * self.strangers_drawn
        """The probability that two samples of a class are drawn, for every class."""

    def steps(self, seed: int, epoch: int, start: int) -> Iterator[np.ndarray]:
        """The samples that are brought at every step from `start` on."""
        current, order, members = -1, self._starts, self.nodes
        for number, hand in _rounds(len(self._starts), self.size, start):
            if number != current:
                current, random = number, stream(seed, epoch, LABELS, number)
                order, members = random.permutation(len(self._starts)), self._shuffled(random)
            drawn = order[hand]
            starts, sizes = self._starts[drawn], self._sizes[drawn]
            before = np.cumsum(sizes) - sizes
            yield members[np.repeat(starts - before, sizes) + np.arange(sizes.sum())]

    def _shuffled(self, random: np.random.Generator) -> np.ndarray:
        """The samples in random order, class by class where they come in teams."""
        order = random.permutation(len(self.nodes))
        if self.team > 1:
            order = order[np.argsort(self.classes[order], kind="stable")]
        return self.nodes[order]


def _rounds(total: int, size: int, start: int) -> Iterator[tuple[int, slice]]:
    """The round of every step, and its hand of `size` out of `total`; without end."""
    hands = total // size
    for step in count(start):
        number, hand = divmod(step, hands)
        yield number, slice(hand * size, (hand + 1) * size)
