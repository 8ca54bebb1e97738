"""What the handlers share: the desk, who may come in, pictures and limits."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from urllib.parse import quote

from anyio import CapacityLimiter
from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from likewise.annotate.server.access import COOKIE, CSRF_HEADER, Access, Visitor
from likewise.annotate.server.images import Pictures
from likewise.annotate.server.limits import Allowance
from likewise.annotate.server.wire import Tile

if TYPE_CHECKING:
    from likewise.annotate.desk import Desk

PICTURE_COST = 0.1
"""A grid has sixteen pictures and one question."""


@dataclass
class Service:
    """One desk behind one address.

    Args:
        desk: what is annotated.
        access: who may come in.
        pictures: of the desk's items.
        project: a name to show.
        address: where people reach it.
        page: the folder that the browser loads from.
        people: requests of every person.
        strangers: requests with no or a wrong token, by network address.
    """

    desk: Desk
    access: Access
    pictures: Pictures
    project: str
    address: str
    page: Path
    people: Allowance
    strangers: Allowance = field(default_factory=lambda: Allowance(rate=2.0, burst=60.0))
    # Decoding takes cores; two at a time leave room for those who answer.
    decoding: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(2))
    # Questions that have to be thought of take seconds; answers never wait for them.
    waiting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(64))

    def come_in(self, request: Request, cost: float = 1.0) -> Visitor:
        """Who asks, within their allowance; raises where nobody known does."""
        found = self.access.visitor(request.cookies.get(COOKIE))
        if found is None:
            self.refuse_stranger(request, "open the invitation link that you were given")
        _wait(self.people.take(found.name, cost))
        return found

    def refuse_stranger(self, request: Request, reason: str) -> NoReturn:
        """Send somebody away whom nobody knows, more slowly the more often they come."""
        _wait(self.strangers.take(request.client.host if request.client else ""))
        raise HTTPException(401, reason)

    def tile(self, key: str, name: str | None = None) -> Tile:
        """An item as the page shows it."""
        return Tile(key=key, image=f"/image?key={quote(key, safe='')}&size=160", name=name)


def _wait(seconds: float) -> None:
    if seconds > 0:
        after = {"Retry-After": str(max(1, round(seconds)))}
        raise HTTPException(429, f"too many requests: wait {seconds:.1f} s", headers=after)


# A plain `def` runs in a thread of its own, and an `async def` here and now: only looking a token
# up reads the database.
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _visitor(request: Request, service: Annotated[Service, Depends(_service)]) -> Visitor:
    return service.come_in(request)


async def _changing(request: Request, visitor: Annotated[Visitor, Depends(_visitor)]) -> Visitor:
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), visitor.csrf.encode()):
        raise HTTPException(403, f"the header {CSRF_HEADER} is not that of /api/session")
    return visitor


async def _admin(visitor: Annotated[Visitor, Depends(_visitor)]) -> Visitor:
    if not visitor.admin:
        raise HTTPException(403, "only those who invite others may do this")
    return visitor


async def _changing_admin(visitor: Annotated[Visitor, Depends(_changing)]) -> Visitor:
    return await _admin(visitor)


Served = Annotated[Service, Depends(_service)]
Known = Annotated[Visitor, Depends(_visitor)]
"""Somebody who may look."""
Changing = Annotated[Visitor, Depends(_changing)]
"""Somebody whose own page sent this."""
Admin = Annotated[Visitor, Depends(_admin)]
"""Somebody who may see the others."""
ChangingAdmin = Annotated[Visitor, Depends(_changing_admin)]
"""Somebody who may invite others, from their own page."""
