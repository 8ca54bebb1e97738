"""Run folders as `likewise train` leaves them, made without a training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from likewise.data import channel_statistics, load_images, open_source
from likewise.models import MLP, build_encoder
from likewise.runs import Preparation, Run
from likewise.training import recipe
from likewise.training.records import append_record, measure, scalars
from likewise.training.two_views import TwoViews
from tests.training.driver import pictures

CLASSES = ("cat", "dog", "owl")


def write_pictures(folder: Path, n: int = 45, classes: int = 3) -> Path:
    """Pictures in folders named after their class; in one folder where there is one class."""
    for i, picture in enumerate(pictures(n)):
        place = folder / CLASSES[i % classes] if classes > 1 else folder
        place.mkdir(parents=True, exist_ok=True)
        picture[:, :, i % classes] = 250  # a class is a colour
        Image.fromarray(picture).save(place / f"{i:03}.png")
    return folder


def write_run(folder: Path, data: Path | str, *, seed: int = 0, **changes: Any) -> Path:
    """A run folder over `data`: config, encoder, checkpoint, metrics, diagnostics, summary."""
    run = Run(folder)
    folder.mkdir(parents=True, exist_ok=True)
    source = open_source(str(data))
    encoder = build_encoder("tiny", seed=seed, image_size=16)
    mean, std = channel_statistics(load_images(source, 16).pixels)
    config = {
        "data": str(data),
        "out": str(folder),
        "recipe": "simclr",
        "encoder": "tiny",
        "image_column": None,
        "label_column": None,
        "views": "simclr",
        "n_views": 2,
        "objective": {"temperature": 0.2},
        "projector": [16, 8],
        "epochs": 4,
        "batch_size": 15,
        "seed": seed,
        **changes,
    }
    run.write_config(config)
    run.write_data(source)
    run.write_encoder(encoder, Preparation(16, mean, std))
    torch.manual_seed(seed)
    head = MLP([encoder.dim, 16, 8], last_norm=recipe(config["recipe"]).projector_ends_normalized)
    state = {f"learner.student.projector.{k}": v for k, v in head.state_dict().items()}
    run.checkpoint.parent.mkdir()
    torch.save({"state_dict": state, "global_step": 12}, run.checkpoint)
    rng = np.random.default_rng(seed)
    rows: list[dict[str, float]] = [
        {"step": step, "train/loss": 5 - 0.2 * step, "train/attraction": -1.0 - 0.1 * step,
         "train/repulsion": 6 - 0.1 * step, "train/lr": 0.1}
        for step in range(12)
    ]  # fmt: skip
    for epoch in range(5):
        noise = torch.from_numpy(rng.normal(size=(4, 30, 8))).float()
        both = TwoViews(*(noise[0] + (0.8 - 0.1 * epoch) * noise[k] for k in (1, 2)), *(
            noise[0] + (0.6 - 0.1 * epoch) * noise[k] for k in (1, 2)))  # fmt: skip
        record = {"step": 3 * epoch, "epoch": epoch, **measure(both, inverse_temperature=5.0)}
        append_record(folder, record)
        rows.append({"step": 3 * epoch, "epoch": epoch, **scalars(record)})
        if epoch:
            rows[-1]["monitor/knn"] = 0.3 + 0.1 * epoch
    names = sorted({name for row in rows for name in row})
    lines = [",".join(names)]
    lines += [",".join(str(row.get(name, "")) for name in names) for row in rows]
    (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
    run.write_summary({"data": source.description, "seconds": 71.0, "loss": 2.8})
    return folder


def figures_of(html: str) -> dict[str, Any]:
    """The data of the first map of a page."""
    start = html.index('id="map0">') + len('id="map0">')
    found: dict[str, Any] = json.loads(html[start : html.index("</script>", start)])
    return found
