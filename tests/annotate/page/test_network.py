"""The network drops, replies get lost, several people answer: each answer arrives, and once."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.annotate.page.browser import (
    Project,
    next_question,
    question,
    saved,
    tiles,
    wait_for,
)


def answer(page: Page, key: str = "1") -> tuple[str, str]:
    """Choose a tile and submit; the question and the tile."""
    now, tile = question(page), tiles(page)["12345".index(key)]
    page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page.locator("#view-ask")).not_to_have_attribute("data-question", now)
    return now, tile


def delivered(project: Project, who: str | None = None) -> list[tuple[str, str]]:
    """The question and the chosen tile of every answer in the store, in order."""
    facts = project.facts("answer", who)
    return [(fact.body["question_id"], fact.body["clicked"][0]) for fact in facts]


def waiting(page: Page) -> int:
    """How many facts lie in the browser's storage."""
    return page.evaluate(
        "() => Object.keys(localStorage).filter(k => k.startsWith('likewise.outbox.')).length"
    )


def test_offline_and_back_delivers_once(project, visitor):
    page = visitor.ready()
    visitor.ahead()
    visitor.context.set_offline(True)
    said = [answer(page, "2"), answer(page, "3"), answer(page, "4")]
    expect(page.locator("#status-text")).to_have_text("Offline · 3 waiting")
    expect(page.locator("#nothing-title")).to_have_text("No network")  # all three are answered
    assert waiting(page) == 3 and delivered(project) == []
    visitor.context.set_offline(False)
    saved(page)
    assert delivered(project) == said
    assert waiting(page) == 0
    expect(page.locator("#view-ask")).to_have_attribute("data-kind", "grid")
    next_question(page, "")  # and on it goes, without a key
    expect(page.locator("#mine")).to_have_text("3")


def test_answers_wait_for_a_closed_page_to_come_back(project, visitor):
    page = visitor.ready()
    visitor.ahead()
    visitor.context.set_offline(True)
    said = [answer(page), answer(page)]
    expect(page.locator("#status-text")).to_have_text("Offline · 2 waiting")
    page.close()
    visitor.context.set_offline(False)
    assert delivered(project) == []
    page = visitor.reopen()
    saved(page)
    wait_for(page, lambda: len(delivered(project)) == 2, "both answers")
    assert delivered(project) == said


def test_a_reply_that_gets_lost_does_not_count_twice(project, visitor):
    page = visitor.ready()
    visitor.ahead()
    arrived: list[str] = []

    def lose_the_first_replies(route: Route) -> None:
        arrived.append(route.request.post_data_json["id"])
        if len(arrived) <= 2:
            route.fetch()  # the server has it ...
            route.abort("connectionreset")  # ... and the page never hears of it
        else:
            route.continue_()

    page.route("**/api/answers", lose_the_first_replies)
    said = answer(page, "5")
    saved(page)
    assert len(arrived) == 3 and len(set(arrived)) == 1
    assert delivered(project) == [said]


def test_a_server_that_is_busy_gets_it_later(project, visitor):
    page = visitor.ready()
    visitor.ahead()
    tries: list[int] = []

    def refuse_twice(route: Route) -> None:
        tries.append(1)
        if len(tries) <= 2:
            status = 503 if len(tries) == 1 else 429
            route.fulfill(status=status, json={"error": "later"})
        else:
            route.continue_()

    page.route("**/api/answers", refuse_twice)
    said = [answer(page, "1"), answer(page, "2")]
    saved(page)
    assert delivered(project) == said and len(tries) == 4


def test_an_undo_does_not_overtake_its_answer(project, visitor):
    page = visitor.ready()
    visitor.ahead()
    visitor.context.set_offline(True)
    first, tile = answer(page, "1")
    now = question(page)
    page.keyboard.press("Backspace")
    next_question(page, now)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    next_question(page, first)
    expect(page.locator("#status-text")).to_have_text("Offline · 3 waiting")
    visitor.context.set_offline(False)
    saved(page)
    assert [fact.kind for fact in project.facts()] == ["answer", "undo", "answer"]
    yes = [one.b for one in project.store.answers() if one.value > 0]
    assert len(yes) == 2 and tile in yes


def test_what_the_server_refuses_is_said_and_kept(project, visitor):
    page = visitor.ready()
    visitor.ahead()
    page.route(
        "**/api/answers",
        lambda route: route.fulfill(status=400, json={"error": "that item is gone"}),
    )
    answer(page)
    expect(page.locator("#toast-text")).to_have_text("Not saved: that item is gone")
    expect(page.locator("#status-text")).to_have_text("1 refused")
    page.unroute("**/api/answers")
    said = answer(page)
    wait_for(page, lambda: delivered(project) == [said], "the next answer")
    page.locator("#status").click()
    expect(page.locator("#refused")).to_contain_text("that item is gone")


def test_two_people_never_hold_the_same_question(shared_project, visit):
    project = shared_project
    people = {}
    for name in ("ann", "bob"):
        people[name] = visit(project, project.store.add_person(name))
        next_question(people[name].page, "")
    held: dict[str, list[set[str]]] = {"ann": [], "bob": []}
    for _ in range(6):
        for name, visitor in people.items():
            page = visitor.page
            held[name].append(set(tiles(page)))
            other = people["bob" if name == "ann" else "ann"].page
            assert question(page) != question(other)
            before = question(page)
            page.keyboard.press("1")
            page.keyboard.press("Enter")
            next_question(page, before)
    for visitor in people.values():
        saved(visitor.page)
    asked = {name: [one for one, _ in delivered(project, name)] for name in people}
    assert len(asked["ann"]) == len(asked["bob"]) == 6
    assert not set(asked["ann"]) & set(asked["bob"])
    # Items without a class are with one person at a time: no pair was asked of both.
    pairs = {
        name: {
            frozenset((fact.body["question"]["exemplar"], tile))
            for fact in project.facts("answer", name)
            for tile in fact.body["question"]["candidates"]
            if tile not in fact.body.get("gold", {})
        }
        for name in people
    }
    assert not pairs["ann"] & pairs["bob"]
    expect(people["ann"].page.locator("#team")).to_have_text("12")


def test_one_persons_waiting_answers_are_not_sent_as_anothers(shared_project, visit):
    project = shared_project
    ann, bob = (project.store.add_person(name) for name in ("ann", "bob"))
    visitor = visit(project, ann)
    page = visitor.page
    next_question(page, "")
    visitor.ahead()
    visitor.context.set_offline(True)
    said = answer(page)
    expect(page.locator("#status-text")).to_have_text("Offline · 1 waiting")
    page.close()
    visitor.context.set_offline(False)
    visitor.page = visitor._new_page()
    page = visitor.open(f"/join/{bob}")  # the same browser, another person
    next_question(page, "")
    saved(page)
    assert delivered(project, "bob") == []
    page = visitor.open(f"/join/{ann}")
    next_question(page, "")
    wait_for(page, lambda: delivered(project, "ann") == [said], "her answer")
    assert delivered(project, "bob") == []
