"""Fixtures of the page's tests: a browser for a module, and a project of its own for every test.

A browser lives no longer than its module: while Playwright runs, nothing else in the same thread
can start an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

from likewise.data.source import Source
from likewise.oracles.samplers.default import Default
from tests.annotate.page.browser import Project, Visitor, chromium, clothes, pixel_rows

Visit = Callable[..., Visitor]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def wardrobe() -> tuple[Source, np.ndarray]:
    """300 images and their rows."""
    source = clothes()
    return source, pixel_rows(source)


@pytest.fixture
def project(wardrobe: tuple[Source, np.ndarray], tmp_path: Path) -> Iterator[Project]:
    """One person's project; grids are full, and hold no tile that is known already."""
    made = Project(tmp_path, *wardrobe, sampler=Default(fill=True), gold_share=0.0)
    yield made
    made.close()


@pytest.fixture
def shared_project(wardrobe: tuple[Source, np.ndarray], tmp_path: Path) -> Iterator[Project]:
    """A project to which people are invited."""
    made = Project(tmp_path, *wardrobe, shared=True, sampler=Default(fill=True))
    yield made
    made.close()


@pytest.fixture
def small_project(tmp_path: Path) -> Iterator[Project]:
    """Six items: soon nothing is left to ask."""
    source = clothes(6)
    made = Project(tmp_path, source, pixel_rows(source))
    yield made
    made.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """People who come to a project, each in a browser of their own."""
    visitors: list[Visitor] = []

    def come(project: Project, token: str | None = None, **settings: Any) -> Visitor:
        visitor = Visitor(browser.new_context(**settings), project)
        visitors.append(visitor)
        if token is not None:
            visitor.open(f"/join/{token}")
        return visitor

    yield come
    for visitor in visitors:
        visitor.context.close()
    for visitor in visitors:
        visitor.check()


@pytest.fixture
def visitor(project: Project, visit: Visit) -> Visitor:
    """The one person of the project."""
    return visit(project)
