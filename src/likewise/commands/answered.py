"""What is known of some images: answers of a project or a file, labels of a file or of folders."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from likewise.data import Keyed
    from likewise.library import Collection
    from likewise.oracles import Beliefs

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """What is known of some images.

    Attributes:
        labels: (n,) class indices, -1 where the class is not known.
        names: of the classes.
        excluded: (n, classes) what an image is known not to be, where that is all that is known.
        chosen: the images were chosen by a sampler, not drawn.
    """

    labels: Labels
    names: list[str]
    excluded: NDArray[np.bool_] | None = None
    chosen: bool = False


def what_is_known(collection: Collection, answers: str | None, labels: str | None) -> Known:
    """From answers, or from labels."""
    if labels is not None:
        return Known(*given_labels(collection, labels))
    assert answers is not None
    if "://" not in answers and not Path(answers).is_file():
        raise ValueError(f"answers is {answers!r}: there is no such file, so no answers yet")
    if answers.endswith(".jsonl") and _by_number(Path(answers)):
        known = _of_numbers(collection, Path(answers))
    else:
        known = _of_project(collection, answers)
    if not (known.labels >= 0).any():
        raise ValueError(
            f"{answers} holds no answers yet that tell two classes apart among these images: "
            "answer some questions first (`likewise ask`)"
        )
    return known


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


def _by_number(path: Path) -> bool:
    """Whether a file of answers has numbers (`likewise.oracles.write_answers`), or keys."""
    with path.open(encoding="utf-8") as file:
        first = file.readline().strip()
    if not first:
        raise ValueError(f"{path} is empty: there are no answers yet")
    try:
        return isinstance(json.loads(first).get("a"), int)
    except (ValueError, AttributeError):
        raise ValueError(f"{path} holds no answers: its first line is {first[:60]!r}") from None


def _of_numbers(collection: Collection, path: Path) -> Known:
    """Answers by number: places among the images as they are listed now.

    A file of a project, which has keys, stays right when images are added or removed.
    """
    from likewise.oracles import ExactBeliefs, read_answers

    beliefs = ExactBeliefs(len(collection)).add(read_answers(path))
    names = [f"class {c + 1}" for c in range(beliefs.n_classes)]
    return Known(beliefs.labels(), names, excluded_classes(beliefs), chosen=True)


def _of_project(collection: Collection, project: str) -> Known:
    """Answers by key, of a project or of the file that `likewise answers export` writes."""
    from likewise.annotate.project import answers_of_project, check_about

    said, items = answers_of_project(project), _keyed(collection)
    check_about(project, said, items)
    labels, names = said.labels(items)
    return Known(labels, names, excluded_classes(said.beliefs(items)), chosen=True)


def excluded_classes(beliefs: Beliefs) -> NDArray[np.bool_] | None:
    """(n, classes) what images without a class differ from; None where nothing is known of any.

    >>> from likewise.oracles import Answer, ExactBeliefs
    >>> beliefs = ExactBeliefs(4).add([Answer(0, 1, -1), Answer(0, 2, -1)])
    >>> beliefs.labels().tolist(), excluded_classes(beliefs).tolist()[2]
    ([0, 1, -1, -1], [True, False])
    """
    labels = beliefs.labels()
    unplaced = np.flatnonzero(beliefs.asked() & (labels < 0))
    if not len(unplaced) or not beliefs.n_classes:
        return None
    one_of = [int(np.flatnonzero(labels == c)[0]) for c in range(beliefs.n_classes)]
    found = np.zeros((len(labels), beliefs.n_classes), dtype=bool)
    for item in unplaced.tolist():
        found[item] = beliefs.relations(item, one_of) < 0
    return found


def _keyed(collection: Collection) -> Keyed:
    from likewise.data import Keyed

    return Keyed(collection.keys)
