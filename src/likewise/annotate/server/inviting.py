"""People over HTTP: who there is, invitations, and taking them back."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from likewise.annotate.server import wire
from likewise.annotate.server.access import Invited
from likewise.annotate.server.service import Admin, ChangingAdmin, Served

router = APIRouter(prefix="/api/admin")

DAY = 86400.0


@router.get("/people")
def people(service: Served, visitor: Admin) -> list[dict[str, Any]]:
    """Everybody, with speed, agreement and accuracy on gold tiles."""
    return service.desk.people_figures()


@router.post("/people")
def invite(service: Served, visitor: ChangingAdmin, body: wire.InviteBody) -> wire.Invitation:
    """A link for one person; it is shown here and never again."""
    store = _store(service)
    token = store.add_person(body.name, admin=body.admin, expires=time.time() + body.days * DAY)
    return wire.Invitation(link=f"{service.address}/join/{token}")


@router.post("/revoke")
def revoke(service: Served, visitor: ChangingAdmin, body: wire.RevokeBody) -> wire.Json:
    """The person's link and cookie are worth nothing from now on; their answers stay."""
    store = _store(service)
    if body.name not in {person.name for person in store.people()}:
        raise HTTPException(404, "there is no such person")
    store.revoke(body.name)
    return {"revoked": body.name}


def _store(service: Served) -> Any:
    if not isinstance(service.access, Invited):
        raise HTTPException(400, "nobody can be invited here: start `likewise ask` with --share")
    return service.access.store
