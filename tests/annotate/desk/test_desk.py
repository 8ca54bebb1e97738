"""The desk: questions, answers, leases, gold, progress, for several people at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from likewise.annotate import Desk, Store, UnknownQuestion
from likewise.annotate.desk.figures import agreements
from likewise.annotate.desk.handing import Handing
from likewise.annotate.desk.map import flat_map
from likewise.annotate.exchange import import_answers
from likewise.annotate.facts import Said
from likewise.annotate.mind.proposals import proposal
from likewise.oracles.probe import Probe
from likewise.oracles.questions import Grid
from tests.annotate.clouds import (
    CLASSES,
    ROWS,
    SOURCE,
    TRUTH,
    Ids,
    N,
    answer,
    answer_some,
    caught_up,
    kind_of,
    soon,
)
from tests.annotate.databases import KINDS, new_project


@pytest.fixture
def new_id() -> Ids:
    return Ids()


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    with Store.open(tmp_path / "project.db") as opened:
        yield opened


@pytest.fixture
def desk(store) -> Iterator[Desk]:
    with Desk(SOURCE, ROWS, store, grid=6, thinking="call") as opened:
        yield opened


# --- asking until all is known --------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["grid", "pair"])
def test_answers_to_the_end_place_every_item_rightly(kind, desk, new_id):
    for _ in range(400):
        asked = caught_up(desk).question("ada", kind=kind)
        if asked is None:
            break
        assert asked.kind == kind
        assert asked.exemplar not in asked.tiles
        assert 1 <= len(asked.tiles) <= (6 if kind == "grid" else 1)
        answer(desk, "ada", asked, new_id())
    labels = caught_up(desk).snapshot.labels
    assert (labels >= 0).all()
    matched = {(int(found), int(true)) for found, true in zip(labels, TRUTH, strict=True)}
    assert len(matched) == CLASSES
    progress = desk.progress("ada")
    assert progress["placed"] == N
    assert progress["accuracy"] > 0.9
    assert sorted(one["count"] for one in progress["classes"]) == [20, 20, 20]


def test_outliers_are_asked_of_known_classes(desk, new_id):
    assert desk.question("ada", kind="outliers") is None  # nothing is known yet
    answer_some(desk, new_id, 6)
    asked = desk.question("ada", kind="outliers")
    assert asked.exemplar is None
    assert len(asked.tiles) >= 3
    known = desk.store.leased(asked.id).question["gold"]
    assert any(known.values())  # some are sure to belong, and the others are probably like them
    new = [key for key in asked.tiles if key not in known]
    assert new and all(desk.item(key)["class"] is None for key in new)
    said = len(desk.store.answers())
    answer(desk, "ada", asked, new_id())
    assert len(desk.store.answers()) > said


def test_it_works_on_either_database(tmp_path, new_id):
    for kind in KINDS:
        with (
            Store.open(new_project(kind, tmp_path)) as store,
            Desk(SOURCE, ROWS, store, grid=6, thinking="call") as desk,
        ):
            answer_some(desk, new_id, 3)
            assert desk.progress("ada")["team"]["questions"] == 3


def test_a_question_about_an_item(desk, new_id):
    asked = desk.question("ada", about="photo 7")
    assert asked.exemplar == "photo 7"
    near = np.argsort(((ROWS - ROWS[7]) ** 2).sum(axis=1))[1:7]
    assert set(asked.tiles) == {f"photo {k}" for k in near}
    answer(desk, "ada", asked, new_id())
    again = caught_up(desk).question("ada", about="photo 7")
    assert not set(again.tiles) & set(asked.tiles)  # that is known now
    assert desk.question("ada", kind="pair", about="photo 7").kind == "pair"
    with pytest.raises(ValueError, match="'nobody'"):
        desk.question("ada", about="nobody")


# --- who has what ---------------------------------------------------------------------------------


def test_no_two_people_have_the_same_question(desk):
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lambda k: desk.question(f"p{k}"), range(8)))
    handed = [one for one in asked if one is not None]
    assert len(handed) >= 2
    items = [key for one in handed for key in (one.exemplar, *one.tiles)]
    assert len(items) == len(set(items))  # nothing is known, so nothing is shown twice


def test_many_people_at_once_place_everything_without_a_shared_question(desk):
    """Nobody is asked what somebody else has before them."""
    open_now: dict[str, set[frozenset[str]]] = {}
    shared: list[frozenset[str]] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        who, misses = f"p{number}", 0
        for step in range(200):
            # Taking a question and noting it down is one step, as the test sees it.
            with lock:
                asked = desk.question(who)
                if asked is not None:
                    gold = desk.store.leased(asked.id).question["gold"]
                    mine = {frozenset((asked.exemplar, k)) for k in asked.tiles if k not in gold}
                    shared.extend(pair for other in open_now.values() for pair in other & mine)
                    open_now[asked.id] = mine
            if asked is None:
                misses += 1
                if misses > 3:
                    return
                time.sleep(0.05)
                continue
            misses = 0
            with lock:
                del open_now[asked.id]
            answer(desk, who, asked, f"{who}-{step}")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    assert shared == []
    assert (caught_up(desk).snapshot.labels >= 0).mean() > 0.9


def test_an_expired_lease_frees_the_items_and_the_late_answer_counts(store, new_id):
    with Desk(SOURCE, ROWS, store, grid=59, lease=0.4, thinking="call") as desk:
        first = desk.question("ada")
        assert len(first.tiles) == 59  # all there is
        time.sleep(0.5)
        second = desk.question("bob")
        assert set(second.tiles) & set(first.tiles)
        assert answer(desk, "ada", first, new_id())
        assert caught_up(desk).progress("ada")["mine"]["questions"] == 1
        assert len(store.answers()) == 59


def test_a_killed_server_leaves_its_leases_behind(store, new_id):
    with Desk(SOURCE, ROWS, store, grid=6, thinking="call") as before:
        asked = before.question("ada")
    with Desk(SOURCE, ROWS, store, grid=6, thinking="call") as after:
        others = [after.question(f"p{k}") for k in range(3)]
        assert not {key for one in others for key in one.tiles} & set(asked.tiles)
        assert answer(after, "ada", asked, new_id())  # without the question in the body
        assert caught_up(after).progress("ada")["mine"]["answers"] == 6


def test_pages_that_are_closed_do_not_hold_questions_for_long(desk):
    for _ in range(12):
        assert desk.question("ada") is not None
    assert len(desk.store.open_leases("ada")) <= 4


def test_what_is_skipped_is_not_asked_again_at_once(desk, new_id):
    seen: set[str] = set()
    for _ in range(3):
        asked = caught_up(desk).question("ada")
        assert not seen & set(asked.tiles)
        seen |= set(asked.tiles)
        desk.answer("ada", id=new_id(), question_id=asked.id, skipped=True)
    assert desk.store.answers() == []
    assert caught_up(desk).progress("ada")["mine"] == {"questions": 3, "answers": 0}
    for _ in range(20):  # but when nothing else is left, it is
        asked = caught_up(desk).question("ada")
        assert asked is not None
        desk.answer("ada", id=new_id(), question_id=asked.id, skipped=True)


# --- answers --------------------------------------------------------------------------------------


def test_an_answer_that_is_sent_twice_is_one(desk, new_id):
    asked = desk.question("ada")
    with ThreadPoolExecutor(6) as pool:
        new = list(pool.map(lambda _: answer(desk, "ada", asked, "same"), range(6)))
    assert sorted(new) == [False] * 5 + [True]
    assert caught_up(desk).progress("ada")["team"]["questions"] == 1


def test_an_unknown_question_counts_when_it_comes_along(desk, new_id):
    page = {
        "kind": "grid",
        "exemplar": {"key": "photo 0"},
        "tiles": [{"key": "photo 3"}, {"key": "photo 1"}],
    }
    with pytest.raises(UnknownQuestion, match="not known here"):
        desk.answer("ada", id="1", question_id="gone")
    assert desk.answer("ada", id="1", question_id="gone", clicked=["photo 3"], question=page)
    assert [(s.b, s.value) for s in desk.store.answers()] == [("photo 3", 1.0), ("photo 1", -1.0)]
    with pytest.raises(ValueError, match="'/etc/passwd'"):
        page["tiles"][0]["key"] = "/etc/passwd"
        desk.answer("ada", id="2", question_id="gone", question=page)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clicked": ["photo 59x"]}, "which the question does not show"),
        ({"clicked": "tile"}, "give a list of keys"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"seconds": -1.0}, "seconds is -1"),
        ({"seconds": "3"}, "seconds is '3'"),
        ({"id": "x" * 101}, "id is 'xxx"),
        ({"skipped": "no"}, "skipped is 'no'"),
        ({"who": ""}, "who is ''"),
    ],
)
def test_what_is_no_answer_is_refused(change, message, desk):
    asked = desk.question("ada")
    given = {"who": "ada", "id": "1", "question_id": asked.id, "seconds": 1.0, **change}
    with pytest.raises(ValueError, match=message):
        desk.answer(given.pop("who"), **given)
    assert desk.store.facts() == []


def test_undo_takes_back_and_the_question_can_be_answered_again(desk, new_id):
    asked = desk.question("ada")
    answer(desk, "ada", asked, "1")
    placed = caught_up(desk).progress("ada")["placed"]
    assert placed > 0
    with pytest.raises(PermissionError, match="somebody else"):
        desk.undo("bob", id="2", fact="1")
    with pytest.raises(ValueError, match="nothing of that id"):
        desk.undo("ada", id="2", fact="nothing")
    assert desk.undo("ada", id="2", fact="1")
    assert caught_up(desk).progress("ada")["placed"] == 0
    assert desk.progress("ada")["mine"]["questions"] == 0
    undo, first = desk.history("ada")
    assert (undo["kind"], undo["undone"]) == ("undo", False)
    assert (first["id"], first["undone"], first["tiles"]) == ("1", True, asked.tiles)
    assert first["exemplar"] == asked.exemplar
    assert answer(desk, "ada", asked, "3")
    assert caught_up(desk).progress("ada")["placed"] == placed
    assert desk.history("bob") == []


def test_classes_are_named_merged_and_split_with_undo(desk, new_id):
    answer_some(desk, new_id, 8)
    largest = sorted(desk.progress("ada")["classes"], key=lambda one: -one["count"])
    first, second = sorted(largest[:2], key=lambda one: SOURCE.index_of(one["id"]))
    desk.name("ada", id="n", item=first["exemplar"], name="  big   cats ")
    named = caught_up(desk).progress("ada")["classes"]
    assert {one["id"]: one["name"] for one in named}[first["id"]] == "big cats"
    assert desk.item(first["exemplar"]) == {
        "key": first["exemplar"],
        "class": first["id"],
        "name": "big cats",
    }
    desk.merge("ada", id="m", a=first["exemplar"], b=second["exemplar"])
    merged = {one["id"]: one for one in caught_up(desk).progress("ada")["classes"]}
    both = merged[desk.item(first["exemplar"])["class"]]
    assert desk.item(second["exemplar"])["class"] == both["id"]
    assert (both["count"], both["name"]) == (first["count"] + second["count"], "big cats")
    desk.undo("ada", id="u", fact="m")
    assert caught_up(desk).progress("ada")["classes"] == named
    members = [key for key in SOURCE.keys if desk.item(key)["class"] == first["id"]]
    leaving = [key for key in members if key != first["exemplar"]][:2]
    desk.split("ada", id="s", from_=first["exemplar"], items=leaving)
    after = caught_up(desk).progress("ada")["classes"]
    assert {one["name"]: one["count"] for one in after}["big cats"] == first["count"] - 2
    desk.undo("ada", id="v", fact="s")
    assert caught_up(desk).progress("ada")["classes"] == named
    # Of which nobody knows anything: a group that may yet turn out to be a known class has none.
    unknown = desk.snapshot.labels.copy()
    unknown[desk.snapshot.groups >= 0] = 0
    alone = SOURCE.keys[int(np.flatnonzero(unknown < 0)[0])]
    desk.name("ada", id="t", item=alone, name="something new")
    last = caught_up(desk).progress("ada")["classes"][-1]
    assert last == {"id": alone, "name": "something new", "count": 1, "exemplar": alone}
    for wrong in ({"a": "nobody", "b": "photo 1"}, {"a": "photo 1", "b": "photo 1"}):
        with pytest.raises(ValueError, match="nobody|same item"):
            desk.merge("ada", id="w", **wrong)


def test_what_another_process_says_is_heard(desk, store, tmp_path):
    with Store.open(tmp_path / "project.db") as other:
        path = tmp_path / "pairs.csv"
        path.write_text("a,b,value\nphoto 0,photo 3,1\nphoto 0,photo 1,-1\nelsewhere,photo 1,1\n")
        import_answers(other, path)
    soon(lambda: desk.progress("ada")["placed"] == 3)


# --- gold -----------------------------------------------------------------------------------------


def test_gold_tiles_tell_who_is_careful_and_change_nothing(store, new_id):
    with Desk(SOURCE, ROWS, store, grid=6, gold_share=0.2, thinking="call") as desk:
        answer_some(desk, new_id, 6)
        tiles = gold = 0
        for _ in range(30):
            asked = desk.question("bob")
            if asked is None:
                break
            known = store.leased(asked.id).question["gold"]
            for key, alike in known.items():
                assert alike == (kind_of(key) == kind_of(asked.exemplar))
            tiles, gold = tiles + len(asked.tiles), gold + len(known)
            assert len(asked.tiles) <= 6
            # Bob gets every gold tile wrong, and all others right.
            clicked = [
                key
                for key in asked.tiles
                if (kind_of(key) == kind_of(asked.exemplar)) != (key in known)
            ]
            answer(desk, "bob", asked, new_id(), clicked)
            caught_up(desk)
        assert 0.08 < gold / tiles < 0.35
        figures = {row["name"]: row for row in desk.people_figures()}
        assert figures["bob"]["gold_accuracy"] == 0.0
        assert figures["bob"]["gold_tiles"] == gold
        assert figures["ada"]["gold_accuracy"] in (None, 1.0)
        assert figures["ada"]["seconds"] == 2.0
        labels = desk.snapshot.labels
        pairs = {(int(a), int(b)) for a, b in zip(labels, TRUTH, strict=True) if a >= 0}
        assert len(pairs) == desk.snapshot.n_classes == CLASSES  # no harm was done
        assert all("gold" not in str(entry["body"]) for entry in desk.history("bob", 50))


def test_one_tile_in_twenty_is_gold(store, new_id):
    with Desk(SOURCE, ROWS, store, grid=15, thinking="call") as desk:
        answer_some(desk, new_id, 4)
        snapshot = desk.snapshot
        placed = snapshot.exemplar(0)
        unplaced = np.flatnonzero(snapshot.labels < 0).tolist()
        counts = {who: [0, 0] for who in ("bob", "cy")}
        handing = Handing(15, 0.05, np.random.default_rng(0))
        for number in range(400):
            for who in counts:
                # Cy is asked about known classes half of the time: what is missing is made up.
                exemplar = unplaced[0] if who == "cy" and number % 2 else placed
                ready = proposal(Grid(exemplar, tuple(unplaced[1:16])), snapshot.labels)
                found = handing.lay_out(who, ready, snapshot, set(), set())
                tiles, gold = found.tiles, found.gold
                counts[who][0] += len(tiles)
                counts[who][1] += len(gold)
                assert len(tiles) <= 15
        for tiles, gold in counts.values():
            assert 0.045 < gold / tiles < 0.06


def test_agreement_is_with_what_the_others_imply():
    said = [
        Said("a", "b", 1.0, "ada"),
        Said("b", "c", 1.0, "ada"),
        Said("c", "d", -1.0, "ada"),
        Said("a", "c", 1.0, "bob"),  # implied by ada's
        Said("a", "d", 1.0, "bob"),  # against ada's
        Said("x", "y", 1.0, "bob"),  # nobody else knows
        Said("a", "d", 0.0, "cy"),
    ]
    assert agreements(said)["bob"] == 0.5
    # Of ada's three, bob implies a-c and c-d alike: he speaks of neither a-b nor b-c.
    assert agreements(said)["ada"] == 0.0
    assert "cy" not in agreements(said)
    assert agreements(said[:3]) == {}


# --- rows, map, estimates -------------------------------------------------------------------------


def test_the_rows_can_be_swapped_while_people_answer(desk, new_id):
    answer_some(desk, new_id, 3)
    before = desk.map()
    rows = ROWS[:, ::-1] * [1.0, -3.0] + 5.0
    held = desk.question("ada")
    desk.refit(rows)
    soon(lambda: desk.snapshot is not None and desk._mind.X is rows)
    assert answer(desk, "ada", held, new_id())
    assert caught_up(desk).question("ada") is not None
    after = desk.map()
    assert [point["key"] for point in after] == [point["key"] for point in before]
    assert [(p["x"], p["y"]) for p in after] != [(p["x"], p["y"]) for p in before]
    with pytest.raises(ValueError, match=r"shape \(5, 2\)"):
        desk.refit(rows[:5])
    with pytest.raises(ValueError, match="NaN"):
        desk.refit(np.full_like(rows, np.nan))


def test_the_map_shows_what_is_known(desk, new_id):
    answer_some(desk, new_id, 3)
    points = {point["key"]: point for point in desk.map()}
    ids = {one["id"] for one in desk.progress("ada")["classes"]}
    assert len(points) == N
    assert {p["class"] for p in points.values()} == {None, *ids}
    for key, point in points.items():
        assert point["class"] == desk.item(key)["class"]
        assert 0 <= point["x"] <= 1 and 0 <= point["y"] <= 1


def test_another_pool_is_drawn_when_one_is_placed(store, new_id, monkeypatch):
    """The classifier holds a part of the items at a time; all of them are placed in the end."""
    monkeypatch.setattr("likewise.annotate.mind.manner.Probe", partial(Probe, pool=24, neighbors=3))
    with Desk(SOURCE, ROWS, store, grid=6, cache=None, thinking="call") as desk:
        assert desk.snapshot.sequence == 0
        first = set(desk._mind.pool)
        answer_some(desk, new_id, 80)
        assert len(first) == 24
        assert set(desk._mind.pool) != first
        assert (desk.snapshot.labels >= 0).mean() > 0.6


def test_a_large_map_is_drawn_from():
    items, places = flat_map(np.random.default_rng(0).normal(size=(20_000, 5)))
    assert len(items) == len(places) == 5000
    assert len(set(items)) == 5000
    assert flat_map(np.zeros((3, 1)))[1] == [(0.0, 0.0)] * 3


def test_the_map_is_that_of_scikit_learn():
    from sklearn.decomposition import PCA

    rows = np.random.default_rng(0).normal(size=(50, 6)) * [5, 3, 1, 1, 1, 1]
    wanted = PCA(2).fit_transform(rows)
    wanted = (wanted - wanted.min(axis=0)) / np.ptp(wanted, axis=0)
    found = np.array(flat_map(rows)[1])
    for axis in range(2):  # a component has no sign
        either = (wanted[:, axis], 1 - wanted[:, axis])
        assert min(np.abs(found[:, axis] - one).max() for one in either) < 1e-3


def test_progress_counts_and_estimates(desk, new_id):
    fresh = desk.progress("ada")
    assert (fresh["accuracy"], fresh["questions_left"], fresh["classes"]) == (None, None, [])
    answer_some(desk, new_id, 12)
    asked = desk.question("bob")
    answer(desk, "bob", asked, new_id())
    progress = caught_up(desk).progress("bob")
    assert progress["mine"] == {"questions": 1, "answers": len(asked.tiles)}
    assert progress["team"]["questions"] == 13
    assert progress["accuracy"] >= 0.9  # three clouds that hardly touch
    assert progress["questions_left"] is not None


def test_of_random_classes_little_is_predicted_and_much_is_left(store):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(N, 2))
    with Desk(SOURCE, rows, store, grid=6, thinking="call") as desk:
        pairs = ["a,b,value"]
        for k in range(3, 45):
            pairs.append(f"photo {k % 3},photo {k},1")
        pairs += ["photo 0,photo 1,-1", "photo 1,photo 2,-1", "photo 0,photo 2,-1"]
        path = store.file.with_name("pairs.csv")
        path.write_text("\n".join(pairs))
        import_answers(store, path)
        soon(lambda: desk.progress("ada")["accuracy"] is not None)
        progress = desk.progress("ada")
        assert progress["accuracy"] < 0.7
        assert progress["questions_left"] > 0


def test_beliefs_that_reckon_with_mistakes(store, new_id):
    with Desk(SOURCE, ROWS, store, grid=6, beliefs="noisy", thinking="call") as desk:
        for number in range(60):
            asked = caught_up(desk).question(f"p{number % 3}")
            if asked is None:
                break
            answer(desk, f"p{number % 3}", asked, new_id())
        labels = caught_up(desk).snapshot.labels
        placed = labels >= 0
        assert placed.sum() > 10
        most = [Counter(TRUTH[labels == c]).most_common(1)[0][1] for c in range(labels.max() + 1)]
        assert sum(most) / placed.sum() > 0.9


# --- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": ROWS[:5]}, "X has shape"),
        ({"X": np.full((N, 2), np.inf)}, "NaN or infinity"),
        ({"grid": 0}, "grid is 0"),
        ({"target": 1.0}, "target is 1.0"),
        ({"gold_share": -0.1}, "gold_share is -0.1"),
        ({"beliefs": "wild"}, "beliefs is 'wild'"),
        ({"lease": 0}, "lease is 0"),
        ({"sampler": "best"}, "sampler is 'best'"),
    ],
)
def test_a_desk_that_cannot_be_is_refused(change, message, store):
    with pytest.raises(ValueError, match=message):
        Desk(SOURCE, change.pop("X", ROWS), store, **change)


def test_a_question_of_no_kind_is_refused(desk):
    with pytest.raises(ValueError, match="kind is 'riddle'"):
        desk.question("ada", kind="riddle")
    with pytest.raises(ValueError, match="who is ''"):
        desk.question("")
