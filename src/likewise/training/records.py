"""diagnostics.jsonl: a line for every look at a representation while it is learned."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from likewise.diagnostics import Spectrum, gather_evidence, info_nce_parts, spectrum
from likewise.diagnostics.evidence import Evidence
from likewise.diagnostics.figures import plain
from likewise.runs.files import write_atomically
from likewise.training.two_views import TwoViews

RECORDS = "diagnostics.jsonl"
VALUES_KEPT = 96
"""Singular values of a spectrum that are written down: all the first ones, then ever fewer."""

INFO_NCE = ("info_nce", "upper_bound", "gap", "invariance", "repulsion", "entropy")
RANKS = ("effective_rank", "centered_effective_rank", "rank_me", "matrix_entropy", "matrix_kl")


def measure(
    rows: TwoViews, labels: Any = None, *, inverse_temperature: float | None = None
) -> dict[str, Any]:
    """All figures of one look, as JSON has them (None: undefined, and a note says why).

    `evidence` is what a verdict rests on (:func:`likewise.diagnostics.gather_evidence`: spread,
    ranks, alignment, uniformity, share of variance between views, confusion); `encoder` and
    `projector` hold the spectrum of unit rows of the first view, its effective ranks, matrix
    entropy and matrix KL to uniform; `info_nce` holds the loss, its upper bound and their gap
    (geometry, proposition 3.1) on all samples of the look, where the objective is contrastive.

    Args:
        rows: two views of every sample, on the host.
        labels: class indices (n,), -1 where unknown.
        inverse_temperature: of a contrastive objective; None for others.
    """
    z1, z2 = (rows.h1, rows.h2) if rows.z1 is None or rows.z2 is None else (rows.z1, rows.z2)
    h1, h2 = (None, None) if rows.z1 is None else (rows.h1, rows.h2)
    evidence = gather_evidence(z1, z2, h1=h1, h2=h2, labels=labels)
    found: dict[str, Any] = {
        "samples": len(rows.h1),
        "evidence": evidence.to_dict(),
        "encoder": spectrum_summary(spectrum(rows.h1, normalize=True)),
        "projector": None,
        "info_nce": None,
    }
    if rows.z1 is not None:
        found["projector"] = spectrum_summary(spectrum(rows.z1, normalize=True))
    if inverse_temperature is not None:
        parts = info_nce_parts(z1, z2, inverse_temperature=inverse_temperature).to_dict()
        found["info_nce"] = {name: parts[name] for name in INFO_NCE}
        found["info_nce"]["inverse_temperature"] = inverse_temperature
    return found


def spectrum_summary(found: Spectrum) -> dict[str, Any]:
    """Ranks, and the centred singular values at places that lie ever farther apart.

    >>> import torch
    >>> summary = spectrum_summary(spectrum(torch.eye(4)))
    >>> summary["places"], summary["values"], round(summary["effective_rank"], 3)
    ([1, 2, 3, 4], [1.0, 1.0, 1.0, 0.0], 4.0)
    """
    values = np.asarray(found.centered_singular_values)
    places = spread_places(len(values))
    return {
        "dim": found.dim,
        **{name: plain(getattr(found, name)) for name in RANKS},
        "places": [place + 1 for place in places],
        "values": [float(f"{values[place]:.5g}") for place in places],
    }


def spread_places(n: int, most: int = VALUES_KEPT) -> list[int]:
    """At most `most` of the places 0 to n - 1, dense at the start, the ends always among them.

    >>> spread_places(3), len(spread_places(5000)) <= 96, spread_places(5000)[-1]
    ([0, 1, 2], True, 4999)
    """
    if n <= most:
        return list(range(n))
    return sorted({round(place) for place in np.geomspace(1, n, most) - 1})


def scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a record that are drawn over time, by the name they have in metrics.csv."""
    evidence = record["evidence"]
    found = {
        name: evidence[name]
        for name in ("spread", "alignment", "uniformity", "noise", "encoder_noise", "confusion")
    }
    for part in ("encoder", "projector"):
        if record[part] is not None:
            found |= {f"{part}_{name}": record[part][name] for name in RANKS}
    if record["info_nce"] is not None:
        found |= {
            "info_nce": record["info_nce"]["info_nce"],
            "info_nce_bound": record["info_nce"]["upper_bound"],
            "info_nce_gap": record["info_nce"]["gap"],
        }
    return {f"diagnostics/{name}": value for name, value in found.items() if value is not None}


def evidence_of(record: Mapping[str, Any]) -> Evidence:
    """The evidence of a record, as it was measured."""
    given: dict[str, Any] = dict(record["evidence"])
    given = {name: math.nan if value is None else value for name, value in given.items()}
    return Evidence(**{**given, "notes": tuple(given["notes"])})


def append_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Add a line to the run's file."""
    with (folder / RECORDS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(plain(dict(record))) + "\n")


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All looks in the order of their steps; the half line of a run that was killed is left out.

    >>> read_records(Path("nowhere"))
    []
    """
    path = folder / RECORDS
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(record, dict) and "step" in record:
            found.append(record)
    return sorted(found, key=lambda record: record["step"])


def keep_records(folder: Path, step: int) -> None:
    """Drop the looks after `step`, where a resumed run starts: it takes them again."""
    if not (folder / RECORDS).is_file():
        return
    # What training starts with is looked at again, too, where it starts anew.
    kept = [record for record in read_records(folder) if 0 < step >= record["step"]]
    with write_atomically(folder / RECORDS) as aside:
        aside.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
