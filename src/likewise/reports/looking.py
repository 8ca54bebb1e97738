"""What the embedding does with images: the map, neighbour sheets, confusion and classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.reports.classes import Classes
from likewise.reports.flat import flat_map
from likewise.reports.markup import number, percent, script_data, table, tag, text
from likewise.reports.neighbors import Query, neighbor_sheets
from likewise.reports.pictures import Sprite
from likewise.reports.subject import Sample, Subject
from likewise.reports.verdicts import run_name

PALETTE = 10
"""Colours of the style sheet; more classes get hues of their own."""

MOST_NAMES = 40
MOST_IN_MATRIX = 25
MARGIN = 12


def class_colour(place: int, count: int) -> str:
    """The colour of a class, as CSS.

    >>> class_colour(3, 10), class_colour(3, 50)
    ('var(--k3)', 'hsl(23 62% var(--k-light))')
    """
    if count <= PALETTE:
        return f"var(--k{place})"
    # The golden angle: neighbours in the list are far apart in hue.
    return f"hsl({round(place * 137.508 + 330) % 360} 62% var(--k-light))"


def map_section(
    subjects: Sequence[Subject], classes: Sequence[Classes | None], sprites: Sequence[Sprite | None]
) -> str:
    """A map for every subject that has a sample."""
    maps, data = [], []
    for i, (s, c, sprite) in enumerate(zip(subjects, classes, sprites, strict=True)):
        if s.sample is not None:
            drawn, script = _map(s, s.sample, c, sprite, i, len(subjects))
            maps.append(drawn)
            data.append(script)
    if not maps:
        return ""
    return (
        '<section id="map"><h2>Map</h2><p class="lead">Each dot is an item; near ones have '
        "similar embeddings. What lies far apart, and how large a group is, means nothing."
        '<span class="hint"> Point at a dot, tap it, or focus the map and use the arrow keys.'
        f'</span></p><div class="maps">{"".join(maps)}</div>{"".join(data)}</section>'
    )


def _map(
    subject: Subject,
    sample: Sample,
    classes: Classes | None,
    sprite: Sprite | None,
    place: int,
    count: int,
) -> tuple[str, str]:
    flat, how = flat_map(sample.rows, seed=subject.seed)
    places = np.round(MARGIN + flat * (1000 - 2 * MARGIN)).astype(int)
    present = _present(sample)
    dots = []
    labels = np.full(len(sample), -1) if sample.labels is None else sample.labels
    for k, label in enumerate([-1, *present]):
        chosen = places[labels == label]
        if len(chosen):
            path = "".join(f"M{x} {y}h0" for x, y in chosen)
            colour = "var(--k7)" if label < 0 else class_colour(k - 1, len(present))
            if label < 0 and not present:
                colour = "var(--accent)"
            dots.append(
                f'<path class="points" data-class="{label}" style="stroke:{colour}" d="{path}"/>'
            )
    title = f"{run_name(subject, place, count)} · " if count > 1 else ""
    about = f"{len(sample):,} of {sample.of:,} items of {text(sample.place)}"
    caption = tag("figcaption", f"{title}{about}<span>{text(how)}</span>")
    height = max(int(places[:, 1].max()) + MARGIN, 300)
    svg = (
        f'<svg viewBox="0 0 1000 {height}" role="application" tabindex="0" data-map="map{place}" '
        f'aria-label="Map of {len(sample):,} embeddings of {text(subject.name)}. Arrow keys go '
        f'from item to item.">{"".join(dots)}<circle class="here" r="11"/></svg>'
    )
    names = [sample.class_name(label) for label in range(max(present, default=-1) + 1)]
    data: dict[str, Any] = {
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "keys": sample.keys,
        "label": labels.tolist() if present else None,
        "said": (labels if classes is None else classes.predicted).tolist(),
        "names": names,
        "sprite": None if sprite is None else sprite.name,
        "columns": 1 if sprite is None else sprite.columns,
        "rows": 1 if sprite is None else sprite.rows,
        "small": sprite is not None and sprite.side < 40,
    }
    figure = tag("figure", caption + svg + _names(sample, present), class_="map")
    return figure, script_data(f"map{place}", data)


def _names(sample: Sample, present: list[int]) -> str:
    """Buttons that show one class alone."""
    items = "".join(
        f'<li><button type="button" aria-pressed="false" data-class="{label}"><i '
        f'style="--k:{class_colour(k, len(present))}"></i>{text(sample.class_name(label))}'
        "</button></li>"
        for k, label in enumerate(present[:MOST_NAMES])
    )
    more = len(present) - MOST_NAMES
    if more > 0:
        items += f'<li class="note">and {more} more classes</li>'
    return f'<ul class="keys">{items}</ul>' if items else ""


def _present(sample: Sample) -> list[int]:
    if sample.labels is None:
        return []
    return [int(label) for label in np.unique(sample.labels[sample.known])]


def neighbors_section(subjects: Sequence[Subject], sprites: Sequence[Sprite | None]) -> str:
    """Best and worst queries of every subject; keys in place of pictures where these are gone."""
    parts = []
    for i, (s, sprite) in enumerate(zip(subjects, sprites, strict=True)):
        if s.sample is None or len(s.sample) < 4:
            continue
        best, worst = neighbor_sheets(s.sample)
        labelled = any(query.agreement is not None for query in best)
        names = (
            ("Best", "the nearest share the label of the query, and are near")
            if labelled
            else ("Closest", "the most similar neighbours"),
            ("Worst", "the surest mistakes: near, and of another class")
            if labelled
            else ("Loners", "the least similar neighbours"),
        )
        sheets = "".join(
            f'<div><h3>{name}</h3><p class="note">{says}</p>'
            f"{''.join(_query(q, s.sample, sprite) for q in queries) or '<p>None.</p>'}</div>"
            for (name, says), queries in zip(names, (best, worst), strict=True)
        )
        title = tag("h3", run_name(s, i, len(subjects))) if len(subjects) > 1 else ""
        parts.append(f'{title}<div class="sheets">{sheets}</div>')
    if not parts:
        return ""
    return (
        '<section id="neighbours"><h2>Nearest neighbours</h2><p class="lead">A query on the left, '
        "then its nearest others by the cosine of their embeddings. At the right: how many share "
        f"the query's label, or their mean similarity.</p>{''.join(parts)}</section>"
    )


def _query(query: Query, sample: Sample, sprite: Sprite | None) -> str:
    if query.agreement is None:
        share = f"{float(query.similarities.mean()):.3f}"
    else:
        share = f"{100 * query.agreement:.0f} %"
    near = "".join(_picture(int(j), sample, sprite, query.item) for j in query.neighbors)
    return (
        f'<div class="query"><figure>{_picture(query.item, sample, sprite, None)}</figure>'
        f'<div class="nearest">{near}</div><span class="share">{share}</span></div>'
    )


def _picture(item: int, sample: Sample, sprite: Sprite | None, of: int | None) -> str:
    """A thumbnail; framed where it is a neighbour and both labels are known."""
    labels = sample.labels
    said = sample.keys[item]
    frame = ""
    if labels is not None and labels[item] >= 0:
        said = f"{sample.class_name(int(labels[item]))}: {said}"
        if of is not None and labels[of] >= 0:
            frame = " right" if labels[of] == labels[item] else " wrong"
    small = " small" if sprite is not None and sprite.side < 40 else ""
    kind = f"pic {sprite.name}{small}{frame}" if sprite is not None else f"pic word{frame}"
    # Without pictures, the end of the key has to do.
    words = "" if sprite is not None else text(sample.keys[item].split("/")[-1][-16:])
    style = None if sprite is None else f"background-position:{sprite.place(item)}"
    label = said if frame != " wrong" else f"{said} (another class)"
    return tag("span", words, class_=kind, style=style, role="img", aria_label=label, title=said)


def classes_section(subjects: Sequence[Subject], classes: Sequence[Classes | None]) -> str:
    """Confusion of the kNN classifier, and a table of classes, of every subject with labels."""
    parts = []
    for i, (s, c) in enumerate(zip(subjects, classes, strict=True)):
        if c is None or s.sample is None:
            continue
        title = tag("h3", run_name(s, i, len(subjects))) if len(subjects) > 1 else ""
        parts.append(
            f'{title}<p class="lead">A kNN classifier (k = {c.neighbors}, each item classified by '
            f"all others of the sample) is right for {percent(c.accuracy)} of "
            f"{int(c.confusion.sum()):,} items; the mean of the classes' own shares is "
            f'{percent(c.balanced)}.</p><div class="pair"><div>{_matrix(c, s.sample)}</div>'
            f"<div>{_per_class(c, s.sample)}</div></div>"
        )
    if not parts:
        return ""
    return f'<section id="classes"><h2>Classes</h2>{"".join(parts)}</section>'


def _matrix(classes: Classes, sample: Sample) -> str:
    """The confusion matrix; of many classes, the pairs that are confused most."""
    names = [text(sample.class_name(int(label))) for label in classes.present]
    counts = classes.confusion
    if len(names) > MOST_IN_MATRIX:
        off = counts - np.diag(np.diag(counts))
        order = np.argsort(-off, axis=None, kind="stable")[:20]
        pairs = [divmod(int(place), len(names)) for place in order if off.flat[place]]
        rows = [
            [names[a], names[b], f"{off[a, b]:,}", percent(off[a, b] / counts[a].sum())]
            for a, b in pairs
        ]
        return "<h3>Confused most</h3>" + table(
            ["Class", "taken for", "items", "of the class"], rows, caption="Confused most"
        )
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = "".join(tag("th", name, scope="col") for name in ["", *names])
    body = "".join(
        f'<tr><th scope="row">{names[a]}</th>'
        + "".join(
            f'<td class="{_cell(a == b, float(shares[a, b]))}" style="--v:{shares[a, b]:.3f}">'
            f"{counts[a, b]}</td>"
            for b in range(len(names))
        )
        + "</tr>"
        for a in range(len(names))
    )
    return (
        '<h3>Confusion</h3><p class="note">True class down, the classifier\'s across; shaded by '
        "the share of the row.</p>"
        '<div class="table matrix" tabindex="0" role="region" aria-label="Confusion matrix">'
        f"<table><caption>Confusion matrix</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(hit: bool, share: float) -> str:
    kinds = ["hit"] * hit + ["none"] * (share == 0) + ["full"] * (share > 0.6)
    return " ".join(kinds)


def _per_class(classes: Classes, sample: Sample) -> str:
    order = np.argsort(classes.recall, kind="stable")
    rows = []
    for place in order.tolist():
        taken = classes.mistaken_for(place)
        other = "–"
        if taken is not None:
            name = sample.class_name(int(classes.present[taken[0]]))
            other = f"{text(name)} ({taken[1]})"
        rows.append(
            [
                text(sample.class_name(int(classes.present[place]))),
                f"{int(classes.confusion[place].sum()):,}",
                percent(float(classes.recall[place])),
                percent(float(classes.precision[place])),
                number(float(classes.cohesion[place])),
                number(float(classes.ranks[place])),
                other,
            ]
        )
    head = ["Class", "items", "found", "right when said", "cohesion", "rank within", "taken for"]
    made = table(head, rows, kind="classes", caption="Figures by class")
    note = (
        '<p class="note">Worst first. Found: share of the class that the classifier names so. '
        "Cohesion: mean cosine to the class's mean direction. Rank within: effective rank of the "
        "class's own covariance.</p>"
    )
    return f"<h3>By class</h3>{note}{made}"
