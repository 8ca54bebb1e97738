"""Who may come in: one person on this machine, or people with an invitation."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from likewise.annotate.store import Store

COOKIE = "likewise"
"""The cookie that holds an invitation's token."""

CSRF_HEADER = "x-likewise-csrf"
"""What every request that changes something carries; another site cannot know its value."""

HERE = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names that this machine has for itself."""

LONGEST_TOKEN = 200
"""Longer cookies are none of ours, and are not looked up."""


@dataclass(frozen=True)
class Visitor:
    """Somebody who may come in.

    Args:
        name: who it is.
        admin: whether they may see and invite the others.
        csrf: what their page has to send along with every change.
    """

    name: str
    admin: bool
    csrf: str


class Access(ABC):
    """Who a request is from, and under which names the server is called.

    names: host names that requests may ask for. A page elsewhere that lets its own name lead here
    (DNS rebinding) sends that name, and is refused.
    addresses: whether any numeric address will do as a name: a server that listens on all of them
    cannot list them, and a numeric address is never a rebound name.
    secure: whether cookies are for HTTPS alone.
    """

    shared: bool
    secure: bool = False

    def __init__(self, names: Iterable[str], *, addresses: bool = False) -> None:
        self.names = frozenset(name.lower() for name in names)
        self.addresses = addresses

    @abstractmethod
    def visitor(self, token: str | None) -> Visitor | None:
        """Who has this token, or None where nobody does."""

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server.

        >>> OnePerson("ann").knows("localhost:8765"), OnePerson("ann").knows("evil.example")
        (True, False)
        """
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return name in self.names or (self.addresses and _is_address(name))

    def knows_origin(self, origin: str) -> bool:
        """Whether an Origin header is a page of this server."""
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self.knows(host)


class OnePerson(Access):
    """One person on this machine, who needs no token: whoever reaches the server is that person.

    >>> access = OnePerson("ann")
    >>> access.visitor(None).name
    'ann'
    """

    shared = False

    def __init__(self, name: str, names: Iterable[str] = HERE) -> None:
        super().__init__(names)
        self._visitor = Visitor(name, admin=True, csrf=secrets.token_urlsafe(32))

    def visitor(self, token: str | None) -> Visitor:
        """That person."""
        return self._visitor


class Invited(Access):
    """People with tokens that the store knows (by their hash), until these expire or are revoked.

    The value against cross-site requests is made from the token: it survives a restart, is another
    one for every person, and tells nothing about the token.
    """

    shared = True

    def __init__(
        self,
        store: Store,
        names: Iterable[str] = HERE,
        *,
        addresses: bool = False,
        secure: bool = False,
    ) -> None:
        super().__init__(names, addresses=addresses)
        self.store = store
        self.secure = secure

    def visitor(self, token: str | None) -> Visitor | None:
        """Whose token this is, now."""
        if not token or len(token) > LONGEST_TOKEN or not token.isascii():
            return None
        person = self.store.person_of(token)
        if person is None:
            return None
        csrf = hmac.new(token.encode(), b"likewise csrf", hashlib.sha256).hexdigest()
        return Visitor(person.name, person.admin, csrf)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
