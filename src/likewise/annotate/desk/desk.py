"""The desk: hands out questions and takes answers, for any number of people; knows no HTTP."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.annotate.desk.handing import Handing, in_words
from likewise.annotate.desk.open import OpenQuestions
from likewise.annotate.desk.saying import Saying
from likewise.annotate.desk.views import Views
from likewise.annotate.facts import QUESTIONS, check_key, check_name, question_of
from likewise.annotate.mind import (
    Manner,
    Mind,
    Place,
    Proposal,
    about_item,
    file_of_project,
)
from likewise.annotate.mind.process import POSSIBLE
from likewise.annotate.store import Store
from likewise.data.source import Source
from likewise.oracles.samplers import Sampler, build_sampler

QuestionKind = Literal["grid", "pair", "outliers"]

PATIENCE = 20.0
"""Seconds that a person waits at most for a question, where none is ready."""

MANY = 50_000
"""Items from which on thinking has a process of its own: then it takes long, and the seconds until
that process is there do not matter. Below, a thread does."""


@dataclass(frozen=True)
class Asked:
    """A question as a person sees it.

    Attributes:
        id: of the question; an answer names it.
        kind: "grid", "pair" or "outliers".
        exemplar: the key of what the tiles are compared with; None for outliers.
        tiles: keys.
        text: the question in words.
        expires: seconds since 1970, from which on others may be asked the same.
    """

    id: str
    kind: QuestionKind
    exemplar: str | None
    tiles: list[str]
    text: str
    expires: float


class Desk(Saying, Views):
    """One project that is being annotated: its items, their rows, its store, what is believed, and
    what to ask. Any number of threads may use it.

    Args:
        source: the items.
        X: (n, d) one row an item: embeddings, or features.
        store: of the project; the desk does not close it.
        sampler: what to ask: a sampler or its name. "default" fills its grids, since a page has
            room for them; ``Default()`` ends a grid where the next tile takes more of a person's
            time than it is worth.
        grid: tiles of a question.
        target: the accuracy at which enough is known.
        gold_share: the share of tiles whose answer is known already.
        seed: of the questions.
        beliefs: "exact" takes every answer as true, "noisy" reckons with mistakes.
        confidence: with "noisy", the posterior from which on an item counts as placed.
        lease: seconds for which a question is one person's.
        cache: a file that keeps the classifier's index, so that a restart is quick (derived: it
            may be deleted). "auto" is a file beside that of an SQLite project, and one in the
            user's cache folder for a PostgreSQL project; None is none.
        thinking: where questions are thought of: in a "process" of its own, in a "thread" of this
            one, or in the "call" that asks: then everything that was said before a call is known
            in it, and the same seed and calls give the same questions. "auto" is a process for
            50,000 items or more, and else a thread.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from likewise.data.arrays import ArraySource
    >>> source = ArraySource(np.zeros((6, 2, 2), np.uint8))
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> store = Store.open(Path(mkdtemp()) / "project.db")
    >>> desk = Desk(source, X, store)
    >>> asked = desk.question("ada")
    >>> asked.kind, asked.text
    ('grid', 'Which of these are the same kind as this one?')
    >>> desk.answer("ada", id="1", question_id=asked.id, clicked=asked.tiles[:1])
    True
    >>> desk.progress("ada")["mine"]["questions"]
    1
    >>> desk.close(), store.close()
    (None, None)
    """

    def __init__(
        self,
        source: Source,
        X: ArrayLike,
        store: Store,
        *,
        sampler: Sampler | str = "default",
        grid: int = 15,
        target: float = 0.95,
        gold_share: float = 0.05,
        seed: int = 0,
        beliefs: Literal["exact", "noisy"] = "exact",
        confidence: float = 0.99,
        lease: float = 300.0,
        cache: Path | str | None = "auto",
        thinking: Place | Literal["auto"] = "auto",
    ) -> None:
        rows = _rows(X, len(source))
        if grid < 1:
            raise ValueError(f"grid is {grid}: give the number of tiles, at least 1")
        for name, value in (("target", target), ("gold_share", gold_share)):
            if not 0 <= value < 1:
                raise ValueError(f"{name} is {value}: give a share, 0 or more and below 1")
        if beliefs not in ("exact", "noisy"):
            raise ValueError(f"beliefs is {beliefs!r}: give 'exact' or 'noisy'")
        if not lease > 0:
            raise ValueError(f"lease is {lease}: give a positive number of seconds")
        if thinking not in ("auto", "process", "thread", "call"):
            raise ValueError(
                f"thinking is {thinking!r}: give 'auto', 'process', 'thread' or 'call'"
            )
        if thinking == "process" and not POSSIBLE:
            raise ValueError("thinking is 'process', which this system cannot do: give 'thread'")
        self.source, self.store = source, store
        self.grid, self.target, self.gold_share, self.lease = grid, target, gold_share, lease
        super().__init__()
        kept = file_of_project(store, source) if cache == "auto" else cache
        manner = Manner(
            _sampler(sampler),
            grid,
            target,
            seed,
            beliefs,
            confidence,
            None if kept is None else Path(kept),
            at_once=thinking == "call",
        )
        if thinking == "auto":
            thinking = "process" if len(source) >= MANY and _can_be_sent(manner) else "thread"
        self._handing = Handing(grid, gold_share, np.random.default_rng([seed, 2]))
        self._open = OpenQuestions(lease)
        self._open.recall(store.open_leases(), self._place, store.clock())
        self._figures.read(store)
        self._mind = Mind(source, rows, store, manner, thinking, self._open.busy)

    def close(self) -> None:
        """Stop thinking. (The store stays open: it is the caller's.)"""
        self._mind.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- questions ----------------------------------------------------------------------------

    def question(
        self, who: str, *, kind: QuestionKind = "grid", about: str | None = None
    ) -> Asked | None:
        """The next question for somebody; nobody else gets it while it is open.

        Args:
            who: the person.
            kind: "grid", "pair" or "outliers".
            about: start from this item, in place of what is worth most.

        Returns:
            None where nothing is left to ask, or all that is left is with others.
        """
        check_name("who", who)
        if kind not in QUESTIONS:
            raise ValueError(f"kind is {kind!r}: give one of {', '.join(QUESTIONS)}")
        self._free(self._open.let_go(who))
        if about is not None:
            item = int(self.source.index_of(check_key("about", about)))
            busy = self._open.held()
            ready = about_item(self._mind.X, self.snapshot, item, self.grid, busy, kind=kind)
            return None if ready is None else self._hand_out(who, ready, chosen=item)
        if self._handing.owes(who):
            for ready in self._mind.shelves.spare(kind, self.snapshot.labels):
                asked = self._hand_out(who, ready)
                if asked is not None:
                    return asked
        for _ in range(2):
            for ready in self._mind.take(kind, PATIENCE):
                asked = self._hand_out(who, ready)
                if asked is not None:
                    return asked
            if not self._free(self._open.fall_back(who)):
                break
        return None

    def _free(self, ended: tuple[list[str], bool]) -> bool:
        """Questions ended without an answer: others may be asked."""
        ids, any_ended = ended
        if ids:
            self.store.release(*ids)
        if any_ended:
            self._mind.shelves.nudge()
        return any_ended

    def _hand_out(self, who: str, ready: Proposal, *, chosen: int | None = None) -> Asked | None:
        """Lease a proposal to somebody, without what has become known since it was made."""
        snapshot, keys = self.snapshot, self.source.keys
        id = uuid.uuid4().hex
        with self._open.lock:
            found = self._handing.lay_out(
                who,
                ready,
                snapshot,
                self._open.busy(),
                self._figures.seen(who),
                open_pairs=self._open.pairs(),
                chosen=chosen,
            )
            if found is None:
                return None
            front = None if found.exemplar is None else keys[found.exemplar]
            tiles = [keys[tile] for tile in found.tiles]
            question = question_of({"kind": found.kind, "exemplar": front, "tiles": tiles})
            gold = {keys[item]: alike for item, alike in found.gold.items()}
            self._open.put(id, who, question, gold, found)
        expires = self.store.clock() + self.lease
        try:
            given = self.store.lease(
                id,
                who,
                [keys[item] for item in found.holds],
                self.lease,
                pairs=[(keys[a], keys[b]) for a, b in found.pairs],
                question={"question": question, "gold": gold},
            )
        except BaseException:
            self._open.pop(id)
            raise
        if not given:
            # Another server has it: keep away from it for as long as a lease lasts.
            self._open.put(id, "", question, gold, found)
            return None
        self._figures.saw(who, found.tiles)
        text = in_words(found.kind, found.exemplar, snapshot)
        return Asked(id, question["kind"], front, tiles, text, expires)

    # --- rows ---------------------------------------------------------------------------------

    def refit(self, X: ArrayLike) -> None:
        """Other rows for the same items, from an encoder that was trained meanwhile. People go on
        answering; the new rows are used once their index is built."""
        self._mind.refit(_rows(X, len(self.source)))


def _sampler(sampler: Sampler | str) -> Sampler:
    if not isinstance(sampler, str):
        return sampler
    return build_sampler(sampler, **({"fill": True} if sampler == "default" else {}))


def _can_be_sent(manner: Manner) -> bool:
    """Whether another process can be told how to think: it knows our samplers, not a script's."""
    return POSSIBLE and type(manner.sampler).__module__.startswith("likewise.")


def _rows(X: ArrayLike, n: int) -> NDArray[np.floating]:
    rows = X if isinstance(X, np.ndarray) else np.asarray(X)
    if rows.ndim != 2 or len(rows) != n:
        raise ValueError(f"X has shape {rows.shape}: give one row for each of the {n} items")
    if rows.dtype.kind != "f":
        rows = rows.astype(np.float32)
    step = max(1, 10_000_000 // max(rows.shape[1], 1))
    for start in range(0, n, step):
        if not np.isfinite(rows[start : start + step]).all():
            raise ValueError("X holds NaN or infinity: embed the items again")
    return rows
