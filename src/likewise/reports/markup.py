"""Small pieces of HTML: escaped text, numbers as people write them, tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

MISSING = "–"


def tag(name: str, content: str = "", **attributes: Any) -> str:
    """An element; `content` is HTML already, attributes are escaped (None leaves one out).

    >>> tag("p", text("a < b"), class_="note", title='"x"')
    '<p class="note" title="&quot;x&quot;">a &lt; b</p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return f"<{name}{written}>{content}</{name}>"


def text(value: Any) -> str:
    """Anything as escaped text."""
    return escape(str(value))


def number(value: Any, digits: int = 3) -> str:
    """A figure with so many significant digits; a dash where it is undefined.

    >>> [number(x) for x in (0.12345, 1234.5, 12345678, 7, float("nan"), None, 1e-7)]
    ['0.123', '1,234', '12,345,678', '7', '–', '–', '1.00e-07']
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    if isinstance(value, int) or float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size < 1e-4:
        return f"{value:.{digits - 1}e}"
    places = max(digits - 1 - math.floor(math.log10(size)), 0)
    return f"{value:,.{places}f}"


def percent(value: Any, digits: int = 1) -> str:
    """A share as percent.

    >>> percent(0.7613), percent(None)
    ('76.1 %', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{100 * value:.{digits}f} %"


def duration(seconds: float | None) -> str:
    """Seconds as people say them.

    >>> duration(42.4), duration(145), duration(7300)
    ('42 s', '2 min 25 s', '2 h 1 min')
    """
    if seconds is None:
        return MISSING
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    kind: str = "",
    caption: str | None = None,
) -> str:
    """A table in a box that scrolls by itself; cells are HTML already, the first of a row names it.

    Args:
        head: the names of the columns.
        rows: of cells.
        kind: a class for the style sheet.
        caption: for those who hear the page.
    """
    top = "".join(tag("th", cell, scope="col") for cell in head)
    body = "".join(
        tag("tr", tag("th", first, scope="row") + "".join(tag("td", cell) for cell in rest))
        for first, *rest in rows
    )
    said = "" if caption is None else tag("caption", text(caption))
    inner = f"<table>{said}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return tag("div", inner, class_=f"table {kind}".strip(), tabindex=0, role="region",
               aria_label=caption)  # fmt: skip


def script_data(identity: str, value: Any) -> str:
    """JSON that a script of the page reads; `<` is written such that nothing ends it early."""
    data = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{escape(identity)}">{data}</script>'
