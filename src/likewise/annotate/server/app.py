"""The HTTP interface of a desk, put together.

========================  =======================================================================
GET /                     the page; /static/* what it loads; /admin for those who invite others
GET /join/{token}         an invitation: sets the cookie and leads to the page
GET /api/session          who one is, and the value that every change carries
GET /api/question         a question that nobody else has
POST /api/answers         an answer; it is on the disk when the reply says so
POST /api/undo            takes a fact back; name, merge and split are facts, too
GET /api/history          one's last facts
GET /api/progress         own and team figures
GET /api/map              the items in two dimensions
GET /api/item             what is known of one of them
GET /image                a small picture of it
GET /api/admin/people     everybody; POST invites, and POST /api/admin/revoke takes that back
========================  =======================================================================
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from likewise.annotate.server import asking, inviting, pages, wire
from likewise.annotate.server.access import Access
from likewise.annotate.server.guard import LOG, Guard
from likewise.annotate.server.images import Pictures
from likewise.annotate.server.limits import BODY, Allowance
from likewise.annotate.server.service import Service
from likewise.annotate.store import NotSaved

if TYPE_CHECKING:
    from likewise.annotate.desk import Desk

PAGE = Path(__file__).parents[1] / "page"
"""What the browser loads."""

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": wire.ErrorReply, "description": text}
    for status, text in {
        400: "Not possible",
        401: "No invitation",
        403: "Not allowed",
        404: "No such item or fact",
        413: "Too large",
        422: "Malformed",
        429: "Too many requests",
    }.items()
}


def create_app(
    desk: Desk,
    *,
    access: Access,
    project: str = "",
    address: str = "",
    page: Path = PAGE,
    rate: float = 60.0,
    burst: float = 600.0,
    body: int = BODY,
    ready: Callable[[], None] | None = None,
) -> FastAPI:
    """The application that serves a desk.

    Args:
        desk: what is annotated.
        access: who may come in.
        project: a name to show.
        address: where people reach it, for invitation links: "https://host:port".
        page: the folder with index.html, admin.html and what they load.
        rate: requests a second that a person may make for long; pictures count a tenth.
        burst: requests that a person may make at once.
        body: bytes that a request may have.
        ready: called once requests are answered.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if ready is not None:
            ready()
        yield

    app = FastAPI(title="Likewise", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = Service(
        desk=desk,
        access=access,
        pictures=Pictures(desk.source),
        project=project,
        address=address,
        page=page,
        people=Allowance(rate=rate, burst=burst),
    )
    for router in (pages.router, pages.pictures, asking.router, inviting.router):
        app.include_router(router, responses=ERRORS)
    app.mount("/static", StaticFiles(directory=page, check_dir=False), name="static")
    app.add_exception_handler(HTTPException, _refusal)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(ValueError, _impossible)
    app.add_exception_handler(KeyError, _missing)
    app.add_exception_handler(PermissionError, _forbidden)
    app.add_exception_handler(SQLAlchemyError, _not_saved)
    app.add_exception_handler(NotSaved, _not_saved)
    app.add_middleware(Guard, access=access, body=body)
    return app


def _error(status: int, reason: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": reason}, status, headers=headers)


async def _refusal(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, str(error.detail), error.headers)


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return _error(422, f"{place}: {first['msg']}".encode("utf-8", "replace").decode())


async def _impossible(_: Request, error: Exception) -> JSONResponse:
    return _error(400, str(error).encode("utf-8", "replace").decode())


async def _missing(_: Request, error: Exception) -> JSONResponse:
    return _error(404, str(error.args[0] if error.args else "there is no such thing"))


async def _forbidden(_: Request, error: Exception) -> JSONResponse:
    return _error(403, str(error))


async def _not_saved(_: Request, error: Exception) -> JSONResponse:
    # The page keeps what it could not deliver, and sends it again.
    LOG.error("the database failed: %s", error)
    return _error(503, "nothing was saved: the database cannot be written", {"Retry-After": "5"})
