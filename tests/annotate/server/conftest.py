"""What the tests of the server share: a folder of pictures, a server, and its visitors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from likewise.annotate.server import OnePerson, create_app, running
from tests.annotate.server.fake_desk import FakeDesk


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> Path:
    """Forty pictures of plain colours, at two depths."""
    folder = tmp_path_factory.mktemp("pictures") / "photos"
    generator = np.random.default_rng(0)
    for number in range(40):
        path = folder / f"{'deep/' if number % 2 else ''}{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        colour = tuple(int(value) for value in generator.integers(0, 255, 3))
        Image.new("RGB", (200 + number, 120), colour).save(path)
    return folder


class Page:
    """A visitor's page: a client that sends the value against cross-site requests along."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.http = httpx.Client(base_url=address, timeout=30)
        if token is not None:
            assert self.http.get(f"/join/{token}").status_code == 303
        self.csrf = self.http.get("/api/session").json().get("csrf", "")

    def get(self, path: str, **options) -> httpx.Response:
        return self.http.get(path, **options)

    def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        return self.http.post(path, json=body, headers={"X-Likewise-CSRF": self.csrf, **headers})

    def close(self) -> None:
        self.http.close()


@pytest.fixture(scope="session")
def fake_server() -> Iterator[tuple[FakeDesk, str]]:
    """A server with a fake desk, for all tests that ask for one."""
    desk = FakeDesk()
    app = create_app(desk, access=OnePerson("ann"), project="digits", rate=1e9, burst=1e9)
    with running(app) as address:
        yield desk, address


@pytest.fixture
def fake_desk(fake_server) -> FakeDesk:
    """A desk that has heard nothing yet."""
    desk = fake_server[0]
    vars(desk).clear()
    desk.__init__()
    return desk


@pytest.fixture
def page(fake_desk, fake_server) -> Iterator[Page]:
    """One person's page on a server with a fake desk."""
    visitor = Page(fake_server[1])
    yield visitor
    visitor.close()
