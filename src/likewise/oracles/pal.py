"""The loop of Positive Active Learning: ask, learn, predict, and stop by a rule that is stated."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.oracles.answers import Answer
from likewise.oracles.beliefs import Beliefs, ExactBeliefs, NoisyBeliefs
from likewise.oracles.labelers import Labeler
from likewise.oracles.probe import Prepared, Probe
from likewise.oracles.questions import Question
from likewise.oracles.samplers import Sampler, State, build_sampler
from likewise.oracles.updates import Update


@dataclass(frozen=True)
class Step:
    """One question with what came of it.

    Attributes:
        question: what was asked.
        answers: the facts that it brought.
        seconds: of a person's time.
        n_classes: classes known afterwards.
        placed: items whose class is known or implied afterwards.
        expected_change: the share of items that the classifier is expected to have wrong.
        accuracy: on the test items, where the loop was given some.
    """

    question: Question
    answers: list[Answer]
    seconds: float
    n_classes: int
    placed: int
    expected_change: float
    accuracy: float | None = None


@dataclass
class History:
    """All steps, and why there are no more."""

    steps: list[Step] = field(default_factory=list)
    stopped: str = ""

    def __len__(self) -> int:
        return len(self.steps)

    def column(self, name: str) -> NDArray[np.floating]:
        """One figure of all steps: seconds, placed, n_classes, accuracy, ..."""
        values = [getattr(step, name) for step in self.steps]
        return np.array([np.nan if value is None else value for value in values], dtype=float)

    def answers_given(self) -> NDArray[np.int64]:
        """How many answers there were after every question."""
        return np.cumsum([len(step.answers) for step in self.steps], dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """The curves as plain values, for JSON."""
        return {
            "stopped": self.stopped,
            "answers": self.answers_given().tolist(),
            "seconds": np.cumsum(self.column("seconds")).round(2).tolist(),
            "accuracy": [step.accuracy for step in self.steps],
            "n_classes": [step.n_classes for step in self.steps],
            "placed": [step.placed for step in self.steps],
        }


class PAL:
    """Positive Active Learning (``pal`` algorithm 1): ask, update what is known, predict.

    After every answer the closed-form probe is trained again on all that is known. Asking stops
    when the budget is spent, when nothing is left to ask, or when the share of items that the
    classifier is expected to have wrong falls below `enough`; :attr:`stopped` says which.

    Args:
        X: (n, d) rows: features, or the embeddings of an encoder.
        sampler: what to ask: a sampler or its name.
        labeler: who answers.
        beliefs: "exact" where nobody errs, "noisy" where people do, or beliefs that hold answers.
        grid: candidates of a question; 1 asks pairs.
        seed: of the questions.
        probe: the classifier over X; by default a new one.
        test: (rows, classes) to measure the accuracy on after every question. Classes that were
            found by asking are matched with true ones, one to one, by the true classes of X, which
            are taken from `truth`; nothing else ever sees these.
        truth: (n,) the true classes of X, for that matching.
        enough: stop below this expected share of wrong items.
        update: a representation that learns from the answers, too
            (:mod:`likewise.oracles.updates`): X, and the rows to test on or to predict, are then
            its inputs.
        every: so many questions lie between two updates.

    >>> from likewise.oracles.labelers import TruthLabeler
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> pal = PAL(X, "default", TruthLabeler([0, 0, 0, 1, 1, 1]), grid=3)
    >>> history = pal.run(10, progress=False)
    >>> pal.beliefs.n_classes, pal.predict([[4.9]]) == pal.predict([[5.0]])
    (2, array([ True]))
    >>> history.stopped
    'nothing is left to ask: every item is placed'
    """

    def __init__(
        self,
        X: NDArray[np.floating],
        sampler: Sampler | str,
        labeler: Labeler,
        *,
        beliefs: Literal["exact", "noisy"] | Beliefs = "exact",
        grid: int = 15,
        seed: int = 0,
        probe: Probe | None = None,
        test: tuple[ArrayLike, ArrayLike] | None = None,
        truth: ArrayLike | None = None,
        enough: float = 0.0,
        update: Update | None = None,
        every: int = 10,
    ) -> None:
        self.inputs, self.update, self.every = np.asarray(X), update, every
        self.X = self._rows(self.inputs)
        self.sampler = build_sampler(sampler) if isinstance(sampler, str) else sampler
        self.labeler = labeler
        if isinstance(beliefs, Beliefs):
            self.beliefs: Beliefs = beliefs
        elif beliefs in ("exact", "noisy"):
            kind = ExactBeliefs if beliefs == "exact" else NoisyBeliefs
            self.beliefs = kind(len(self.X))
        else:
            raise ValueError(f"beliefs is {beliefs!r}: give 'exact', 'noisy' or beliefs")
        if not 0 <= enough < 1:
            raise ValueError(f"enough is {enough}: give a share of the items, 0 or more, below 1")
        if test is not None and truth is None:
            raise ValueError("test is given without truth: classes found cannot be named")
        if every < 1:
            raise ValueError(f"every is {every}: give the questions between updates, at least 1")
        self.grid, self.enough = grid, enough
        self.rng = np.random.default_rng(seed)
        self.probe = Probe(self.X) if probe is None else probe
        self.truth = None if truth is None else np.asarray(truth)
        self.test = None if test is None else (np.asarray(test[0]), np.asarray(test[1]))
        self.history = History()
        self._state: State | None = None
        self._near: tuple[Probe, Prepared] | None = None
        self._answered = -1
        self._guessed = 0

    @property
    def stopped(self) -> str:
        """Why asking stopped; empty while it goes on."""
        return self.history.stopped

    @property
    def state(self) -> State:
        """What is known now, as samplers see it."""
        if self._state is None or self._answered != len(self.beliefs.answers):
            labels = self.beliefs.labels()
            if (labels < 0).any() and (labels[self.probe.items] >= 0).all():
                self.probe = self.probe.renewed(labels)
            if isinstance(self.beliefs, NoisyBeliefs):
                self._guess(self.beliefs)
            self._state = State(
                self.X, self.beliefs, self.rng, self.grid, self.probe, len(self.history)
            )
            self._answered = len(self.beliefs.answers)
        return self._state

    def _guess(self, beliefs: NoisyBeliefs) -> None:
        """Give beliefs that may err what the classifier thinks, each item left out of its own.

        That helps once most classes are found and a few items of each are likely, and is done
        again whenever there are a tenth more answers."""
        if beliefs.n_answers < 1.1 * self._guessed or not beliefs.n_classes:
            return
        posterior = beliefs.posterior()
        likely = (posterior.max(axis=1) >= 0.9) & beliefs.asked()
        if beliefs.unseen < 0.06 and likely.sum() >= 6 * beliefs.n_classes:
            labels = np.where(likely, posterior.argmax(axis=1), -1)
            fitted = self.probe.fit(labels, beliefs.n_classes)
            beliefs.set_prior(fitted.items(own=False) + 1e-3)
            self._guessed = beliefs.n_answers

    def _rows(self, inputs: ArrayLike) -> NDArray[np.floating]:
        """What the classifier sees of some inputs."""
        return np.asarray(inputs) if self.update is None else self.update.rows(inputs)

    def renew(self) -> None:
        """Let the representation learn from all answers, and go on over its new rows."""
        if self.update is not None:
            self.update.learn(self.inputs, self.beliefs)
            self.X = self._rows(self.inputs)
            self.probe = self.probe.over(self.X)
            self._state, self._guessed = None, 0

    def step(self) -> Step | None:
        """Ask one question; None where nothing is left to ask."""
        question = self.sampler.propose(self.state)
        if question is None:
            whole = (self.beliefs.labels() >= 0).all()
            self.history.stopped = "nothing is left to ask" + (
                ": every item is placed" if whole else ""
            )
            return None
        answered = self.labeler.answer(question)
        self.beliefs.add(answered.answers)
        if (len(self.history) + 1) % self.every == 0:
            self.renew()
        state = self.state
        step = Step(
            question,
            answered.answers,
            answered.seconds,
            state.n_classes,
            int((state.labels >= 0).sum()),
            state.expected_change(),
            self.accuracy(),
        )
        self.history.steps.append(step)
        return step

    def run(self, budget: int, *, progress: bool = True) -> History:
        """Ask until a rule says stop.

        Args:
            budget: questions at most, in this call.
            progress: show a bar.
        """
        if budget < 1:
            raise ValueError(f"budget is {budget}: give the number of questions, at least 1")
        self.history.stopped = ""
        with _bar(budget, progress, self.sampler.name) as advance:
            for _ in range(budget):
                step = self.step()
                if step is None:
                    return self.history
                advance(step, self)
                if step.expected_change < self.enough:
                    self.history.stopped = (
                        f"enough is known: {step.expected_change:.2%} of the items are expected "
                        f"to be predicted wrongly, below {self.enough:.2%}"
                    )
                    return self.history
        self.history.stopped = f"the budget of {budget} questions is spent"
        return self.history

    def questions_left(self) -> int:
        """About how many more questions would place every item, if there are no new classes.

        An item takes as many answers as its class has rank among those likely for it, at the
        number of answers that the last questions brought."""
        state = self.state
        share = len(state.probe.items) / state.n
        ordered = -np.sort(-state.pool[state.open], axis=1)
        rank = np.arange(1, state.n_classes + 1)
        answers = float(np.maximum(ordered @ rank, 1.0).sum()) / share
        asked = [len(step.answers) for step in self.history.steps[-20:]]
        return int(np.ceil(answers / (np.mean(asked) if asked else self.grid)))

    def predict(self, rows: ArrayLike) -> NDArray[np.int64]:
        """The classes (as the beliefs number them) of any rows; -1 before the first class."""
        rows = self._rows(np.atleast_2d(np.asarray(rows)))
        if not self.state.n_classes:
            return np.full(len(rows), -1)
        return self.state.fitted.of(rows).argmax(axis=1)

    def accuracy(self) -> float | None:
        """On the test items, with classes matched to the true ones, one to one."""
        if self.test is None or self.truth is None:
            return None
        items = self.state.probe.items
        here = self.state.fitted.pool.argmax(axis=1) if self.state.n_classes else np.zeros(0, int)
        if not self.state.n_classes:
            return 0.0
        names = match_classes(here, self.truth[items], self.state.n_classes)
        if self._near is None or self._near[0] is not self.probe:  # once a pool
            self._near = (self.probe, self.probe.prepared(self._rows(self.test[0])))
        found = self.state.fitted.at(self._near[1]).argmax(axis=1)
        return float(sum(np.sum(self.test[1][found == c] == y) for c, y in names.items())) / len(
            found
        )


def match_classes(found: ArrayLike, truth: ArrayLike, n_classes: int) -> dict[int, Any]:
    """Found classes with true ones, one to one, so that most items agree (the Hungarian method).

    A class that was found twice is matched once: it does not pay to split classes.

    >>> match_classes([0, 0, 1, 1, 2], ["cat", "cat", "dog", "dog", "dog"], 3)
    {0: 'cat', 1: 'dog'}
    """
    from scipy.optimize import linear_sum_assignment

    names, codes = np.unique(np.asarray(truth), return_inverse=True)
    table = np.zeros((n_classes, len(names)))
    np.add.at(table, (np.asarray(found), codes), 1)
    rows, columns = linear_sum_assignment(-table)
    return {
        int(row): names[column].item()
        for row, column in zip(rows, columns, strict=True)
        if table[row, column] > 0
    }


class _Advance:
    """Moves the bar by one question."""

    def __init__(self, bar: Any = None, task: Any = None) -> None:
        self._bar, self._task = bar, task

    def __call__(self, step: Step, pal: PAL) -> None:
        if self._bar is None:
            return
        said = f"{step.n_classes} classes, {step.placed:,} of {pal.beliefs.n:,} items placed"
        if step.accuracy is not None:
            said += f", accuracy {step.accuracy:.3f}"
        self._bar.update(self._task, advance=1, said=said)


class _Bar(AbstractContextManager[_Advance]):
    def __init__(self, budget: int, name: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
        )
        self._task = self._bar.add_task(name, total=budget, said="")

    def __enter__(self) -> _Advance:
        self._bar.start()
        return _Advance(self._bar, self._task)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _bar(budget: int, progress: bool, name: str) -> AbstractContextManager[_Advance]:
    return _Bar(budget, name) if progress else nullcontext(_Advance())


def replay(pal: PAL, answers: Iterable[Answer]) -> PAL:
    """Give a loop answers that were collected before; it goes on from there."""
    pal.beliefs.add(list(answers))
    return pal
