"""Map, kinds, history and people, in a real browser."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.annotate.page.browser import (
    exemplar,
    next_question,
    question,
    saved,
    tiles,
    wait_for,
)


def class_of(project, key: str) -> str | None:
    return project.desk.item(key)["class"]


def opened(visitor, view: str) -> Page:
    page = visitor.ready()
    page.get_by_role("link", name=view).click()
    return page


def test_the_map_is_walked_by_keyboard_and_starts_a_question(project, visitor):
    project.teach()
    page = opened(visitor, "Map")
    expect(page.locator("#map-lead")).to_contain_text("300 items, 16 placed")
    expect(page.locator("#legend li")).to_have_count(5)
    canvas = page.locator("#map-canvas")
    canvas.focus()
    expect(page.locator("#map-here")).not_to_be_empty()
    places = set()
    for key in ("ArrowRight", "ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft", "+", "+"):
        page.keyboard.press(key)
        places.add(page.locator("#map-here").text_content())
    assert len(places) >= 3
    key = page.locator("#map-here").text_content().split(" · ")[0]
    page.keyboard.press("Enter")
    expect(page.locator("#item-title")).to_have_text(key)
    page.get_by_role("button", name="Ask about this").click()
    expect(page.locator("#view-ask")).to_be_visible()
    wait_for(page, lambda: exemplar(page) == key, "a question about the item")
    shown, before = tiles(page), question(page)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    next_question(page, before)
    saved(page)
    assert project.facts("answer", "ann")[0].body["question"] == {
        "kind": "grid",
        "exemplar": key,
        "candidates": shown,
    }


def test_the_map_is_drawn_in_the_colours_of_what_is_known(project, visitor):
    project.teach()
    page = opened(visitor, "Map")
    expect(page.locator("#map-lead")).to_contain_text("placed")
    count = """() => {
        const canvas = document.querySelector("#map-canvas");
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const context = copy.getContext("2d", {willReadFrequently: true});
        context.drawImage(canvas, 0, 0);
        const {data} = context.getImageData(0, 0, copy.width, copy.height);
        const seen = {};
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 250) {
            const color = [data[i], data[i + 1], data[i + 2]].join();
            seen[color] = (seen[color] ?? 0) + 1;
        }
        return seen;
    }"""
    for color in ("47,111,222", "224,123,42", "15,155,142", "219,74,140"):  # of four kinds
        wait_for(page, lambda color=color: color in page.evaluate(count), f"colour {color}")
    grey = max(page.evaluate(count).items(), key=lambda entry: entry[1])[0]
    assert grey == "169,180,194"  # most are not placed yet
    page.emulate_media(color_scheme="dark")
    wait_for(page, lambda: "85,99,119" in page.evaluate(count), "the grey of the dark")


def test_an_item_is_found_by_its_key_and_by_a_click(project, visitor):
    page = opened(visitor, "Map")
    expect(page.locator("#map-lead")).to_contain_text("300 items")
    page.get_by_label("Find an item").fill("123")
    page.keyboard.press("Enter")
    expect(page.locator("#item-title")).to_have_text("123")
    expect(page.locator("#item-what")).to_have_text("Nobody has placed it yet.")
    page.keyboard.press("Escape")
    # It stands in the middle now, with a ring around it.
    box = page.locator("#map-canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#item-title")).to_have_text("123")
    page.keyboard.press("Escape")
    page.get_by_label("Find an item").fill("no such item")
    page.keyboard.press("Enter")
    expect(page.locator("#toast-text")).to_contain_text("There is no item")


def test_a_kind_is_named_from_the_question_and_the_name_undone(project, visitor):
    page = visitor.ready()
    key = exemplar(page)
    page.keyboard.press("n")
    page.keyboard.type("cats 1")  # letters and digits go into the field, not to the tiles
    page.keyboard.press("Enter")
    expect(page.locator("#exemplar-name")).to_have_text("cats 1")
    expect(page.locator("#toast-text")).to_have_text("Named “cats 1”")
    saved(page)
    (fact,) = project.facts("name")
    assert fact.body == {"item": key, "name": "cats 1"}
    page.get_by_role("button", name="Undo", exact=True).last.click()
    wait_for(page, lambda: len(project.facts("undo")) == 1, "the undo")
    assert project.facts("undo")[0].body == {"fact": fact.id}
    wait_for(page, lambda: project.desk.item(key)["name"] is None, "no name")


def test_a_kind_is_named_in_the_list(project, visitor):
    known = project.teach()
    page = opened(visitor, "Kinds")
    expect(page.locator(".kind")).to_have_count(4)
    page.get_by_role("button", name="Name Kind 1").click()
    page.get_by_role("combobox", name="These are").fill("trousers")
    page.get_by_role("button", name="Save the name").click()
    expect(page.locator(".kind-name.known")).to_have_text("trousers")
    saved(page)
    named = project.facts("name")[0].body["item"]
    members = next(keys for keys in known.values() if named in keys)
    assert {project.desk.item(key)["name"] for key in members} == {"trousers"}


def test_two_kinds_are_merged_and_parted_again(project, visitor):
    known = project.teach()
    page = opened(visitor, "Kinds")
    expect(page.locator(".kind")).to_have_count(4)
    expect(page.locator("#merge")).to_be_disabled()
    for number in (1, 2):
        page.get_by_role("checkbox", name=f"Choose Kind {number} for a merge").check()
    page.get_by_role("button", name="Merge Kind 1 and Kind 2").click()
    wait_for(page, lambda: len(project.desk.progress("ann")["classes"]) == 3, "three kinds")
    expect(page.locator(".kind")).to_have_count(3)
    merged = project.facts("answer", "ann")[-1].body["question"]
    both = [keys for keys in known.values() if {merged["a"], merged["b"]} & set(keys)]
    assert len(both) == 2
    assert len({class_of(project, key) for keys in both for key in keys}) == 1
    page.keyboard.press("a")
    page.keyboard.press("Backspace")  # takes back whatever was last
    expect(page.locator("#toast-text")).to_contain_text("Taken back")
    wait_for(page, lambda: len(project.desk.progress("ann")["classes"]) == 4, "four kinds again")
    page.keyboard.press("k")
    expect(page.locator(".kind")).to_have_count(4)


def test_items_are_split_off_and_taken_back(project, visitor):
    known = project.teach()
    page = opened(visitor, "Kinds")
    page.get_by_role("button", name="Look into Kind 1").click()
    expect(page.locator(".member")).to_have_count(3)
    page.locator(".member").nth(1).click()
    stranger = page.locator(".member").nth(1).get_attribute("aria-label")
    home = next(keys for keys in known.values() if stranger in keys)
    page.get_by_role("button", name="Split off 1 item").click()
    wait_for(page, lambda: bool(project.facts("split")), "the split")
    body = project.facts("split")[0].body
    assert body["items"] == [stranger] and body["from"] in home
    rest = [key for key in home if key != stranger]
    wait_for(
        page,
        lambda: class_of(project, stranger) not in {class_of(project, key) for key in rest},
        "another class",
    )
    page.keyboard.press("a")
    page.keyboard.press("Backspace")
    wait_for(
        page,
        lambda: {class_of(project, key) for key in home} == {class_of(project, home[0])},
        "the old class",
    )


def test_history_brings_a_question_back(project, visitor):
    page = visitor.ready()
    asked = []
    for key in "12":
        before = question(page)
        asked.append((before, tiles(page)["12".index(key)]))
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        next_question(page, before)
    saved(page)
    page.get_by_role("link", name="History").click()
    expect(page.locator("#history-list li")).to_have_count(2)
    page.get_by_role("button", name="Change").last.click()  # the first that was asked
    expect(page.locator("#view-ask")).to_be_visible()
    expect(page.locator("#view-ask")).to_have_attribute("data-question", asked[0][0])
    assert page.locator('.tile[data-state="chosen"]').get_attribute("data-key") == asked[0][1]
    saved(page)
    wait_for(page, lambda: len(project.facts("undo")) == 1, "the undo")


def test_a_tile_is_looked_at_closely(project, visitor):
    page = visitor.ready()
    key = tiles(page)[3]
    page.locator(".choose").nth(3).focus()
    page.keyboard.press("l")
    expect(page.locator("#item-title")).to_have_text(key)
    assert "size=480" in page.locator("#item-image").get_attribute("src")


def test_an_invitation_does_not_wait_for_the_list(shared_project, visit):
    project = shared_project
    page = visit(project, project.store.add_person("ann", admin=True)).page
    next_question(page, "")
    held = []
    page.route(
        "**/api/admin/people",
        lambda route: held.append(route) if route.request.method == "GET" else route.continue_(),
    )
    page.get_by_role("link", name="People").click()
    page.get_by_label("Invite somebody").fill("bob")
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator("#link")).to_be_visible()
    assert held and [person.name for person in project.store.people()] == ["ann", "bob"]


def test_people_are_invited_listed_and_sent_away(shared_project, visit):
    project = shared_project
    admin = visit(project, project.store.add_person("ann", admin=True))
    page = admin.page
    next_question(page, "")
    page.get_by_role("link", name="People").click()
    page.get_by_label("Invite somebody").fill("bob")
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator("#link")).to_be_visible()
    link = page.get_by_label("Invitation link").input_value()
    assert link.startswith(f"{project.address}/join/")
    expect(page.get_by_role("rowheader", name="bob")).to_be_visible()

    bob = visit(project, link.rsplit("/", 1)[1])
    next_question(bob.page, "")
    expect(bob.page.locator("#to-admin")).to_be_hidden()
    bob.page.keyboard.press("1")
    before = question(bob.page)
    bob.page.keyboard.press("Enter")
    next_question(bob.page, before)
    saved(bob.page)
    page.reload()
    row = page.get_by_role("row", name="bob")
    expect(row.locator("td").first).to_have_text("1")

    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Revoke").click()  # really
    expect(row).to_contain_text("taken back")
    before = question(bob.page)
    bob.page.keyboard.press("Enter")
    expect(bob.page.locator("#status-text")).to_contain_text("Signed out")
    assert len(project.facts("answer", "bob")) == 1
    bob.page.reload()
    expect(bob.page.locator("#question")).to_have_text("You are signed out")
