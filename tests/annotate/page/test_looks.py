"""Phone, dark, keyboard alone, screen reader: how the page looks and reads, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.annotate.page.browser import PHONE, chosen, next_question, question, saved, tiles

ON_A_PHONE = {
    "viewport": PHONE,
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
FINGER = 44  # CSS pixels that a finger needs

CONTRASTS = """() => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgba = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b]
        .map((v) => v / 255)
        .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let one = element; one; one = one.parentElement) {
            const color = rgba(getComputedStyle(one).backgroundColor);
            if (color[3] === 255) return color;
        }
        return [255, 255, 255, 255];
    };
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        const seen = {checkOpacity: true, checkVisibilityCSS: true};
        if (!own || !element.checkVisibility(seen)) continue;
        if (element.closest(":disabled, .unseen, .tile, datalist, .skip-link")) continue;
        const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const what = `${element.tagName}.${element.className}: ${element.textContent.trim()}`;
        found.push([what, contrast]);
    }
    return found;
}"""

NAMELESS = """() => [...document.querySelectorAll("a, button, input, canvas, [role=group], dialog")]
    .filter((element) => {
        const label = element.getAttribute("aria-label") || element.textContent.trim()
            || [...(element.labels ?? [])].map((one) => one.textContent.trim()).join("");
        const by = element.getAttribute("aria-labelledby");
        return !(label || (by && document.getElementById(by)));
    })
    .map((element) => element.outerHTML.slice(0, 100))"""


def fits(page: Page) -> None:
    """Nothing has to be scrolled sideways."""
    wide, window = page.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window


def in_window(page: Page, selector: str) -> list[dict[str, float]]:
    """The boxes of some elements, which have to lie in the window."""
    size = page.viewport_size
    boxes = [one.bounding_box() for one in page.locator(selector).all() if one.is_visible()]
    assert boxes
    for box in boxes:
        assert box["x"] >= 0 and box["x"] + box["width"] <= size["width"] + 0.5
        assert box["y"] >= 0 and box["y"] + box["height"] <= size["height"] + 0.5
    return boxes


def test_a_grid_is_answered_on_a_phone(project, visit):
    visitor = visit(project, **ON_A_PHONE)
    page = visitor.ready()
    fits(page)
    shown = tiles(page)
    boxes = in_window(page, ".tile")
    assert len(boxes) == len(shown) == 15
    assert len({round(box["x"]) for box in boxes}) == 3  # five rows of three
    assert min(box["width"] for box in boxes) >= 80
    for box in in_window(page, "#submit, #skip, #undo"):
        assert box["height"] >= FINGER and box["width"] >= FINGER
    in_window(page, "#exemplar img, #status, #mine, #team, #left, #accuracy")
    page.locator(".choose").nth(4).tap()
    page.locator(".doubt").nth(7).tap()
    assert chosen(page) == [shown[4]] and chosen(page, "unsure") == [shown[7]]
    before = question(page)
    page.locator("#submit").tap()
    next_question(page, before)
    saved(page)
    (fact,) = project.facts("answer")
    assert fact.body["clicked"] == [shown[4]] and fact.body["unsure"] == [shown[7]]
    page.locator("#undo").tap()
    expect(page.locator("#view-ask")).to_have_attribute("data-question", before)


@pytest.mark.parametrize(
    "size", [(320, 568), (390, 844), (844, 390), (768, 1024), (1024, 640), (1920, 1080)]
)
def test_every_view_fits_every_window(project, visit, size):
    project.teach()
    visitor = visit(project, viewport={"width": size[0], "height": size[1]})
    page = visitor.ready()
    for kind in ("p", "g"):
        before = question(page)
        page.keyboard.press(kind)
        next_question(page, before)
        fits(page)
        in_window(page, "#undo, #skip, #status, #accuracy")
        # Nothing lies over anything else.
        boxes = in_window(page, "#actions button, .tile, #exemplar .frame, .modes, h1")
        for place, one in enumerate(boxes):
            for other in boxes[:place]:
                apart = (
                    one["x"] + one["width"] <= other["x"] + 1
                    or other["x"] + other["width"] <= one["x"] + 1
                    or one["y"] + one["height"] <= other["y"] + 1
                    or other["y"] + other["height"] <= one["y"] + 1
                )
                assert apart, (kind, one, other)
    for view in ("Map", "Kinds", "History"):
        page.get_by_role("link", name=view).click()
        expect(page.locator(f"#view-{view.lower()}")).to_be_visible()
        fits(page)
        in_window(page, "#status, #mine, #team, #left, #accuracy")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_in_dark(project, visit, scheme):
    project.teach()
    visitor = visit(project, color_scheme=scheme)
    page = visitor.ready()
    page.keyboard.press("1")
    page.keyboard.press("Shift+2")
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(245, 246, 248)" if scheme == "light" else "rgb(13, 17, 23)")
    seen = 0
    for view in ("Ask", "Map", "Kinds", "History"):
        page.get_by_role("link", name=view).click()
        visitor.quiet()
        found = page.evaluate(CONTRASTS)
        seen += len(found)
        faint = [entry for entry in found if entry[1] < 4.5]
        assert not faint, (view, faint)
    assert seen > 60
    page.keyboard.press("h")
    faint = [entry for entry in page.evaluate(CONTRASTS) if entry[1] < 4.5]
    assert not faint, faint


def test_colours_can_be_chosen_and_are_kept(project, visitor):
    page = visitor.ready()
    ground = "() => getComputedStyle(document.body).backgroundColor"
    for name, color in (("light", "rgb(245, 246, 248)"), ("dark", "rgb(13, 17, 23)")):
        page.locator("#theme").click()
        expect(page.locator("#theme")).to_have_attribute("aria-label", f"Colours: {name}")
        assert page.evaluate(ground) == color
    page.reload()
    assert page.evaluate(ground) == "rgb(13, 17, 23)"


def test_everything_has_a_name_and_states_are_told(project, visitor):
    page = visitor.ready()
    assert page.evaluate(NAMELESS) == []
    shown = tiles(page)
    page.keyboard.press("2")
    page.keyboard.press("Shift+3")
    second = page.get_by_role("button", name=f"2, key 2: {shown[1]}")
    expect(second).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".choose").nth(2)).to_have_attribute("aria-label", re.compile("unsure"))
    expect(page.locator("#say")).to_have_attribute("aria-live", "polite")
    before = question(page)
    page.keyboard.press("Enter")
    next_question(page, before)
    expect(page.locator("#say")).to_have_text("Submitted: 1 is the same, 1 unsure.")
    page.keyboard.press("s")
    expect(page.locator("#say")).to_have_text("Skipped.")
    for link in ("Map", "Kinds", "History"):
        page.get_by_role("link", name=link).click()
        visitor.quiet()
        assert page.evaluate(NAMELESS) == []


def test_the_tab_key_reaches_everything_once(project, visitor):
    page = visitor.ready()
    visited = []
    for _ in range(40):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "() => document.activeElement.id || document.activeElement.textContent.trim()"
        )
        if here in visited:
            break
        visited.append(here)
    wanted = {"Ask", "Map", "Kinds", "History", "status", "theme", "help-button", "Grid", "Pair"}
    assert wanted | {"Outliers", "name-button", "undo", "skip", "submit"} <= set(visited)
    # One stop for all tiles: the arrow keys go on from there.
    assert sum(bool(re.fullmatch(r"[1-5QWERTZXCVB]", one)) for one in visited) == 1
    ring = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert ring != "none"


def test_a_sheet_holds_the_focus_and_gives_it_back(project, visitor):
    page = visitor.ready()
    page.locator("#name-button").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#naming-input")).to_be_focused()
    for _ in range(6):
        page.keyboard.press("Tab")
        inside = page.evaluate(
            "() => document.activeElement === document.body"
            " || document.querySelector('#naming').contains(document.activeElement)"
        )
        assert inside
    page.keyboard.press("Escape")
    expect(page.locator("#name-button")).to_be_focused()


def test_a_name_with_markup_stays_text(project, visitor):
    page = visitor.ready()
    page.keyboard.press("n")
    page.keyboard.type("<img src=x onerror=alert(1)>")
    page.keyboard.press("Enter")
    expect(page.locator("#exemplar-name")).to_have_text("<img src=x onerror=alert(1)>")
    assert page.locator("#exemplar-name img").count() == 0
