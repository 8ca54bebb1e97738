"""Training curves, rank over time and spectra, with one colour a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.reports.drawing import Line, chart
from likewise.reports.subject import Subject


def training_section(subjects: Sequence[Subject]) -> str:
    """Loss, its terms, kNN accuracy, learning rate, and what views and negatives do."""
    over = _over(subjects)
    several = len(subjects) > 1

    def columns(name: str) -> list[Line]:
        return [
            Line(s.name if several else name.split("/")[1], *s.curves.column(name), colour=i)
            for i, s in enumerate(subjects)
        ]

    def looks(*paths: tuple[str, tuple[str, ...]]) -> list[Line]:
        return [
            Line(
                f"{s.name}, {name}" if several and len(paths) > 1 else s.name if several else name,
                *s.curves.look(*path),
                colour=i if several else k,
                dash=k if several else 0,
            )
            for i, s in enumerate(subjects)
            for k, (name, path) in enumerate(paths)
        ]

    charts = [
        chart(columns("train/loss"), title="Loss", x_label=over),
        _terms(subjects, over) if not several else "",
        chart(
            columns("monitor/knn"),
            title="kNN accuracy while training",
            x_label=over,
            note="Of plain images, each classified by the others of a sample.",
            share=True,
        ),
        chart(
            looks(("alignment", ("evidence", "alignment"))),
            title="Alignment",
            x_label=over,
            note="Mean squared distance of two views of an image: lower is more invariant.",
            zero=True,
        ),
        chart(
            looks(("uniformity", ("evidence", "uniformity"))),
            title="Uniformity",
            x_label=over,
            note="Lower: rows cover the sphere more evenly. 0 is full collapse.",
        ),
        chart(
            looks(
                ("encoder", ("evidence", "encoder_noise")),
                ("projector", ("evidence", "projector_noise")),
            ),
            title="Variance between views",
            x_label=over,
            note="Share of the variance that augmentation makes.",
            share=True,
            zero=True,
        ),
        chart(
            looks(("InfoNCE", ("info_nce", "info_nce")), ("bound", ("info_nce", "upper_bound"))),
            title="InfoNCE and its upper bound",
            x_label=over,
            note="The bound counts the nearest negative only; close to it, that one decides.",
        ),
        chart(columns("train/lr"), title="Learning rate", x_label=over, zero=True),
    ]
    return _section("training", "Training", charts, "Nothing was written down while training.")


def rank_section(subjects: Sequence[Subject]) -> str:
    """Effective rank over time, and spectra of encoder, projector and its weights."""
    over = _over(subjects)
    several = len(subjects) > 1
    lines = []
    for i, s in enumerate(subjects):
        for k, part in enumerate(("encoder", "projector")):
            x, y = s.curves.look(part, "centered_effective_rank")
            name = f"{s.name}, {part}" if several else part
            if not len(x) and part == "encoder":
                # An older run: of features as they are, of images as they are.
                x, y = s.curves.column("monitor/effective_rank")
                name += " (plain images)"
            lines.append(Line(name, x, y, colour=i if several else k, dash=k if several else 0))
    charts = [
        chart(
            lines,
            title="Effective rank over time",
            x_label=over,
            note="How many directions are in use. A fall to a few is dimensional collapse.",
            zero=True,
        )
    ]
    for part, title in (("encoder", "encoder"), ("projector", "projector")):
        charts.append(
            chart(
                _spectra(subjects, part),
                title=f"Spectrum of the {title}",
                x_label="singular value, largest first",
                note="Of centred unit rows, the largest set to 1. A cliff is a collapse.",
                log_y=True,
                log_x=True,
            )
        )
    weights = [
        Line(
            f"{s.name}, layer {k + 1}" if several else f"layer {k + 1}",
            np.arange(1, len(values) + 1).tolist(),
            (values / max(float(values[0]), 1e-300)).tolist(),
            colour=i if several else k,
            dash=min(k, 2) if several else 0,
        )
        for i, s in enumerate(subjects)
        for k, values in enumerate(s.weights)
    ]
    charts.append(
        chart(
            weights,
            title="Spectrum of the projector's weights",
            x_label="singular value, largest first",
            note="The largest of each layer set to 1.",
            log_y=True,
            log_x=True,
        )
    )
    return _section("rank", "Rank and spectra", charts, "There are no embeddings to measure.")


def _spectra(subjects: Sequence[Subject], part: str) -> list[Line]:
    """The spectrum now and, fainter, that of the first look."""
    lines = []
    for i, s in enumerate(subjects):
        colour = i if len(subjects) > 1 else (part == "projector") + 0
        first = s.curves.records[0].get(part) if len(s.curves.records) > 1 else None
        now = (s.record or {}).get(part)
        if first and len(subjects) == 1:
            lines.append(_spectrum("at the start", first, colour, faint=True))
        if now:
            name = s.name if len(subjects) > 1 else "now"
            lines.append(_spectrum(name, now, colour))
    return [line for line in lines if line is not None]


def _spectrum(name: str, found: dict, colour: int, faint: bool = False) -> Line:
    top = max(found["values"][0], 1e-300)
    return Line(name, found["places"], [v / top for v in found["values"]], colour, faint=faint)


def _terms(subjects: Sequence[Subject], over: str) -> str:
    curves = subjects[0].curves
    names = curves.terms()
    if len(names) < 2:
        return ""
    lines = [
        Line(name.split("/")[1], *curves.column(name), colour=k) for k, name in enumerate(names)
    ]
    return chart(lines, title="Terms of the loss", x_label=over, note="They add up to the loss.")


def _over(subjects: Sequence[Subject]) -> str:
    labels = {s.curves.x_label for s in subjects if s.curves.columns or s.curves.records}
    return labels.pop() if len(labels) == 1 else "epoch"


def _section(identity: str, title: str, charts: Sequence[str], otherwise: str) -> str:
    drawn = [made for made in charts if made]
    # Two or four stand two by two.
    kind = "charts even" if len(drawn) in (2, 4) else "charts"
    body = (
        f'<div class="{kind}">{"".join(drawn)}</div>'
        if drawn
        else f'<p class="note">{otherwise}</p>'
    )
    return f'<section id="{identity}"><h2>{title}</h2>{body}</section>'
