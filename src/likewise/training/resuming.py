"""A run that goes on: with its own arguments, on its own images, and only if it has not ended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from likewise.data import Images, Source, StreamedImages
from likewise.data.views.policies import plain_policy
from likewise.graph import Graph
from likewise.runs import Run
from likewise.training.known import Known, without_password

ALLOWED = {"resume", "data", "graph", "out", "force"}
"""Arguments that may stand beside --resume; of data, graph and out it is seen whether they fit."""


def open_resumed(folder: Path, given: Mapping[str, Any]) -> Run:
    """The run that is to go on; arguments beside --resume that it does not have are refused.

    Args:
        folder: of the run.
        given: what stands beside --resume.
    """
    run = Run.open(folder)
    config = run.config
    differing = [
        f"{name} is {value!r} (the run has {config.get(name)!r})"
        for name, value in given.items()
        if name not in ALLOWED and not _same(name, value, config.get(name))
    ]
    out, data = given.get("out"), given.get("data")
    if out is not None and Path(out).resolve() != run.path.resolve():
        differing.append(f"out is {str(out)!r}")
    if isinstance(data, str) and _is_elsewhere(data, config["data"]):
        differing.append(f"data is {data!r} (the run has {config['data']!r})")
    if given.get("graph") is not None and not run.has_graph:
        differing.append("graph is given (the run has none)")
    if differing:
        raise ValueError(
            f"resume goes on with the arguments of {folder}, and others are given: "
            f"{', '.join(differing)}. Leave them out, or start a new run, which may begin with "
            f"this one's weights: --pretrained {run.path / 'encoder.safetensors'}"
        )
    return run


def is_finished(run: Run) -> bool:
    """Whether a run has come to its end: the summary is written then, for all of its epochs."""
    return bool(run.summary) and run.summary.get("epochs") == run.config.get("epochs")


def resumed_config(run: Run, *, force: bool = False) -> dict[str, Any]:
    """The arguments that a run was started with; `force` holds for as long as it is given.

    A run that was killed before its first checkpoint begins at its first step: every step is a
    function of the seed, so that it comes to the weights that it would have had.
    """
    config = run.config
    return {**config, "out": str(run.path), "force": force or config["force"]}


def check_same_data(run: Run, source: Source) -> None:
    """Refuse images that are not those of the run."""
    saved = run.data_fingerprint
    if saved is not None and saved != source.fingerprint():
        raise ValueError(
            f"the images of {source.place} are not those that {run.path} was trained on (files "
            "were added, removed or renamed): put them back, or start a new run, with --pretrained "
            f"{run.path / 'encoder.safetensors'}"
        )


def fingerprint(
    images: Images | StreamedImages, sample: Images, known: Known, *, graph: bool
) -> dict[str, Any]:
    """What has to be the same where a run goes on: which images could be read, their pixels, their
    labels, and the graph that was given.

    Streamed images are read as they come: nobody knows beforehand which of them are broken.

    Args:
        images: all of them.
        sample: the few thousand that are watched, whose pixels stand for all.
        known: what is known about them.
        graph: whether it was given from Python.
    """
    labels = None if known.labels is None else hashlib.sha256(known.labels.tobytes()).hexdigest()
    return {
        "read": images.fingerprint() if isinstance(images, Images) else None,
        "pixels": hashlib.sha256(sample.pixels.contiguous().numpy().data).hexdigest(),
        "labels": labels,
        "graph": energies(known.graph) if graph else None,
    }


def energies(graph: Graph) -> list[float]:
    """Tr Z^T G Z for eight fixed random columns Z: another graph over as many nodes has others.

    >>> labels = torch.tensor([0, 0, 1])
    >>> energies(Graph.from_labels(labels)) == energies(Graph.from_labels(labels))
    True
    >>> energies(Graph.from_labels(labels)) == energies(Graph.identity(3))
    False
    """
    drawn = torch.Generator().manual_seed(0)
    columns = torch.randn(graph.n, 8, generator=drawn, dtype=torch.float64)
    found: list[float] = (columns * (graph.to("cpu") @ columns)).sum(dim=0).tolist()
    return found


def check_same_knowledge(run: Run, found: dict[str, Any], *, force: bool) -> None:
    """Refuse labels, images or a graph that are not those of the run."""
    saved = run.known_fingerprint
    what = {
        "read": "other images than before can be read (files were damaged or mended)",
        "labels": "the labels are not those of before",
        "graph": "the graph is not that of before",
        "pixels": "the images have the names of before and other pixels (files were replaced, or "
        "another version of Pillow decodes them; --force goes on all the same)",
    }
    for name, said in what.items():
        if name not in saved or (name == "pixels" and force) or _near(saved[name], found[name]):
            continue
        raise ValueError(
            f"{said}, so that {run.path} would not go on as it began: put them back, or start "
            f"a new run, with --pretrained {run.path / 'encoder.safetensors'}"
        )


def _near(saved: Any, found: Any) -> bool:
    """Numbers are summed in another order on another machine."""
    if isinstance(saved, list) and isinstance(found, list):
        return bool(np.allclose(saved, found, rtol=1e-6, atol=1e-6 * np.abs(saved).max()))
    return bool(saved == found)


def _same(name: str, given: Any, kept: Any) -> bool:
    if given is None or isinstance(given, str) and given == "auto":
        return True  # a choice that was left to us, and has been made
    if name == "answers" and isinstance(given, str):
        given = without_password(given)
    if name == "views":
        given = plain_policy(given)
        if isinstance(given, dict) and isinstance(kept, dict) and "base" in kept:
            given = {"base": kept["base"], **given}
    if name == "logger" and isinstance(given, str):
        given = [given]
    if name == "projector":
        given = list(given)
    if name == "objective" and isinstance(given, dict) and isinstance(kept, dict):
        return given.items() <= kept.items()
    return bool(given == kept)


def _is_elsewhere(given: str, kept: str) -> bool:
    """Whether this is another place, while the one that the run was trained on is still there:
    images that have moved may be named anew, and their keys are compared."""
    if given == kept or not Path(kept).exists():
        return False
    return Path(given).resolve() != Path(kept).resolve()
