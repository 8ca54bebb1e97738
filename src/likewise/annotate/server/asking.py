"""Questions and answers over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from likewise.annotate.server import wire
from likewise.annotate.server.service import Changing, Known, Served

router = APIRouter(prefix="/api")

OneKey = Annotated[wire.Key, Query()]


@router.get("/session")
def session(service: Served, visitor: Known) -> wire.SessionReply:
    """Who one is, and the value that every change has to carry."""
    return wire.SessionReply(
        who=visitor.name,
        admin=visitor.admin,
        project=service.project,
        csrf=visitor.csrf,
        items=len(service.desk.source),
        target=service.desk.target,
        shared=service.access.shared,
    )


@router.get("/question", response_model=wire.QuestionReply, responses={204: {"model": None}})
async def question(
    service: Served,
    visitor: Known,
    kind: wire.Kind = "grid",
    about: Annotated[wire.Key | None, Query()] = None,
) -> Any:
    """A question that nobody else has; 204 where nothing is left to ask."""
    if about is not None:
        _check_item(service, about)

    def ask() -> wire.QuestionReply | None:
        asked = service.desk.question(visitor.name, kind=kind, about=about)
        if asked is None:
            return None
        name = None if asked.exemplar is None else service.desk.item(asked.exemplar)["name"]
        return wire.QuestionReply(
            id=asked.id,
            kind=asked.kind,
            text=asked.text,
            exemplar=None if asked.exemplar is None else service.tile(asked.exemplar, name),
            tiles=[service.tile(key) for key in asked.tiles],
            expires=asked.expires,
        )

    # Who has to wait for a question keeps nobody from answering.
    found = await to_thread.run_sync(ask, limiter=service.waiting)
    return Response(status_code=204) if found is None else found


@router.post("/answers")
def answers(service: Served, visitor: Changing, body: wire.AnswerBody) -> wire.Saved:
    """An answer: on the disk when this replies, and counted once however often it is sent."""
    new = service.desk.answer(
        visitor.name,
        id=body.id,
        question_id=body.question_id,
        clicked=body.clicked,
        unsure=body.unsure,
        skipped=body.skipped,
        seconds=body.seconds,
        question=None if body.question is None else _shown(body.question),
    )
    return wire.Saved(new=new)


@router.post("/undo")
def undo(service: Served, visitor: Changing, body: wire.UndoBody) -> wire.Saved:
    """Take one of one's own facts back."""
    return wire.Saved(new=service.desk.undo(visitor.name, id=body.id, fact=body.fact))


@router.post("/name")
def name(service: Served, visitor: Changing, body: wire.NameBody) -> wire.Saved:
    """Name the class of an item."""
    _check_item(service, body.item)
    return wire.Saved(
        new=service.desk.name(visitor.name, id=body.id, item=body.item, name=body.name)
    )


@router.post("/merge")
def merge(service: Served, visitor: Changing, body: wire.MergeBody) -> wire.Saved:
    """Two classes are one."""
    for key in (body.a, body.b):
        _check_item(service, key)
    return wire.Saved(new=service.desk.merge(visitor.name, id=body.id, a=body.a, b=body.b))


@router.post("/split")
def split(service: Served, visitor: Changing, body: wire.SplitBody) -> wire.Saved:
    """Some items are of another class than the one they are in."""
    for key in (body.from_, *body.items):
        _check_item(service, key)
    return wire.Saved(
        new=service.desk.split(visitor.name, id=body.id, from_=body.from_, items=body.items)
    )


@router.get("/history")
def history(
    service: Served, visitor: Known, limit: Annotated[int, Query(ge=1, le=200)] = 20
) -> list[wire.Json]:
    """One's last facts, newest first."""
    return service.desk.history(visitor.name, limit=limit)


@router.get("/progress")
def progress(service: Served, visitor: Known) -> wire.Json:
    """How far one is, and all are."""
    return service.desk.progress(visitor.name)


@router.get("/map")
def two_dimensional(service: Served, visitor: Known) -> list[wire.Json]:
    """The items in two dimensions, coloured by what is known."""
    return service.desk.map()


@router.get("/item")
def item(service: Served, visitor: Known, key: OneKey) -> wire.ItemReply:
    """What is known of an item."""
    _check_item(service, key)
    known = service.desk.item(key)
    image = service.tile(key).image
    return wire.ItemReply(key=key, image=image, **{k: known[k] for k in ("class", "name")})


def _check_item(service: Served, key: str) -> None:
    if key not in service.pictures:
        raise HTTPException(404, "there is no such item")


def _shown(question: wire.AskedQuestion) -> dict[str, Any]:
    """A question by its keys, as the desk keeps it."""
    return {
        "id": question.id,
        "kind": question.kind,
        "exemplar": None if question.exemplar is None else question.exemplar.key,
        "tiles": [tile.key for tile in question.tiles],
    }
