"""Images per second of training, end to end with augmentation, beside lightly's pipeline.

    python benchmarks/throughput.py --out docs/benchmarks/throughput.md

"Images" are augmented views. Ours is `likewise train` itself; lightly's is the pipeline of its
documentation (dataset of PIL images, SimCLRTransform, DataLoader with workers, NTXentLoss, SGD),
with the same encoder, batch and operations of augmentation (SimCLR's for CIFAR-10, which have no
blur), in the precision that the documentation uses and in bf16. Results are kept in a JSON file
beside the page, one entry a machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import likewise
from likewise.data import load_images, open_source
from likewise.data.views import Views
from likewise.models import build_encoder
from likewise.reproduce.report import machine
from likewise.runs import write_atomically

FLOPS_PER_IMAGE = 3.3e9
"""Forward and backward of a ResNet-18 with the small stem on one image of 32 x 32."""
PEAK = {"NVIDIA H200": 989e12, "NVIDIA H100 80GB HBM3": 989e12, "NVIDIA A100-SXM4-80GB": 312e12}
"""Dense bf16 FLOP/s on the data sheets."""


VIEWS = "simclr"
"""The policy that lightly's transform has, too."""


def likewise_training(
    pixels: np.ndarray, encoder: str, batch: int, epochs: int, views: str | None = VIEWS
) -> dict[str, Any]:
    """Steady images per second of `likewise train --recipe simclr`."""
    folder = Path(tempfile.mkdtemp())
    try:
        run = likewise.train(
            open_source(pixels),
            out=folder / "run",
            recipe="simclr",
            views=views,
            encoder=encoder,
            epochs=epochs,
            batch_size=batch,
            monitor_every=0,
            checkpoint_minutes=60,
            logger=["csv"],
        )
        return {"images_per_second": run.summary["steady_images_per_second"]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def likewise_views(pixels: np.ndarray, batch: int, steps: int) -> dict[str, Any]:
    """Images per second of the augmentation alone, compiled where training compiles it."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    views = Views(VIEWS, 32, mean=(0.5,) * 3, std=(0.25,) * 3)
    images = torch.from_numpy(pixels[:batch]).permute(0, 3, 1, 2).contiguous().to(device)
    make = torch.compile(views.apply, dynamic=False) if device.type == "cuda" else views.apply
    generator = torch.Generator(device).manual_seed(0)

    def step() -> None:
        make(images, views.draw(batch, generator=generator, device=device))

    return {"images_per_second": 2 * batch / seconds_per_call(step, steps)}


def seconds_per_call(step: Any, steps: int, warm: int = 3) -> float:
    for _ in range(warm):
        step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / steps


class Pictures(torch.utils.data.Dataset):
    """PIL images under a transform, as torchvision's CIFAR10 is."""

    def __init__(self, pixels: np.ndarray, transform: Any) -> None:
        self.pixels, self.transform = pixels, transform

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        return self.transform(Image.fromarray(self.pixels[index])), 0, ""


def lightly_loader(pixels: np.ndarray, batch: int, workers: int) -> Any:
    from lightly.transforms import SimCLRTransform

    transform = SimCLRTransform(input_size=32, gaussian_blur=0.0)
    return torch.utils.data.DataLoader(
        Pictures(pixels, transform),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )


def lightly_loading(pixels: np.ndarray, batch: int, workers: int, steps: int) -> dict[str, Any]:
    """Images per second of lightly's loader alone."""
    batches = iter(lightly_loader(pixels, batch, workers))
    for _ in range(min(2, steps)):
        next(batches)
    started = time.perf_counter()
    for _ in range(steps):
        next(batches)
    return {"images_per_second": 2 * batch * steps / (time.perf_counter() - started)}


def lightly_training(
    pixels: np.ndarray, encoder: str, batch: int, workers: int, steps: int, half: bool
) -> dict[str, Any]:
    """Images per second of the training loop of lightly's documentation."""
    from lightly.loss import NTXentLoss
    from lightly.models.modules import SimCLRProjectionHead

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    backbone = build_encoder(encoder, image_size=32, seed=0)
    head = SimCLRProjectionHead(backbone.dim, 512, 128)
    model = nn.Sequential(backbone, head).to(device)
    criterion = NTXentLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.06)
    batches = iter(lightly_loader(pixels, batch, workers))

    def step() -> None:
        (x0, x1), *_ = next(batches)
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            loss = criterion(model(x0.to(device)), model(x1.to(device)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return {"images_per_second": 2 * batch / seconds_per_call(step, steps, warm=2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/cifar10"))
    parser.add_argument("--out", type=Path, default=Path("build/throughput.md"), help="the page")
    parser.add_argument("--skip", action="store_true", help="measure nothing, write the page")
    given = parser.parse_args()
    kept = given.out.with_suffix(".json")
    results = json.loads(kept.read_text()) if kept.is_file() else {}
    if not given.skip:
        found = measure(given.data)
        results[found["device"]] = found
        with write_atomically(kept) as aside:
            aside.write_text(json.dumps(results, indent=1) + "\n")
    write_page(list(results.values()), given.out)


def measure(data: Path) -> dict[str, Any]:
    cuda = torch.cuda.is_available()
    images = load_images(open_source(data / "train.parquet"), 32, workers=os.cpu_count() or 1)
    pixels = images.pixels.permute(0, 2, 3, 1).contiguous().numpy()
    workers = min(16, os.cpu_count() or 1)
    encoder, batch = ("resnet18", 512) if cuda else ("tiny", 256)
    few = pixels if cuda else pixels[:4096]
    cases = {
        "likewise: training": lambda: likewise_training(few, encoder, batch, 12 if cuda else 3),
        "likewise: training, the recipe's own views": lambda: likewise_training(
            few, encoder, batch, 12 if cuda else 3, views=None
        ),
        "likewise: views alone": lambda: likewise_views(few, batch, 50 if cuda else 5),
        "lightly: loader alone": lambda: lightly_loading(few, batch, workers, 20 if cuda else 4),
        "lightly: training, float32": lambda: lightly_training(
            few, encoder, batch, workers, 20 if cuda else 4, False
        ),
    }
    if cuda:
        cases["lightly: training, bf16"] = lambda: lightly_training(
            few, encoder, batch, workers, 20, True
        )
    found: dict[str, Any] = {
        "device": machine("cuda" if cuda else "cpu"),
        "torch": torch.__version__,
        "encoder": encoder,
        "batch": batch,
        "workers": workers,
        "cases": {},
    }
    for name, case in cases.items():
        found["cases"][name] = case()
        print(name, found["cases"][name], flush=True)
    return found


def write_page(results: list[dict[str, Any]], path: Path) -> None:
    lines = [
        "# Throughput of training",
        "Augmented views a second, end to end, SimCLR on 32 x 32 images. lightly's rows are the "
        "pipeline of its documentation with the same encoder, batch and operations of "
        "augmentation, in the same run. The recipe's own views have blur and solarisation, too.",
        "",
        "    python benchmarks/throughput.py --data ../shared/data/cifar10 "
        "--out docs/benchmarks/throughput.md",
        "",
    ]
    for found in results:
        peak = PEAK.get(found["device"])
        lines += [
            f"## {found['device']}",
            f"{found['encoder']}, batch {found['batch']} x 2 views, {found['workers']} workers for "
            f"lightly, torch {found['torch']}.",
            "",
            "| | images/s | beside lightly's training |"
            + (" share of bf16 peak |" if peak else ""),
            "| --- | ---: | ---: |" + (" ---: |" if peak else ""),
        ]
        base = found["cases"]["lightly: training, float32"]["images_per_second"]
        for name, case in found["cases"].items():
            speed = case["images_per_second"]
            share = (
                f" {speed * FLOPS_PER_IMAGE / peak:.0%} |" if peak and "training" in name else ""
            )
            share = share or (" |" if peak else "")
            lines.append(f"| {name} | {speed:,.0f} | {speed / base:.1f} x |{share}")
        lines.append("")
    with write_atomically(path) as aside:
        aside.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
