"""What every request passes first, and every reply last.

Requests for another host, from another site, or with too large a body end here; replies get the
headers that keep a browser from loading, framing or guessing anything that is not ours.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from likewise.annotate.server.access import Access
from likewise.annotate.server.limits import BODY, BODY_SECONDS

POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' blob: data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

PRIVATE = ("/api/", "/image")
"""What only our own pages ask for; other sites may only link to the page itself."""

LOG = logging.getLogger("likewise.annotate")


class Refused(Exception):  # noqa: N818 (an outcome, not a fault)
    """A request that ends here, with a status and a reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Guard:
    """ASGI middleware: checks host, origin and size, and adds the headers."""

    def __init__(self, app: ASGIApp, access: Access, *, body: int = BODY) -> None:
        self.app = app
        self.access = access
        self.body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = list(message.get("headers", []))
                names = {name.lower() for name, _ in headers}
                headers += [header for header in HEADERS if header[0] not in names]
                if b"cache-control" not in names:
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        try:
            self._check(scope)
            limited = await self._body(scope, receive)
            await self.app(scope, limited, send_with_headers)
        except Refused as refused:
            if not begun:
                await _reply(send_with_headers, refused.status, refused.reason)
        except Exception:
            LOG.exception("%s %s failed", scope["method"], scope["path"].split("/join/")[0])
            if begun:
                raise
            await _reply(send_with_headers, 500, "something went wrong here; nothing was saved")

    def _check(self, scope: Scope) -> None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or not self.access.knows(hosts[0]):
            raise Refused(421, "this server does not go by that name: see --address")
        own = all(site in ("same-origin", "none") for site in headers.get(b"sec-fetch-site", []))
        # Asking for a question reserves it, so that even looking is for our own pages alone.
        if not own and scope["path"].startswith(PRIVATE):
            raise Refused(403, "the request comes from a page of another site")
        if scope["method"] in SAFE:
            return
        for origin in headers.get(b"origin", []):
            if not self.access.knows_origin(origin):
                raise Refused(403, "the request comes from a page of another site")
        for length in headers.get(b"content-length", []):
            if not length.isdigit():
                raise Refused(400, "Content-Length is no number")
            if int(length) > self.body:
                raise Refused(413, f"the body has more than {self.body:,} bytes")

    async def _body(self, scope: Scope, receive: Receive) -> Receive:
        """The whole body, read before anything is done: too long or too slow, and it ends here."""
        if scope["method"] in SAFE:
            return receive
        parts, size = [], 0
        until = time.monotonic() + BODY_SECONDS
        while True:
            try:
                message = await asyncio.wait_for(receive(), max(0.0, until - time.monotonic()))
            except (asyncio.TimeoutError, TimeoutError):
                raise Refused(408, f"the body took more than {BODY_SECONDS:.0f} s") from None
            if message["type"] != "http.request":
                raise Refused(400, "the connection was closed")
            part = message.get("body", b"")
            size += len(part)
            if size > self.body:
                raise Refused(413, f"the body has more than {self.body:,} bytes")
            parts.append(part)
            if not message.get("more_body"):
                break
        whole: Message | None = {"type": "http.request", "body": b"".join(parts)}

        async def given() -> Message:
            nonlocal whole
            if whole is not None:
                message, whole = whole, None
                return message
            return await receive()

        return given


async def _reply(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if status in (408, 413):
        headers.append((b"connection", b"close"))
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
