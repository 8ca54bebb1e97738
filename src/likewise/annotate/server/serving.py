"""A port, and the server on it until Ctrl-C."""

from __future__ import annotations

import getpass
import ipaddress
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from likewise.annotate.server.access import Access, OnePerson
from likewise.annotate.server.app import create_app

if TYPE_CHECKING:
    from fastapi import FastAPI

    from likewise.annotate.desk import Desk

CONCURRENT = 1000
"""Connections; those beyond are told to come back."""

SWITCH = 0.0005
"""Seconds after which a thread that computes (the sampler) lets another one (a request) go on. A
request changes threads some ten times: with Python's 5 ms, it would wait for 50."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there, or an error that says what to do; port 0 is any free one."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port is {port}: give a number between 0 and 65535")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ValueError(f"host is {host!r}, which has no address: {error}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise ValueError(
            f"port is {port}, which cannot be used on {host} ({error.strerror}): stop what uses "
            "it, or give another --port (0 is any free one)"
        ) from None
    return listener


def is_here(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_here("127.0.0.1"), is_here("localhost"), is_here("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(
    desk: Desk,
    host: str = "127.0.0.1",
    port: int = 8765,
    *,
    access: Access | None = None,
    listener: socket.socket | None = None,
    certificate: Path | None = None,
    certificate_key: Path | None = None,
    **settings: Any,
) -> None:
    """Serve a desk until Ctrl-C (or SIGTERM); requests in flight are finished first.

    Args:
        desk: what is annotated.
        host: where to listen.
        port: on which port.
        access: who may come in; without, whoever has the name of the system's user, from here.
        listener: a socket of :func:`bind`, in place of host and port.
        certificate: a file in PEM, for HTTPS.
        certificate_key: its key.
        settings: of :func:`create_app`.
    """
    if access is None and not is_here(host):
        raise ValueError(f"host is {host!r}, which others can reach: give an access to ask of them")
    app = create_app(desk, access=access or OnePerson(getpass.getuser()), **settings)
    listener = listener or bind(host, port)
    server = uvicorn.Server(_config(app, certificate, certificate_key))
    sys.setswitchinterval(SWITCH)
    with _stopped_like_ctrl_c():
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass
        finally:
            listener.close()


@contextmanager
def _stopped_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, too, end what runs here in good order (uvicorn raises it again at its end)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def running(app: FastAPI, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """The application in a thread of this process, and its address; it ends with the block."""
    listener = bind(host, port)
    server = uvicorn.Server(_config(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.01)
        yield address_of(listener)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def address_of(listener: socket.socket, *, secure: bool = False) -> str:
    """Where a browser on this machine finds it."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1"
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{name}:{port}"


def _config(
    app: FastAPI, certificate: Path | None = None, certificate_key: Path | None = None
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # it would hold invitation links
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=CONCURRENT,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=64 * 1024,
        ssl_certfile=certificate,
        ssl_keyfile=certificate_key,
    )
