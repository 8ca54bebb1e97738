"""Who is compared in benchmarks/oracles.py: our samplers, algorithm 3, full labels, and peers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from likewise.oracles import Answer, AnswerTime, ExactBeliefs, Pair, TruthLabeler
from likewise.oracles.pal import PAL, match_classes
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import Captcha, Default, build_sampler
from likewise.oracles.splits import Split

GRID = 15
PEERS = ("COBRAS", "modAL uncertainty", "scikit-activeml margin", "scikit-activeml TypiClust")
"""Where one of these fails, the page says so and the rest goes on."""
STRIDE = 10
"""On embeddings, a logistic regression is fitted after so many grids or labels."""
COBRAS_ITEMS = 4000
"""On embeddings, COBRAS is given so many items: its own k-means takes minutes on all."""
Run = Callable[..., Iterator[tuple[float, float]]]  # accuracy and a person's seconds, a question
UNTIMED = float("nan")
"""The model of a person's time knows yes and no, not "which of ten is it?"."""


def logistic(X: np.ndarray, y: np.ndarray) -> Any:
    return LogisticRegression(max_iter=300).fit(X, y)


# --- ours ---------------------------------------------------------------------------------------


def ours(sampler: str, grid: int, budget: int, **options: Any) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        pal = PAL(
            split.X,
            build_sampler(sampler, **options),
            TruthLabeler(split.y),
            grid=grid,
            seed=seed,
            probe=probe,
            test=(split.test_rows, split.test_labels),
            truth=split.y,
        )
        for _ in range(budget):
            step = pal.step()
            if step is None:
                return
            yield step.accuracy or 0.0, step.seconds

    return run


def algorithm_3(
    budget: int, *, low_margin: bool = False, own_probe: bool = False, every: int = 1
) -> Run:
    """As printed: templates for free, random candidates, the last class deduced; a logistic
    regression on the known items (or our probe), after every so many grids. Or low-margin
    candidates, with the same."""

    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        rng = np.random.default_rng(seed)
        classes = np.unique(split.y)
        templates = [int(rng.choice(np.flatnonzero(split.y == c))) for c in classes]
        beliefs = ExactBeliefs(len(split.X), closed_classes=len(classes))
        beliefs.add(Answer(a, b, -1.0) for a in templates for b in templates if a < b)
        sampler = build_sampler("margin") if low_margin else Captcha(discover=False)
        pal = PAL(
            split.X,
            sampler,
            TruthLabeler(split.y),
            beliefs=beliefs,
            grid=GRID,
            seed=seed,
            probe=probe,
            test=(split.test_rows, split.test_labels) if own_probe else None,
            truth=split.y,
        )
        accuracy = 0.0
        for k in range(1, budget + 1):
            step = pal.step()
            if step is None:
                return
            if own_probe:
                accuracy = step.accuracy or 0.0
            elif k % every == 0:
                known = beliefs.labels() >= 0
                model = logistic(split.X[known], split.y[known])
                accuracy = float(model.score(split.test_rows, split.test_labels))
            yield accuracy, step.seconds

    return run


# --- full labels --------------------------------------------------------------------------------


def random_labels(budget: int, *, own_probe: bool = False, every: int = 1) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        order = np.random.default_rng(seed).permutation(len(split.X))
        n_classes = int(split.y.max()) + 1
        accuracy = 0.0
        for k in range(1, budget + 1):
            known = order[:k]
            if k % every:
                yield accuracy, UNTIMED
                continue
            if own_probe:
                labels = np.full(len(split.X), -1)
                labels[known] = split.y[known]
                guess = probe.fit(labels, n_classes).of(split.test_rows).argmax(axis=1)
                accuracy = float(np.mean(guess == split.test_labels))
            elif len(np.unique(split.y[known])) < 2:
                accuracy = float(np.mean(split.test_labels == split.y[known[0]]))
            else:
                model = logistic(split.X[known], split.y[known])
                accuracy = float(model.score(split.test_rows, split.test_labels))
            yield accuracy, UNTIMED

    return run


def one_of_each(split: Split, seed: int) -> np.ndarray:
    """Peers start from one labelled item of each class; these labels count."""
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(np.flatnonzero(split.y == c)) for c in np.unique(split.y)])


def modal(budget: int, *, batch: int = 1) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        from modAL.models import ActiveLearner, learners
        from modAL.uncertainty import uncertainty_sampling
        from sklearn.utils import check_X_y

        def check(X: Any, y: Any, force_all_finite: bool = True, **options: Any) -> Any:
            return check_X_y(X, y, ensure_all_finite=force_all_finite, **options)

        # modAL 0.4.2.1 calls it by the name that it had before scikit-learn 1.6.
        learners.check_X_y = check
        first = one_of_each(split, seed)
        learner = ActiveLearner(
            estimator=LogisticRegression(max_iter=300),
            query_strategy=uncertainty_sampling,
            X_training=split.X[first],
            y_training=split.y[first],
        )
        left = np.setdiff1d(np.arange(len(split.X)), first)
        yield from [(0.0, UNTIMED)] * (len(first) - 1)
        yield float(learner.score(split.test_rows, split.test_labels)), UNTIMED
        accuracy = float(learner.score(split.test_rows, split.test_labels))
        for _ in range((budget - len(first)) // batch):
            place = np.atleast_1d(learner.query(split.X[left], n_instances=batch)[0])
            learner.teach(split.X[left[place]], split.y[left[place]])
            left = np.delete(left, place)
            yield from [(accuracy, UNTIMED)] * (batch - 1)
            accuracy = float(learner.score(split.test_rows, split.test_labels))
            yield accuracy, UNTIMED

    return run


def activeml(budget: int, strategy: str, *, batch: int = 1) -> Run:
    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        from skactiveml.classifier import SklearnClassifier
        from skactiveml.pool import TypiClust, UncertaintySampling

        labels = np.full(len(split.X), np.nan)
        classifier = SklearnClassifier(
            LogisticRegression(max_iter=300), classes=np.unique(split.y), random_state=seed
        )
        if strategy == "margin":
            query = UncertaintySampling(method="margin_sampling", random_state=seed)
            first = one_of_each(split, seed)
            labels[first] = split.y[first]
            yield from [(0.0, UNTIMED)] * (len(first) - 1)
        else:
            query = TypiClust(random_state=seed)
        accuracy = 0.0
        while True:
            known = ~np.isnan(labels)
            if known.any():
                classifier.fit(split.X[known], labels[known])
                if accuracy:
                    yield from [(accuracy, UNTIMED)] * (batch - 1)
                accuracy = float(classifier.score(split.test_rows, split.test_labels))
                yield accuracy, UNTIMED
            if known.sum() >= budget:
                return
            options = {"clf": classifier, "fit_clf": False} if strategy == "margin" else {}
            place = query.query(X=split.X, y=labels, batch_size=batch, **options)
            labels[place] = split.y[place]

    return run


# --- pairs by peers -----------------------------------------------------------------------------


def cobras(budget: int, *, most: int | None = None) -> Run:
    """COBRAS; of a large collection it sees `most` items at random."""

    def run(split: Split, seed: int, probe: Probe) -> Iterator[tuple[float, float]]:
        X, y = split.X, split.y
        if most is not None and len(X) > most:
            drawn = np.random.default_rng(seed).choice(len(X), most, replace=False)
            X, y = X[drawn], y[drawn]
        if not hasattr(np, "int"):
            np.int = int  # type: ignore[attr-defined]  # COBRAS 0.1.3 is older than NumPy 1.24
        from cobras_ts.cobras_kmeans import COBRAS_kmeans

        class Truth:
            def query_points(self, a: int, b: int) -> bool:
                return bool(y[a] == y[b])

            def continue_cluster_process(self) -> bool:
                return True

            def update_clustering(self, clustering: object) -> None:
                pass

            update_clustering_detailed = update_clustering

        np.random.seed(seed)  # noqa: NPY002 - its k-means takes the global state
        _, clusterings, _, _, _ = COBRAS_kmeans(X, Truth(), budget).cluster()
        last: tuple[Any, float] = (None, 0.0)
        for clustering in clusterings[:budget]:
            found = np.unique(np.asarray(clustering), return_inverse=True)[1]
            if last[0] is None or not np.array_equal(found, last[0]):
                names = match_classes(found, y, int(found.max()) + 1)
                model = KNeighborsClassifier(5).fit(X, found)
                guess = [names.get(int(c)) for c in model.predict(split.test_rows)]
                last = (found, float(np.mean(np.array(guess, dtype=object) == split.test_labels)))
            yield last[1], AnswerTime().seconds(Pair(0, 1), 0)

    return run


# --- the whole partition ------------------------------------------------------------------------


def partition(split: Split, seed: int, probe: Probe, grid: int) -> dict[str, float]:
    pal = PAL(split.X, Default("partition"), TruthLabeler(split.y), grid=grid, seed=seed)
    history = pal.run(10 * len(split.X), progress=False)
    labels = pal.beliefs.labels()
    found = np.array([len(np.unique(split.y[labels == c])) for c in range(pal.beliefs.n_classes)])
    assert (labels >= 0).all() and (found == 1).all(), "the partition is not the true one"
    return {
        "answers per item": pal.beliefs.n_answers / len(split.X),
        "questions": float(len(history)),
        "seconds": float(history.column("seconds").sum()),
    }


# --- who is counted by what ---------------------------------------------------------------------


def of_digits(budget: int) -> dict[str, dict[str, Run]]:
    """All samplers, on little data."""
    classic = ("margin", "uncertainty", "expected-change", "disagreement", "pruning")
    return {
        f"grids of {GRID}": {
            "default": ours("default", GRID, budget),
            "default, full grids": ours("default", GRID, budget, fill=True),
            "outliers": ours("outliers", GRID, budget),
            **{name: ours(name, GRID, budget) for name in classic},
            "captcha, classes discovered": ours("captcha", GRID, 2 * budget),
            "captcha, guided, discovered": ours(
                "captcha", GRID, 2 * budget, guided=True, central=True
            ),
            "neighbors": ours("neighbors", GRID, budget),
            "random": ours("random", GRID, budget),
            "algorithm 3 as printed, free templates": algorithm_3(3 * budget),
            "algorithm 3, free templates, our probe": algorithm_3(budget, own_probe=True),
            "low margin, free templates, our probe": algorithm_3(
                budget, low_margin=True, own_probe=True
            ),
        },
        "single pairs": {
            "default": ours("default", 1, 3 * budget),
            "margin": ours("margin", 1, 6 * budget),
            "uncertainty": ours("uncertainty", 1, 6 * budget),
            "captcha, classes discovered": ours("captcha", 1, 6 * budget),
            "random": ours("random", 1, 6 * budget),
            "COBRAS": cobras(12 * budget),
        },
        "full labels": {
            "random, our probe": random_labels(4 * budget, own_probe=True),
            "random, logistic regression": random_labels(6 * budget),
            "modAL uncertainty": modal(6 * budget),
            "scikit-activeml margin": activeml(6 * budget, "margin"),
            "scikit-activeml TypiClust": activeml(3 * budget, "typiclust"),
        },
    }


def of_embeddings(budget: int) -> dict[str, dict[str, Run]]:
    """The same question on tens of thousands of rows: fewer rows, and slower ones in strides."""
    return {
        "full labels": {
            "random, logistic regression": random_labels(4 * budget, every=STRIDE),
            "modAL uncertainty": modal(4 * budget, batch=STRIDE),
            "scikit-activeml margin": activeml(4 * budget, "margin", batch=STRIDE),
        },
        f"grids of {GRID}": {
            "default": ours("default", GRID, budget),
            "algorithm 3 as printed, free templates": algorithm_3(2 * budget, every=STRIDE),
            "low margin, free templates, our probe": algorithm_3(
                budget, low_margin=True, own_probe=True
            ),
        },
        "single pairs": {
            "COBRAS": cobras(4 * budget, most=COBRAS_ITEMS),
        },
    }
