"""The parts of the annotation benchmark: servers that can be killed, annotators, and an audit.

Every annotator is a process of its own (``python annotate_load.py annotate JSON``) that needs
nothing but the standard library; servers are forked from one that has imported everything
(``python annotate_load.py serve JSON``), so that a new one is there in a second.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()


# --- one annotator --------------------------------------------------------------------------------


class Annotator:
    """Asks and answers at fixed times, whatever the server does (an open loop).

    An answer that nobody acknowledged is sent again with the same id, as the page does.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.random = random.Random(job["seed"])
        self.connection: http.client.HTTPConnection | None = None
        self.csrf = ""
        self.asked: dict[str, Any] | None = None
        self.waiting: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []

    def run(self) -> None:
        every, tick = (
            self.job["every"],
            self.job["start"] + self.random.random() * self.job["every"],
        )
        parent = os.getppid()
        while (
            tick < self.job["stop"]
            and not os.path.exists(self.job.get("stop_file", ""))
            and os.getppid() == parent  # nobody is left to read the log
        ):
            self.at(tick, self.ask)
            while self.asked is None and self.job["insist"] and time.time() < tick + every / 3:
                time.sleep(0.1)  # the server is away, and will be back
                self.ask(time.time())
            self.at(tick + every / 2, self.answer)
            tick += every
        deadline = time.time() + 60
        while self.waiting and time.time() < deadline:
            self.deliver(time.time())
            time.sleep(0.1)

    def at(self, moment: float, act: Any) -> None:
        while (left := moment - time.time()) > 0:
            if self.waiting and left > 0.2:
                self.deliver(time.time())
            time.sleep(min(left, 0.2))
        act(moment)

    def ask(self, moment: float) -> None:
        if self.asked is not None:
            return  # the last one could not be answered yet
        reply = self.request("GET", "/api/question", None, "question", moment)
        if reply is None or reply[0] != 200:
            return
        asked = self.asked = reply[1]
        shown = [asked["exemplar"], *asked["tiles"]]
        self.log.append(
            {
                "asked": asked["id"],
                "exemplar": asked["exemplar"]["key"],
                "tiles": [tile["key"] for tile in asked["tiles"]],
                "at": time.time(),
            }
        )
        for tile in shown if self.job["pictures"] else ():
            self.request("GET", tile["image"], None, "picture", time.time())

    def answer(self, moment: float) -> None:
        asked, self.asked = self.asked, None
        if asked is None:
            return
        kind = int(asked["exemplar"]["key"]) % self.job["classes"]
        tiles = [tile["key"] for tile in asked["tiles"]]
        body = {
            "id": str(uuid.UUID(int=self.random.getrandbits(128), version=4)),
            "question_id": asked["id"],
            "clicked": [key for key in tiles if int(key) % self.job["classes"] == kind],
            "seconds": self.job["every"] / 2,
            "question": asked,
        }
        self.log.append({"sent": body["id"], "question": asked["id"], "at": time.time()})
        self.waiting.append(body)
        self.deliver(moment)
        if self.waiting == [] and self.random.random() < 0.1:
            # As if the reply had been lost on the way: the same answer once more.
            reply = self.request("POST", "/api/answers", body, "again", time.time())
            if reply is not None and reply[0] == 200:
                self.log.append({"again": body["id"], "new": reply[1]["new"]})

    def deliver(self, moment: float) -> None:
        while self.waiting:
            body = self.waiting[0]
            reply = self.request("POST", "/api/answers", body, "answer", moment)
            if reply is None or reply[0] in (429, 503):
                return
            if reply[0] == 403:
                self.csrf = ""
                return
            self.waiting.pop(0)
            word = "acknowledged" if reply[0] == 200 else "refused"
            self.log.append({word: body["id"], "status": reply[0], "at": time.time()})

    def request(
        self, method: str, path: str, body: Any, what: str, moment: float
    ) -> tuple[int, Any] | None:
        """A reply, or None where there is none; the time is counted from the scheduled moment."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(
                    self.job["host"], self.job["port"], timeout=30
                )
            if not self.csrf:
                self.csrf = self._send("GET", "/api/session", None)[1]["csrf"]
            sent = time.time()
            status, found = self._send(method, path, body)
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            self.connection = None
            self.log.append({"failed": what, "why": type(error).__name__, "at": time.time()})
            return None
        self.log.append(
            {
                "what": what,
                "status": status,
                "moment": moment,
                "seconds": time.time() - moment,
                "waited": sent - moment,  # for one's own last request, or for the processor
            }
        )
        return status, found

    def _send(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        assert self.connection is not None
        headers = {"Cookie": f"likewise={self.job['token']}", "X-Likewise-CSRF": self.csrf}
        text = None if body is None else json.dumps(body)
        if text is not None:
            headers["Content-Type"] = "application/json"
        self.connection.request(method, path, body=text, headers=headers)
        reply = self.connection.getresponse()
        content = reply.read()
        kind = reply.headers.get("Content-Type", "")
        return reply.status, json.loads(content) if kind.startswith("application/json") else None


def annotate(job: dict[str, Any]) -> None:
    annotator = Annotator(job)
    annotator.run()
    with open(job["out"], "w") as file:
        for entry in annotator.log:
            file.write(json.dumps(entry) + "\n")


# --- servers --------------------------------------------------------------------------------------


def serve(job: dict[str, Any]) -> None:
    """Import everything, then fork a server for every line on standard input."""
    import numpy as np
    import torch

    from likewise.annotate import Desk, Store
    from likewise.annotate import server as web
    from likewise.data.source import Source

    class Drawn(Source):
        """Items that are a colour each."""

        def _read(self, row: int, enough: int) -> torch.Tensor:
            colour = np.random.default_rng(row).integers(0, 255, (3, 1, 1), dtype=np.uint8)
            return torch.from_numpy(np.broadcast_to(colour, (3, 200, 200)).copy())

    n, dim, classes = job["items"], job["dim"], job["classes"]
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(classes, dim)).astype(np.float32)
    rows = np.empty((n, dim), np.float32)
    for start in range(0, n, 50_000):
        part = np.arange(start, min(start + 50_000, n))
        rows[part] = centres[part % classes] + job["spread"] * generator.normal(
            size=(len(part), dim)
        ).astype(np.float32)
    source = Drawn([str(number) for number in range(n)], place="nowhere")
    for line in sys.stdin:
        if line.strip() != "start":
            break
        child = os.fork()
        if child:
            print(child, flush=True)
            if sys.stdin.readline().strip() != "ended":
                os.kill(child, signal.SIGKILL)  # whoever started us is gone
            os.waitpid(child, 0)
            continue
        with (
            Store.open(job["project"]) as store,
            Desk(source, rows, store, cache=job.get("cache", "auto")) as desk,
        ):
            web.serve(desk, port=job["port"], access=web.Invited(store))
        os._exit(0)


@dataclass
class Server:
    """A server process on a port, which can be killed and started again."""

    job: dict[str, Any]
    log: Path
    pid: int = 0
    zygote: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self.zygote = subprocess.Popen(
            [sys.executable, str(HERE), "serve", json.dumps(self.job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("a"),
            text=True,
        )

    def start(self, token: str, patience: float = 300.0) -> float:
        """Start it; the seconds until it answered."""
        assert self.zygote.stdin is not None and self.zygote.stdout is not None
        self.zygote.stdin.write("start\n")
        self.zygote.stdin.flush()
        self.pid = int(self.zygote.stdout.readline())
        began = time.time()
        while time.time() - began < patience:
            try:
                if self.get("/api/session", token)[0] == 200:
                    return time.time() - began
            except OSError:
                time.sleep(0.02)
        raise TimeoutError(f"the server did not start: see {self.log}")

    def get(self, path: str, token: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.job["port"], timeout=60)
        try:
            connection.request("GET", path, headers={"Cookie": f"likewise={token}"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it: by default as a power cut would."""
        assert self.zygote.stdin is not None
        if self.pid:
            os.kill(self.pid, how)
            self.pid = 0
            self.zygote.stdin.write("ended\n")
            self.zygote.stdin.flush()

    def close(self) -> None:
        assert self.zygote.stdin is not None
        self.end(signal.SIGTERM)
        self.zygote.stdin.close()
        self.zygote.wait(60)


def annotators(
    jobs: Iterable[dict[str, Any]],
) -> list[subprocess.Popen[bytes]]:
    """A process for each."""
    return [
        subprocess.Popen([sys.executable, "-S", "-E", str(HERE), "annotate", json.dumps(job)])
        for job in jobs
    ]


# --- what came of it ------------------------------------------------------------------------------


@dataclass
class Audit:
    """The annotators' logs beside what the store holds.

    Attributes:
        acknowledged: answers that annotators were told are saved.
        stored: answers that are there.
        lost: acknowledged, and not there.
        duplicates: there more than once, or called new when they were sent again, or two answers
            to one question.
        shared: questions, or pairs of items, that were open with two people at once.
        refused: answers that were refused.
        errors: replies of 500 or more.
        failures: requests without a reply, by what they were for.
    """

    acknowledged: int
    stored: int
    lost: int
    duplicates: int
    shared: int
    refused: int
    errors: int
    failures: dict[str, int]


def audit(project: str, logs: dict[str, list[dict[str, Any]]]) -> Audit:
    """Compare what people were told with what the store holds.

    Args:
        project: the store.
        logs: by person.
    """
    from likewise.annotate import Store

    with Store.open(project) as store:
        facts = [fact for _, fact in store.facts() if fact.kind == "answer"]
    ids = Counter(fact.id for fact in facts)
    questions = Counter(fact.body["question_id"] for fact in facts)
    gold = {fact.body["question_id"]: set(fact.body.get("gold", {})) for fact in facts}
    entries = [(who, entry) for who, log in logs.items() for entry in log]
    acknowledged = {entry["acknowledged"] for _, entry in entries if "acknowledged" in entry}
    twice = sum(1 for _, entry in entries if entry.get("new") is True and "again" in entry)
    return Audit(
        acknowledged=len(acknowledged),
        stored=len(facts),
        lost=len(acknowledged - set(ids)),
        duplicates=sum(n - 1 for n in ids.values())
        + sum(n - 1 for n in questions.values())
        + twice,
        shared=shared_questions(logs, gold),
        refused=sum(1 for _, entry in entries if "refused" in entry),
        errors=sum(1 for _, entry in entries if entry.get("status", 0) >= 500),
        failures=dict(Counter(entry["failed"] for _, entry in entries if "failed" in entry)),
    )


def shared_questions(logs: dict[str, list[dict[str, Any]]], gold: dict[str, set[str]]) -> int:
    """Questions that two people had, and pairs that were open with two people at once.

    Tiles whose answer is known (gold) are shown to many, and are no questions.
    """
    holders: dict[str, set[str]] = {}
    open_pairs: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    for who, log in logs.items():
        answered = {entry["question"]: entry["at"] for entry in log if "sent" in entry}
        for entry in log:
            if "asked" not in entry:
                continue
            question = entry["asked"]
            holders.setdefault(question, set()).add(who)
            # What was never answered has no record of which tiles were gold.
            if question not in answered or question not in gold:
                continue
            for tile in set(entry["tiles"]) - gold[question]:
                pair = min(entry["exemplar"], tile), max(entry["exemplar"], tile)
                open_pairs.setdefault(pair, []).append((entry["at"], answered[question], who))
    shared = sum(len(people) > 1 for people in holders.values())
    for spans in open_pairs.values():
        spans.sort()
        for (_, end, one), (begin, _, other) in zip(spans, spans[1:], strict=False):
            shared += one != other and begin < end
    return shared


def read_log(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    {"annotate": annotate, "serve": serve}[sys.argv[1]](json.loads(sys.argv[2]))
