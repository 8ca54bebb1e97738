"""Answering in a real browser: by keyboard, by mouse, undone, skipped, after a reload."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.annotate.page.browser import (
    chosen,
    exemplar,
    next_question,
    question,
    saved,
    tiles,
    wait_for,
)

KEYS = "12345qwertzxcvb"


def said(project) -> list[dict]:
    return [fact.body for fact in project.facts("answer")]


def submit(page: Page) -> None:
    before = question(page)
    page.keyboard.press("Enter")
    next_question(page, before)


def test_a_grid_is_answered_by_keyboard_alone(project, visitor):
    page = visitor.ready()
    shown, first = tiles(page), exemplar(page)
    assert page.locator(".tile kbd").all_text_contents()[: len(shown)] == list(KEYS.upper())
    for key in "2tb":
        page.keyboard.press(key)
    page.keyboard.press("t")  # and not, after all
    assert chosen(page) == [shown[1], shown[14]]
    expect(page.locator("#submit")).to_contain_text("2 are the same")
    submit(page)
    assert tiles(page) != shown
    assert chosen(page) == []
    saved(page)
    (answer,) = said(project)
    assert answer["clicked"] == [shown[1], shown[14]]
    assert answer["unsure"] == [] and answer["skipped"] is False
    assert answer["question"] == {"kind": "grid", "exemplar": first, "candidates": shown}
    assert 0 < answer["seconds"] < 60
    expect(page.locator("#mine")).to_have_text("1")
    expect(page.locator("#team")).to_have_text("1")


def test_the_next_grid_is_there_before_the_server_replies(project, visitor):
    page = visitor.ready()
    visitor.ahead()
    held: list = []
    page.route("**/api/**", lambda route: held.append(route))
    first = tiles(page)
    page.keyboard.press("Enter")
    # At once: nothing was awaited since the key went down, and no reply can have come.
    second = tiles(page)
    assert second and second != first
    assert page.locator(".tile img").evaluate_all(
        "all => all.every(image => image.complete && image.naturalWidth > 0)"
    )
    expect(page.locator("#status-text")).to_have_text("Saving")
    assert said(project) == []
    wait_for(page, lambda: bool(held), "the answer on its way")
    for route in held:
        route.continue_()
    page.unroute("**/api/**")
    saved(page)
    assert len(said(project)) == 1


def test_arrows_and_space_choose_and_the_focus_stays_on_the_tiles(project, visitor):
    page = visitor.ready()
    shown = tiles(page)
    page.locator(".choose").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    page.keyboard.press("Space")
    assert chosen(page) == [shown[5]]
    submit(page)
    assert page.evaluate("document.activeElement.className") == "choose"
    saved(page)
    assert said(project)[0]["clicked"] == [shown[5]]


def test_a_tile_is_marked_unsure_in_three_ways(project, visitor):
    page = visitor.ready()
    shown = tiles(page)
    page.keyboard.press("w")
    page.keyboard.press("?")  # the tile that was touched last
    page.keyboard.press("Shift+1")
    page.locator(".tile").nth(12).hover()
    page.locator(".doubt").nth(12).click()
    page.keyboard.press("3")
    assert chosen(page, "unsure") == [shown[0], shown[6], shown[12]]
    assert chosen(page) == [shown[2]]
    page.locator(".tile").nth(0).click(button="right")  # and back
    submit(page)
    saved(page)
    assert said(project)[0]["unsure"] == [shown[6], shown[12]]
    assert said(project)[0]["clicked"] == [shown[2]]


def test_backspace_brings_the_question_back_to_be_changed(project, visitor):
    page = visitor.ready()
    first, shown = question(page), tiles(page)
    page.keyboard.press("1")
    page.keyboard.press("2")
    submit(page)
    second, later = question(page), tiles(page)
    page.keyboard.press("5")  # begun, and kept while one looks back
    page.keyboard.press("Backspace")
    assert next_question(page, second) == first
    assert tiles(page) == shown and chosen(page) == shown[:2]
    saved(page)
    assert project.store.answers() == []
    page.keyboard.press("2")
    page.keyboard.press("3")
    submit(page)
    assert tiles(page) == later and chosen(page) == [later[4]]
    saved(page)
    kinds = [fact.kind for fact in project.facts()]
    assert kinds == ["answer", "undo", "answer"]
    yes = {one.b for one in project.store.answers() if one.value > 0}
    assert yes == {shown[0], shown[2]}


def test_several_submissions_are_undone_one_after_the_other(project, visitor):
    page = visitor.ready()
    asked = []
    for _ in range(3):
        asked.append(question(page))
        submit(page)
    for before in reversed(asked):
        now = question(page)
        page.keyboard.press("Backspace")
        assert next_question(page, now) == before
    saved(page)
    assert project.store.answers() == []
    assert [fact.kind for fact in project.facts()] == ["answer"] * 3 + ["undo"] * 3


def test_what_was_said_before_the_page_was_opened_can_be_undone(project, visitor):
    page = visitor.ready()
    shown = tiles(page)
    page.keyboard.press("4")
    submit(page)
    saved(page)
    page = visitor.reopen()
    next_question(page, "")
    before = question(page)
    page.keyboard.press("Backspace")
    next_question(page, before)
    assert tiles(page) == shown and chosen(page) == [shown[3]]
    saved(page)
    assert project.store.answers() == []


def test_a_question_is_skipped(project, visitor):
    page = visitor.ready()
    before = question(page)
    page.keyboard.press("1")
    page.keyboard.press("s")
    next_question(page, before)
    saved(page)
    (answer,) = said(project)
    assert answer["skipped"] is True and answer["clicked"] == []
    assert project.store.answers() == []


def test_a_reload_keeps_the_question_and_what_was_chosen(project, visitor):
    page = visitor.ready()
    before, shown = question(page), tiles(page)
    page.keyboard.press("3")
    page.keyboard.press("Shift+Q")
    page.reload()
    next_question(page, "")
    assert question(page) == before and tiles(page) == shown
    assert chosen(page) == [shown[2]] and chosen(page, "unsure") == [shown[5]]


def test_keys_work_on_a_keyboard_with_other_letters(project, visitor):
    page = visitor.ready()
    shown = tiles(page)
    press = """([key, code]) => document.dispatchEvent(
        new KeyboardEvent("keydown", {key, code, bubbles: true, cancelable: true}))"""
    page.evaluate(press, ["й", "KeyQ"])  # Russian: the place counts
    page.evaluate(press, ["&", "Digit1"])  # French: digits need Shift, their place does not
    page.evaluate(press, ["z", "KeyY"])  # German: what is printed counts
    assert chosen(page) == [shown[0], shown[5], shown[10]]
    before = question(page)
    page.evaluate(press, ["ы", "KeyS"])
    next_question(page, before)
    saved(page)
    assert said(project)[0]["skipped"] is True


@pytest.mark.parametrize(("key", "alike"), [("y", [1.0]), ("n", [-1.0]), ("?", [0.0])])
def test_a_pair_takes_one_key(project, visitor, key, alike):
    page = visitor.ready()
    before = question(page)
    page.keyboard.press("p")
    now = next_question(page, before)
    (other,) = tiles(page)
    first = exemplar(page)
    page.keyboard.press(key)
    next_question(page, now)
    saved(page)
    (answer,) = said(project)
    assert answer["question"] == {"kind": "pair", "a": first, "b": other}
    assert [one.value for one in project.store.answers()] == alike
    page.keyboard.press("g")  # the grid that was open comes back
    expect(page.locator("#view-ask")).to_have_attribute("data-question", before)


def test_outliers_share_the_page(project, visitor):
    project.teach()  # outliers are asked of kinds that are known
    page = visitor.ready()
    before = question(page)
    page.get_by_role("button", name="Outliers").click()
    next_question(page, before)
    expect(page.locator("#exemplar")).to_be_hidden()
    expect(page.locator("#submit")).to_contain_text("All belong")
    shown = tiles(page)
    page.keyboard.press("q")
    expect(page.locator("#submit")).to_contain_text("1 does not belong")
    submit(page)
    saved(page)
    answer = said(project)[-1]
    assert answer["question"]["kind"] == "outliers" and answer["clicked"] == [shown[5]]


def test_enter_on_another_button_presses_that_one(project, visitor):
    page = visitor.ready()
    page.locator("#help-button").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("1")  # not for the tiles below
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("h")
    expect(page.locator("#help")).to_be_visible()
    assert chosen(page) == [] and said(project) == []


def test_when_nothing_is_left_the_page_says_so(small_project, visit):
    visitor = visit(small_project)
    page = visitor.open()
    for _ in range(40):
        expect(page.locator("#view-ask[data-question]")).to_be_attached()
        wait_for(page, lambda: bool(question(page)) or page.locator("#nothing").is_visible())
        if page.locator("#nothing").is_visible():
            break
        page.keyboard.press("Enter")
        page.wait_for_timeout(30)
    expect(page.locator("#nothing-title")).to_have_text("Nothing left to ask")
    expect(page.locator("#submit")).to_be_disabled()
