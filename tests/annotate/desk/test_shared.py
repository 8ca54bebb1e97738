"""Nobody is asked about a pair that somebody else has before them, whatever happens meanwhile."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from likewise.annotate import Asked, Desk, Store
from likewise.annotate.mind.proposals import proposal
from likewise.oracles.questions import Grid
from tests.annotate.clouds import CLASSES, ROWS, SOURCE, N, kind_of, true_clicks
from tests.annotate.databases import KINDS, new_project

Pairs = frozenset[frozenset[str]]


def pairs_of(store: Store, asked: Asked) -> Pairs:
    """The pairs that a question asks about, by its text alone; gold tiles are known."""
    gold = store.leased(asked.id).question["gold"]
    new = [key for key in asked.tiles if key not in gold]
    others = asked.tiles if asked.exemplar is None else [asked.exemplar]
    return frozenset(frozenset((a, b)) for a, b in itertools.product(new, others) if a != b)


class Office:
    """People at one or two desks over one store, who do whatever the dice say.

    It keeps its own record of who has which pair before them; nobody has more than three questions
    at once, since of a fourth page the desk would think that the first was closed."""

    def __init__(self, store: Store, seed: int, desks: int) -> None:
        self.store = store
        self.dice = random.Random(seed)
        self.stack = ExitStack()
        self.desks = [self.desk() for _ in range(desks)]
        self.open: dict[str, tuple[str, Asked, Pairs]] = {}
        self.numbers = itertools.count()
        self.said: list[tuple[str, str]] = []
        self.shared: list[str] = []
        self.asked = self.placed_tiles = 0

    def desk(self) -> Desk:
        seed = self.dice.randrange(1000)
        made = Desk(SOURCE, ROWS, self.store, grid=6, seed=seed, thinking="call")
        return self.stack.enter_context(made)

    def id(self) -> str:
        return f"fact-{next(self.numbers)}"

    def key(self) -> str:
        return f"photo {self.dice.randrange(N)}"

    def step(self) -> None:
        who = f"p{self.dice.randrange(8)}"
        desk = self.desks[int(who[1:]) % len(self.desks)]
        mine = [id for id, (other, _, _) in self.open.items() if other == who]
        act = self.dice.random()
        if len(mine) < 3 and act < 0.6:
            self.ask(desk, who)
        elif mine and act < 0.85:
            self.answer(desk, who, self.dice.choice(mine))
        elif act < 0.92 and self.said:
            fact, author = self.dice.choice(self.said)
            desk.undo(author, id=self.id(), fact=fact)
        elif act < 0.95:
            a, b = self.key(), self.key()
            if a != b and kind_of(a) == kind_of(b):
                desk.merge(who, id=(id := self.id()), a=a, b=b)
                self.said.append((id, who))
        elif act < 0.98:
            a, b = self.key(), self.key()
            if a != b:
                desk.split(who, id=self.id(), from_=a, items=[b])
        else:  # a server is started again
            place = self.desks.index(desk)
            desk.close()
            self.desks[place] = self.desk()

    def ask(self, desk: Desk, who: str) -> None:
        kind = self.dice.choice(["grid", "grid", "grid", "pair", "outliers"])
        about = self.key() if self.dice.random() < 0.4 else None
        asked = desk.question(who, kind=kind, about=about)
        if asked is None:
            return
        pairs = pairs_of(self.store, asked)
        for other, theirs, their_pairs in self.open.values():
            if other != who and pairs & their_pairs:
                self.shared.append(f"{asked} of {who} and {theirs} of {other}")
        self.open[asked.id] = who, asked, pairs
        self.asked += 1
        self.placed_tiles += any(desk.item(key)["class"] for pair in pairs for key in pair)

    def answer(self, desk: Desk, who: str, id: str) -> None:
        _, asked, _ = self.open.pop(id)
        fact = self.id()
        clicked, skipped = true_clicks(asked), self.dice.random() < 0.1
        desk.answer(who, id=fact, question_id=id, clicked=clicked, skipped=skipped)
        self.said.append((fact, who))


@pytest.fixture(params=KINDS)
def store(request, tmp_path) -> Iterator[Store]:
    with Store.open(new_project(request.param, tmp_path)) as opened:
        yield opened


@pytest.mark.parametrize("desks", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_no_pair_is_open_with_two_people(store, seed, desks):
    office = Office(store, seed, desks)
    with office.stack:
        for _ in range(160):
            office.step()
    assert office.shared == []
    assert office.asked > 35
    assert office.placed_tiles > 10  # known classes were asked about, where items are not held


def taught(desk: Desk) -> None:
    """Say of some items of every class that they are alike, and of the classes that they differ."""
    for c in range(CLASSES):
        for k in range(1, 4):
            desk.merge("eve", id=f"m-{c}-{k}", a=f"photo {c}", b=f"photo {c + CLASSES * k}")
    desk.split("eve", id="s-1", from_="photo 0", items=["photo 1"])
    desk.split("eve", id="s-2", from_="photo 0", items=["photo 2"])
    desk.split("eve", id="s-3", from_="photo 1", items=["photo 2"])


@pytest.mark.parametrize("desks", [1, 2])
def test_two_people_start_from_the_same_item_on_the_map(store, desks):
    with ExitStack() as stack:
        made = [stack.enter_context(Desk(SOURCE, ROWS, store, thinking="call")) for _ in range(2)]
        taught(made[0])
        first = made[0].question("ada", about="photo 30")
        second = made[desks - 1].question("bob", about="photo 30")
        assert first is not None
        assert any(made[0].item(key)["class"] for key in first.tiles)
        if second is not None:
            assert not pairs_of(store, first) & pairs_of(store, second)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("desks", [1, 2])
def test_a_pair_is_not_asked_the_other_way_round(store, desks, restarted):
    """While somebody is asked whether y is of the class of x, y gets a class and x loses its."""
    with ExitStack() as stack:
        made = [stack.enter_context(Desk(SOURCE, ROWS, store, thinking="call")) for _ in range(2)]
        ada, bob = made[0], made[desks - 1]
        taught(ada)
        x, y = 3, 33
        first = ada._hand_out("ada", proposal(Grid(x, (y,)), ada.snapshot.labels))
        assert (first.exemplar, first.tiles) == ("photo 3", ["photo 33"])
        bob.merge("eve", id="now", a="photo 6", b="photo 33")
        bob.undo("eve", id="gone", fact="m-0-1")
        if restarted:
            bob.close()
            bob = stack.enter_context(Desk(SOURCE, ROWS, store, thinking="call"))
        labels = bob.snapshot.labels
        assert labels[x] < 0 <= labels[y]
        assert bob._hand_out("bob", proposal(Grid(y, (x,)), labels)) is None
        second = bob._hand_out("bob", proposal(Grid(y, (x, 36, 39)), labels))
        if desks == 1 or restarted:  # the desk knows, and leaves that tile out
            assert set(second.tiles) - {"photo 36", "photo 39"} <= {f"photo {k}" for k in range(12)}
        if second is not None:
            assert not pairs_of(store, first) & pairs_of(store, second)
        ada.answer("ada", id="answered", question_id=first.id)
        third = bob._hand_out("cy", proposal(Grid(y, (x,)), bob.snapshot.labels))
        assert third is None or desks == 1 or restarted
