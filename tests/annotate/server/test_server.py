"""The HTTP interface: what the page relies on, word for word."""

import io
import threading

import numpy as np
import pytest
from PIL import Image

from likewise.annotate.server import OnePerson, bind, create_app, running, serve
from likewise.annotate.server.images import Pictures
from likewise.annotate.server.limits import Allowance
from likewise.annotate.store import NotSaved
from likewise.data import open_source
from tests.annotate.server.conftest import Page
from tests.annotate.server.fake_desk import FakeDesk


def test_session(page):
    found = page.get("/api/session").json()
    assert found.pop("csrf")
    assert found == {
        "who": "ann",
        "admin": True,
        "project": "digits",
        "items": 720,
        "target": 0.95,
        "shared": False,
    }


def test_a_question_has_tiles_with_pictures(page):
    asked = page.get("/api/question").json()
    assert set(asked) == {"id", "kind", "text", "exemplar", "tiles", "expires"}
    assert asked["kind"] == "grid" and len(asked["tiles"]) == 15
    for tile in (asked["exemplar"], *asked["tiles"]):
        assert set(tile) == {"key", "image", "name"}
        reply = page.get(tile["image"])
        assert reply.status_code == 200
        assert Image.open(io.BytesIO(reply.content)).size == (32, 32)
    assert page.get("/api/question?kind=outliers").json()["exemplar"] is None
    pair = page.get("/api/question", params={"kind": "pair", "about": "3-1"}).json()
    assert pair["exemplar"]["key"] == "3-1" and len(pair["tiles"]) == 1


def test_204_when_nothing_is_left(page, fake_desk):
    fake_desk.question = lambda who, **_: None
    reply = page.get("/api/question")
    assert reply.status_code == 204 and reply.content == b""


def test_an_answer_is_saved_once(page, fake_desk):
    asked = page.get("/api/question").json()
    tiles = [tile["key"] for tile in asked["tiles"]]
    body = {
        "id": "a1",
        "question_id": asked["id"],
        "clicked": tiles[:2],
        "unsure": tiles[3:4],
        "skipped": False,
        "seconds": 3.5,
        "question": asked,
    }
    assert page.post("/api/answers", body).json() == {"saved": True, "new": True}
    assert page.post("/api/answers", body).json() == {"saved": True, "new": False}
    kept = fake_desk.facts["a1"]
    assert kept["who"] == "ann"
    assert kept["body"]["clicked"] == tiles[:2] and kept["body"]["unsure"] == tiles[3:4]
    # A late answer brings its question along; without, it is refused.
    late = {**body, "id": "a2", "question_id": "forgotten"}
    late["question"] = {**asked, "id": "forgotten"}
    assert page.post("/api/answers", late).json()["new"] is True
    assert page.post("/api/answers", {**late, "id": "a3", "question": None}).status_code == 400


def test_undo_name_merge_split_history_progress_map_item(page, fake_desk):
    keys = fake_desk.source.keys
    changes = {
        "/api/name": {"id": "n", "item": keys[0], "name": " cats "},
        "/api/merge": {"id": "m", "a": keys[0], "b": keys[1]},
        "/api/split": {"id": "s", "from": keys[0], "items": keys[2:4]},
        "/api/undo": {"id": "u", "fact": "n"},
    }
    for path, body in changes.items():
        assert page.post(path, body).json() == {"saved": True, "new": True}, path
    assert fake_desk.facts["n"]["body"] == {"item": keys[0], "name": "cats"}
    assert fake_desk.facts["s"]["body"] == {"from": keys[0], "items": keys[2:4]}
    assert [fact["id"] for fact in page.get("/api/history?limit=2").json()] == ["u", "s"]
    assert page.get("/api/progress").json()["mine"]["questions"] == 1  # the merge
    assert set(page.get("/api/map").json()[0]) == {"key", "x", "y", "class"}
    found = page.get("/api/item", params={"key": keys[5]}).json()
    assert set(found) == {"key", "image", "class", "name"} and found["key"] == keys[5]
    assert page.get("/api/item?key=nowhere").status_code == 404
    assert page.post("/api/name", {"id": "x", "item": "nowhere", "name": "a"}).status_code == 404


@pytest.mark.parametrize(
    "path, body",
    [
        ("/api/answers", {}),
        ("/api/answers", []),
        ("/api/answers", {"id": "a", "question_id": "q", "seconds": -1}),
        ("/api/answers", {"id": "a b", "question_id": "q"}),
        ("/api/answers", {"id": "a", "question_id": "q", "clicked": "3-1"}),
        ("/api/answers", {"id": "a", "question_id": "q", "who": "bob"}),
        ("/api/name", {"id": "a", "item": "3-1", "name": "  "}),
        ("/api/name", {"id": "a", "item": "3-1", "name": "a\0b"}),
        ("/api/name", {"id": "a", "item": "3-1", "name": "a" * 101}),
        ("/api/split", {"id": "a", "from": "3-1", "items": []}),
        ("/api/undo", {"id": "a", "fact": None}),
    ],
)
def test_malformed_bodies_are_refused_in_words(page, fake_desk, path, body):
    reply = page.post(path, body)
    assert reply.status_code == 422
    assert list(reply.json()) == ["error"] and isinstance(reply.json()["error"], str)
    assert not fake_desk.facts


def test_the_desk_s_errors_are_replies(page, fake_desk):
    def fails(error):
        def call(*_, **__):
            raise error

        return call

    replies = {
        ValueError("size is 3"): 400,
        KeyError("no such fact"): 404,
        PermissionError("not yours"): 403,
        NotSaved("the disk is full"): 503,
        RuntimeError("a bug, with a secret"): 500,
    }
    for error, status in replies.items():
        fake_desk.undo = fails(error)
        reply = page.post("/api/undo", {"id": "u", "fact": "f"})
        assert reply.status_code == status
        assert "secret" not in reply.text and reply.json()["error"]
    assert page.get("/api/session").status_code == 200  # it goes on


def test_pictures_are_small_encoded_anew_and_kept(photos):
    source = open_source(photos)
    pictures = Pictures(source)
    small = pictures.picture("deep/39.png", 160)
    assert small.kind == "image/jpeg" and not small.broken
    image = Image.open(io.BytesIO(small.encoded))
    assert max(image.size) == 160
    wanted = np.asarray(source.read(source.index_of("deep/39.png")))[:, 0, 0].astype(int)
    assert np.abs(np.asarray(image)[0, 0].astype(int) - wanted).max() <= 3
    assert pictures.picture("deep/39.png", 160) is small
    assert Image.open(io.BytesIO(pictures.picture("deep/39.png", 480).encoded)).size == (239, 120)
    with pytest.raises(KeyError):
        pictures.picture("deep/40.png", 160)
    with pytest.raises(ValueError, match="size is 100"):
        pictures.picture("deep/39.png", 100)


def test_the_cache_of_pictures_is_bounded(photos):
    source = open_source(photos)
    one = len(Pictures(source).picture(source.keys[0], 160).encoded)
    pictures = Pictures(source, cache=3 * one)
    for key in source.keys:
        pictures.picture(key, 160)
    assert 1 <= len(pictures._kept) <= 4
    assert sum(len(kept.encoded) for kept in pictures._kept.values()) == pictures._held <= 3 * one


def test_a_picture_is_not_sent_twice(page):
    first = page.get("/image?key=3-1&size=480")
    assert (
        "max-age" in first.headers["cache-control"] and "private" in first.headers["cache-control"]
    )
    again = page.get("/image?key=3-1&size=480", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304 and not again.content
    assert page.get("/image?key=3-1&size=100").status_code == 422
    assert page.get("/image?key=nowhere").status_code == 404


def test_the_page_and_what_it_loads(page):
    index = page.get("/")
    assert index.status_code == 200 and "text/html" in index.headers["content-type"]
    for path in ("/admin", "/static/index.html"):
        assert page.get(path).status_code == 200, path
    assert page.get("/static/nothing.js").status_code == 404
    assert page.get("/nothing").json() == {"error": "Not Found"}


def test_many_at_once(page, fake_desk):
    def answer(number):
        body = {"id": f"a{number % 20}", "question_id": "q0", "skipped": True}
        news.append(page.post("/api/answers", body).json()["new"])

    page.get("/api/question")
    news: list[bool] = []
    threads = [threading.Thread(target=answer, args=(number,)) for number in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(news) == 20 and len(fake_desk.facts) == 20


def test_an_allowance_fills_up_again():
    now = [0.0]
    allowance = Allowance(rate=2.0, burst=3.0, clock=lambda: now[0])
    assert [allowance.take("a") for _ in range(3)] == [0.0] * 3
    assert allowance.take("a") == pytest.approx(0.5) and allowance.take("b") == 0.0
    now[0] = 0.5
    assert allowance.take("a") == 0.0 and allowance.take("a") > 0
    now[0] = 1000.0
    assert [allowance.take("a") for _ in range(4)][:3] == [0.0] * 3 and allowance.take("a") > 0


def test_a_port_that_is_taken_is_named():
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    with pytest.raises(ValueError, match=f"port is {port}.*--port"):
        bind("127.0.0.1", port)
    listener.close()
    with pytest.raises(ValueError, match="port is 70000"):
        bind("127.0.0.1", 70000)
    with pytest.raises(ValueError, match="host is"):
        bind("no.such.host.invalid", 0)


def test_others_are_not_let_in_by_accident(fake_desk):
    with pytest.raises(ValueError, match="others can reach"):
        serve(fake_desk, "0.0.0.0", 0)


def test_the_value_against_cross_site_requests_is_each_server_s_own():
    with running(create_app(FakeDesk(), access=OnePerson("ann"))) as one:
        first = Page(one)
        with running(create_app(FakeDesk(), access=OnePerson("ann"))) as two:
            second = Page(two)
            assert first.csrf != second.csrf
            first.csrf = second.csrf
            assert first.post("/api/undo", {"id": "u", "fact": "f"}).status_code == 403
