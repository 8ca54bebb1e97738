"""Search and an update among a million rows."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from use_figures import keep, stamp

from likewise.data import open_source
from likewise.library import Index, embedder_by_name, storage
from likewise.library.contents import glances


def million(place: Path, n: int) -> None:
    torch.set_num_threads(2)
    shutil.rmtree(place, ignore_errors=True)
    embedder = embedder_by_name("resnet18", image_size=32, device="cpu")
    dim = embedder.encoder.dim
    photos = place / "photos"
    begun = time.perf_counter()
    for number in range(n):
        if number % 1000 == 0:
            folder = photos / f"{number // 1000:04}"
            folder.mkdir(parents=True)
        # Empty: whoever read one of them would find it broken.
        os.close(os.open(folder / f"{number:07}.png", os.O_CREAT))
    print("files", round(time.perf_counter() - begun, 1), flush=True)
    time.sleep(3)
    source = open_source(str(photos), label_column=None)
    index = Index(place / "index", embedder)
    index.path.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for _ in range(4):
        rows = rng.standard_normal((n // 4, dim), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        index.about.rows.append(storage.add_rows(index.path, rows))
    digest = rng.integers(0, 2**63, (n, 2)).astype(np.uint64)
    seen = glances(source)
    assert seen is not None
    items = storage.Items(source.keys, np.arange(n), seen, digest)
    storage.write_items(index.path, index.about, items)
    index = Index(place / "index", embedder)
    keep("search a million", timed_search(index, dim) | stamp())
    keep("add a thousand", added(place, index, photos) | stamp())
    shutil.rmtree(place)


def timed_search(index: Index, dim: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    queries = rng.standard_normal((21, dim), dtype=np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    times, cores = [], []
    for query in queries:
        begun, used = time.perf_counter(), time.process_time()
        near, places = index.search(query[None], 20)
        times.append(time.perf_counter() - begun)
        cores.append(time.process_time() - used)
    # Against every similarity in float64, of the last query.
    rows = index.rows()
    truth = np.concatenate(
        [rows[i : i + 50_000].astype(np.float64) @ queries[-1] for i in range(0, len(rows), 50_000)]
    )
    best = np.argsort(-truth)[:20]
    return {
        "rows": len(index),
        "dim": dim,
        "first_seconds": round(times[0], 3),
        "median_seconds": round(float(np.median(times[1:])), 3),
        "fastest_seconds": round(min(times[1:]), 3),
        "core_seconds": round(float(np.median(cores[1:])), 3),
        "exact": bool(np.array_equal(best, places[0])),
    }


def added(place: Path, index: Index, photos: Path) -> dict[str, Any]:
    folder = photos / "new"
    folder.mkdir()
    rng = np.random.default_rng(2)
    for number in range(1000):
        image = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(image).save(folder / f"{number}.png")
    begun = time.perf_counter()
    alone = Index(place / "alone", index.embedder).update(open_source(str(folder)))
    of_alone = time.perf_counter() - begun
    before = {path.name: path.stat().st_mtime_ns for path in index.path.glob("rows-*.npy")}
    begun = time.perf_counter()
    source = open_source(str(photos))
    listed = time.perf_counter() - begun
    again = Index(index.path, index.embedder)
    opened = time.perf_counter() - begun - listed
    changes = again.update(source)
    after = {path.name: path.stat().st_mtime_ns for path in index.path.glob("rows-*.npy")}
    new = [path for path in index.path.glob("rows-*.npy") if path.name not in before]
    return {
        "images": len(source),
        "embedded": changes.embedded,
        "unchanged": changes.unchanged,
        "old_rows_untouched": all(after[name] == when for name, when in before.items()),
        "bytes_of_new_rows": sum(path.stat().st_size for path in new),
        "seconds_to_list_the_folder": round(listed, 1),
        "seconds_to_open_the_index": round(opened, 1),
        "seconds_of_the_update": round(changes.seconds, 1),
        "seconds_of_a_thousand_alone": round(of_alone, 1),
        "embedded_alone": alone.embedded,
    }
