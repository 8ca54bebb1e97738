"""Better rows while people answer: fitted in another process, swapped in when they are there.

With a run, its encoder is trained on from the answers (``likewise train --answers``, a new run
that starts from the old one's weights). Without one, the rows get a closed-form embedding of the
answers beside them (:mod:`likewise.annotate.server.refitting`). Both read a snapshot of the
answers; nobody waits for them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from numpy.typing import NDArray

from likewise.annotate.mind.process import APART
from likewise.evaluation.embeddings import read_embeddings
from likewise.runs import Run

if TYPE_CHECKING:
    from likewise.annotate.desk import Desk

LOOK = 1.0
"""Seconds between two looks at how many answers there are."""


class NotRefitted(RuntimeError):  # noqa: N818 (an outcome)
    """A refit that came to nothing; the rows stay as they were."""


@dataclass(frozen=True)
class Plan:
    """What a refit starts from.

    Args:
        project: the file of the project, or the URL of its database.
        rows: (n, d) that were there at the beginning, in the order of the desk's source.
        run: the run whose encoder is trained on; None for the closed form.
        data: what `likewise train` and `likewise embed` call the images.
        epochs: of every training.
        options: more arguments of `likewise train` (image_column, device, workers, ...).
    """

    project: str
    rows: NDArray[np.float32]
    run: Path | None = None
    data: str = ""
    epochs: int = 5
    options: dict[str, Any] = field(default_factory=dict)


class Retraining:
    """Refits whenever enough questions were answered, until it is closed.

    Args:
        desk: gets the new rows by :meth:`~likewise.annotate.Desk.refit`.
        plan: what to start from.
        every: answered questions between two refits.
        tell: called with a line for the user.
    """

    def __init__(
        self,
        desk: Desk,
        plan: Plan,
        *,
        every: int = 20,
        tell: Callable[[str], None] = print,
    ) -> None:
        if every < 1:
            raise ValueError(f"retrain_every is {every}: give a number of questions, at least 1")
        self.desk = desk
        self.plan = plan
        self.every = every
        self.run = plan.run
        self.done = 0
        """How many refits are in use."""
        self._tell = tell
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._sequence = 0
        self._answered = 0
        self._fitted = 0
        self._folder = tempfile.TemporaryDirectory(prefix="likewise-ask-")
        self._thread = threading.Thread(target=self._watch, name="retraining", daemon=True)

    def start(self) -> Retraining:
        """Begin to watch."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop; a refit that is under way comes to nothing."""
        self._stop.set()
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                self._child.kill()
        if self._thread.is_alive():
            self._thread.join(10)
        self._folder.cleanup()

    # --- watching -----------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stop.wait(LOOK):
            try:
                self._count()
                if self._answered - self._fitted >= self.every:
                    self._fitted = self._answered
                    self._refit()
            except NotRefitted as reason:
                if not self._stop.is_set():
                    self._tell(f"not refitted: {reason}")
            except Exception as error:  # the people who answer must not notice
                if not self._stop.is_set():
                    self._tell(f"not refitted: {type(error).__name__}: {error}")

    def _count(self) -> None:
        for sequence, fact in self.desk.store.facts(after=self._sequence):
            self._sequence = sequence
            self._answered += fact.kind == "answer" and not fact.body.get("skipped")

    def _refit(self) -> None:
        started = time.monotonic()
        rows, words = self._closed_form() if self.run is None else self._trained(self.run)
        self.desk.refit(rows)
        self.done += 1
        seconds = time.monotonic() - started
        self._tell(f"refitted after {self._fitted} answered questions in {seconds:.0f} s: {words}")

    # --- the two ways ---------------------------------------------------------------------------

    def _closed_form(self) -> tuple[NDArray[np.float32], str]:
        folder = Path(self._folder.name)
        rows, keys, result = (folder / name for name in ("rows.npy", "keys.json", "new.npy"))
        if not rows.exists():
            np.save(rows, self.plan.rows)
            keys.write_text(json.dumps(self.desk.source.keys))
        job = folder / "job.json"
        self._write_private(
            job,
            json.dumps(
                {
                    "project": self.plan.project,
                    "rows": str(rows),
                    "keys": str(keys),
                    "result": str(result),
                }
            ),
        )
        self._process("likewise.annotate.server.refitting", str(job))
        return np.load(result), "the closed form"

    def _trained(self, old: Path) -> tuple[NDArray[np.float32], str]:
        folder = Path(self._folder.name)
        new = next_run(self.plan.run or old)
        config = {
            **Run.open(old).config,
            # What the old run was told and the answers now say.
            "labels": None,
            "label_weight": None,
            "label_share": 1.0,
            "resume": None,
            **self.plan.options,
            "data": self.plan.data,
            "out": str(new),
            "pretrained": str(old / "encoder.safetensors"),
            "answers": self.plan.project,
            "epochs": self.plan.epochs,
            "warmup_epochs": None,
        }
        path, embedded = folder / "train.yaml", folder / "rows.parquet"
        self._write_private(path, yaml.safe_dump(config))
        self._process("likewise.commands", "train", "--config", str(path))
        columns = [
            word
            for name in ("image_column", "label_column", "device")
            if config.get(name) is not None
            for word in (f"--{name}", str(config[name]))
        ]
        where = (str(new), self.plan.data, "--out", str(embedded))
        self._process("likewise.commands", "embed", *where, *columns)
        found = read_embeddings(embedded)
        places = {key: row for row, key in enumerate(found.keys)}
        try:
            order = [places[key] for key in self.desk.source.keys]
        except KeyError as missing:
            raise NotRefitted(f"{missing} cannot be read any more") from None
        self.run = new
        return found.rows[order], str(new)

    def _process(self, module: str, *arguments: str) -> None:
        """Another process, of low priority, which leaves a core to those who answer."""
        cores = max(1, (os.cpu_count() or 2) - 1)
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores), "GOMP_SPINCOUNT": "10000"}
        with self._lock:
            if self._stop.is_set():
                raise NotRefitted("stopped")
            self._child = child = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                **APART,
            )
            # On some systems there is no such thing; or the child has ended already.
            with suppress(AttributeError, OSError):
                os.setpriority(os.PRIO_PROCESS, child.pid, 10)
        _, errors = child.communicate()
        if child.returncode:
            lines = errors.decode("utf-8", "replace").strip().splitlines()
            raise NotRefitted(lines[-1] if lines else f"it ended with {child.returncode}")

    @staticmethod
    def _write_private(path: Path, text: str) -> None:
        """A file for this user alone: a database's URL may hold a password."""
        path.touch(mode=0o600)
        path.write_text(text)


def next_run(run: Path) -> Path:
    """The first folder beside a run that is free for a refit of it.

    >>> next_run(Path("nowhere/a")).as_posix()
    'nowhere/a-asked-1'
    """
    number = 1
    while (path := run.with_name(f"{run.name}-asked-{number}")).exists():
        number += 1
    return path
