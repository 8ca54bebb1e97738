"""Whom to ask next: templates of classes with grids of candidates, or random pairs.

A query is one pair of which somebody says whether the two are alike. A question of ``pal``'s
algorithm 3 shows a template and 10 candidates, and so costs 10 queries.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likewise.reproduce.embedding import REGULARIZATION
from likewise.reproduce.problems import CLASSES, Labels, Matrix

GRID = 10
"""Candidates a question."""


class TemplateQuestions:
    """The oracle à la captcha (``pal`` algorithm 3), with what follows from its answers.

    `answers` (n, C) is 1 where a point is known to be of a class, -1 where it is known not to be,
    and 0 where nothing is known. A point that was excluded from all classes but one is of that
    one. The labels are looked at only to choose one template a class and to answer questions.

    Args:
        labels: the classes, which the answers come from.
        generator: for the templates and the candidates.

    >>> oracle = TemplateQuestions(np.array([0, 1, 0, 1]), np.random.default_rng(0), classes=2)
    >>> while (topic := oracle.topic()) is not None:
    ...     oracle.ask(topic, oracle.random_candidates(topic))
    >>> oracle.asked
    2
    >>> oracle.graph().astype(int).tolist()
    [[1, -1, 1, -1], [-1, 1, -1, 1], [1, -1, 1, -1], [-1, 1, -1, 1]]
    """

    def __init__(
        self, labels: Labels, generator: np.random.Generator, classes: int = CLASSES
    ) -> None:
        self._labels = labels
        self._generator = generator
        self.asked = 0
        self.templates = np.array(
            [generator.choice(np.flatnonzero(labels == c)) for c in range(classes)]
        )
        self.answers = np.zeros((len(labels), classes), dtype=np.int8)
        for c, template in enumerate(self.templates):
            self._learn(template, c)

    def topic(self) -> int | None:
        """The class with the fewest known members that can still be asked about."""
        members = (self.answers == 1).sum(axis=0)
        for c in np.argsort(members, kind="stable"):
            if (self.answers[:, c] == 0).any():
                return int(c)
        return None

    def candidates(self, topic: int) -> NDArray[np.intp]:
        """Points that may be of a class: not of a known class, not yet asked against this one."""
        return np.flatnonzero(self.answers[:, topic] == 0)

    def random_candidates(self, topic: int, size: int = GRID) -> NDArray[np.intp]:
        """Some of them."""
        return self._generator.permutation(self.candidates(topic))[:size]

    def guided_candidates(self, topic: int, scores: Matrix, size: int = GRID) -> NDArray[np.intp]:
        """Candidates that are predicted to be of the class, at random; then the next likely ones.

        Args:
            topic: the class.
            scores: (n, C), a prediction for every point: the largest wins.
            size: how many.
        """
        candidates = self.candidates(topic)
        possible = np.where(self.answers[candidates] == -1, -np.inf, scores[candidates])
        own = possible[:, topic]
        rivals = np.delete(possible, topic, axis=1).max(axis=1)
        # Those predicted first, in random order: the surest ones lie beside what is known already
        # and would teach little.
        predicted = own >= rivals
        rank = np.where(predicted, self._generator.random(len(candidates)), rivals - own)
        order = np.lexsort((rank, ~predicted))
        return candidates[order[:size]]

    def ask(self, topic: int, items: NDArray[np.intp]) -> None:
        """Ask whether each of some points is like the template of a class."""
        for item in items:
            self.asked += 1
            if self._labels[item] == topic:
                self._learn(item, topic)
                continue
            self.answers[item, topic] = -1
            left = np.flatnonzero(self.answers[item] == 0)
            if len(left) == 1:
                self._learn(item, left[0])

    def _learn(self, item: int, c: int) -> None:
        self.answers[item] = -1
        self.answers[item, c] = 1

    def graph(self, *, signed: bool = True) -> Matrix:
        """What is known: 1 alike, -1 different (0 where not `signed`), 0 unknown (``pal`` eq. 15).

        Two points are known to differ where one is of a class that the other is not of. A point
        is alike to itself, whatever is known: without any answer this is the identity.
        """
        members = (self.answers == 1).astype(float)
        if self.asked == 0:  # that templates differ is no answer
            return np.eye(len(members))
        graph = members @ members.T
        if signed:
            excluded = members @ (self.answers == -1).astype(float).T
            graph -= (excluded + excluded.T) > 0
        np.fill_diagonal(graph, 1.0)
        return graph


class RandomPairs:
    """Passive questions (``pal`` algorithm 2): random pairs, without a thought about what follows.

    Args:
        labels: the classes, which the answers come from.
        generator: for the order of the pairs; no pair comes twice.
    """

    def __init__(self, labels: Labels, generator: np.random.Generator) -> None:
        n = len(labels)
        rows, columns = np.triu_indices(n, 1)
        order = generator.permutation(len(rows))
        self._rows, self._columns = rows[order], columns[order]
        self._alike = labels[self._rows] == labels[self._columns]
        self._n = n

    def graph(self, asked: int, *, signed: bool = True) -> Matrix:
        """What the first pairs say: just these, and that everybody is alike to themselves."""
        graph = np.eye(self._n)
        rows, columns = self._rows[:asked], self._columns[:asked]
        answers = np.where(self._alike[:asked], 1.0, -1.0 if signed else 0.0)
        graph[rows, columns] = answers
        graph[columns, rows] = answers
        return graph


def predict_from_answers(kernel: Matrix, answers: NDArray[np.int8]) -> Matrix:
    """Scores (n, C) by kernel ridge regression on the answers, one class after the other.

    "Training a classifier based on known labels" (``pal`` section 4.3): yes is 1, no is -1, and
    points of which a class does not know anything are left out.
    """
    scores = np.zeros(answers.shape)
    for c, column in enumerate(answers.T):
        known = np.flatnonzero(column)
        inner = kernel[np.ix_(known, known)] + REGULARIZATION * np.eye(len(known))
        scores[:, c] = kernel[:, known] @ np.linalg.solve(inner, column[known].astype(float))
    return scores


def predict_from_embedding(z: Matrix, answers: NDArray[np.int8]) -> Matrix:
    """Scores (n, C): inner products with the mean embedding of each class's known members."""
    members = (answers == 1).astype(float)
    means = members.T @ z / members.sum(axis=0)[:, None]
    return z @ means.T
