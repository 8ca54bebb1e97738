"""A project, its server and a real browser on it: what the tests of the page share."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from likewise.annotate import Desk, Store
from likewise.annotate.server import Invited, OnePerson, create_app, running
from likewise.data import open_source
from likewise.data.source import Source

ITEMS = 300
PHONE = {"width": 390, "height": 844}
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 20_000

expect.set_options(timeout=PATIENCE)


def clothes(items: int = ITEMS) -> Source:
    """The first images of Fashion-MNIST."""
    return open_source("fashion-mnist").subset(np.arange(items))


def pixel_rows(source: Source) -> np.ndarray:
    """Plain pixels, one grey value each."""
    return np.stack([source.read(row)[0].numpy().ravel() for row in range(len(source))]) / 255.0


class Project:
    """A desk over a store in a folder, served to one person or, by invitation, to several."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        rows: np.ndarray,
        *,
        shared: bool = False,
        **settings: Any,
    ) -> None:
        self.source = source
        self.store = Store.open(folder / "project.db")
        self.desk = Desk(source, rows, self.store, **settings)
        access = Invited(self.store) if shared else OnePerson("ann")
        self.app = create_app(self.desk, access=access, project="clothes")
        self._running = running(self.app)
        self.address = self._running.__enter__()
        self.app.state.service.address = self.address

    def close(self) -> None:
        self._running.__exit__(None, None, None)
        self.desk.close()
        self.store.close()

    def facts(self, kind: str | None = None, who: str | None = None) -> list[Any]:
        """What is in the store, in order."""
        found = [fact for _, fact in self.store.facts(who=who)]
        return [fact for fact in found if kind in (None, fact.kind)]

    def teach(self, classes: int = 4, items: int = 4) -> dict[int, list[str]]:
        """Say who is alike among some items of some classes, as somebody else did before."""
        labels = self.source.labels
        assert labels is not None
        known: dict[int, list[str]] = {}
        for kind in range(classes):
            rows = np.flatnonzero(labels == kind)[:items].tolist()
            known[kind] = [self.source.keys[row] for row in rows]
            for number, key in enumerate(known[kind][1:]):
                self.desk.merge("eve", id=f"alike-{kind}-{number}", a=known[kind][0], b=key)
            if kind:
                heads = [known[other][0] for other in range(kind)]
                grid = {"kind": "grid", "exemplar": known[kind][0], "candidates": heads}
                self.desk.answer("eve", id=f"apart-{kind}", question_id="x", question=grid)
        until = time.monotonic() + PATIENCE / 1000
        while len(self.desk.progress("ann")["classes"]) != classes:
            assert time.monotonic() < until, "the desk does not think"
            time.sleep(0.02)
        return known

    def label_of(self, key: str) -> int:
        assert self.source.labels is not None
        return int(self.source.labels[int(self.source.index_of(key))])


class Visitor:
    """One person's browser window; it remembers every request and every complaint."""

    def __init__(self, context: BrowserContext, project: Project) -> None:
        self.context, self.project = context, project
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.underway: set[Request] = set()
        self.questions = 0  # fetched so far
        context.on("request", self._requested)
        context.on("requestfinished", self._finished)
        context.on("requestfailed", lambda request: self.underway.discard(request))
        self.page = self._new_page()

    def _new_page(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._heard)
        return page

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)
        self.underway.add(request)

    def _finished(self, request: Request) -> None:
        self.underway.discard(request)
        self.questions += urlsplit(request.url).path == "/api/question"

    def _heard(self, message: Any) -> None:
        # A request that finds no network is said aloud by the browser itself; all else is a fault.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: str = "/") -> Page:
        self.page.goto(self.project.address + path)
        return self.page

    def reopen(self) -> Page:
        """Another window of the same browser, as after the first one was closed."""
        self.page.close()
        self.page = self._new_page()
        return self.open()

    def ready(self) -> Page:
        """The page with a question on it."""
        self.open()
        expect(self.page.locator(".tile img").first).to_be_visible()
        return self.page

    def quiet(self) -> None:
        """Wait until no request is under way."""
        for _ in range(3):  # one may lead to another
            wait_for(self.page, lambda: not self.underway, "no request under way")
            self.page.wait_for_timeout(50)

    def ahead(self) -> None:
        """Wait until the question that is shown and the two after it are here, with pictures."""
        wait_for(self.page, lambda: self.questions >= 3, "questions fetched ahead")
        self.quiet()

    def check(self) -> None:
        """Nothing left this machine, and nothing went wrong on the page."""
        outside = [url for url in self.requests if urlsplit(url).hostname != "127.0.0.1"]
        assert not outside, f"requests to other hosts: {outside}"
        assert self.requests
        assert not self.complaints, self.complaints


def tiles(page: Page) -> list[str]:
    """The keys of the tiles that are shown."""
    return page.locator(".tile").evaluate_all("all => all.map(tile => tile.dataset.key)")


def exemplar(page: Page) -> str:
    """The key of what they are compared with."""
    return page.locator("#exemplar img").evaluate(
        "image => new URL(image.src).searchParams.get('key')"
    )


def question(page: Page) -> str:
    """The id of the question that is shown."""
    return page.locator("#view-ask").get_attribute("data-question") or ""


def next_question(page: Page, before: str) -> str:
    """Wait for another question than this one, and give its id."""
    expect(page.locator("#view-ask")).not_to_have_attribute("data-question", before)
    expect(page.locator("#view-ask")).to_have_attribute("data-question", re.compile("."))
    return question(page)


def chosen(page: Page, state: str = "chosen") -> list[str]:
    """The keys of the tiles in a state."""
    return page.locator(f'.tile[data-state="{state}"]').evaluate_all(
        "all => all.map(tile => tile.dataset.key)"
    )


def wait_for(page: Page, true: Callable[[], bool], what: str = "it") -> None:
    """Wait until something outside of the page has come true."""
    for _ in range(PATIENCE // 20):
        if true():
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"waited in vain: {what}")


def saved(page: Page) -> None:
    """Wait until all that was said is saved."""
    expect(page.locator("#status")).to_have_attribute("data-state", "saved")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    path = shutil.which("chromium")
    if path is None:
        raise RuntimeError("there is no chromium: install Debian's package of that name")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        yield browser
        browser.close()
