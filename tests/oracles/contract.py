"""What every sampler has to do; its test class inherits these."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.oracles import (
    Answer,
    Attribute,
    ExactBeliefs,
    Grid,
    NoisyBeliefs,
    Outliers,
    Pair,
    TruthLabeler,
)
from likewise.oracles.pal import PAL
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import Sampler, State


def blobs(n: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points around well separated centres, and which centre it is."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    centers = rng.normal(size=(classes, 5)) * 6
    return (centers[y] + rng.normal(size=(n, 5))).astype(np.float32), y


def closure(n: int, answers: list[Answer]) -> np.ndarray:
    """Everything that is implied, by plain closure: 1 alike, -1 different, 0 unknown."""
    alike = np.eye(n, dtype=bool)
    for answer in answers:
        if answer.b is not None and answer.value > 0:
            alike[answer.a, answer.b] = alike[answer.b, answer.a] = True
    for k in range(n):  # Warshall
        alike |= alike[:, [k]] & alike[[k], :]
    known = alike.astype(int)
    for answer in answers:
        if answer.b is not None and answer.value < 0:
            apart = np.outer(alike[answer.a], alike[answer.b])
            known[apart | apart.T] = -1
    return known


class SamplerContract:
    """Inherit, and say how the sampler is built."""

    def sampler(self) -> Sampler:
        raise NotImplementedError

    def labeler(self, y: np.ndarray) -> TruthLabeler:
        return TruthLabeler(y)

    def state(
        self, X: np.ndarray, answers: list[Answer] | None = None, grid: int = 5, seed: int = 0
    ) -> State:
        beliefs = ExactBeliefs(len(X)).add(answers or [])
        return State(X, beliefs, np.random.default_rng(seed), grid, Probe(X))

    def test_asks_only_what_nobody_knows_until_everything_is_known(self):
        @settings(max_examples=12, deadline=None)
        @given(
            n=st.integers(2, 24),
            classes=st.integers(1, 5),
            grid=st.integers(1, 6),
            seed=st.integers(0, 10**6),
        )
        def always(n, classes, grid, seed):
            self.ask_everything(n, classes, grid, seed)

        always()

    def ask_everything(self, n, classes, grid, seed):
        X, y = blobs(n, classes, seed)
        loop = PAL(X, self.sampler(), self.labeler(y), grid=grid, seed=seed)
        for _ in range(n * n + 5):
            known = closure(n, loop.beliefs.answers)
            question = loop.sampler.propose(loop.state)
            if question is None:
                break
            if isinstance(question, Attribute):
                asked = {a.a for a in loop.beliefs.answers if a.attribute == question.name}
                assert not asked & set(question.candidates)
                assert len(question.candidates) <= grid
            elif isinstance(question, Outliers):
                shown = list(question.items)
                assert 3 <= len(shown) <= grid + 1
                between = known[np.ix_(shown, shown)]
                assert (between == np.eye(len(shown))).all()  # nobody knows of any two
            else:
                assert isinstance(question, Pair if grid == 1 else Grid)
                pairs = question.pairs()
                assert 1 <= len(pairs) <= grid
                assert all(known[a, b] == 0 for a, b in pairs)
                shown = [b for _, b in pairs]
                assert (known[np.ix_(shown, shown)] == 1).sum() == len(shown)  # one of a group
            loop.beliefs.add(loop.labeler.answer(question).answers)
        else:
            pytest.fail("it asked more questions than there are pairs")
        if self.sampler().asks:
            assert (closure(n, loop.beliefs.answers) != 0).all()

    def test_the_same_seed_asks_the_same(self):
        X, y = blobs(40, 3, 1)
        asked = []
        for _ in range(2):
            loop = PAL(X, self.sampler(), self.labeler(y), grid=4, seed=5)
            asked.append([step.question for step in loop.run(12, progress=False).steps])
        assert asked[0] == asked[1]

    def test_nothing_is_left_when_all_is_known(self):
        X, y = blobs(12, 2, 0)
        answers = [Answer(i, j, 1.0 if y[i] == y[j] else -1.0) for i in range(12) for j in range(i)]
        assert self.sampler().propose(self.state(X, answers)) is None

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_very_few_items(self, n):
        question = self.sampler().propose(self.state(np.arange(n, dtype=float)[:, None]))
        assert (question is None) == (n == 1 or not self.sampler().asks)

    def test_copies_of_one_row(self):
        X = np.zeros((9, 3))
        loop = PAL(X, self.sampler(), self.labeler(np.arange(9) % 2), grid=3)
        loop.run(60, progress=False)
        assert not self.sampler().asks or (loop.beliefs.labels() >= 0).all()

    def test_who_is_unsure_is_not_asked_for_ever(self):
        X, _ = blobs(10, 2, 0)
        state = self.state(X, grid=3)
        seen = set()
        for _ in range(200):
            question = self.sampler().propose(state)
            if question is None:
                return
            if isinstance(question, Attribute):
                facts = [Answer(i, None, 0.0, attribute=question.name) for i in question.candidates]
            else:
                asked = (
                    [(question.items[0], item) for item in question.items[1:]]
                    if isinstance(question, Outliers)
                    else question.pairs()
                )
                pairs = {(min(pair), max(pair)) for pair in asked}
                assert not pairs & seen
                seen |= pairs
                facts = [Answer(a, b, 0.0) for a, b in asked]
            state = self.state(X, [*state.beliefs.answers, *facts], grid=3)
        pytest.fail("it goes on asking people who are unsure")

    def test_people_who_err_are_not_asked_the_same_pair_again(self):
        X, y = blobs(30, 3, 2)
        labeler = TruthLabeler(
            y, false_yes=0.1, false_no=0.1, annotators=1, attributes=self.attributes_of(y)
        )
        loop = PAL(X, self.sampler(), labeler, beliefs=NoisyBeliefs(30), grid=4)
        seen: set[tuple[int, int]] = set()
        for step in loop.run(15, progress=False).steps:
            pairs = {(min(pair), max(pair)) for pair in step.question.pairs()}
            assert not pairs & seen
            seen |= pairs

    def attributes_of(self, y: np.ndarray) -> dict[str, np.ndarray]:
        return {}
