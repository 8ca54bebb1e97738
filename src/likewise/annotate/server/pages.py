"""The page, what it loads, pictures, and the door."""

from __future__ import annotations

from typing import Annotated, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from likewise.annotate.server import wire
from likewise.annotate.server.access import COOKIE
from likewise.annotate.server.service import PICTURE_COST, Admin, Served

router = APIRouter(include_in_schema=False)

COOKIE_DAYS = 400


@router.get("/")
def index(service: Served) -> FileResponse:
    """The page. It holds nothing that is secret, and asks for the session itself."""
    return FileResponse(service.page / "index.html", headers={"Cache-Control": "no-cache"})


@router.get("/admin")
def admin(service: Served, visitor: Admin) -> FileResponse:
    """The page of those who invite others."""
    return FileResponse(service.page / "admin.html", headers={"Cache-Control": "no-cache"})


@router.get("/favicon.ico")
def icon(service: Served) -> Response:
    """The page's icon, or none."""
    path = service.page / "icon.svg"
    return FileResponse(path) if path.is_file() else Response(status_code=204)


@router.get("/join/{token}")
def join(service: Served, request: Request, token: str) -> Response:
    """An invitation: from now on the browser is that person."""
    if service.access.visitor(token) is None:
        service.refuse_stranger(request, "the invitation is unknown, expired or revoked")
    reply = RedirectResponse("/", status_code=303)
    if service.access.shared:
        reply.set_cookie(
            COOKIE,
            token,
            max_age=COOKIE_DAYS * 86400,
            httponly=True,
            samesite="strict",
            secure=service.access.secure,
            path="/",
        )
    return reply


pictures = APIRouter()


@pictures.get(
    "/image",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}, "image/webp": {}}}},
)
async def image(
    service: Served,
    request: Request,
    key: Annotated[wire.Key, Query()],
    size: Annotated[Literal["160", "480"], Query()] = "160",
) -> Response:
    """A small picture of an item, drawn anew from its pixels."""
    await to_thread.run_sync(service.come_in, request, PICTURE_COST)
    try:
        picture = await to_thread.run_sync(
            service.pictures.picture, key, int(size), limiter=service.decoding
        )
    except KeyError:
        raise HTTPException(404, "there is no such item") from None
    headers = {"ETag": picture.etag, "Cache-Control": "private, max-age=3600"}
    if picture.broken:
        headers["X-Likewise-Broken"] = "1"
    if request.headers.get("if-none-match") == picture.etag:
        return Response(status_code=304, headers=headers)
    return Response(picture.encoded, media_type=picture.kind, headers=headers)
