"""`make demo`, cut short: it ends in three accuracies and two pictures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]


def test_the_demo_prints_what_was_learned_and_draws_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "digits.py"), "--out", tmp_path, "--epochs", "6"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"kNN accuracy, (.+?) +([\d.]+)%", done.stdout))
    assert list(found) == ["raw pixels", "untrained encoder", "trained encoder"]
    assert float(found["trained encoder"]) > float(found["untrained encoder"]) + 3
    for name in ("neighbors.png", "embedding.png"):
        with Image.open(tmp_path / name) as picture:
            assert len(picture.convert("L").getcolors() or []) > 50, "an empty picture"
