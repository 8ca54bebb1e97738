"""The pictures of docs/use/: every verb on a folder of clothes, its sheet in a browser.

    python benchmarks/use_pictures.py --run build/fashion/run

Writes 2,000 test images of Fashion-MNIST and 40 altered copies into a folder, runs the six verbs
as a user does, and takes pictures of their sheets with Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from use import planted

from likewise.commands import main as likewise
from likewise.data import open_source

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", type=Path, default=Path("build/fashion/run"))
    parser.add_argument("--only", nargs="*", default=[], help="some of the verbs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        labels = clothes(place / "clothes")
        run = place / "run"
        shutil.copytree(given.run, run, ignore=shutil.ignore_patterns("index", "checkpoints"))
        verbs = {
            "search": ["--query", *queries(place / "clothes"), "--top", "15"],
            "cluster": [],
            "classify": ["--labels", str(labels)],
            "duplicates": [],
            "subset": ["--size", "30", "--method", "diverse"],
            "split": ["--labels", str(labels)],
        }
        for verb, words in verbs.items():
            if given.only and verb not in given.only:
                continue
            sheet = place / f"{verb}.html"
            likewise([verb, str(run), str(place / "clothes"), *words, "--out", str(sheet)])
            shot(sheet, IMAGES / f"use-{verb}.png")


def queries(folder: Path) -> list[str]:
    """The first boot and the first bag."""
    names = sorted(path.name for path in folder.iterdir())
    return [next(name for name in names if name.startswith(kind)) for kind in ("ankle", "bag")]


def clothes(folder: Path) -> Path:
    """The folder, and a CSV file with the labels of 200 of its images."""
    folder.mkdir()
    source = open_source("fashion-mnist:test")
    pixels = np.stack([source.read(i).numpy()[0] for i in range(2000)])
    names = [
        f"{source.label_name(str(i)).replace(' ', '-')}-{i}.png"  # type: ignore[union-attr]
        for i in range(2000)
    ]
    for name, image in zip(names, pixels, strict=True):
        Image.fromarray(image).save(folder / name)
    copies, which, kinds = planted(pixels, 40, seed=1)
    for image, place, kind in zip(copies, which, kinds, strict=True):
        Image.fromarray(image).save(folder / f"{Path(names[place]).stem}-{kind}.png")
    known = np.random.default_rng(0).permutation(2000)[:200]
    lines = [f"{names[i]},{source.label_name(str(i))}" for i in known]
    labels = folder.parent / "labels.csv"
    labels.write_text("key,label\n" + "\n".join(lines) + "\n")
    return labels


def shot(sheet: Path, path: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 640})
        page.goto(sheet.as_uri())
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main()
