"""What the desk tells its mind, and what it hears from it: small, and fit for a pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from likewise.annotate.mind.proposals import Proposal
from likewise.annotate.mind.snapshot import Snapshot


@dataclass(frozen=True)
class Ready:
    """What of one kind of question is ready.

    Attributes:
        best: how many of the sampler's.
        plain: how many plain ones.
        holds: the items of the former.
    """

    best: int
    plain: int
    holds: frozenset[int]


@dataclass(frozen=True)
class Order:
    """What is wanted.

    Attributes:
        turn: a number that grows whenever something happens at the desk.
        busy: items that are not to be asked about now.
        ready: by the kinds of which more is wanted.
    """

    turn: int
    busy: frozenset[int]
    ready: dict[str, Ready]


@dataclass(frozen=True)
class Known:
    """What is known by now."""

    snapshot: Snapshot


@dataclass(frozen=True)
class Swapped:
    """Other rows, or another pool of them, are in use.

    Attributes:
        rows: 0 for the first rows, 1 for those of the first refit, and so on.
        pool: the items of the classifier's pool.
    """

    rows: int
    pool: list[int]


@dataclass(frozen=True)
class Stale:
    """The sampler's questions of a kind that are ready know less than is known by now."""

    kind: str


@dataclass(frozen=True)
class Best:
    """A question of the sampler."""

    kind: str
    proposal: Proposal


@dataclass(frozen=True)
class Plain:
    """Plain questions, in place of those that are ready."""

    kind: str
    proposals: list[Proposal]


@dataclass(frozen=True)
class Nothing:
    """There is nothing to ask of this kind, as of a turn."""

    kind: str
    turn: int


Thought: TypeAlias = Known | Swapped | Stale | Best | Plain | Nothing
