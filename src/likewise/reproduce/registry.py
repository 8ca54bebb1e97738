"""All reproductions, by name."""

from __future__ import annotations

from likewise.reproduce.balanced import BALANCED
from likewise.reproduce.findings import AnyReproduction
from likewise.reproduce.geometry import GEOMETRY
from likewise.reproduce.matrix_ssl import MATRIX_SSL
from likewise.reproduce.pal.graphs import FIGURE_6
from likewise.reproduce.pal.known_pairs import KNOWN_PAIRS
from likewise.reproduce.pal.labels import FIGURE_4, FIGURE_8
from likewise.reproduce.pal.missing import FIGURE_9
from likewise.reproduce.pal.mixture import FIGURE_10
from likewise.reproduce.pal.queries import FIGURE_3, FIGURE_7
from likewise.reproduce.pal.theorem_2 import THEOREM_2
from likewise.reproduce.supervised_theory.duplicates import DUPLICATES
from likewise.reproduce.supervised_theory.losses import FIGURE_1, FIGURE_2
from likewise.reproduce.supervised_theory.worst_case import WORST_CASE

REPRODUCTIONS: dict[str, AnyReproduction] = {
    entry.name: entry
    for entry in (
        FIGURE_3,
        FIGURE_4,
        FIGURE_6,
        FIGURE_7,
        FIGURE_8,
        FIGURE_9,
        FIGURE_10,
        THEOREM_2,
        KNOWN_PAIRS,
        FIGURE_1,
        FIGURE_2,
        WORST_CASE,
        DUPLICATES,
        *GEOMETRY,
        *MATRIX_SSL,
        *BALANCED,
    )
}
"""In the order of the papers."""


def reproduction(name: str) -> AnyReproduction:
    """The one of this name.

    >>> reproduction("pal-5")
    Traceback (most recent call last):
    ...
    ValueError: no reproduction is called 'pal-5': give one of pal-3, pal-4, ..., or all
    """
    if name not in REPRODUCTIONS:
        names = ", ".join(REPRODUCTIONS)
        raise ValueError(f"no reproduction is called {name!r}: give one of {names}, or all")
    return REPRODUCTIONS[name]


PAPERS = ("pal", "supervised-theory", "geometry", "matrix-ssl", "balanced")


def select(names: str) -> list[AnyReproduction]:
    """Those of a name, of several with commas, of a paper by its short name, or all.

    >>> [entry.name for entry in select("pal-9,supervised-theory")][:2]
    ['pal-9', 'supervised-theory-1']
    """
    found: dict[str, AnyReproduction] = {}
    for name in names.split(","):
        if name == "all":
            found.update(REPRODUCTIONS)
        elif name in PAPERS:
            found.update({n: e for n, e in REPRODUCTIONS.items() if n.startswith(f"{name}-")})
        else:
            found[name] = reproduction(name)
    return [*found.values()]
