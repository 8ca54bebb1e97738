"""Train without labels, answer 20 grids in a real browser, train on from the answers.

    python examples/annotate_fashion.py --out demo/fashion

1,000 images of Fashion-MNIST, in a folder and without labels. An encoder is trained on them, then
`likewise ask` opens its page, and a scripted annotator answers grids in Chromium, by keyboard and
by the truth, as a person would. Training goes on from the answers. Printed is the kNN accuracy on
2,000 test images before, after as much training without the answers, and after training with
them; labels are used for the answers and for these figures, and for nothing else.

Needs Chromium, and `pip install '.[annotate]' playwright`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

import likewise
from likewise.annotate import answers_of_project
from likewise.data import load_images, open_source
from likewise.evaluation import knn_accuracy
from likewise.runs import Run, embed_images

NEIGHBORS = 20
TILE_KEYS = "12345qwertzxcvb67890"
PATIENCE = 60_000  # milliseconds


def write_photos(folder: Path, images: int, seed: int) -> dict[str, int]:
    """A folder of images that are drawn at random, and the class of each, which stays with us."""
    source = open_source("fashion-mnist")
    folder.mkdir(parents=True)
    truth = {}
    rows = np.sort(np.random.default_rng(seed).choice(len(source), images, replace=False))
    for number, row in enumerate(rows.tolist()):
        key = f"{number:04d}.png"
        Image.fromarray(source.read(row).permute(1, 2, 0).numpy()).save(folder / key)
        truth[key] = int(source.labels[row])
    return truth


@contextmanager
def asking(photos: Path, run: Path, project: Path) -> Iterator[str]:
    """`likewise ask` in a process of its own, and the address of its page."""
    command = [sys.executable, "-m", "likewise.commands", "ask", str(photos), "--run", str(run)]
    command += ["--project", str(project), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield found[0]
                    break
            else:
                raise RuntimeError(f"`likewise ask` ended: {said}")
        finally:
            process.terminate()


def answer(page: Page, truth: dict[str, int]) -> tuple[int, int]:
    """Answer the grid that is shown, by keyboard; how many were chosen, of how many."""
    view = page.locator("#view-ask")
    expect(view).to_have_attribute("data-question", re.compile("."), timeout=PATIENCE)
    question = view.get_attribute("data-question") or ""
    exemplar = page.locator("#exemplar img").evaluate(
        "image => new URL(image.src).searchParams.get('key')"
    )
    tiles = page.locator(".tile").evaluate_all("all => all.map(tile => tile.dataset.key)")
    alike = [place for place, key in enumerate(tiles) if truth[key] == truth[exemplar]]
    for place in alike:
        page.keyboard.press(TILE_KEYS[place])
    page.keyboard.press("Enter")
    expect(view).not_to_have_attribute("data-question", question, timeout=PATIENCE)
    return len(alike), len(tiles)


def annotate(address: str, truth: dict[str, int], grids: int, picture: Path) -> None:
    """Open the page and answer so many grids."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        begun = time.perf_counter()
        counts = [answer(page, truth) for _ in range(grids)]
        spent = time.perf_counter() - begun
        expect(page.locator("#status")).to_have_attribute("data-state", "saved", timeout=PATIENCE)
        page.screenshot(path=str(picture))
        browser.close()
    chosen, shown = (sum(some) for some in zip(*counts, strict=True))
    print(f"{grids} grids in {spent:.1f} s: {chosen} of {shown} tiles are the same kind")


def train(photos: Path, out: Path, epochs: int, **more: object) -> Run:
    return likewise.train(
        str(photos),
        out=out,
        objective={"temperature": 0.2},
        projector=[64],
        optimizer="adamw",
        lr=0.005,
        weight_decay=1e-4,
        batch_size=128,
        epochs=epochs,
        device="cpu",
        logger=["csv"],
        **more,
    )


def accuracy(run: Run, photos: Path, truth: dict[str, int]) -> float:
    """Of the nearest neighbours on test images; the 1,000 are the bank."""
    encoder, preparation = run.encoder()
    size = preparation.size
    bank = load_images(open_source(str(photos)), size)
    test = load_images(open_source("fashion-mnist:test").subset(np.arange(2000)), size)
    rows = [
        embed_images(encoder, images, size=size, mean=preparation.mean, std=preparation.std)
        for images in (bank, test)
    ]
    labels = np.array([truth[key] for key in bank.keys])
    return float(knn_accuracy(rows[0], labels, rows[1], test.labels, k=NEIGHBORS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo/fashion"))
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--grids", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=20, help="without answers, at first")
    parser.add_argument("--more", type=int, default=20, help="epochs afterwards")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.out.exists():
        shutil.rmtree(given.out)
    photos, project = given.out / "photos", given.out / "project.db"
    truth = write_photos(photos, given.images, given.seed)

    first = train(photos, given.out / "first", given.epochs, seed=given.seed)
    with asking(photos, given.out / "first", project) as address:
        annotate(address, truth, given.grids, given.out / "page.png")

    said = answers_of_project(project)
    alike = sum(one.value > 0 for one in said.answers)
    print(f"{project} holds {len(said.answers)} answers, {alike} of them alike")
    weights = str(given.out / "first" / "encoder.safetensors")
    more = {"pretrained": weights, "seed": given.seed + 1}
    without = train(photos, given.out / "without", given.more, **more)
    with_answers = train(photos, given.out / "with", given.more, answers=str(project), **more)
    for title, run in (
        ("before", first),
        (f"after {given.more} more epochs without answers", without),
        (f"after {given.more} more epochs with answers", with_answers),
    ):
        print(f"kNN accuracy {title:40} {accuracy(run, photos, truth):6.1%}", flush=True)


if __name__ == "__main__":
    main()
