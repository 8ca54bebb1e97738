"""Search: the images nearest to an image, to several, or to some and away from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from likewise.data import decode
from likewise.library.approximate import EXACT_UP_TO, has_faiss, search_approximately
from likewise.library.collection import Collection
from likewise.library.exact import Places, Rows

Method = Literal["auto", "exact", "faiss"]


@dataclass(frozen=True)
class Hit:
    """One found image.

    Attributes:
        key: of the image.
        similarity: cosine with the query, from -1 to 1; where items count against, their share is
            subtracted.
        label: its class, where it is known.
    """

    key: str
    similarity: float
    label: str | None = None


@dataclass(frozen=True)
class Found:
    """The hits of one query.

    Attributes:
        query: what was looked for, in words.
        shown: (key or path, is it a key) of the images of the query, for a sheet.
        hits: the nearest first.
    """

    query: str
    shown: tuple[tuple[str, bool], ...]
    hits: list[Hit]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "query": self.query,
            "hits": [
                {
                    "rank": rank,
                    "key": hit.key,
                    "similarity": round(hit.similarity, 6),
                    "label": hit.label,
                }
                for rank, hit in enumerate(self.hits, 1)
            ],
        }


def search_images(
    collection: Collection,
    queries: Sequence[str] = (),
    *,
    like: Sequence[str] = (),
    unlike: Sequence[str] = (),
    top: int = 20,
    unlike_weight: float = 0.5,
    method: Method = "auto",
) -> list[Found]:
    r"""The nearest images of each query, and of `like` and `unlike` together.

    More like these, less like those: with unit rows :math:`p_i` of `like` and :math:`u_j` of
    `unlike`, the query is :math:`\bar p - w \bar u`, scaled to length 1 (Rocchio 1971).

    Args:
        collection: what is searched.
        queries: keys of the collection, or image files; each has hits of its own.
        like: several that make one query together.
        unlike: what its hits should not be like.
        top: how many hits of each; images of the query itself are none.
        unlike_weight: w.
        method: "exact" compares with every row; "faiss" with those of some cells; "auto" is exact
            up to a million rows, and beyond where FAISS is not installed.
    """
    if method not in get_args(Method):
        raise ValueError(f"method is {method!r}: give one of {', '.join(get_args(Method))}")
    if top < 1:
        raise ValueError(f"top is {top}: give at least 1")
    if not queries and not like:
        raise ValueError("nothing to look for: give --query, or --like")
    if unlike and not like:
        raise ValueError("--unlike needs --like beside it: give images to look for, too")
    if unlike_weight < 0:
        raise ValueError(f"unlike_weight is {unlike_weight}: give 0 or more")
    wanted: list[tuple[str, list[str], list[str]]] = [(name, [name], []) for name in queries]
    if like:
        words = f"like {', '.join(like)}" + (f", unlike {', '.join(unlike)}" if unlike else "")
        wanted.append((words, list(like), list(unlike)))
    given = {name: row_of(collection, name) for _, near, far in wanted for name in (*near, *far)}
    rows = [
        _combined([given[n] for n in near], [given[n] for n in far], unlike_weight)
        for _, near, far in wanted
    ]
    most = max(len(near) + len(far) for _, near, far in wanted)
    similarities, places = _nearest(collection, np.stack(rows), top + most, method)
    found = []
    for (words, near, far), values, where in zip(wanted, similarities, places, strict=True):
        own = {*near, *far} & collection.place_of.keys()
        hits = [
            Hit(collection.keys[place], float(value), collection.label_of(int(place)))
            for value, place in zip(values, where.tolist(), strict=True)
            if collection.keys[place] not in own
        ]
        shown = tuple((name, name in collection.place_of) for name in (*near, *far))
        found.append(Found(words, shown, hits[:top]))
    return found


def _nearest(collection: Collection, queries: Rows, k: int, method: Method) -> tuple[Rows, Places]:
    kept = collection.index
    if method == "faiss" and kept is None:
        raise ValueError("method is 'faiss', which goes with a run or --encoder: its index is kept")
    large = len(collection) > EXACT_UP_TO and has_faiss()
    if kept is not None and (method == "faiss" or (method == "auto" and large)):
        return search_approximately(kept, queries, k)
    return collection.search(queries, k)


def row_of(collection: Collection, name: str) -> Rows:
    """The row of an item, or of an image file."""
    place = collection.place_of.get(name)
    if place is not None:
        if collection.index is not None and "rows" not in collection.__dict__:
            return _one_row(collection, place)
        return collection.rows[place]
    path = Path(name)
    if not path.is_file():
        example = collection.keys[0]
        raise ValueError(
            f"query is {name!r}, which is neither a key of the images (such as {example!r}) nor a "
            "file: give one of them"
        )
    if collection.embedder is None:
        raise ValueError(
            f"query is {name!r}, which is no key of the embeddings file: to search with another "
            "image, give the run or --encoder that made the file"
        )
    try:
        image = decode(path)
    except Exception as error:  # decoders raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"query is {name!r}, which is no image: {reason}") from error
    return collection.embedder.row_of(image)


def _one_row(collection: Collection, place: int) -> Rows:
    """One row from the disk: a search does not load all of them."""
    assert collection.index is not None
    number = int(collection.index.numbers()[place])
    for part in collection.index.parts():
        if number < len(part):
            return np.array(part[number])
        number -= len(part)
    raise AssertionError("the row is in no file")


def _combined(near: list[Rows], far: list[Rows], weight: float) -> Rows:
    row = np.mean(near, axis=0)
    if far:
        row = row - weight * np.mean(far, axis=0)
    length = float(np.linalg.norm(row))
    if length < 1e-6:
        raise ValueError("like and unlike cancel each other out: give other images")
    return (row / length).astype(np.float32)
