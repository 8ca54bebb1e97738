"""``likewise ask``: from the command line to the page, and back to the prompt."""

import getpass
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from likewise.annotate import Store
from likewise.annotate.server.beginning import begin
from likewise.commands.ask import _access, ask
from likewise.commands.errors import UsageError
from likewise.data import open_source
from likewise.evaluation.embeddings import Embeddings, write_embeddings
from tests.annotate.server.conftest import Page


class Command:
    """`likewise ask` as a user runs it."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "likewise.commands", "ask", *arguments, "--port", "0"],
            cwd=folder,
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = ""
        assert self.process.stderr is not None
        while "Ctrl-C" not in self.said:
            line = self.process.stderr.readline()
            assert line, f"it ended: {self.said}"
            self.said += line
        found = re.search(r"(http://\S+)", self.said)
        assert found is not None
        self.link = found[1]

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        _, rest = self.process.communicate(timeout=60)
        self.said += rest
        return self.process.returncode


def test_from_a_folder_to_answers(photos, tmp_path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o755)
    command = Command(tmp_path, str(photos), BROWSER=str(browser))
    assert "40 images" in command.said and "plain pixels" in command.said
    assert command.link.startswith("http://127.0.0.1:")
    deadline = time.time() + 20
    while not (opened.exists() and opened.read_text()) and time.time() < deadline:
        time.sleep(0.05)
    assert opened.read_text() == command.link
    page = Page(command.link)
    asked = page.get("/api/question").json()
    body = {"id": "one", "question_id": asked["id"], "clicked": [asked["tiles"][0]["key"]]}
    assert page.post("/api/answers", body).json() == {"saved": True, "new": True}
    assert page.get(asked["tiles"][0]["image"]).headers["content-type"] == "image/jpeg"
    page.close()
    assert command.stop() == 0
    assert "stopped; answers are in photos.likewise.db" in command.said
    assert "Traceback" not in command.said
    with Store.open(tmp_path / "photos.likewise.db") as store:
        assert [fact.id for _, fact in store.facts()] == ["one"]


def test_sharing_is_by_invitation(tmp_path, photos):
    project = tmp_path / "team.db"
    share = ("--share", "--host", "127.0.0.1", "--no-browser", "--project", str(project))
    command = Command(tmp_path, str(photos), *share)
    address, _, token = command.link.partition("/join/")
    assert token and Page(address).get("/api/session").status_code == 401
    admin = Page(address, token)
    assert admin.get("/api/session").json()["admin"] is True
    link = admin.post("/api/admin/people", {"name": "eve"}).json()["link"]
    assert link.startswith(f"{address}/join/")
    eve = Page(address, link.rsplit("/", 1)[1])
    assert eve.get("/api/question").status_code == 200
    assert command.stop(signal.SIGTERM) == 0
    # The next start makes a new link for oneself; others keep theirs.
    with Store.open(project) as store:
        access, again = _access(store, True, address, address, secure=False)
        me, new = getpass.getuser(), again.rsplit("/", 1)[1]
        assert access.visitor(new).name == me and access.visitor(new).admin
        assert access.visitor(token) is None
        assert access.visitor(link.rsplit("/", 1)[1]).name == "eve"
        assert access.knows(f"{socket.gethostname()}:8765") and access.knows("10.0.0.7:8765")
        assert not access.knows("evil.example")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"data": "nowhere"}, "data is 'nowhere'"),
        ({"host": "0.0.0.0"}, "add --share"),
        ({"host": "::"}, "add --share"),
        ({"host": "192.168.0.7"}, "add --share"),
        ({"address": "https://a.example"}, "without --share"),
        ({"address": "a.example", "share": True}, "address is 'a.example'"),
        ({"certificate": Path("a.pem")}, "give both --certificate"),
        ({"port": 70000}, "port is 70000"),
        ({"grid": 0}, "grid is 0"),
        ({"target": 1.5}, "target is 1.5"),
        ({"retrain_every": 0}, "retrain_every is 0"),
        ({"run": Path("nowhere")}, "nowhere is no folder"),
        ({"run": Path("a"), "embeddings": Path("b")}, "--run and --embeddings are given"),
        ({"pretrained": "timm"}, "without --encoder"),
        ({"sampler": "best"}, "best"),
        ({"project": "mysql://a/b"}, "mysql"),
    ],
)
def test_bad_arguments_are_named(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        ask(**{"data": "digits:test", "port": 0, "no_browser": True, **options})


# --- rows to begin with ---------------------------------------------------------------------------


def test_plain_pixels(photos):
    found = begin(open_source(photos))
    assert found.rows.shape == (40, 40) and found.rows.dtype == np.float32
    assert "plain pixels" in found.words
    # Alike pictures have alike rows.
    pixels = np.stack([found.source.read(k)[:, 0, 0].numpy() for k in range(40)]).astype(float)
    far = np.linalg.norm(pixels[:, None] - pixels, axis=2)
    rows = np.linalg.norm(found.rows[:, None].astype(float) - found.rows, axis=2)
    assert np.corrcoef(far.ravel(), rows.ravel())[0, 1] > 0.99


def test_an_encoder_as_it_is(photos):
    found = begin(open_source(photos), encoder="tiny", image_size=32)
    assert found.rows.shape == (40, 128) and found.words == "tiny, untrained"


def test_embeddings_by_key(photos, tmp_path):
    source = open_source(photos)
    keys = [*source.keys[::-1][:30], "gone.png"]
    rows = np.arange(31 * 3, dtype=np.float32).reshape(31, 3)
    path = tmp_path / "rows.parquet"
    write_embeddings(path, Embeddings(keys, rows))
    found = begin(source, embeddings=path)
    assert found.source.keys == keys[:30] and np.array_equal(found.rows, rows[:30])
    assert "without 10 images" in found.words
    write_embeddings(path, Embeddings(["x", "y"], np.eye(2)))
    with pytest.raises(ValueError, match="none of the images' keys"):
        begin(source, embeddings=path)


def test_broken_images_are_left_out(tmp_path):
    for number in range(4):
        Image.new("RGB", (20, 20), (number * 50, 0, 0)).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_text("not an image")
    found = begin(open_source(tmp_path))
    assert found.source.keys == ["0.png", "2.png", "3.png"] and len(found.rows) == 3
    for number in (0, 2):
        (tmp_path / f"{number}.png").write_text("not an image")
    with pytest.raises(ValueError, match="1 image of 4 can be read"):
        begin(open_source(tmp_path))
