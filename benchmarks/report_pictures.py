"""Make the pictures of docs/report.md.

    python benchmarks/report_pictures.py --folder build/report

Trains three small runs on digits where they are not in the folder yet (a healthy one, SimSiam
without stopped gradient, and views that leave slivers of a digit), writes the reports with
`likewise report`, and takes the pictures with Debian's Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import likewise

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from verdict import CASES, DEMO  # noqa: E402

RUNS = {
    "healthy": "healthy: SimCLR",
    "collapsed": "collapse: SimSiam without stop-gradient",
    "slivers": "too strong: slivers",
}


def runs_in(folder: Path) -> list[Path]:
    """The folders of the three runs, trained where they are not there."""
    found = []
    for name, case in RUNS.items():
        out = folder / name
        if not (out / "summary.json").is_file():
            settings = {"data": "digits", **DEMO, **CASES[case]}
            likewise.train(out=out, encoder="tiny", device="cpu", logger=["csv"], **settings)
        found.append(out)
    return found


def shoot(browser: Browser, page: Path, out: Path, *, width: int, height: int, scheme: str,
          part: str | None = None, dot: int | None = None) -> None:  # fmt: skip
    """A picture of a page, from a section on, with the readout of a dot where one is given."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    tab = context.new_page()
    tab.goto(page.resolve().as_uri())
    if part is not None:
        tab.evaluate("id => document.getElementById(id).scrollIntoView()", part)
    if dot is not None:
        x, y = tab.evaluate(
            """i => {
                 const svg = document.querySelector('svg[data-map]');
                 const map = JSON.parse(document.getElementById(svg.dataset.map).textContent);
                 const p = new DOMPoint(map.x[i], map.y[i]).matrixTransform(svg.getScreenCTM());
                 return [p.x, p.y];
               }""",
            dot,
        )
        tab.mouse.move(x, y)
    tab.wait_for_timeout(300)
    tab.screenshot(path=str(out))
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "report")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    given = parser.parse_args()
    runs = runs_in(given.folder)
    one, three = given.folder / "one.html", given.folder / "three.html"
    likewise.report(runs[:1], out=one, data="digits:test", device="cpu")
    likewise.report(runs, out=three, data="digits:test", device="cpu")
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        name = given.out / "report-light.png"
        shoot(browser, one, name, width=1200, height=1150, scheme="light")
        name = given.out / "report-compare.png"
        shoot(browser, three, name, width=1200, height=1000, scheme="light")
        name = given.out / "report-dark.png"
        shoot(browser, one, name, width=1200, height=860, scheme="dark", part="map", dot=40)
        name = given.out / "report-phone.png"
        shoot(browser, three, name, width=390, height=844, scheme="light", part="verdict")
        browser.close()


if __name__ == "__main__":
    main()
