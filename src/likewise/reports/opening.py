"""From a path to a subject: open what is there, measure what can be, and say what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from likewise.data import Images, Source, labelled, load_images, open_source
from likewise.data.source import left_out
from likewise.diagnostics import gather_evidence, spectrum, verdict, weight_spectrum
from likewise.evaluation import Embeddings, read_embeddings
from likewise.models import MLP
from likewise.reports.curves import read_curves
from likewise.reports.subject import Sample, Subject
from likewise.runs import Run, embed_images
from likewise.training.records import evidence_of, measure, read_records, spectrum_summary
from likewise.training.two_views import embed_two_views

if TYPE_CHECKING:
    from likewise.runs import Preparation

Say = Callable[[str], None]


def open_subject(
    path: Path,
    *,
    data: str | None = None,
    samples: int = 1500,
    device: torch.device | str = "cpu",
    seed: int = 0,
    say: Say = lambda text: None,
) -> Subject:
    """A run folder or an embeddings file, looked at.

    Args:
        path: what `likewise train --out` or `likewise embed --out` wrote.
        data: images to look at in place of those that the run was trained on.
        samples: how many of them at most, drawn by the seed.
        device: where to embed.
        seed: of the draw and of the views.
        say: told what is being done.
    """
    if samples < 4:
        raise ValueError(f"samples is {samples}: give at least 4")
    if path.is_file():
        return _open_embeddings(path, data, samples, seed)
    run = Run.open(path)
    records = read_records(path)
    subject = Subject(
        name=path.resolve().name,
        path=path,
        kind="run",
        config=run.config,
        summary=run.summary,
        curves=read_curves(path, records),
        seed=seed,
    )
    if not subject.summary:
        subject.remarks.append("The training has not ended: figures are those of its last state.")
    if not subject.curves.columns:
        subject.remarks.append(
            "There is no metrics.csv in the run's folder: it was trained without the csv logger, "
            "so there are no training curves."
        )
    _look(subject, run, data, samples, torch.device(device), say)
    if subject.record is None and subject.curves.records:
        subject.record = subject.curves.records[-1]
        subject.measured = "while training"
    if subject.record is not None:
        subject.verdict = verdict(evidence_of(subject.record))
    return subject


def _look(
    subject: Subject, run: Run, data: str | None, samples: int, device: torch.device, say: Say
) -> None:
    """Embed a sample with the run's encoder, as far as encoder and images are there."""
    try:
        encoder, preparation = run.encoder(device)
    except ValueError as error:
        subject.remarks.append(f"There is nothing to embed with: {error}.")
        return
    projector = _projector(subject, run, encoder)
    if projector is not None:
        projector = projector.to(device).eval()
    try:
        source = _source(subject, run, data)
        index = _drawn(len(source), samples, subject.seed)
        from likewise.training.choices import choose_canvas

        canvas = choose_canvas(source, preparation.size, subject.config.get("canvas"))
        say(f"{subject.name}: reading {len(index):,} of {len(source):,} images")
        images = load_images(source.subset(index), canvas, at_least=4)
    except (ValueError, OSError) as error:
        if data is not None:
            raise
        subject.remarks.append(
            f"The images of the run cannot be read ({error}). What follows is what was written "
            "down while training; there is no map, no neighbours and no confusion."
        )
        return
    if images.broken:
        subject.remarks.append(f"{left_out(len(images.broken))}.")
    say(f"{subject.name}: embedding {len(images):,} images and two views of each")
    rows = embed_images(
        encoder,
        images,
        size=preparation.size,
        mean=preparation.mean,
        std=preparation.std,
        device=device,
    )
    subject.sample = Sample(
        keys=images.keys,
        rows=rows.numpy(),
        labels=images.labels,
        class_names=images.class_names,
        pixels=images.pixels,
        of=len(source),
        place=source.place,
    )
    if not np.isfinite(subject.sample.rows).all():
        subject.sample = None
        subject.remarks.append(
            "The encoder gives NaN or infinity: the training has diverged. Lower the learning "
            "rate, or use precision 32."
        )
        return
    _measure(subject, encoder, projector, images, preparation, canvas, device)


def _measure(
    subject: Subject,
    encoder: nn.Module,
    projector: nn.Module | None,
    images: Images,
    preparation: Preparation,
    canvas: int,
    device: torch.device,
) -> None:
    """The figures of two views of every image, as the training would measure them."""
    from likewise.data.views import Views

    config, last = subject.config, subject.curves.records[-1:]
    views = Views(
        config["views"],
        preparation.size,
        config["n_views"],
        mean=preparation.mean,
        std=preparation.std,
        canvas=canvas,
    )
    both = embed_two_views(
        encoder, projector, images.pixels, views, seed=subject.seed, device=device
    ).cpu()
    if device.type == "cuda":
        torch.cuda.synchronize()
    beta = (last[0].get("info_nce") or {}).get("inverse_temperature") if last else None
    subject.record = measure(both, images.labels, inverse_temperature=beta)
    subject.measured = "now"


def _source(subject: Subject, run: Run, data: str | None) -> Source:
    config = subject.config
    if data is not None:
        return open_source(data)
    source = open_source(
        config["data"], image_column=config["image_column"], label_column=config["label_column"]
    )
    if run.data_fingerprint not in (None, source.fingerprint()):
        subject.remarks.append(
            "The images are not quite those of the training: files were added, removed or renamed "
            "since."
        )
    labels = config.get("labels")
    if labels in (None, "source"):
        return source
    try:
        return labelled(source, labels)
    except (ValueError, OSError) as error:
        subject.remarks.append(f"The labels of the run cannot be read ({error}).")
        return source


def _projector(subject: Subject, run: Run, encoder: Any) -> nn.Module | None:
    """The projector, from the checkpoint; without one, what the loss sees is not known."""
    from likewise.training.recipes import recipe

    prefix = "learner.student.projector."
    try:
        saved = torch.load(run.checkpoint, map_location="cpu", weights_only=True, mmap=True)
        weights = {
            name[len(prefix) :]: value
            for name, value in saved["state_dict"].items()
            if name.startswith(prefix)
        }
        layers = [value for value in weights.values() if value.ndim == 2]
        method = recipe(subject.config["recipe"])
        projector = MLP(
            [encoder.dim, *(len(layer) for layer in layers)],
            last_norm=method.projector_ends_normalized,
        )
        projector.load_state_dict(weights)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        subject.remarks.append(
            f"The projector cannot be read from the checkpoint ({reason}): figures are of the "
            "encoder alone."
        )
        return None
    subject.weights = [weight_spectrum(layer).numpy() for layer in layers]
    return projector


def _open_embeddings(path: Path, data: str | None, samples: int, seed: int) -> Subject:
    """An embeddings file: no training, one view, and pictures where its data can be found."""
    if path.suffix != ".parquet":
        raise ValueError(
            f"{path} is a file: give a folder that `likewise train` wrote, or a .parquet file that "
            "`likewise embed` wrote"
        )
    found = read_embeddings(path)
    if len(found) < 4:
        raise ValueError(f"{path} holds {len(found)} embeddings: give at least 4")
    index = _drawn(len(found), samples, seed)
    keys = [found.keys[place] for place in index]
    subject = Subject(name=path.stem, path=path, kind="embeddings", seed=seed)
    labels = None if found.labels is None else found.labels[index]
    subject.sample = Sample(
        keys=keys,
        rows=found.rows[index],
        labels=labels,
        class_names=found.class_names,
        pixels=_pictures(subject, found, keys, data),
        of=len(found),
        place=str(path),
    )
    evidence = gather_evidence(found.rows, labels=found.labels, seed=seed)
    subject.record = {
        "samples": len(found),
        "evidence": evidence.to_dict(),
        "encoder": spectrum_summary(spectrum(found.rows, normalize=True)),
        "projector": None,
        "info_nce": None,
    }
    subject.measured = "now"
    subject.verdict = verdict(evidence)
    subject.remarks.append(
        "This is an embeddings file: there is no training to show, and one row an item, so that "
        "what compares two views is not known."
    )
    return subject


def _pictures(
    subject: Subject, found: Embeddings, keys: list[str], data: str | None
) -> torch.Tensor | None:
    """The pictures of the keys, where the images can be opened."""
    place = data or found.metadata.get("data")
    if not place:
        subject.remarks.append("The file does not say where its images are: give --data.")
        return None
    try:
        source = open_source(place)
        images = load_images(source.subset(source.index_of(keys)), 48, at_least=1)
        if images.broken:
            raise ValueError(f"{len(images.broken)} of its images cannot be read any more")
        return images.pixels
    except (ValueError, OSError) as error:
        if data is not None:
            raise
        subject.remarks.append(f"The images cannot be read ({error}): there are no pictures.")
        return None


def _drawn(n: int, most: int, seed: int) -> np.ndarray:
    """Row numbers of a sample, in order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 19]).permutation(n)[:most])
