"""What a project says about the items of a source: beliefs, the graph to train on, labels."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.annotate.exchange import export_answers, read_lines
from likewise.annotate.facts import Reading, Said
from likewise.annotate.store import Store
from likewise.data.keys import Keyed
from likewise.graph import Graph
from likewise.oracles.answers import Answer
from likewise.oracles.beliefs import Beliefs, ExactBeliefs, NoisyBeliefs
from likewise.runs.files import write_atomically

PATIENCE = 600.0
"""Seconds that the other processes of a training wait for the first one's snapshot: it is written
when all has been checked."""

BELIEFS = ("exact", "noisy")

LINES = ".jsonl"
"""How a file of answers ends that is no project."""


@dataclass(frozen=True)
class ProjectAnswers:
    """The answers and names of a project that count, by key.

    >>> from likewise.data.keys import Keyed
    >>> said = ProjectAnswers([Said("a", "b", 1.0), Said("b", "c", -1.0)], {"c": "cats"})
    >>> labels, names = said.labels(Keyed(["c", "x", "b", "a"]))
    >>> labels.tolist(), names
    ([0, -1, 1, 1], ['cats', 'class 2'])
    """

    answers: list[Said]
    names: dict[str, str] = field(default_factory=dict)

    def about(self, items: Keyed) -> list[Answer]:
        """The answers of which both items are there, by number."""
        return numbered(self.answers, items)

    def beliefs(self, items: Keyed, *, kind: str = "exact") -> Beliefs:
        """What they imply.

        Args:
            items: a source, or anything else with keys.
            kind: "exact" takes every answer as true, "noisy" reckons with mistakes.
        """
        if kind not in BELIEFS:
            raise ValueError(f"kind is {kind!r}: give one of {', '.join(BELIEFS)}")
        beliefs: Beliefs = (ExactBeliefs if kind == "exact" else NoisyBeliefs)(len(items))
        return beliefs.add(self.about(items))

    def graph(self, items: Keyed, *, kind: str = "exact") -> Graph:
        """Who is alike (+1) and who is different (-1), asked or implied, over the items in their
        order: what training takes."""
        return self.beliefs(items, kind=kind).graph()

    def labels(self, items: Keyed, *, kind: str = "exact") -> tuple[NDArray[np.int64], list[str]]:
        """(n,) the class of every item (-1: unknown), and what the classes are called."""
        beliefs = self.beliefs(items, kind=kind)
        labels = beliefs.labels()
        return labels, class_names(labels, beliefs.n_classes, self.names, items)


def answers_of_project(project: str | Path) -> ProjectAnswers:
    """The answers and names of a project as they stand now: a snapshot.

    Args:
        project: the file of a project, the URL of its database, or JSON lines (.jsonl) that
            `likewise answers export` wrote.
    """
    if "://" not in str(project) and not Path(project).is_file():
        raise ValueError(
            f"there is no project {project}: give the file that `likewise ask` wrote, or the URL "
            "of a database"
        )
    if str(project).endswith(LINES):
        reading = Reading(enumerate(read_lines(Path(project)), 1))
    else:
        with Store.open(project) as store:
            reading = store.reading()
    return ProjectAnswers(reading.answers, reading.names)


def check_about(project: str, said: ProjectAnswers, items: Keyed) -> None:
    """Refuse answers none of which is about the items, with a key of either side.

    >>> check_about("p.db", ProjectAnswers([Said("x.png", "y.png", 1.0)]), Keyed(["a.jpg"]))
    Traceback (most recent call last):
    ...
    ValueError: p.db holds 1 answer, none of them about these images: it has 'x.png', they have ...
    """
    if not said.answers:
        raise ValueError(
            f"{project} holds no answers yet: answer some questions first (`likewise ask`)"
        )
    if not said.about(items):
        held = f"{len(said.answers):,} answer{'' if len(said.answers) == 1 else 's'}"
        here = set(items.keys)
        keys = (key for answer in said.answers for key in (answer.a, answer.b))
        raise ValueError(
            f"{project} holds {held}, none of them about these images: it has "
            f"{next(key for key in keys if key not in here)!r}, they have {items.keys[0]!r}; give "
            "the images that were asked about"
        )


def training_graph(
    source: Keyed, project: str, kept: Path, *, take: bool
) -> tuple[Graph, int, int]:
    """The graph that a training takes from a project: a snapshot, kept in a file of the run.

    People go on answering while it trains. A run that is resumed, and every process of one that
    has several, reads the same answers from the file.

    Args:
        source: the images.
        project: the file of a project, the URL of its database, or JSON lines (.jsonl) that
            `likewise answers export` wrote.
        kept: the file (JSON lines) that keeps the snapshot.
        take: read the project and write the file; else wait for the file and read that.

    Returns the graph, how many answers are about these images, and how many about others.
    """
    if take:
        if "://" not in project and not Path(project).is_file():
            raise ValueError(f"answers is {project}: there is no such file")
        if project.endswith(LINES):
            with write_atomically(kept) as aside:
                shutil.copyfile(project, aside)
        else:
            with Store.open(project) as store:
                export_answers(store, kept, "jsonl")
    else:
        until = time.monotonic() + PATIENCE
        while not kept.is_file():
            if time.monotonic() > until:
                raise ValueError(f"{kept} is not there: the answers of this run are lost")
            time.sleep(0.1)
    reading = Reading(enumerate(read_lines(kept), 1))
    found = ProjectAnswers(reading.answers, reading.names)
    check_about(project, found, source)
    beliefs = found.beliefs(source)
    return beliefs.graph(), beliefs.n_answers, len(found.answers) - beliefs.n_answers


def numbered(answers: Sequence[Said], items: Keyed) -> list[Answer]:
    """Answers by number; those about items that are not there are left out."""
    keys = {said.a for said in answers} | {said.b for said in answers}
    places = places_of(items, keys)
    return [
        said.numbered(places[said.a], places[said.b])
        for said in answers
        if said.a in places and said.b in places
    ]


def places_of(items: Keyed, keys: set[str]) -> dict[str, int]:
    """The numbers of those keys that are there."""
    found: dict[str, int] = {}
    for place, key in enumerate(items.keys):
        if key in keys:
            found[key] = place
    return found


def class_names(
    labels: NDArray[np.int64], n_classes: int, names: dict[str, str], items: Keyed
) -> list[str]:
    """A name for every class: the last that one of its items was given, else its number."""
    called: dict[int, str] = {}
    places = places_of(items, set(names))
    for key, name in names.items():
        if key in places and labels[places[key]] >= 0:
            called[int(labels[places[key]])] = name
    return [called.get(c, f"class {c + 1}") for c in range(n_classes)]
