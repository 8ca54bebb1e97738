"""What is known of some images: answers of a project or a file, labels of a file or of folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from likewise.data import Keyed
    from likewise.library import Collection

Labels = NDArray[np.int64]


def known_labels(
    collection: Collection, answers: str | None, labels: str | None
) -> tuple[Labels, list[str]]:
    """(n,) class indices of what is known, -1 elsewhere, and the names of the classes."""
    if labels is not None:
        return given_labels(collection, labels)
    assert answers is not None
    if "://" not in answers and not Path(answers).is_file():
        raise ValueError(f"answers is {answers!r}: there is no such file, so no answers yet")
    found = _of_lines(collection, Path(answers)) if answers.endswith(".jsonl") else None
    if found is None:
        from likewise.annotate.project import answers_of_project

        found = answers_of_project(answers).labels(_keyed(collection))
    known, names = found
    if not (known >= 0).any():
        raise ValueError(
            f"{answers} holds no answers yet that tell two classes apart among these images: "
            "answer some questions first (`likewise ask`)"
        )
    return known, names


def given_labels(collection: Collection, labels: str) -> tuple[Labels, list[str]]:
    """Labels of a CSV file (key,label), or those that the images bring along ("source")."""
    if labels == "source":
        if collection.labels is None or collection.class_names is None:
            raise ValueError("labels is 'source', and the images bring none along: give a CSV file")
        return collection.labels, collection.class_names
    from likewise.data.labels import class_indices, read_label_file

    given = read_label_file(labels)
    values = [given.get(key) for key in collection.keys]
    known, names = class_indices(value or None for value in values)
    if not (known >= 0).any():
        raise ValueError(
            f"none of the {len(given):,} keys of {labels} is among the images: it has "
            f"{next(iter(given))!r}, they have {collection.keys[0]!r}"
        )
    return known, names


def strata(collection: Collection, labels: str | None, *, seed: int) -> tuple[Labels, list[str]]:
    """The class of every image, or its cluster where no labels are given; and names."""
    if labels is not None:
        return given_labels(collection, labels)
    from likewise.library import find_clusters

    found = find_clusters(collection.rows, seed=seed)
    return found.cluster, [f"cluster {number + 1}" for number in range(found.k)]


def _of_lines(collection: Collection, path: Path) -> tuple[Labels, list[str]] | None:
    """Answers by number, as `likewise.oracles.write_answers` keeps them; None: another file.

    Numbers are places among the images as they are listed now: a file of a project, which has
    keys, stays right when images are added or removed.
    """
    with path.open(encoding="utf-8") as file:
        first = file.readline().strip()
    if not first:
        raise ValueError(f"{path} is empty: there are no answers yet")
    try:
        by_number = isinstance(json.loads(first).get("a"), int)
    except (ValueError, AttributeError):
        raise ValueError(f"{path} holds no answers: its first line is {first[:60]!r}") from None
    if not by_number:
        return _of_facts(collection, path)
    from likewise.oracles import ExactBeliefs, read_answers

    beliefs = ExactBeliefs(len(collection)).add(read_answers(path))
    return beliefs.labels(), [f"class {c + 1}" for c in range(beliefs.n_classes)]


def _of_facts(collection: Collection, path: Path) -> tuple[Labels, list[str]]:
    """The file that `likewise answers export` writes: facts by key."""
    from likewise.annotate.exchange import read_lines
    from likewise.annotate.facts_effective import Reading
    from likewise.annotate.project import ProjectAnswers

    reading = Reading(enumerate(read_lines(path), 1))
    return ProjectAnswers(reading.answers, reading.names).labels(_keyed(collection))


def _keyed(collection: Collection) -> Keyed:
    from likewise.data import Keyed

    return Keyed(collection.keys)
