"""What somebody might try, and does not get."""

import io
import json
import os
import socket
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from likewise.annotate import Store
from likewise.annotate.server import Invited, OnePerson, create_app, guard, running
from likewise.annotate.server.images import only_inside
from likewise.data import open_source
from tests.annotate.server.conftest import Page
from tests.annotate.server.fake_desk import FakeDesk
from tests.annotate.server.malformed import send_malformed

SECRET = (11, 222, 133)
"""The colour of what must not be seen."""


def colours(encoded: bytes) -> set[tuple[int, ...]]:
    image = Image.open(io.BytesIO(encoded)).convert("RGB")
    return {colour for _, colour in image.getcolors(maxcolors=1 << 20) or []}


def is_secret(encoded: bytes) -> bool:
    return any(
        max(abs(a - b) for a, b in zip(colour, SECRET, strict=True)) < 10
        for colour in colours(encoded)
    )


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def trapped(tmp_path) -> Path:
    """A folder with links that lead out of it, and a secret beside it."""
    outside, folder = tmp_path / "outside", tmp_path / "photos"
    outside.mkdir(), folder.mkdir()
    Image.new("RGB", (50, 50), SECRET).save(outside / "secret.png")
    (outside / "secret.txt").write_text("the secret")
    for name in ("a.png", "b.png"):
        Image.new("RGB", (50, 50), (200, 10, 10)).save(folder / name)
    (folder / "link.png").symlink_to(outside / "secret.png")
    (folder / "linked").symlink_to(outside)
    (folder / "passwd.png").symlink_to("/etc/passwd")
    (folder / "within.png").symlink_to(folder / "a.png")
    return folder


def test_links_out_of_the_folder_are_not_items(trapped):
    kept, outside = only_inside(open_source(trapped, folder_labels=False))
    assert kept.keys == ["a.png", "b.png", "within.png"] and outside == 3


def test_links_out_of_the_folder_are_not_served(trapped):
    # Even where the source was not filtered, or a link appears later in place of a file.
    source = open_source(trapped, folder_labels=False)
    with running(create_app(FakeDesk(source), access=OnePerson("ann"))) as address:
        page = Page(address)
        for key in ("link.png", "linked/secret.png", "passwd.png"):
            reply = page.get(f"/image?key={quote(key)}")
            assert reply.headers["x-likewise-broken"] == "1" and not is_secret(reply.content)
            assert b"root:" not in reply.content
        os.replace(trapped / "link.png", trapped / "b.png")
        assert not is_secret(page.get("/image?key=b.png").content)
        assert "x-likewise-broken" not in page.get("/image?key=within.png").headers
    assert is_secret((trapped / "../outside/secret.png").read_bytes())  # the check can fail


PATHS = [
    "../outside/secret.txt",
    "../outside/secret.png",
    "..%2foutside%2fsecret.txt",
    "%2e%2e/outside/secret.txt",
    "..\\outside\\secret.txt",
    "....//outside/secret.txt",
    "/etc/passwd",
    "file:///etc/passwd",
    "a.png/../../outside/secret.png",
    "a.png%00.txt",
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_lead_nowhere(trapped, path):
    page_folder = trapped.parent / "page"
    page_folder.mkdir()
    (page_folder / "index.html").write_text("the page")
    desk = FakeDesk(open_source(trapped, folder_labels=False))
    app = create_app(desk, access=OnePerson("ann"), page=page_folder)
    with running(app) as address:
        host, port = address.removeprefix("http://").split(":")
        for place in (f"/image?key={path}", f"/image?key={quote(path)}"):
            status, body = raw(host, int(port), f"GET {place} HTTP/1.1")
            assert status in (404, 422), place
            assert b"the secret" not in body and b"root:" not in body
        for prefix in ("/static/", "/", "/join/", "/api/item?key="):
            status, body = raw(host, int(port), f"GET {prefix}{path} HTTP/1.1")
            assert status in (400, 401, 404, 405, 422, 303) or b"the page" in body
            assert b"the secret" not in body and b"root:" not in body
        assert raw(host, int(port), "GET /static/index.html HTTP/1.1")[0] == 200


def raw(host: str, port: int, line: str, headers: str = "", body: bytes = b"") -> tuple[int, bytes]:
    """A request exactly as written: clients would tidy it up."""
    with socket.create_connection((host, port), timeout=20) as connection:
        head = f"{line}\r\nHost: {host}:{port}\r\nConnection: close\r\n{headers}\r\n"
        connection.sendall(head.encode("latin-1") + body)
        reply = b""
        while part := connection.recv(65536):
            reply += part
    return int(reply.split(b" ", 2)[1]), reply


def test_files_that_are_no_images_are_never_sent(tmp_path):
    script = "<script>alert(1)</script>"
    svg = f'<svg xmlns="http://www.w3.org/2000/svg">{script}</svg>'
    (tmp_path / "a.png").write_text(svg)
    (tmp_path / "b.jpg").write_text(f"<html>{script}</html>")
    (tmp_path / "c.gif").write_bytes(b"GIF89a" + script.encode())
    about = PngImagePlugin.PngInfo()
    about.add_text("Comment", script)
    Image.new("RGB", (80, 80), (1, 2, 3)).save(tmp_path / "d.png", pnginfo=about)
    with (tmp_path / "d.png").open("ab") as file:
        file.write(script.encode())
    (tmp_path / "e.svg").write_text(svg)
    source = open_source(tmp_path)
    assert source.keys == ["a.png", "b.jpg", "c.gif", "d.png"]
    with running(create_app(FakeDesk(source), access=OnePerson("ann"))) as address:
        page = Page(address)
        for key in source.keys:
            reply = page.get(f"/image?key={key}")
            assert reply.headers["content-type"] == "image/jpeg"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.content[:3] == b"\xff\xd8\xff" and b"script" not in reply.content
            assert ("x-likewise-broken" in reply.headers) == (key != "d.png")


def test_an_image_that_unpacks_without_end_is_not_unpacked(tmp_path):
    # Two hundred million pixels in a few kilobytes.
    Image.new("1", (14_200, 14_200)).save(tmp_path / "bomb.png")
    Image.new("1", (5, 5)).save(tmp_path / "other.png")
    with running(create_app(FakeDesk(open_source(tmp_path)), access=OnePerson("a"))) as address:
        assert Page(address).get("/image?key=bomb.png").headers["x-likewise-broken"] == "1"


# --- people ---------------------------------------------------------------------------------------


class Shared:
    """A shared server with a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.now = 1_700_000_000.0
        self.store = Store.open(path, clock=lambda: self.now)
        self.desk = FakeDesk()
        self.tokens = {
            "root": self.store.add_person("root", admin=True),
            "ann": self.store.add_person("ann", expires=self.now + 3600),
            "bob": self.store.add_person("bob"),
        }
        self.app = create_app(
            self.desk, access=Invited(self.store), address="http://questions.example"
        )


@pytest.fixture
def shared(tmp_path):
    found = Shared(tmp_path / "project.db")
    with running(found.app) as address:
        found.address = address
        yield found
    found.store.close()


API = ["/api/session", "/api/question", "/api/map", "/api/history", "/api/progress"]
PRIVATE = [*API, "/api/item?key=0-0", "/image?key=0-0", "/admin", "/api/admin/people"]


def with_cookie(shared: Shared, token: str | None) -> httpx.Client:
    headers = {} if token is None else {"Cookie": f"likewise={token}"}
    return httpx.Client(base_url=shared.address, headers=headers)


def test_nobody_comes_in_without_a_token(shared):
    for token in (None, "", "x", "A" * 43, "A" * 5000, shared.tokens["ann"][:-1], "é"):
        if token == "é":
            client = httpx.Client(base_url=shared.address, headers={"Cookie": b"likewise=\xe9"})
        else:
            client = with_cookie(shared, token)
        for path in PRIVATE[:4]:
            assert client.get(path).status_code in (400, 401, 429), (token, path)
    assert with_cookie(shared, shared.tokens["ann"]).get("/api/session").status_code == 200


def test_every_private_path_asks_for_a_token(shared):
    client = with_cookie(shared, None)
    for path in PRIVATE:
        assert client.get(path).status_code == 401, path
    for path in ("answers", "undo", "name", "merge", "split", "admin/people", "admin/revoke"):
        assert client.post(f"/api/{path}", json={}).status_code == 401, path
    assert not shared.desk.facts


def test_only_a_hash_of_a_token_is_kept(shared, tmp_path):
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("project.db*"))
    assert b"ann" in kept
    assert not any(token.encode() in kept for token in shared.tokens.values())


def test_forged_tokens_join_nothing(shared):
    client = httpx.Client(base_url=shared.address)
    for token in ("x", "A" * 43, shared.tokens["ann"].swapcase(), "%00", "é", "a" * 10_000):
        reply = client.get(f"/join/{token}")
        assert reply.status_code in (401, 400) and "set-cookie" not in reply.headers


def test_an_invitation_sets_a_cookie_that_scripts_and_other_sites_cannot_use(shared):
    reply = httpx.get(f"{shared.address}/join/{shared.tokens['ann']}")
    assert reply.status_code == 303 and reply.headers["location"] == "/"
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert shared.tokens["ann"] not in reply.text


def test_expired_tokens(shared):
    page = Page(shared.address, shared.tokens["ann"])
    assert page.get("/api/session").status_code == 200
    shared.now += 3601
    assert page.get("/api/session").status_code == 401
    assert page.post("/api/undo", {"id": "u", "fact": "f"}).status_code == 401
    assert httpx.get(f"{shared.address}/join/{shared.tokens['ann']}").status_code == 401
    assert with_cookie(shared, shared.tokens["bob"]).get("/api/session").status_code == 200


def test_revoked_tokens(shared):
    admin = Page(shared.address, shared.tokens["root"])
    bob = Page(shared.address, shared.tokens["bob"])
    assert bob.get("/api/session").status_code == 200
    assert admin.post("/api/admin/revoke", {"name": "bob"}).status_code == 200
    assert bob.get("/api/session").status_code == 401
    assert bob.get("/image?key=0-0").status_code == 401
    assert bob.post("/api/undo", {"id": "u", "fact": "f"}).status_code == 401
    assert admin.post("/api/admin/revoke", {"name": "nobody"}).status_code == 404


def test_admin_pages_are_for_admins(shared):
    ann, admin = (Page(shared.address, shared.tokens[name]) for name in ("ann", "root"))
    assert ann.get("/admin").status_code == 403
    assert ann.get("/api/admin/people").status_code == 403
    for body in ({"name": "eve", "admin": True}, {"name": "eve"}):
        assert ann.post("/api/admin/people", body).status_code == 403
    assert ann.post("/api/admin/revoke", {"name": "root"}).status_code == 403
    assert {person.name for person in shared.store.people()} == {"root", "ann", "bob"}
    assert admin.get("/api/admin/people").status_code == 200
    # The admin's value against cross-site requests is of no use with another's cookie.
    ann.csrf = admin.csrf
    assert ann.post("/api/undo", {"id": "u", "fact": "f"}).status_code == 403


def test_an_invitation_lets_one_person_in_and_is_shown_once(shared):
    admin = Page(shared.address, shared.tokens["root"])
    link = admin.post("/api/admin/people", {"name": "eve"}).json()["link"]
    assert link.startswith("http://questions.example/join/")
    token = link.rsplit("/", 1)[1]
    eve = Page(shared.address, token)
    found = eve.get("/api/session").json()
    assert (found["who"], found["admin"], found["shared"]) == ("eve", False, True)
    assert token not in admin.get("/api/admin/people").text
    assert admin.post("/api/admin/people", {"name": "eve"}).status_code == 400  # already there


def test_answers_are_in_the_name_of_the_token(shared):
    ann, bob = (Page(shared.address, shared.tokens[name]) for name in ("ann", "bob"))
    question = ann.get("/api/question").json()["id"]
    body = {"id": "a", "question_id": question, "skipped": True, "who": "bob"}
    assert ann.post("/api/answers", body).status_code == 422
    body.pop("who")
    assert ann.post("/api/answers", body).status_code == 200
    assert [fact["who"] for fact in shared.desk.facts.values()] == ["ann"]
    assert bob.get("/api/history").json() == []


# --- other sites ----------------------------------------------------------------------------------


def test_other_sites_change_nothing(page, fake_desk):
    body = {"id": "n", "item": "0-0", "name": "x"}
    wrong = [
        {"X-Likewise-CSRF": ""},
        {"X-Likewise-CSRF": "x" * 43},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ]
    for headers in wrong:
        assert page.post("/api/name", body, **headers).status_code == 403, headers
    # What a form on another page can send, with a browser's cookies: no header of ours.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        reply = page.http.post(
            "/api/name", content=json.dumps(body), headers={"Content-Type": kind}
        )
        assert reply.status_code == 403, kind
    assert not fake_desk.facts
    own = {"Origin": str(page.http.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert page.post("/api/name", {**body, "item": "1-0"}, **own).status_code == 200


def test_other_sites_reserve_nothing_and_read_nothing(page, fake_desk):
    for site in ("cross-site", "same-site"):
        for path in API:
            assert page.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403
    assert not fake_desk.asked
    reply = page.get("/api/session", headers={"Origin": "http://evil.example"})
    assert not any(name.startswith("access-control") for name in reply.headers)
    reply = page.http.options("/api/name", headers={"Origin": "http://evil.example"})
    assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example"])
def test_names_that_were_led_here_are_refused(page, host):
    # DNS rebinding: the page of evil.example asks "its own" server, which is this one.
    for path in ("/", "/api/session", "/image?key=0-0"):
        assert page.get(path, headers={"Host": host}).status_code == 421


def test_a_host_that_is_no_host(page):
    for host in ("", "[", "[::1", "a b", "127.0.0.1@evil.example", "localhost, evil.example"):
        assert page.get("/api/session", headers={"Host": host}).status_code in (400, 421)
    assert page.get("/api/session", headers={"Host": "localhost:1"}).status_code == 200


def test_every_reply_says_what_a_browser_may_do(page):
    for path in ("/", "/api/session", "/image?key=0-0", "/nothing", "/static/index.html"):
        headers = page.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert headers["x-frame-options"] == "DENY" and headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


# --- too much -------------------------------------------------------------------------------------


def test_bodies_that_are_too_large(page, fake_desk):
    body = json.dumps({"id": "a", "fact": "f" * 300_000})
    reply = page.http.post("/api/undo", content=body, headers={"X-Likewise-CSRF": page.csrf})
    assert reply.status_code == 413

    def parts():
        for _ in range(100):
            yield b" " * 10_000

    reply = page.http.post("/api/undo", content=parts(), headers={"X-Likewise-CSRF": page.csrf})
    assert reply.status_code == 413 and not fake_desk.facts
    assert page.get("/api/session").status_code == 200


def test_a_length_that_lies(page):
    base = page.http.base_url
    for length in ("-1", "1e9", "99999999999999999999"):
        line = f"Content-Length: {length}\r\nX-Likewise-CSRF: {page.csrf}\r\n"
        status, _ = raw(base.host, base.port, "POST /api/undo HTTP/1.1", line, b"{}")
        assert status in (400, 413)
    assert page.get("/api/session").status_code == 200


def test_deep_nesting_and_numbers_without_end(page):
    for text in (
        "[" * 100_000,
        '{"id":' * 20_000,
        '{"id": "a", "question_id": "q", "seconds": 1e999}',
        '{"id": "a", "question_id": "q", "seconds": NaN}',
        '{"id": "a", "question_id": "q", "seconds": ' + "9" * 5000 + "}",
        '{"id": "\\ud800", "question_id": "q"}',
        '{"id": "a", "question_id": "q", "clicked": ["\\ud800"]}',
    ):
        headers = {"X-Likewise-CSRF": page.csrf, "Content-Type": "application/json"}
        reply = page.http.post("/api/answers", content=text, headers=headers)
        assert reply.status_code in (400, 422), text[:60]


def test_a_body_that_never_comes(page, monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    base = page.http.base_url
    status, _ = raw(base.host, base.port, "POST /api/undo HTTP/1.1", "Content-Length: 10\r\n")
    assert status == 408


def test_headers_and_addresses_that_are_too_long(page):
    base = page.http.base_url
    for line, headers in (
        (f"GET /image?key={'a' * 200_000} HTTP/1.1", ""),
        ("GET / HTTP/1.1", f"X-Long: {'a' * 200_000}\r\n"),
        (f"GET /image?key={'a' * 5000} HTTP/1.1", ""),
    ):
        try:
            status, _ = raw(base.host, base.port, line, headers)
        except (ConnectionError, IndexError):
            continue  # hung up on: as good
        assert status in (400, 414, 422, 431)
    assert page.get("/api/session").status_code == 200


def test_too_many_requests():
    with running(create_app(FakeDesk(), access=OnePerson("ann"), rate=5, burst=10)) as address:
        page = Page(address)
        statuses = [page.get("/api/session").status_code for _ in range(30)]
        assert statuses[:5] == [200] * 5 and 429 in statuses
        refused = page.get("/api/session")
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1


def test_guessing_is_slowed_down(shared):
    client = with_cookie(shared, "A" * 43)
    statuses = [client.get("/api/session").status_code for _ in range(80)]
    assert set(statuses) == {401, 429}
    # Those who were invited do not notice, from the same address.
    assert with_cookie(shared, shared.tokens["ann"]).get("/api/session").status_code == 200


# --- nonsense -------------------------------------------------------------------------------------


def test_malformed_requests_are_no_fault_of_ours(tmp_path):
    # 500 here; `python -m tests.annotate.server.malformed` sends 10,000.
    statuses, failed = send_malformed(str(tmp_path / "project.db"), 500)
    assert not failed
    assert sum(statuses.values()) >= 500 and max(statuses) < 500
    assert statuses[422] > 100  # they were malformed, and not refused at the door


def test_bytes_that_are_no_request(page):
    base = page.http.base_url
    generator = np.random.default_rng(0)
    for number in range(20):
        with socket.create_connection((base.host, base.port), timeout=20) as connection:
            connection.sendall(generator.bytes(200 * (number + 1)) + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            reply = connection.recv(65536)
        assert not reply or reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
    assert page.get("/api/session").status_code == 200
