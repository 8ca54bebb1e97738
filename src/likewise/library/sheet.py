"""Sheets: one HTML file with thumbnails inside, which needs nothing else and asks nobody.

The pictures are made from the decoded pixels, never copied from a file, and keys are escaped: a
file name cannot become a script. The page forbids itself every request.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from torch import Tensor

from likewise.runs import write_atomically

SIDE = 128
"""Pixels of the longer side of a thumbnail; smaller images are shown pixel by pixel."""

Picture = Callable[[str], Tensor | None]

STYLE = """
:root { color-scheme: light dark; --ink: #1d2126; --soft: #5c6570; --paper: #fff; --tile: #f3f4f6;
  --line: #d9dde2; --mark: #2f6fba }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a0a8b2; --paper: #15181c;
  --tile: #20252b; --line: #363d46; --mark: #7ab0ee } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 84rem; padding: 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; margin: .4rem 0 } h2 { font-size: 1.05rem; margin: 0 0 .3rem }
p { margin: .3rem 0; color: var(--soft) } section { border-top: 1px solid var(--line);
  padding: .8rem 0 }
ol, ul { list-style: none; margin: .5rem 0; padding: 0; display: grid; gap: .5rem;
  grid-template-columns: repeat(auto-fill, minmax(7.2rem, 1fr)) }
li { background: var(--tile); border: 1px solid var(--line); border-radius: .4rem; padding: .4rem;
  min-width: 0 }
li.asked { border: 2px solid var(--mark) }
figure { margin: 0 } img { display: block; width: 100%; height: 6.4rem; object-fit: contain }
img.small { image-rendering: pixelated }
.none { height: 6.4rem; display: grid; place-items: center; color: var(--soft) }
figcaption { font-size: .76rem; margin-top: .3rem } figcaption b { display: block;
  font-weight: 600; max-height: 2.9em; overflow: hidden } figcaption span { color: var(--soft) }
table { border-collapse: collapse; margin: .5rem 0; display: block; overflow-x: auto }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line) }
td.number { text-align: right; font-variant-numeric: tabular-nums }
@media (max-width: 30rem) { ol, ul { grid-template-columns: repeat(3, minmax(0, 1fr)) }
  img, .none { height: 5rem } }
"""


@dataclass(frozen=True)
class Tile:
    """One image: its key, a line under it, and whether it is what was asked for."""

    key: str
    caption: str = ""
    asked: bool = False


@dataclass(frozen=True)
class Section:
    """Some tiles under a heading."""

    title: str
    tiles: Sequence[Tile]
    note: str = ""


@dataclass
class Sheet:
    """A page of sections.

    Attributes:
        title: of the page.
        notes: lines under the title.
        table: a header and rows, shown before the sections.
        sections: of tiles.
    """

    title: str
    notes: list[str] = field(default_factory=list)
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None
    sections: list[Section] = field(default_factory=list)

    def html(self, picture: Picture) -> str:
        """The page; `picture` gives the image of a key, or None where it is not at hand."""
        shown: dict[str, str] = {}
        parts = [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "img-src data:; style-src 'unsafe-inline'\">",
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head><body>",
            f"<header><h1>{escape(self.title)}</h1>",
            *(f"<p>{escape(note)}</p>" for note in self.notes),
            "</header>",
            _table(self.table) if self.table else "",
            "<main>",
        ]
        for section in self.sections:
            parts.append(f"<section><h2>{escape(section.title)}</h2>")
            if section.note:
                parts.append(f"<p>{escape(section.note)}</p>")
            parts.append("<ol>")
            for tile in section.tiles:
                if tile.key not in shown:
                    shown[tile.key] = _image(picture(tile.key), tile.key)
                parts.append(_tile(tile, shown[tile.key]))
            parts.append("</ol></section>")
        parts.append("</main></body></html>\n")
        return "\n".join(part for part in parts if part)

    def write(self, path: Path, picture: Picture) -> None:
        """The page as a file, whole or not at all."""
        page = self.html(picture)
        with write_atomically(path) as aside:
            aside.write_text(page, "utf-8")


def _tile(tile: Tile, image: str) -> str:
    asked = ' class="asked"' if tile.asked else ""
    caption = f"<span>{escape(tile.caption)}</span>" if tile.caption else ""
    name = escape(tile.key)
    return (
        f"<li{asked}><figure>{image}<figcaption><b>{name}</b>{caption}</figcaption></figure></li>"
    )


def _image(pixels: Tensor | None, key: str) -> str:
    if pixels is None:
        return '<div class="none">no picture</div>'
    small = ' class="small"' if max(pixels.shape[1:]) <= SIDE // 2 else ""
    return f'<img{small} alt="{escape(key)}" loading="lazy" src="{thumbnail(pixels)}">'


def thumbnail(pixels: Tensor, side: int = SIDE) -> str:
    """An image uint8 (3, H, W) as a data URI: PNG where it is small, else a JPEG of `side`.

    >>> import torch
    >>> thumbnail(torch.zeros(3, 4, 4, dtype=torch.uint8))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    image = Image.fromarray(pixels.permute(1, 2, 0).contiguous().numpy())
    buffer = io.BytesIO()
    if max(image.size) <= side // 2:
        image.save(buffer, "PNG")
        kind = "png"
    else:
        image.thumbnail((side * 2, side * 2))
        image.save(buffer, "JPEG", quality=80)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _table(table: tuple[Sequence[str], Sequence[Sequence[str]]]) -> str:
    header, rows = table
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td{_kind(cell)}>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _kind(cell: str) -> str:
    return ' class="number"' if cell[:1].isdigit() else ""
