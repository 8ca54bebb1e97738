"""People and their invitations: a token is shown once, and only its SHA-256 is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from likewise.annotate.facts import check_name
from likewise.annotate.store.tables import people as table

LONGEST_TOKEN = 200


@dataclass(frozen=True)
class Person:
    """Somebody who was invited.

    Attributes:
        name: unique in the project.
        admin: may see and invite others.
        created: seconds since 1970.
        expires: when the invitation ends; None: never.
        revoked: whether it was taken back.
    """

    name: str
    admin: bool
    created: float
    expires: float | None
    revoked: bool

    def active(self, now: float) -> bool:
        """Whether the invitation counts."""
        return not self.revoked and (self.expires is None or now < self.expires)


def hashed(token: str) -> str:
    """SHA-256 in hexadecimal. A token has 256 random bits: there is nothing to guess, so no salt
    and no slow hash is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def add_person(
    connection: Connection, name: str, admin: bool, expires: float | None, now: float
) -> str:
    """Invite somebody; the token. A name whose invitation ended can be invited again."""
    check_name("name", name)
    if expires is not None and not expires > now:
        raise ValueError(f"expires is {expires}, which is past: give a later time, or None")
    row = connection.execute(select(table).where(table.c.name == name)).first()
    if row is not None:
        if Person(row.name, row.admin, row.created, row.expires, row.revoked).active(now):
            raise ValueError(f"name is {name!r}, who is invited already: revoke that first")
        connection.execute(delete(table).where(table.c.name == name))
    token = secrets.token_urlsafe(32)
    connection.execute(
        insert(table).values(
            name=name,
            token=hashed(token),
            admin=bool(admin),
            created=now,
            expires=expires,
            revoked=False,
        )
    )
    return token


def person_of(connection: Connection, token: str, now: float) -> Person | None:
    """Whose token this is; None where it is nobody's, or was revoked, or has expired."""
    if not isinstance(token, str) or not 0 < len(token) <= LONGEST_TOKEN:
        return None
    wanted = hashed(token)
    row = connection.execute(select(table).where(table.c.token == wanted)).first()
    # The index compares hashes, which tell nothing about tokens; the last word is constant-time.
    if row is None or not hmac.compare_digest(row.token, wanted):
        return None
    person = Person(row.name, row.admin, row.created, row.expires, row.revoked)
    return person if person.active(now) else None


def revoke(connection: Connection, name: str) -> bool:
    """Take an invitation back; False where there is nobody of that name."""
    changed = connection.execute(
        update(table).where(table.c.name == name).values(revoked=True)
    ).rowcount
    return bool(changed)


def listed(connection: Connection) -> list[Person]:
    """Everybody who was ever invited, by name."""
    rows = connection.execute(select(table).order_by(table.c.name))
    return [Person(r.name, r.admin, r.created, r.expires, r.revoked) for r in rows]
