"""The report: one HTML file that asks for nothing from outside."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from likewise import __version__
from likewise.reports.classes import class_figures
from likewise.reports.looking import classes_section, map_section, neighbors_section
from likewise.reports.markup import tag, text
from likewise.reports.pictures import Sprite, sprite
from likewise.reports.progress import rank_section, training_section
from likewise.reports.settings import config_section, reproduce_section
from likewise.reports.subject import Subject
from likewise.reports.verdicts import figures_section, verdict_section
from likewise.runs import write_atomically

# Nothing may be fetched, whatever a key or a class is called.
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
TITLES = {
    "verdict": "Verdict",
    "figures": "Figures",
    "training": "Training",
    "rank": "Rank",
    "map": "Map",
    "neighbours": "Neighbours",
    "classes": "Classes",
    "config": "Configuration",
    "reproduce": "Reproduce",
}


def write_report(
    path: Path | str,
    subjects: Sequence[Subject],
    *,
    command: str = "",
    usual: Mapping[str, Any] | None = None,
) -> None:
    """Write the report on some subjects, whole or not at all.

    Args:
        path: the HTML file.
        subjects: one or more, side by side.
        command: what was called to make it.
        usual: the defaults of `likewise train`, which a command need not say.
    """
    with write_atomically(path) as aside:
        aside.write_text(page(subjects, command=command, usual=usual), encoding="utf-8")


def page(
    subjects: Sequence[Subject], *, command: str = "", usual: Mapping[str, Any] | None = None
) -> str:
    """The HTML of :func:`write_report`."""
    if not subjects:
        raise ValueError("there is nothing to report on: give a run, or several")
    _name_apart(subjects)
    classes = [None if s.sample is None else class_figures(s.sample) for s in subjects]
    sprites = [_sprite(s) for s in subjects]
    command = command or f"likewise report {' '.join(str(s.path) for s in subjects)}"
    versions = (
        f"Likewise {__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}."
    )
    sections = [
        verdict_section(subjects),
        figures_section(subjects, classes),
        training_section(subjects) if any(s.kind == "run" for s in subjects) else "",
        rank_section(subjects),
        map_section(subjects, classes, sprites),
        neighbors_section(subjects, sprites),
        classes_section(subjects, classes),
        config_section(subjects),
        reproduce_section(subjects, command, versions, usual or {}),
    ]
    sections = [section for section in sections if section]
    links = "".join(
        f'<li><a href="#{name}">{title}</a></li>'
        for name, title in TITLES.items()
        if any(section.startswith(f'<section id="{name}"') for section in sections)
    )
    title = ", ".join(s.name for s in subjects)
    here = files("likewise.reports")
    style = here.joinpath("style.css").read_text(encoding="utf-8")
    script = here.joinpath("script.js").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)} · Likewise report</title>
<link rel="icon" href="data:,">
<style>{style}{_sprite_styles(sprites)}</style></head>
<body><header><p class="eyebrow">Likewise report · {_today()}</p>
<h1>{text(title)}</h1>{"".join(tag("p", _about(s), class_="lead") for s in subjects)}</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main>{"".join(sections)}</main>
<footer><p>{text(versions)} This file needs nothing but a browser.</p></footer>
<div id="readout" hidden></div><div id="heard" class="heard" aria-live="polite"></div>
<script>{script}</script></body></html>
"""


def _name_apart(subjects: Sequence[Subject]) -> None:
    """Runs of one name in two folders are called by more of their path."""
    names = [s.name for s in subjects]
    for s in subjects:
        if names.count(s.name) > 1:
            s.name = str(s.path)
    names = [s.name for s in subjects]
    for place, s in enumerate(subjects):
        if names.count(s.name) > 1:
            s.name = f"{s.name} ({place + 1})"


def _about(subject: Subject) -> str:
    if subject.kind == "embeddings":
        assert subject.sample is not None
        dim = subject.sample.rows.shape[1]
        return f"{text(subject.path)}: {subject.sample.of:,} embeddings of {dim:,} numbers"
    config, summary = subject.config, subject.summary
    parts = [
        str(config.get("recipe")),
        str(config.get("encoder")),
        str(summary.get("data") or config.get("data")),
        f"{config.get('epochs')} epochs",
    ]
    return f"{text(subject.path)}: {text(' · '.join(parts))}"


def _sprite(subject: Subject) -> Sprite | None:
    sample = subject.sample
    return None if sample is None or sample.pixels is None else sprite(sample.pixels)


def _sprite_styles(sprites: Sequence[Sprite | None]) -> str:
    """A rule for every picture; runs on the same images share one."""
    rules = {
        one.name: f".{one.name}{{background-image:url({one.url});"
        f"background-size:{100 * one.columns}% {100 * one.rows}%}}"
        for one in sprites
        if one is not None
    }
    return "".join(rules.values())


def _today() -> str:
    return datetime.now(timezone.utc).strftime("%-d %B %Y")
