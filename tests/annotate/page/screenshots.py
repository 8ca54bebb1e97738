"""Pictures of the page, for the documentation.

    python -m tests.annotate.page.screenshots --out docs/images

1,000 Fashion-MNIST images, plain pixels; somebody who knows the truth answers some grids in the
browser first, so that there is something to see.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page

from likewise.oracles.samplers.default import Default
from tests.annotate.page.browser import (
    PHONE,
    Project,
    chromium,
    clothes,
    exemplar,
    next_question,
    pixel_rows,
    question,
    saved,
    tiles,
    wait_for,
)

LAPTOP = {"width": 1280, "height": 800}
GRIDS = 24
TILE_KEYS = "12345qwertzxcvb"


def answer_truly(page: Page, project: Project) -> None:
    """Choose the tiles of the exemplar's class, by keyboard, and submit."""
    before = question(page)
    kind = project.label_of(exemplar(page))
    for place, key in enumerate(tiles(page)):
        if project.label_of(key) == kind:
            page.keyboard.press(TILE_KEYS[place])
    page.keyboard.press("Enter")
    next_question(page, before)


def wait_for_pictures(page: Page) -> None:
    # Not wait_for_function: it evaluates strings, which the page's policy forbids.
    script = """() => [...document.images]
        .filter(i => i.offsetParent && i.getBoundingClientRect().top < innerHeight)
        .every(i => i.complete)"""
    wait_for(page, lambda: page.evaluate(script), "pictures")
    page.wait_for_timeout(250)


class Studio:
    def __init__(self, browser: Browser, project: Project, out: Path) -> None:
        self.browser, self.project, self.out = browser, project, out

    def picture(
        self,
        name: str,
        path: str = "/",
        do: Callable[[Page], object] | None = None,
        *,
        dark: bool = False,
        phone: bool = False,
        size: dict[str, int] | None = None,
        who: str = "",
    ) -> None:
        context = self.browser.new_context(
            viewport=size or (PHONE if phone else LAPTOP),
            color_scheme="dark" if dark else "light",
            has_touch=phone,
            is_mobile=phone,
            device_scale_factor=2 if phone else 1,
        )
        page = context.new_page()
        if who:
            page.goto(f"{self.project.address}/join/{who}")
        page.goto(self.project.address + path)
        page.wait_for_load_state("networkidle")
        if do is not None:
            do(page)
        wait_for_pictures(page)
        page.screenshot(path=str(self.out / f"annotate-{name}.png"))
        print(f"{self.out / f'annotate-{name}.png'}", flush=True)
        context.close()


def choose_truly(page: Page, project: Project) -> None:
    """Choose those of the same class; of the last one, be unsure."""
    kind = project.label_of(exemplar(page))
    alike = [place for place, key in enumerate(tiles(page)) if project.label_of(key) == kind]
    for place in alike[:-1]:
        page.keyboard.press(TILE_KEYS[place])
    if alike:
        page.keyboard.press(f"Shift+{TILE_KEYS[alike[-1]].upper()}")


def name_kinds(page: Page, project: Project) -> None:
    """Name the largest kinds after their class."""
    assert project.source.class_names is not None
    classes = project.desk.progress("ann")["classes"]
    for one in sorted(classes, key=lambda one: -one["count"])[:6]:
        project.desk.name(
            "ann",
            id=f"name-{one['id']}",
            item=one["exemplar"],
            name=project.source.class_names[project.label_of(one["exemplar"])],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--grids", type=int, default=GRIDS)
    parser.add_argument("--only", nargs="*", default=None)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    source = clothes(1000)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        project = Project(
            Path(folder), source, pixel_rows(source), shared=True, sampler=Default(fill=True)
        )
        admin = project.store.add_person("ann", admin=True)
        bob = project.store.add_person("bob")
        try:
            for who, grids in ((admin, options.grids), (bob, options.grids // 2)):
                context = browser.new_context(viewport=LAPTOP)
                page = context.new_page()
                page.goto(f"{project.address}/join/{who}")
                next_question(page, "")
                for _ in range(grids):
                    answer_truly(page, project)
                saved(page)
                if who == admin:
                    name_kinds(page, project)
                context.close()
            studio = Studio(browser, project, options.out)

            def choose(page: Page) -> None:
                choose_truly(page, project)

            pictures: dict[str, Callable[[str], None]] = {
                "grid": lambda n: studio.picture(n, do=choose, who=admin),
                "dark": lambda n: studio.picture(n, do=choose, dark=True, who=admin),
                "phone": lambda n: studio.picture(n, do=choose, phone=True, who=admin),
                "pair": lambda n: studio.picture(
                    n, do=lambda page: page.keyboard.press("p"), who=admin
                ),
                "outliers": lambda n: studio.picture(
                    n,
                    do=lambda page: (
                        page.keyboard.press("o"),
                        page.wait_for_timeout(800),
                        page.keyboard.press("2"),
                    ),
                    who=admin,
                ),
                "map": lambda n: studio.picture(n, "/#map", who=admin),
                "kinds": lambda n: studio.picture(n, "/#kinds", who=admin),
                "history": lambda n: studio.picture(n, "/#history", who=admin),
                "people": lambda n: studio.picture(n, "/admin", who=admin),
                "help": lambda n: studio.picture(
                    n, do=lambda page: page.keyboard.press("h"), who=admin
                ),
            }
            for name, draw in pictures.items():
                if not options.only or name in options.only:
                    draw(name)
        finally:
            project.close()


if __name__ == "__main__":
    main()
