"""Malformed requests, made from the server's own OpenAPI description by schemathesis.

    python -m tests.annotate.server.malformed --requests 10000 [--database postgresql]

prints how many replies had which status, and ends with 1 where one was 500 or more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as some
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from likewise.annotate import Desk, Store
from likewise.annotate.server import Invited, create_app, running
from likewise.data import open_source
from tests.annotate.databases import KINDS, new_project

LEFT_ALONE = "/api/admin/revoke"
"""With the right name in it, this would end the session."""


def send_malformed(project: str, count: int, *, start: int = 0) -> tuple[Counter[int], list[Any]]:
    """Send so many requests to a server with a real desk; statuses, and what made it fail."""
    source = open_source("digits:test").subset(np.arange(200))
    rows = np.random.default_rng(0).normal(size=(len(source), 8)).astype(np.float32)
    statuses: Counter[int] = Counter()
    failed: list[Any] = []
    with Store.open(project) as store, Desk(source, rows, store) as desk:
        token = store.add_person("root", admin=True)
        app = create_app(desk, access=Invited(store), rate=1e9, burst=1e9)
        schema = schemathesis.openapi.from_dict(app.openapi())
        operations = [result.ok() for result in schema.get_all_operations()]
        with running(app) as address, requests.Session() as client:
            client.cookies.set("likewise", token)
            csrf = client.get(f"{address}/api/session").json()["csrf"]
            client.headers["X-Likewise-CSRF"] = csrf
            known = [
                *source.keys[:5],
                client.get(f"{address}/api/question").json()["id"],
            ]

            def send(case: Any) -> None:
                if sum(statuses.values()) >= count:
                    return
                wanted = case.as_transport_kwargs(base_url=address)
                wanted["headers"].pop("Cookie", None)
                wanted.pop("cookies", None)
                try:
                    reply = client.request(**wanted, timeout=60, allow_redirects=False)
                except (requests.exceptions.InvalidHeader, UnicodeError, ValueError):
                    return  # the client itself refuses to send it
                statuses[reply.status_code] += 1
                if reply.status_code >= 500:
                    failed.append((reply.status_code, wanted))

            number = start
            while sum(statuses.values()) < count:
                for operation in operations:
                    for mode in (GenerationMode.NEGATIVE, GenerationMode.POSITIVE):
                        number += 1
                        _try(operation, mode, send, number, known)
            # It still works, and nothing that was sent is believed to be an answer.
            assert client.get(f"{address}/api/progress").status_code == 200
    return statuses, failed


def _try(operation: Any, mode: GenerationMode, send: Any, number: int, known: list[str]) -> None:
    if mode is GenerationMode.POSITIVE and operation.path == LEFT_ALONE:
        return

    @seed(number)
    @settings(
        max_examples=20,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=mode), words=some.lists(some.sampled_from(known))
    )
    def run(case: Any, words: list[str]) -> None:
        # Now and then with a key or an id that is really there, to get further in.
        if isinstance(case.body, dict) and words:
            for name in ("question_id", "item", "a", "from", "fact"):
                if name in case.body:
                    case.body[name] = words[0]
        send(case)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Without parameters, nothing can be wrong with a request.
        with suppress(Unsatisfiable):
            run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--database", choices=KINDS, default="sqlite")
    given_ = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = new_project(given_.database, Path(folder))
        statuses, failed = send_malformed(project, given_.requests)
    print(
        f"{sum(statuses.values()):,} requests on {given_.database}:", dict(sorted(statuses.items()))
    )
    for status, wanted in failed[:10]:
        print(status, wanted)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
