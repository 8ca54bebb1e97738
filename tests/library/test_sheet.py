"""Sheets in a real browser: pictures load, nothing is asked for, names cannot do harm."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, sync_playwright

from likewise.library import Section, Sheet, Tile
from tests.library.pictures import picture

EVIL = '<img src=x onerror="document.title=1">"\'.png'


def pixels(key: str) -> torch.Tensor | None:
    if key == "gone.png":
        return None
    size = 32 if key.startswith("small") else 200
    return torch.from_numpy(picture(len(key) % 3, 1, size)).permute(2, 0, 1)


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sheet") / "sheet.html"
    keys = [f"folder/with a long name that goes on and on/{i}.png" for i in range(20)]
    tiles = [
        Tile("small0.png", "asked for", True),
        *(Tile(key, f"0.{i}") for i, key in enumerate(keys)),
    ]
    odd = [Tile(EVIL, EVIL), Tile("gone.png"), Tile("bild-äöü-画像.png")]
    table = (("confidence", "share"), [("0.5", "90 %"), ("0.9", "20 %")])
    page = Sheet("Hits & more <b>", ["a note"], table, [Section("One", tiles), Section("Two", odd)])
    page.write(path, pixels)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def opened(browser: Browser, sheet: Path, **options: Any) -> tuple[Any, list[str], list[str]]:
    page = browser.new_page(**options)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(sheet.as_uri())
    return page, asked, said


def test_all_pictures_load_and_nothing_is_asked_for(browser, sheet):
    page, asked, said = opened(browser, sheet)
    for image in page.query_selector_all("img"):
        image.scroll_into_view_if_needed()
        assert image.evaluate("i => i.decode().then(() => i.naturalWidth > 0)")
        assert image.get_attribute("alt")
    assert len(page.query_selector_all("img")) == 23  # one of the 24 tiles has no picture
    assert page.query_selector(".none").inner_text() == "no picture"
    assert [url for url in asked if not url.startswith(("data:", sheet.as_uri()))] == []
    assert said == []
    page.close()


def test_names_are_text_and_never_markup(browser, sheet):
    page, _, _ = opened(browser, sheet)
    assert page.title() == "Hits & more <b>"
    names = [element.inner_text() for element in page.query_selector_all("figcaption b")]
    assert EVIL in names and "bild-äöü-画像.png" in names
    assert page.evaluate("document.querySelectorAll('img[onerror]').length") == 0
    page.close()


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_sticks_out_on_a_phone_or_a_desk(browser, sheet, width):
    page, _, _ = opened(browser, sheet, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    first, second = (item.bounding_box() for item in page.query_selector_all("ol li")[:2])
    assert first["y"] == second["y"] and second["x"] > first["x"]  # side by side
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(browser, sheet, scheme):
    page, _, _ = opened(browser, sheet, color_scheme=scheme)

    def brightness(selector: str, what: str) -> float:
        colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{what}")
        channels = [float(c) / 255 for c in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    paper = brightness("body", "backgroundColor")
    assert (paper > 0.5) == (scheme == "light")
    for selector, under in (("h1", "body"), ("header p", "body"), ("figcaption span", "li")):
        ink, ground = brightness(selector, "color"), brightness(under, "backgroundColor")
        light, dark = max(ink, ground), min(ink, ground)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, selector  # WCAG 2, level AA
    page.close()
