"""What every store promises: the same tests on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from likewise.annotate import Fact, Store
from likewise.annotate.facts import question_of
from likewise.annotate.store.engines import open_engine, which_database
from tests.annotate.databases import KINDS, new_project


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=KINDS)
def project(request, tmp_path) -> str:
    return new_project(request.param, tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(project, clock) -> Iterator[Store]:
    with Store.open(project, clock=clock) as opened:
        yield opened


def grid(id: str, exemplar: str, candidates: str, clicked: str = "", **more) -> Fact:
    who, when = more.pop("who", "ada"), more.pop("when", 0.0)
    question = {"kind": "grid", "exemplar": exemplar, "candidates": list(candidates)}
    body = {"question": question, "clicked": list(clicked), **more}
    return Fact(id, "answer", who, when, body)


def undo(id: str, fact: str) -> Fact:
    return Fact(id, "undo", "ada", 0.0, {"fact": fact})


def name(id: str, item: str = "a", called: str = "cats", who: str = "ada") -> Fact:
    return Fact(id, "name", who, 0.0, {"item": item, "name": called})


def signs(store: Store) -> set[tuple[str, str, float]]:
    return {(said.a, said.b, said.value) for said in store.answers()}


# --- facts --------------------------------------------------------------------------------------


def test_the_same_id_twice_is_one_fact(store):
    first, second = grid("1", "x", "ab", "a"), grid("1", "x", "ab", "b")
    assert store.append([first, name("2"), first]) == [True, True, False]
    assert store.append([second]) == [False]
    assert [fact for _, fact in store.facts()] == [first, name("2")]
    assert signs(store) == {("x", "a", 1.0), ("x", "b", -1.0)}


def test_facts_come_back_as_they_were(store):
    odd = {"item": 'a "b"\\ \u2603\U0001f600\x00\ud800', "name": "Bär 😀"}
    fact = Fact("!~", "name", "Zoë", 12.25, odd)
    store.append([fact])
    assert store.facts() == [(1, fact)]
    assert store.fact("!~") == (1, fact)
    assert store.fact("other") is None


def test_facts_can_be_read_from_anywhere(store):
    store.append([name(str(k), who="ada" if k % 2 else "bob") for k in range(6)])
    numbers = [sequence for sequence, _ in store.facts()]
    assert numbers == sorted(numbers) and len(set(numbers)) == 6
    assert store.last() == numbers[-1]
    assert [f.id for _, f in store.facts(after=numbers[3])] == ["4", "5"]
    assert [f.id for _, f in store.facts(who="bob")] == ["0", "2", "4"]
    assert [f.id for _, f in store.facts(limit=2)] == ["0", "1"]
    assert [f.id for _, f in store.latest("ada", 2)] == ["5", "3"]


def test_an_empty_store(store):
    assert store.append([]) == []
    assert (store.facts(), store.answers(), store.names(), store.last()) == ([], [], {}, 0)


def test_another_process_and_a_reopened_store_see_them(store, project):
    store.append([name("1")])
    program = (
        "import sys; from likewise.annotate.store import Store\n"
        "from likewise.annotate.facts import Fact\n"
        "store = Store.open(sys.argv[1])\n"
        "print(store.append([Fact('1', 'name', 'bob', 0.0, {'item': 'b', 'name': 'dogs'}),"
        " Fact('2', 'name', 'bob', 0.0, {'item': 'b', 'name': 'dogs'})]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, project], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[False, True]"
    assert [fact.id for _, fact in store.facts()] == ["1", "2"]
    with Store.open(project) as again:
        assert [fact.who for _, fact in again.facts()] == ["ada", "bob"]


def test_many_threads_at_once_lose_nothing_and_double_nothing(project):
    # Two stores, as two servers would have them; every id is sent by two threads.
    with Store.open(project) as first, Store.open(project) as second:
        seen: list[int] = []
        done = threading.Event()

        def send(number: int) -> int:
            store = first if number % 2 else second
            facts = [name(f"{number // 2}-{k}") for k in range(3)]
            return sum(sum(store.append([fact])) for fact in facts)

        def watch() -> None:
            # Whoever reads from the last number on misses nothing: numbers appear in order.
            while not done.is_set() or first.last() > (seen[-1] if seen else 0):
                seen.extend(n for n, _ in first.facts(after=seen[-1] if seen else 0))

        reader = threading.Thread(target=watch)
        reader.start()
        with ThreadPoolExecutor(16) as pool:
            new = sum(pool.map(send, range(60)))
        done.set()
        reader.join()
        assert new == 90
        facts = second.facts()
        assert sorted(fact.id for _, fact in facts) == sorted(
            f"{k}-{j}" for k in range(30) for j in range(3)
        )
        assert seen == [sequence for sequence, _ in facts]


def test_a_reader_that_sits_on_a_snapshot_keeps_nobody_from_writing(store, project):
    store.append([name("1")])
    url = f"sqlite:///{project}" if "://" not in project else project
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        if "sqlite" in url:
            connection.exec_driver_sql("BEGIN")
        count = text("SELECT count(*) FROM likewise_facts")
        assert connection.execute(count).scalar() == 1
        assert store.append([name("2")]) == [True]
        assert store.last() == 2
    engine.dispose()


def test_a_clock_that_jumps_back_changes_no_order(store):
    store.append([grid("1", "x", "a", when=2_000_000_000.0)])
    store.append([undo("2", "1")])
    store.append([grid("3", "x", "a", "a", when=-5.0)])
    assert [fact.id for _, fact in store.facts()] == ["1", "2", "3"]
    assert signs(store) == {("x", "a", 1.0)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: Fact("", "name", "ada", 0.0, {}), "id is ''"),
        (lambda: Fact("ä", "name", "ada", 0.0, {}), "printable ASCII"),
        (lambda: name("1", called="a\nb"), "name is"),
        (lambda: name("1", who="\x00"), "who is"),
        (lambda: name("1", item=""), "item is ''"),
        (lambda: Fact("1", "wish", "ada", 0.0, {}), "kind is 'wish'"),
        (lambda: Fact("1", "undo", "ada", float("nan"), {"fact": "2"}), "when is nan"),
        (lambda: Fact("1", "undo", "ada", 0.0, {}), "id is None"),
        (lambda: grid("1", "x", "ab", "c"), "'c', which the question does not show"),
        (lambda: grid("1", "x", "ab", "a", unsure=["a"]), "'a' is clicked and unsure"),
        (lambda: grid("1", "x", "aa"), "names an item twice"),
        (lambda: grid("1", "a", "ab"), "the exemplar is among"),
        (lambda: grid("1", "x", ""), "candidates holds 0"),
        (lambda: grid("1", "x", "a", seconds=-1.0), "seconds is -1"),
        (lambda: grid("1", "x", "a", seconds="3"), "seconds is '3'"),
        (lambda: grid("1", "x", "a", skipped=1), "skipped is 1"),
        (lambda: grid("1", "x", "a", gold={"z": True}), "gold is"),
        (lambda: Fact("1", "split", "ada", 0.0, {"from": "a", "items": ["a"]}), "from is among"),
        (lambda: question_of({"kind": "pair", "a": "x"}), "b is None"),
        (lambda: question_of({"kind": "outliers", "tiles": ["x"]}), "items holds 1"),
    ],
)
def test_what_is_no_fact_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        change()


# --- what counts --------------------------------------------------------------------------------


def test_an_undo_is_a_fact_and_can_be_undone(store):
    store.append([grid("1", "x", "ab", "a"), grid("2", "x", "c", "c"), undo("3", "1")])
    assert signs(store) == {("x", "c", 1.0)}
    store.append([undo("4", "3")])
    assert signs(store) == {("x", "a", 1.0), ("x", "b", -1.0), ("x", "c", 1.0)}
    assert len(store.facts()) == 4


def test_answers_since(store):
    store.append([grid("1", "x", "ab", "a")])
    first = store.answers_since(0)
    assert [(s.b, s.value) for s in first.answers] == [("a", 1.0), ("b", -1.0)]
    assert store.answers_since(first.sequence).answers == []
    store.append([grid("2", "x", "c"), name("3")])
    second = store.answers_since(first.sequence)
    assert ([s.b for s in second.answers], second.rewritten) == (["c"], False)
    assert second.sequence == store.last()
    store.append([undo("4", "1"), grid("5", "x", "d")])
    third = store.answers_since(second.sequence)
    assert ([s.b for s in third.answers], third.rewritten) == (["d"], True)


def test_names_the_last_counts(store):
    store.append([name("1", "a", "cats"), name("2", "b", "dogs"), name("3", "a", "lions")])
    assert list(store.names().items()) == [("b", "dogs"), ("a", "lions")]
    store.append([undo("4", "3")])
    assert store.names() == {"a": "cats", "b": "dogs"}


# --- leases -------------------------------------------------------------------------------------


def test_an_open_question_is_one_persons(store):
    assert store.lease("q1", "ada", ["a", "b"])
    assert not store.lease("q2", "bob", ["b", "c"])
    assert not store.lease("q3", "ada", ["a"])
    assert store.lease("q4", "bob", ["c"])  # the one that was refused holds nothing
    assert [(lease.question_id, lease.who) for lease in store.open_leases()] == [
        ("q1", "ada"),
        ("q4", "bob"),
    ]
    assert [lease.question_id for lease in store.open_leases("bob")] == ["q4"]
    assert not store.lease("q1", "bob", ["z"])  # the id is taken


def test_a_lease_ends_with_the_answer_or_when_it_is_let_go(store):
    store.lease("q1", "ada", ["a"], question={"of": "ada"})
    store.lease("q2", "ada", ["b"])
    store.append([grid("1", "x", "a")], release=["q1"])
    store.release("q2")
    assert store.open_leases() == []
    assert store.lease("q3", "bob", ["a", "b"])
    assert store.leased("q1").question == {"of": "ada"}  # still known
    assert store.leased("q9") is None


def test_a_lease_expires_and_a_late_answer_counts(store, clock):
    store.lease("q1", "ada", ["a"], seconds=300)
    clock.now += 299
    assert not store.lease("q2", "bob", ["a"])
    clock.now += 2
    assert store.open_leases() == []
    assert store.lease("q3", "bob", ["a"])
    assert store.append([grid("1", "x", "a", "a")], release=["q1"]) == [True]
    assert signs(store) == {("x", "a", 1.0)}
    assert [lease.question_id for lease in store.open_leases()] == ["q3"]


def test_a_clock_that_jumps_back_holds_nothing_for_ever(store, clock):
    store.lease("q1", "ada", ["a"], seconds=300)
    clock.now -= 30  # a small correction
    assert not store.lease("q2", "bob", ["a"])
    clock.now -= 365 * 24 * 3600
    assert store.open_leases() == []
    assert store.lease("q3", "bob", ["a"])


def test_two_who_reach_for_the_same_question_at_once(project):
    with Store.open(project) as first, Store.open(project) as second:
        items = [f"item {number}" for number in range(30)]

        def reach(number: int) -> list[str]:
            store = first if number % 2 else second
            order = items if number % 4 < 2 else items[::-1]
            # Every question wants two items, as grids do that overlap.
            return [
                item
                for place, item in enumerate(order)
                if store.lease(f"{number}-{place}", f"p{number}", [item, order[place - 1]])
                or store.lease(f"{number}-{place}-alone", f"p{number}", [item])
            ]

        with ThreadPoolExecutor(8) as pool:
            got = [item for items in pool.map(reach, range(8)) for item in items]
        assert len(got) == len(set(got))
        held = [f"{lease.question_id}" for lease in first.open_leases()]
        assert len(held) == len(got)


def test_leases_of_days_ago_are_forgotten_when_the_store_is_opened(project, clock):
    with Store.open(project, clock=clock) as store:
        store.lease("q1", "ada", ["a"])
    clock.now += 3 * 24 * 3600
    with Store.open(project, clock=clock) as store:
        assert store.leased("q1") is None


# --- people -------------------------------------------------------------------------------------


def test_tokens_are_shown_once_and_only_their_hash_is_kept(store, project):
    token = store.add_person("ada", admin=True)
    assert store.person_of(token).name == "ada"
    assert store.person_of(token).admin
    assert store.person_of(token[:-1] + ("a" if token[-1] != "a" else "b")) is None
    for wrong in ("", "x" * 10_000, "\ud800", "' OR 1=1 --"):
        assert store.person_of(wrong) is None
    url = f"sqlite:///{project}" if "://" not in project else project
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM likewise_people")).all()
    engine.dispose()
    assert token not in str(rows)


def test_invitations_expire_and_are_revoked(store, clock):
    token = store.add_person("ada", expires=clock.now + 100)
    other = store.add_person("bob")
    clock.now += 99
    assert store.person_of(token).name == "ada"
    clock.now += 1
    assert store.person_of(token) is None
    assert store.person_of(other).name == "bob"
    assert store.revoke("bob")
    assert store.person_of(other) is None
    assert not store.revoke("nobody")
    assert [(p.name, p.revoked) for p in store.people()] == [("ada", False), ("bob", True)]


def test_a_name_is_invited_once_at_a_time(store, clock):
    first = store.add_person("ada")
    with pytest.raises(ValueError, match="invited already"):
        store.add_person("ada")
    store.revoke("ada")
    second = store.add_person("ada")
    assert store.person_of(first) is None
    assert store.person_of(second).name == "ada"
    with pytest.raises(ValueError, match="which is past"):
        store.add_person("bob", expires=clock.now - 1)


# --- opening ------------------------------------------------------------------------------------


def test_tables_of_another_version_are_refused(project):
    Store.open(project).close()
    url = f"sqlite:///{project}" if "://" not in project else project
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE likewise_about SET value = '99'"))
    engine.dispose()
    with pytest.raises(ValueError, match="tables of version 99"):
        Store.open(project)


def test_what_is_no_project_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database at all")
    with pytest.raises(ValueError, match="not a project"):
        Store.open(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "not a database at all"
    with pytest.raises(ValueError, match="is a folder"):
        Store.open(tmp_path)
    with pytest.raises(ValueError, match="'mysql'"):
        Store.open("mysql://localhost/x")
    with pytest.raises(ValueError, match="has no file"):
        Store.open("sqlite://")


def test_a_password_is_never_shown():
    started = time.monotonic()
    with pytest.raises(OSError) as caught:
        Store.open("postgresql://ada:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("secret", ["ada:secret@h/none", "ada@h/none?password=secret&port=1"])
def test_a_password_is_not_in_its_place(secret):
    engine, place = open_engine(f"postgresql://{secret}")
    assert "secret" in engine.url.render_as_string(hide_password=False)
    assert "secret" not in place and "secret" not in which_database(engine.url)
    assert "h/none" in place
    engine.dispose()


def test_without_sqlalchemy_it_says_what_to_install():
    code = "import sys; sys.modules['sqlalchemy'] = None; import likewise.annotate.store"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1
    assert "pip install '.[annotate]' in the checkout" in found.stderr.splitlines()[-1]


def test_the_store_needs_no_pytorch():
    code = "import sys; import likewise.annotate.store; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_second_look_from_this_process_and_another_takes_nothing_away(tmp_path):
    """Whoever opens the file itself, and closes it, drops all locks that the process has on it; a
    second process then takes itself for the last one, and removes what is not in the file yet."""
    project = tmp_path / "project.db"
    elsewhere = (
        "import sys; from likewise.annotate import Store\n"
        "for _ in range(2):\n"
        "    with Store.open(sys.argv[1]) as store: store.facts()"
    )
    with Store.open(project) as store:
        for number in range(12):
            body = {"item": "a", "name": "cats"}
            store.append([Fact(id=str(number), kind="name", who="ann", when=0.0, body=body)])
            if number % 4 == 1:
                Store.open(project).close()
                subprocess.run([sys.executable, "-c", elsewhere, str(project)], check=True)
        assert len(store.facts()) == 12
    with Store.open(project) as store:
        assert len(store.facts()) == 12
