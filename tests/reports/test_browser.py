"""The report in a real browser: it fetches nothing, and works by mouse, touch and keyboard, in the
dark, on a phone and on paper."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from likewise.reports import open_subject, write_report
from tests.reports.folders import write_pictures, write_run


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "these tests need Debian's chromium"
    with sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    run = write_run(folder / "run", write_pictures(folder / "photos"))
    write_report(folder / "report.html", [open_subject(run)], command="likewise report run")
    return folder / "report.html"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: one without labels and with long names, one whose images are gone."""
    folder = tmp_path_factory.mktemp("several")
    photos = write_pictures(folder / "photos")
    plain = write_pictures(folder / ("a-very-long-name-of-a-folder-" * 3), classes=1)
    runs = [
        write_run(folder / "first", photos),
        write_run(folder / ("a-run-with-a-name-that-does-not-end-" * 3), plain, seed=1),
        write_run(folder / "third", photos, seed=2),
    ]
    config = runs[2] / "config.yaml"
    config.write_text(config.read_text().replace(str(photos), "/gone"))
    write_report(folder / "report.html", [open_subject(run) for run in runs])
    return folder / "report.html"


class Opened:
    """A page, with what it asked for and what went wrong in it."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        # A page that still glides is nowhere in particular.
        self.context = browser.new_context(**{"reduced_motion": "reduce", **options})
        self.page: Page = self.context.new_page()
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on(
            "console", lambda said: self.wrong.append(said.text) if said.type == "error" else None
        )
        self.page.goto(path.as_uri())

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self.context.close()
        assert self.wrong == []

    def colour(self, selector: str, name: str) -> tuple[float, ...]:
        """A computed colour, 0 to 1."""
        found = self.page.evaluate(
            "([s, n]) => getComputedStyle(document.querySelector(s))[n]", [selector, name]
        )
        return tuple(float(x) / 255 for x in re.findall(r"[\d.]+", found)[:3])


def contrast(one: tuple[float, ...], two: tuple[float, ...]) -> float:
    """WCAG's contrast of two colours."""
    lights = []
    for colour in (one, two):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("which", ["one", "several"])
def test_nothing_is_fetched(browser: Browser, which: str, request: Any) -> None:
    path: Path = request.getfixturevalue(which)
    with Opened(browser, path) as opened:
        opened.page.wait_for_load_state("networkidle")
        outside = [url for url in opened.asked if not url.startswith("data:")]
        assert outside == [path.as_uri()]
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", path.read_text())
    assert "@import" not in path.read_text()


def test_even_a_script_cannot_fetch(browser: Browser, one: Path) -> None:
    with Opened(browser, one) as opened:
        told = opened.page.evaluate(
            "fetch('https://example.org/').then(() => 'fetched', error => error.name)"
        )
        assert told == "TypeError"
        assert any("Content Security Policy" in text for text in opened.wrong)
        opened.wrong.clear()


@pytest.mark.parametrize("which", ["one", "several"])
@pytest.mark.parametrize("width", [320, 390, 768])
def test_no_page_scrolls_sideways(browser: Browser, which: str, width: int, request: Any) -> None:
    viewport = {"width": width, "height": 800}
    with Opened(browser, request.getfixturevalue(which), viewport=viewport) as opened:
        opened.page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        wide = opened.page.evaluate(
            """() => [...document.querySelectorAll('body *')].filter(e => {
                 if (e.closest('.table, pre, nav ul, caption, .heard')) return false;
                 return e.getBoundingClientRect().right > innerWidth + 0.5;
               }).map(e => e.outerHTML.slice(0, 80))"""
        )
        assert wide == []
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_text_is_readable_on_a_phone(browser: Browser, one: Path) -> None:
    with Opened(browser, one, viewport={"width": 390, "height": 844}) as opened:
        heights = opened.page.evaluate(
            """() => [...document.querySelectorAll('.chart svg text')]
                 .map(e => e.getBoundingClientRect().height)"""
        )
        assert len(heights) > 20 and min(heights) > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_scheme(browser: Browser, one: Path, scheme: Any) -> None:
    with Opened(browser, one, color_scheme=scheme) as opened:
        ground = opened.colour("body", "backgroundColor")
        assert (sum(ground) / 3 < 0.2) == (scheme == "dark")
        card = opened.colour(".chart", "backgroundColor")
        for selector, name, behind, least in (
            ("h1", "color", ground, 7),
            (".note", "color", ground, 4.5),
            (".chart figcaption span", "color", card, 4.5),
            (".chart svg text", "fill", card, 4.5),
            (".chart svg .line", "stroke", card, 3),
            (".points", "stroke", card, 3),
            (".finding h4", "color", opened.colour(".finding", "backgroundColor"), 4.5),
            ("summary", "color", ground, 4.5),
        ):
            assert contrast(opened.colour(selector, name), behind) >= least, selector


def test_print_is_light_complete_and_without_buttons(browser: Browser, one: Path) -> None:
    with Opened(browser, one, color_scheme="dark") as opened:
        opened.page.emulate_media(media="print")
        assert opened.colour("body", "backgroundColor") == (1, 1, 1)
        assert contrast(opened.colour("h1", "color"), (1, 1, 1)) > 7
        for selector in ("nav", ".code button", ".hint"):
            assert not opened.page.locator(selector).first.is_visible(), selector
        opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert opened.page.locator("#config td").first.is_visible()
        opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert opened.page.evaluate("document.querySelectorAll('details[open]').length") == 0
        paper = opened.page.pdf(format="A4")
        assert paper.startswith(b"%PDF") and 3 <= paper.count(b"/Type /Page\n") <= 12


def settle(page: Page) -> None:
    """Wait until what a scroll sets off has happened: two frames."""
    page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


def middle_dot(page: Page) -> tuple[float, float, str]:
    """Where an item of the map lies in the window, and its key."""
    page.locator("#map svg[data-map]").scroll_into_view_if_needed()
    settle(page)
    x, y, key = page.evaluate(
        """() => {
             const svg = document.querySelector('svg[data-map]');
             const map = JSON.parse(document.getElementById(svg.dataset.map).textContent);
             const i = 10;
             const p = new DOMPoint(map.x[i], map.y[i]).matrixTransform(svg.getScreenCTM());
             return [p.x, p.y, map.keys[i]];
           }"""
    )
    return x, y, key


def check_readout(page: Page, key: str) -> None:
    readout = page.locator("#readout")
    assert readout.is_visible()
    assert key in readout.inner_text()
    assert re.search(r"\b(cat|dog|owl)\b", readout.inner_text())
    picture = readout.locator(".pic")
    assert picture.evaluate("e => getComputedStyle(e).backgroundImage").startswith('url("data:')
    box = readout.bounding_box()
    assert box is not None and box["x"] >= 0
    assert box["x"] + box["width"] <= page.evaluate("innerWidth")


def test_the_map_by_mouse(browser: Browser, one: Path) -> None:
    with Opened(browser, one) as opened:
        x, y, key = middle_dot(opened.page)
        opened.page.mouse.move(x, y)
        check_readout(opened.page, key)
        opened.page.mouse.move(2, 2)
        assert not opened.page.locator("#readout").is_visible()


def test_the_picture_is_that_of_the_item(browser: Browser, one: Path) -> None:
    """The thumbnail's pixels: a class is a colour in these pictures."""
    from PIL import Image

    with Opened(browser, one) as opened:
        x, y, key = middle_dot(opened.page)
        opened.page.mouse.move(x, y)
        shot = one.parent / "picture.png"
        opened.page.locator("#readout .pic").screenshot(path=str(shot))
        means = np.asarray(Image.open(shot).convert("RGB")).reshape(-1, 3).mean(axis=0)
        assert means.argmax() == ("cat", "dog", "owl").index(key.split("/")[0])


def test_the_map_by_touch_on_a_phone(browser: Browser, one: Path) -> None:
    options: dict[str, Any] = {
        "viewport": {"width": 390, "height": 844},
        "has_touch": True,
        "is_mobile": True,
    }
    with Opened(browser, one, **options) as opened:
        x, y, key = middle_dot(opened.page)
        opened.page.touchscreen.tap(x, y)
        check_readout(opened.page, key)


def test_the_map_by_keyboard(browser: Browser, one: Path) -> None:
    with Opened(browser, one) as opened:
        page = opened.page
        page.locator("svg[data-map]").focus()
        settle(page)
        page.keyboard.press("ArrowRight")
        settle(page)
        check_readout(page, "")
        place = "() => Number(document.querySelector('.here').getAttribute('cx'))"
        first = page.evaluate(place)
        page.keyboard.press("ArrowRight")
        second = page.evaluate(place)
        page.keyboard.press("ArrowLeft")
        assert second > first and page.evaluate(place) < second
        assert page.locator("#heard").inner_text() == page.locator("#readout").inner_text().replace(
            "\n", ""
        )
        page.keyboard.press("Escape")
        assert not page.locator("#readout").is_visible()


def test_one_class_alone(browser: Browser, one: Path) -> None:
    with Opened(browser, one) as opened:
        button = opened.page.get_by_role("button", name="dog")
        button.focus()
        opened.page.keyboard.press("Enter")
        assert button.get_attribute("aria-pressed") == "true"
        opened.page.wait_for_timeout(300)
        fade = "e => Number(getComputedStyle(e).opacity)"
        faded = [p.evaluate(fade) < 0.2 for p in opened.page.locator(".points").all()]
        assert faded.count(False) == 1 and len(faded) == 3
        button.click()
        opened.page.wait_for_timeout(300)
        assert all(p.evaluate(fade) > 0.5 for p in opened.page.locator(".points").all())


def test_a_chart_tells_its_values(browser: Browser, one: Path) -> None:
    with Opened(browser, one) as opened:
        page = opened.page
        loss = page.locator(".chart svg").first
        loss.focus()
        page.keyboard.press("Home")
        readout = page.locator("#readout")
        assert "loss" in readout.inner_text() and readout.locator("b").inner_text() == "5"
        page.keyboard.press("End")
        assert readout.locator("b").inner_text() == "2.8"
        loss.hover(position={"x": 150, "y": 60})
        assert 2.8 < float(readout.locator("b").inner_text()) < 5


def test_everything_has_a_name(browser: Browser, several: Path) -> None:
    """Pictures, drawings and regions are named for those who hear the page."""
    with Opened(browser, several) as opened:
        unnamed = opened.page.evaluate(
            """() => [...document.querySelectorAll('svg, [role=img], [role=region], button')]
                 .filter(e => !e.closest('[aria-hidden=true]'))
                 .filter(e => !(e.getAttribute('aria-label') || e.textContent).trim())
                 .map(e => e.outerHTML.slice(0, 90))"""
        )
        assert unnamed == []
        levels = opened.page.evaluate(
            "() => [...document.querySelectorAll('h1,h2,h3,h4')].map(e => Number(e.tagName[1]))"
        )
        assert levels[0] == 1 and levels.count(1) == 1
