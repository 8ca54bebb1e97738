"""The verdict in plain words, with the figures behind it and what to try; and all figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from likewise.diagnostics import Finding
from likewise.reports.classes import Classes
from likewise.reports.markup import MISSING, duration, number, percent, table, tag, text
from likewise.reports.subject import Subject

GRAVE = ("full collapse", "dimensional collapse")

WORDS = {
    "spread": "spread",
    "effective_rank": "effective rank",
    "threshold": "threshold: times less behind",
    "noise": "variance between views",
    "encoder_noise": "between views, encoder",
    "projector_noise": "between views, projector",
    "confusion": "views confused",
    "label_lift": "label lift",
    "imbalance": "largest to smallest class",
    "classes": "classes",
    "encoder_rank": "effective rank, encoder",
}
SHARES = {"noise", "encoder_noise", "projector_noise", "confusion"}

ICONS = {
    "healthy": '<path d="M4 12.5l5 5L20 6.5"/>',
    "caution": '<path d="M12 4v10M12 18.5v.5"/>',
    "grave": '<path d="M6 6l12 12M18 6L6 18"/>',
    "unknown": '<path d="M5 12h14"/>',
}


def run_name(subject: Subject, place: int, count: int) -> str:
    """The name of a run, with its colour where there are several."""
    chip = f'<span class="chip" style="--chip:var(--c{place % 8})"></span>' if count > 1 else ""
    return f'<span class="run-name">{chip}{text(subject.name)}</span>'


def tone(finding: Finding) -> str:
    """How grave it is, for the style sheet."""
    if finding.name == "healthy":
        return "healthy"
    return "grave" if finding.name in GRAVE else "caution"


def verdict_section(subjects: Sequence[Subject]) -> str:
    """A card for every subject."""
    cards = "".join(_card(s, i, len(subjects)) for i, s in enumerate(subjects))
    return (
        '<section id="verdict"><h2>Verdict</h2>'
        '<p class="lead">Is it collapsing, and why? Each finding has the figures behind it and '
        "what to try, the likeliest first. The thresholds are judgements, written down in "
        f'docs/diagnostics.md.</p><div class="cards">{cards}</div></section>'
    )


def _card(subject: Subject, place: int, count: int) -> str:
    title = tag("h3", run_name(subject, place, count)) if count > 1 else ""
    parts = [title]
    if subject.verdict is None:
        why = "There are neither images to look at nor figures that were written down."
        parts.append(_finding("unknown", "No verdict", why, {}, ()))
    else:
        parts += [
            _finding(tone(f), f.name.capitalize(), f.sentence, f.figures, f.remedies)
            for f in subject.verdict.findings
        ]
        parts.append(tag("p", text(_on_what(subject)), class_="note"))
        if subject.verdict.not_examined:
            items = "".join(tag("li", text(reason)) for reason in subject.verdict.not_examined)
            parts.append(f'<p class="note">Not examined:</p><ul class="remarks">{items}</ul>')
    if subject.remarks:
        items = "".join(tag("li", text(remark)) for remark in subject.remarks)
        parts.append(f'<ul class="remarks">{items}</ul>')
    return tag("div", "".join(parts), class_="card" if count > 1 else "alone")


def _finding(
    kind: str, name: str, sentence: str, figures: dict[str, float], remedies: Sequence[str]
) -> str:
    icon = (
        '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.6" '
        f'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{ICONS[kind]}</svg>'
    )
    body = tag("h4", icon + text(name)) + tag("p", text(sentence[:1].upper() + sentence[1:]))
    if figures:
        items = "".join(tag("li", item) for item in _behind(figures))
        body += f'<ul class="behind">{items}</ul>'
    if remedies:
        tries = "".join(tag("li", text(remedy)) for remedy in remedies)
        body += f"<p>What to try:</p><ul>{tries}</ul>"
    return tag("div", body, class_=f"finding {kind}")


def _behind(figures: dict[str, float]) -> list[str]:
    """The figures of a finding, a rank with what it is of, and a threshold with what it is for."""
    whole = {"effective_rank": "usable", "encoder_rank": "encoder_usable"}
    limits = {"encoder_rank": "encoder_threshold"}
    if "projector_noise" not in figures:  # there the threshold is that of a ratio
        limits[next(iter(figures))] = "threshold"
    beside = {*whole.values(), *limits.values()}
    items = []
    for key, value in figures.items():
        if key in beside:
            continue
        item = f"{text(WORDS.get(key, key))} <b>{_written(key, value)}</b>"
        if whole.get(key) in figures:
            item += f" of {number(figures[whole[key]])}"
        if limits.get(key) in figures:
            item += f" (threshold {_written(key, figures[limits[key]])})"
        items.append(item)
    return items


def _written(key: str, value: float) -> str:
    return percent(value) if key in SHARES else number(value)


def _on_what(subject: Subject) -> str:
    record = subject.record or {}
    count = f"{record.get('samples', 0):,}"
    if subject.kind == "embeddings":
        return f"Measured on {count} embeddings, one row each."
    if subject.measured == "now" and subject.sample is not None:
        return (
            f"Measured on {count} images of {subject.sample.place}, two views of each "
            f"(views: {subject.config.get('views')})."
        )
    return (
        f"As written down at step {record.get('step', 0):,} of the training, on two views of "
        f"{count} images."
    )


Figure = tuple[str, str, Callable[[Subject, Classes | None], str]]


def _evidence(name: str, write: Callable[[Any], str] = number) -> Callable[..., str]:
    return lambda subject, classes: write(
        None if subject.record is None else subject.record["evidence"].get(name)
    )


def _rank(part: str) -> Callable[..., str]:
    def written(subject: Subject, classes: Classes | None) -> str:
        found = None if subject.record is None else subject.record.get(part)
        if not found:
            return MISSING
        return f"{number(found['centered_effective_rank'])} of {found['dim']:,}"

    return written


def _part(part: str, name: str) -> Callable[..., str]:
    return lambda subject, classes: number(((subject.record or {}).get(part) or {}).get(name))


def _relative_confusion(subject: Subject, classes: Classes | None) -> str:
    looks = subject.curves.records
    if len(looks) < 2 or looks[0]["step"] != 0:
        return MISSING
    first, last = (look["evidence"]["confusion"] for look in (looks[0], looks[-1]))
    if first is None or last is None or first >= 1:
        return MISSING
    return number((1 - last) / (1 - first))


FIGURES: tuple[Figure, ...] = (
    ("kNN accuracy", "each item classified by its nearest others",
     lambda s, c: MISSING if c is None else percent(c.accuracy)),
    ("kNN accuracy, classes alike", "the mean of the classes' own accuracies",
     lambda s, c: MISSING if c is None else percent(c.balanced)),
    ("Effective rank, encoder", "directions in use of the covariance of unit rows: exp of its "
     "entropy", _rank("encoder")),
    ("Effective rank, projector", "the same of what the loss compares", _rank("projector")),
    ("RankMe, projector", "the same count on singular values, uncentred",
     _part("projector", "rank_me")),
    ("Matrix entropy, encoder", "log effective rank + 1, uncentred",
     _part("encoder", "matrix_entropy")),
    ("Matrix KL to uniform, encoder", "0 where all directions are used alike",
     _part("encoder", "matrix_kl")),
    ("Spread", "0 where all rows point the same way, 1 where their mean is 0",
     _evidence("spread")),
    ("Alignment", "mean squared distance of two views of an item; 0 is equal, 2 unrelated",
     _evidence("alignment")),
    ("Uniformity", "0 where all rows are equal, -4 where they fill a sphere evenly",
     _evidence("uniformity")),
    ("Variance between views, encoder", "share of the variance that augmentation makes",
     _evidence("encoder_noise", percent)),
    ("Variance between views, projector", "the same of what the loss compares",
     _evidence("projector_noise", percent)),
    ("Views confused", "how often a view's nearest other view is another item's",
     _evidence("confusion", percent)),
    ("Relative confusion", "(1 - confused now) / (1 - confused at the start), of the looks while "
     "training; above 1: it has learned", _relative_confusion),
    ("Nearest negative", "mean cosine to the nearest other item", _evidence("nearest_negative")),
    ("Label lift", "0: nearest others share the label by chance, 1: always",
     _evidence("label_lift")),
    ("InfoNCE", "the contrastive loss on this sample", _part("info_nce", "info_nce")),
    ("InfoNCE, distance to its bound", "how far above the loss its upper bound lies",
     _part("info_nce", "gap")),
    ("Neural collapse NC1", "variance within classes over that between; 0 is collapsed",
     lambda s, c: MISSING if c is None else number(c.collapse.nc1)),
    ("Neural collapse NC2", "distance of class means to a simplex; 0 is a simplex",
     lambda s, c: MISSING if c is None else number(c.collapse.nc2)),
    ("Last loss", "of the last step that was logged", lambda s, c: number(s.summary.get("loss"))),
    ("Training time", "all of it", lambda s, c: duration(s.summary.get("seconds"))),
    ("Images per second", "augmented views", lambda s, c: number(
        s.summary.get("steady_images_per_second"))),
)  # fmt: skip
"""(name, what it says, how to find it)."""


def figures_section(subjects: Sequence[Subject], classes: Sequence[Classes | None]) -> str:
    """All figures, a column for every subject; what nobody has is left out."""
    rows = []
    for name, says, find in FIGURES:
        cells = [find(s, c) for s, c in zip(subjects, classes, strict=True)]
        if any(cell != MISSING for cell in cells):
            rows.append([text(name) + tag("small", text(says)), *map(text, cells)])
    count = len(subjects)
    head = ["Figure", *(run_name(s, i, count) for i, s in enumerate(subjects))]
    if count == 1:
        head = ["Figure", "Value"]
    body = table(head, rows, kind="figures", caption="All figures")
    title = "Side by side" if count > 1 else "All figures"
    if count == 1:
        body = tag("details", tag("summary", f"{len(rows)} figures, and what each says") + body)
        body = _tiles(subjects[0], classes[0]) + body
    return f'<section id="figures"><h2>{title}</h2>{body}</section>'


def _tiles(subject: Subject, classes: Classes | None) -> str:
    wanted = ("kNN accuracy", "Effective rank, encoder", "Effective rank, projector", "Alignment",
              "Uniformity", "Training time")  # fmt: skip
    shown = [(name, find(subject, classes)) for name, _, find in FIGURES if name in wanted]
    items = ""
    for name, value in shown:
        figure, of, whole = value.partition(" of ")
        if value != MISSING:
            small = f" <small>of {text(whole)}</small>" if of else ""
            items += f"<li><b>{text(figure)}{small}</b><span>{text(name)}</span></li>"
    return f'<ul class="tiles">{items}</ul>' if items else ""
