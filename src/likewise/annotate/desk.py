"""The desk: hands out questions and takes answers, for any number of people; knows no HTTP."""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.annotate.desk_figures import PeopleFigures
from likewise.annotate.desk_handing import Handing, in_words
from likewise.annotate.desk_index import KeptProbe
from likewise.annotate.desk_map import flat_map
from likewise.annotate.desk_mind import Mind
from likewise.annotate.desk_open import OpenQuestions
from likewise.annotate.desk_proposals import Proposal, about_item
from likewise.annotate.desk_snapshot import Snapshot
from likewise.annotate.facts import Fact, check_key, check_keys, check_name, question_of, shown
from likewise.annotate.facts_effective import body_without_secrets
from likewise.annotate.store import Store
from likewise.data.source import Source
from likewise.oracles.beliefs import Beliefs, ExactBeliefs, NoisyBeliefs
from likewise.oracles.probe import Probe
from likewise.oracles.samplers import Sampler, build_sampler

QuestionKind = Literal["grid", "pair", "outliers"]

PATIENCE = 20.0
"""Seconds that a person waits at most for a question, where none is ready."""

LONGEST = 24 * 3600.0
"""Seconds of one question, at most: who leaves the page open did not think all night."""


class UnknownQuestion(ValueError):  # noqa: N818 (a question, not an event)
    """An answer to a question that is not known here, and did not come with the answer."""


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


class Desk:
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
            may be deleted). "auto" is a file beside that of an SQLite project; None is none.

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
        self.source, self.store = source, store
        self.grid, self.target, self.gold_share, self.lease = grid, target, gold_share, lease
        n = len(source)

        def empty() -> Beliefs:
            if beliefs == "exact":
                return ExactBeliefs(n)
            return NoisyBeliefs(n, confidence=confidence)

        kept = store.file and store.file.with_name(store.file.name + ".index")
        kept = kept if cache == "auto" else None if cache is None else Path(cache)

        def build(rows: NDArray[np.floating]) -> Probe:
            return Probe(rows) if kept is None else KeptProbe(rows, kept)

        self._handing = Handing(grid, gold_share, np.random.default_rng([seed, 2]))
        self._open = OpenQuestions(lease)
        self._open.recall(store.open_leases(), self._place, store.clock())
        self._map: tuple[Any, Any] | None = None
        self._map_lock = threading.Lock()
        self._figures = PeopleFigures()
        self._mind = Mind(
            source,
            rows,
            store,
            _sampler(sampler),
            empty,
            grid=grid,
            target=target,
            seed=seed,
            busy=self._open.busy,
            build=build,
        )
        self._mind.start()

    def close(self) -> None:
        """Stop thinking. (The store stays open: it is the caller's.)"""
        self._mind.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def snapshot(self) -> Snapshot:
        """What is known, as of the last answers that were thought about."""
        return self._mind.snapshot

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
        if kind not in self._mind.shelves:
            raise ValueError(f"kind is {kind!r}: give one of {', '.join(self._mind.shelves)}")
        self._free(self._open.let_go(who))
        if about is not None:
            item = int(self.source.index_of(check_key("about", about)))
            busy = self._open.held()
            ready = about_item(self._mind.X, self.snapshot, item, self.grid, busy, kind=kind)
            return None if ready is None else self._hand_out(who, ready, chosen=item)
        if self._handing.owes(who):
            for ready in self._mind.spare(kind):
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
            self._mind.nudge()
        return any_ended

    def _hand_out(self, who: str, ready: Proposal, *, chosen: int | None = None) -> Asked | None:
        """Lease a proposal to somebody, without what has become known since it was made."""
        snapshot, keys = self.snapshot, self.source.keys
        seen = self._mind.seen.get(who, set())
        id = uuid.uuid4().hex
        with self._open.lock:
            busy = self._open.busy()
            found = self._handing.lay_out(who, ready, snapshot, busy, seen, chosen=chosen)
            if found is None:
                return None
            front = None if found.exemplar is None else keys[found.exemplar]
            tiles = [keys[tile] for tile in found.tiles]
            question = question_of({"kind": found.kind, "exemplar": front, "tiles": tiles})
            gold = {keys[item]: alike for item, alike in found.gold.items()}
            self._open.put(id, who, question, gold, found.holds)
        expires = self.store.clock() + self.lease
        held_keys = [keys[item] for item in found.holds]
        kept = {"question": question, "gold": gold}
        try:
            given = self.store.lease(id, who, held_keys, self.lease, question=kept)
        except BaseException:
            self._open.pop(id)
            raise
        if not given:
            # Another server has it: keep away from it for as long as a lease lasts.
            self._open.put(id, "", question, gold, found.holds)
            return None
        text = in_words(found.kind, found.exemplar, snapshot)
        return Asked(id, question["kind"], front, tiles, text, expires)

    # --- answers ------------------------------------------------------------------------------

    def answer(
        self,
        who: str,
        *,
        id: str,
        question_id: str,
        clicked: Sequence[str] = (),
        unsure: Sequence[str] = (),
        skipped: bool = False,
        seconds: float = 0.0,
        question: Mapping[str, Any] | None = None,
    ) -> bool:
        """Take an answer; on return it is on the disk.

        Args:
            who: the person.
            id: made by the page: the same id twice is one answer.
            question_id: of the question.
            clicked: keys of tiles: the same kind, or, of outliers, those that do not belong.
            unsure: keys of tiles of which the person cannot tell.
            skipped: nothing is said about any tile.
            seconds: that it took.
            question: as it was received, for when the desk does not know it any more.

        Returns:
            Whether it is new.
        """
        asked, gold = self._asked(question_id, question)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise ValueError(f"seconds is {seconds!r}: give a number")
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError(f"seconds is {seconds}: give 0 or more")
        body: dict[str, Any] = {
            "question": asked,
            "clicked": [] if skipped else check_keys("clicked", clicked),
            "unsure": [] if skipped else check_keys("unsure", unsure),
            "skipped": skipped,
            "seconds": round(min(float(seconds), LONGEST), 3),
            "question_id": question_id,
        }
        if gold:
            body["gold"] = gold
        fact = Fact(id, "answer", who, self.store.clock(), body)
        new = self.store.append([fact], release=[question_id])[0]
        self._open.pop(question_id, skipped=skipped)
        self._mind.nudge()
        return new

    def _asked(
        self, question_id: str, question: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, bool]]:
        """The question of an id: of this process, of the store, or as the answer brought it."""
        check_name("question_id", question_id)
        found = self._open.get(question_id)
        if found is not None:
            return found.question, found.gold
        lease = self.store.leased(question_id)
        if lease is not None and lease.question.get("question"):
            return lease.question["question"], lease.question.get("gold", {})
        if question is None:
            raise UnknownQuestion(
                f"question_id is {question_id[:40]!r}, which is not known here: send the question "
                "along"
            )
        kept = question_of(question)
        exemplar, tiles = shown(kept)
        self.source.index_of([key for key in [exemplar, *tiles] if key is not None])
        return kept, {}

    # --- other facts --------------------------------------------------------------------------

    def undo(self, who: str, *, id: str, fact: str) -> bool:
        """Take back something that this person said; an undo can be undone.

        Returns:
            Whether it is new.
        """
        found = self.store.fact(fact) if isinstance(fact, str) else None
        if found is None:
            raise ValueError(f"fact is {str(fact)[:60]!r}: nothing of that id was said")
        if found[1].who != who:
            raise PermissionError(f"{str(fact)[:60]!r} was said by somebody else: undo your own")
        return self._say(who, id, "undo", {"fact": fact})

    def name(self, who: str, *, id: str, item: str, name: str) -> bool:
        """Say what the class of an item is called."""
        self._known("item", [item])
        if not isinstance(name, str):
            raise ValueError(f"name is {name!r}: give a text")
        return self._say(who, id, "name", {"item": item, "name": " ".join(name.split())})

    def merge(self, who: str, *, id: str, a: str, b: str) -> bool:
        """Two classes are one: the items a and b, one of each, are alike."""
        self._known("a and b", [a, b])
        body = {
            "question": {"kind": "pair", "a": a, "b": b},
            "clicked": [b],
            "unsure": [],
            "skipped": False,
            "seconds": 0.0,
            "question_id": "merge",
        }
        return self._say(who, id, "answer", body)

    def split(self, who: str, *, id: str, from_: str, items: Sequence[str]) -> bool:
        """Some items are not of the class of `from_`, whatever was said before."""
        self._known("from and items", [from_, *check_keys("items", items, least=1)])
        return self._say(who, id, "split", {"from": from_, "items": list(items)})

    def _known(self, argument: str, keys: list[str]) -> None:
        for key in keys:
            check_key(argument, key)
        self.source.index_of(keys)

    def _say(self, who: str, id: str, kind: Any, body: dict[str, Any]) -> bool:
        new = self.store.append([Fact(id, kind, who, self.store.clock(), body)])[0]
        self._mind.nudge()
        return new

    # --- what people see ----------------------------------------------------------------------

    def history(self, who: str, limit: int = 20) -> list[dict[str, Any]]:
        """A person's last facts, the newest first, with what they need to be shown again.

        Every entry has ``id``, ``kind``, ``when``, ``undone``, ``body`` (without what was gold),
        and for answers ``exemplar``, ``tiles`` and ``text``.
        """
        limit = max(1, min(int(limit), 200))
        self._figures.read(self.store)
        snapshot = self.snapshot
        entries: list[dict[str, Any]] = []
        for sequence, fact in self.store.latest(who, limit):
            entry = {
                "id": fact.id,
                "kind": fact.kind,
                "when": fact.when,
                "sequence": sequence,
                "undone": self._figures.undone(fact.id),
                "body": body_without_secrets(fact.body),
            }
            if fact.kind == "answer":
                exemplar, tiles = shown(fact.body["question"])
                kind = fact.body["question"]["kind"]
                place = None if exemplar is None else self._place(exemplar)
                entry |= {
                    "exemplar": exemplar,
                    "tiles": tiles,
                    "text": in_words(kind, place, snapshot),
                }
            entries.append(entry)
        return entries

    def _place(self, key: str) -> int | None:
        try:
            return int(self.source.index_of(key))
        except ValueError:
            return None

    def progress(self, who: str) -> dict[str, Any]:
        """How far it is: ``mine`` and ``team`` (questions and answers), ``questions_left`` to the
        target and ``accuracy`` (estimates, or None), ``placed`` of ``items``, ``target``, and the
        ``classes``: id, name, count, exemplar."""
        snapshot = self.snapshot
        self._figures.read(self.store)
        return {
            "mine": self._figures.counts(who),
            "team": self._figures.counts(None),
            "questions_left": snapshot.left,
            "accuracy": snapshot.accuracy,
            "target": self.target,
            "items": len(self.source),
            "placed": len(snapshot.placed),
            "classes": [
                {
                    "id": snapshot.class_ids[c],
                    "name": snapshot.class_names[c],
                    "count": len(snapshot.members[c]),
                    "exemplar": self.source.keys[snapshot.exemplar(c)],
                }
                for c in range(len(snapshot.members))
            ],
        }

    def item(self, key: str) -> dict[str, Any]:
        """One item: its key, the id of its class and what that is called (None: unknown)."""
        place, snapshot = int(self.source.index_of(check_key("key", key))), self.snapshot
        c = snapshot.class_of(place)
        return {
            "key": key,
            "class": None if c is None else snapshot.class_ids[c],
            "name": snapshot.name_of(place),
        }

    def map(self) -> list[dict[str, Any]]:
        """Up to 5,000 items in the plane: key, x, y (0 to 1) and class (its id, or None)."""
        snapshot, X = self.snapshot, self._mind.X
        with self._map_lock:
            if self._map is None or self._map[0] is not X:
                self._map = (X, flat_map(X))
            items, places = self._map[1]
        return [
            {
                "key": self.source.keys[item],
                "x": x,
                "y": y,
                "class": None if (c := snapshot.class_of(item)) is None else snapshot.class_ids[c],
            }
            for item, (x, y) in zip(items, places, strict=True)
        ]

    def people_figures(self) -> list[dict[str, Any]]:
        """Of everybody who answered: name, questions, answers, median seconds of a grid, agreement
        with what others said, and accuracy on gold tiles (None: not known yet)."""
        self._figures.read(self.store)
        return self._figures.table(self.store)

    def refit(self, X: ArrayLike) -> None:
        """Other rows for the same items, from an encoder that was trained meanwhile. People go on
        answering; the new rows are used once their index is built."""
        self._mind.refit(_rows(X, len(self.source)))


def _sampler(sampler: Sampler | str) -> Sampler:
    if not isinstance(sampler, str):
        return sampler
    return build_sampler(sampler, **({"fill": True} if sampler == "default" else {}))


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
