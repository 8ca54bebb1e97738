"""Every sampler keeps the contract; then what each is for."""

from __future__ import annotations

import numpy as np
import pytest

from likewise.oracles import (
    Answer,
    AnswerTime,
    Attribute,
    ExactBeliefs,
    Grid,
    Outliers,
    Pair,
    TruthLabeler,
)
from likewise.oracles.pal import PAL
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import (
    SAMPLERS,
    Captcha,
    Default,
    Disagreement,
    ExpectedChange,
    Hierarchy,
    Margin,
    NearestNeighbors,
    OutlierGrids,
    Pruning,
    RandomPairs,
    SelfSupervised,
    State,
    Uncertainty,
    build_sampler,
)
from likewise.oracles.samplers.default import Proposal
from tests.oracles.contract import SamplerContract, blobs


class TestRandomPairs(SamplerContract):
    def sampler(self):
        return RandomPairs()


class TestSelfSupervised(SamplerContract):
    def sampler(self):
        return SelfSupervised()


class TestCaptcha(SamplerContract):
    def sampler(self):
        return Captcha()

    def known(self, members):
        """Three classes with so many known members each, of 40 items."""
        X, _ = blobs(40, 3, 0)
        answers, first, start = [], [], 0
        for count in members:
            answers += [Answer(start, start + k, 1.0) for k in range(1, count)]
            first.append(start)
            start += count
        answers += [Answer(a, b, -1.0) for a in first for b in first if a < b]
        return self.state(X, answers), first

    def test_the_class_with_the_fewest_known_items_is_next(self):
        state, first = self.known([4, 2, 3])
        question = Captcha(discover=False).propose(state)
        assert question.exemplar in (first[1], first[1] + 1)

    def test_of_the_fewest_for_its_frequency(self):
        state, first = self.known([4, 2, 3])
        question = Captcha(discover=False, prior=[0.8, 0.1, 0.1]).propose(state)
        assert question.exemplar in range(first[0], first[0] + 4)

    def test_guided_candidates_are_predicted_to_be_of_the_class(self):
        X, y = blobs(200, 3, 3)
        templates = [int(np.flatnonzero(y == c)[0]) for c in range(3)]
        answers = [Answer(a, b, -1.0) for a in templates for b in templates if a < b]
        question = Captcha(guided=True, discover=False).propose(self.state(X, answers))
        assert np.mean(y[list(question.candidates)] == y[question.exemplar]) == 1.0

    def test_bad_prior(self):
        with pytest.raises(ValueError, match=r"prior is \[0.5, 0\]: give positive"):
            Captcha(prior=[0.5, 0])


class TestCaptchaGuided(SamplerContract):
    def sampler(self):
        return Captcha(guided=True, central=True, prior=[0.5, 0.5])


class TestHierarchy(SamplerContract):
    def sampler(self):
        return Hierarchy(["even"])

    def labeler(self, y):
        return TruthLabeler(y, attributes=self.attributes_of(y))

    def attributes_of(self, y):
        return {"even": y % 2 == 0}

    def test_coarse_first_then_only_those_that_share_it(self):
        X, y = blobs(120, 4, 3)
        loop = PAL(X, self.sampler(), self.labeler(y), grid=6)
        steps = loop.run(40, progress=False).steps
        coarse = [isinstance(step.question, Attribute) for step in steps]
        assert coarse[0] and not coarse[-1]
        assert coarse == sorted(coarse, reverse=True)
        fine = [step.question for step in steps if isinstance(step.question, Grid)]
        same = [y[b] % 2 == y[a] % 2 for question in fine[-10:] for a, b in question.pairs()]
        assert np.mean(same) > 0.9


class TestNearestNeighbors(SamplerContract):
    def sampler(self):
        return NearestNeighbors()

    def test_it_is_the_nearest_but_not_itself(self):
        X = np.array([[0.0], [1.0], [1.4], [9.0], [9.9]])
        nearest = {0: 1, 1: 2, 2: 1, 3: 4, 4: 3}
        for seed in range(5):
            question = NearestNeighbors().propose(self.state(X, grid=1, seed=seed))
            assert nearest[question.b] == question.a


class TestPruning(SamplerContract):
    def sampler(self):
        return Pruning(clusters=3)

    def test_near_centres_at_first_far_later(self):
        X, _ = blobs(60, 3, 0)
        state = self.state(X, [Answer(0, 1, -1.0)])
        near = Pruning(clusters=3).scores(state)
        far = Pruning(clusters=3, few=0).scores(state)
        np.testing.assert_allclose(near, -far)
        assert near.max() <= 1 + 1e-6


class TestUncertainty(SamplerContract):
    def sampler(self):
        return Uncertainty()


class TestMargin(SamplerContract):
    def sampler(self):
        return Margin()

    def test_what_lies_between_two_classes_comes_first(self):
        X = np.concatenate([np.linspace(0, 1, 30), np.linspace(1.05, 2, 30)])[:, None]
        state = self.state(X, [Answer(0, 59, -1.0)], grid=1)
        question = Margin().propose(state)
        assert 20 <= question.a <= 40


class TestDisagreement(SamplerContract):
    def sampler(self):
        return Disagreement(members=3)


class TestExpectedChange(SamplerContract):
    def sampler(self):
        return ExpectedChange(shortlist=8)

    def test_the_change_is_that_of_a_new_fit(self):
        X, y = blobs(40, 2, 4)
        first = [int(np.flatnonzero(y == c)[0]) for c in (0, 1)]
        state = self.state(X, [Answer(*first, -1.0)])
        sampler = ExpectedChange(shortlist=40)
        found = sampler.scores(state)
        place = int(np.flatnonzero(np.isfinite(found) & state.open)[0])
        expected = 0.0
        kernel = state.probe.kernel(0.99)

        def shares(labels):
            scores = np.stack([kernel[:, labels == c].sum(axis=1) for c in (0, 1)], axis=1)
            scores = scores / scores.sum(axis=0)
            return scores / scores.sum(axis=1, keepdims=True)

        for c in (0, 1):
            labels = state.labels.copy()
            before = shares(labels)
            labels[place] = c
            change = np.abs(shares(labels) - before).sum(axis=1).mean()
            expected += (state.pool[place, c] > 0.01) * state.pool[place, c] * change
        assert found[place] == pytest.approx(expected, rel=1e-3)


class TestDefault(SamplerContract):
    def sampler(self):
        return Default()

    def test_classes_are_found_with_about_as_few_pairs_as_can_be(self):
        X, y = blobs(300, 5, 11)
        loop = PAL(X, Default(), TruthLabeler(y), grid=1, test=(X, y), truth=y)
        history = loop.run(25, progress=False)
        # 5 classes are told apart by 10 pairs, at least.
        assert 10 <= int(np.flatnonzero(history.column("n_classes") == 5)[0]) + 1 <= 20
        assert history.steps[-1].accuracy > 0.97

    def test_candidates_are_diverse(self):
        # Twelve copies of one doubtful point are worth hardly more than one.
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + [9, 0]])
        X = np.concatenate([X, np.full((12, 2), [4.5, 0]) + 1e-3 * rng.normal(size=(12, 2))])
        question = Default().propose(self.state(X, [Answer(0, 30, -1.0)], grid=8))
        assert sum(item >= 60 for item in question.items) <= 4

    def test_a_grid_ends_where_more_would_not_pay(self):
        X, y = blobs(300, 5, 11)
        loops = [
            PAL(X, Default(fill=fill), TruthLabeler(y), grid=12, test=(X, y), truth=y)
            for fill in (False, True)
        ]
        short, full = (loop.run(10, progress=False) for loop in loops)
        assert {len(step.answers) for step in full.steps} == {12}
        assert short.column("seconds").sum() < 0.8 * full.column("seconds").sum()
        assert short.steps[-1].accuracy > 0.97

    def test_the_best_size_is_that_of_the_best_rate(self):
        # Three candidates of worth 6, 5, 1 that are never clicked; a tile takes 1 s, the rest 2 s.
        time = AnswerTime(base=1.0, tile=1.0, click=0.0)
        worth = np.array([0.0, 6.0, 11.0, 12.0])
        proposal = Proposal(0, np.zeros(0, int), np.array([4, 5, 6]), worth, np.zeros(4))
        assert proposal.best(time, fill=False)[0] == pytest.approx(11 / 4)
        assert proposal.best(time, fill=False)[1].tolist() == [4, 5]
        assert proposal.best(time, fill=True)[0] == pytest.approx(12 / 5)

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="goal is 'all': give 'classifier' or 'partition'"):
            Default("all")
        with pytest.raises(ValueError, match="discovery is -1"):
            Default(discovery=-1)


class TestOutlierGrids(SamplerContract):
    def sampler(self):
        return OutlierGrids()

    def test_they_are_asked_where_most_belong_and_place_items(self):
        X, y = blobs(200, 3, 2)
        loop = PAL(X, OutlierGrids(), TruthLabeler(y), grid=10)
        steps = loop.run(40, progress=False).steps
        odd = [step for step in steps if isinstance(step.question, Outliers)]
        assert len(odd) >= 3
        belonging = [
            np.bincount(y[list(step.question.items)]).max() / len(step.question.items)
            for step in odd
        ]
        assert np.mean(belonging) > 0.5
        labels = loop.beliefs.labels()
        known = labels >= 0
        assert known.sum() > 60
        assert np.array_equal(
            labels[known][:, None] == labels[known], y[known][:, None] == y[known]
        )

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="likely is 0.4: give a probability above 0.5"):
            OutlierGrids(likely=0.4)


class TestFullGrids(SamplerContract):
    def sampler(self):
        return Default(fill=True)


class TestPartition(SamplerContract):
    def sampler(self):
        return Default("partition")

    def test_hardly_more_answers_than_items(self):
        X, y = blobs(200, 4, 2)
        loop = PAL(X, Default("partition"), TruthLabeler(y), grid=1)
        loop.run(400, progress=False)
        assert (loop.beliefs.labels() >= 0).all()
        assert 196 + 6 <= loop.beliefs.n_answers <= 1.15 * 200  # n - C yes, C (C - 1) / 2 no


def test_names():
    assert set(SAMPLERS) >= {"default", "captcha", "random", "hierarchy", "self-supervised"}
    with pytest.raises(ValueError, match="sampler is 'best': give one of default, outliers"):
        build_sampler("best")


def test_a_state_checks_what_it_is_given():
    X, _ = blobs(5, 2, 0)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="X has 5 rows, but beliefs are about 4"):
        State(X, ExactBeliefs(4), rng)
    with pytest.raises(ValueError, match="grid is 0"):
        State(X, ExactBeliefs(5), rng, grid=0)


def test_no_question_is_empty_and_pairs_are_asked_where_a_grid_holds_one():
    X, _ = blobs(6, 2, 0)
    state = State(X, ExactBeliefs(6).add([Answer(0, 1, 1.0)]), np.random.default_rng(0), 1)
    assert state.ask(0, [1, 0]) is None
    assert state.ask(0, [1, 2, 3]) == Pair(2, 0)


def test_a_large_collection_is_asked_about_through_a_pool():
    X, y = blobs(900, 3, 5)
    probe = Probe(X, pool=60)
    loop = PAL(X, "default", TruthLabeler(y), grid=10, probe=probe, test=(X, y), truth=y)
    loop.run(12, progress=False)
    assert loop.accuracy() > 0.97
    first = set(probe.items.tolist())
    loop.run(60, progress=False)
    assert not set(loop.probe.items.tolist()) <= first  # all were placed: another pool
