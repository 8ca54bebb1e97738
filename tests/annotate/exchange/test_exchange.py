"""Answers in and out: what comes back is what went out."""

from __future__ import annotations

import csv
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.annotate import Fact, Said, Store, answers_of_project
from likewise.annotate.exchange import export_answers, format_of, import_answers
from likewise.commands.answers import answers as answers_command
from likewise.commands.errors import UsageError
from likewise.data.keys import Keyed
from tests.annotate.databases import KINDS, new_project
from tests.annotate.store.test_store import grid, name, undo

NEW_YEAR = "2024-01-01T00:00:00Z"
ODD = ['=cmd()|"x"', "'-1", "a,b;c", "línea\nnueva", "-dash", "ключ", "'", "plus+", "@at"]


def filled(store: Store) -> Store:
    store.append(
        [
            grid("1", "x", "abc", "ab", who="ada", when=1.5),
            grid("2", "x", "d", who="bob", when=2.25),
            grid("3", "x", "e", "e"),
            undo("4", "3"),
            name("5", "a", "cats"),
            grid("6", "y", "f", unsure=["f"], when=1e9 + 0.125),
            Fact("7", "split", "bob", 3.0, {"from": "a", "items": ["b"]}),
        ]
    )
    return store


def said(store: Store, *fields: str) -> Counter:
    return Counter(tuple(getattr(each, field) for field in fields) for each in store.answers())


@pytest.mark.parametrize("kind", KINDS)
def test_json_lines_give_the_same_project_back(kind, tmp_path):
    with (
        Store.open(new_project(kind, tmp_path)) as first,
        Store.open(new_project("sqlite", tmp_path)) as second,
    ):
        filled(first)
        assert export_answers(first, tmp_path / "all.jsonl") == 7
        assert import_answers(second, tmp_path / "all.jsonl") == (7, 7)
        assert second.facts() == first.facts()
        assert second.answers() == first.answers()
        assert import_answers(second, tmp_path / "all.jsonl") == (7, 0)


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_what_counts_survives_the_round_trip(ending, tmp_path):
    with (
        Store.open(tmp_path / "first.db") as first,
        Store.open(tmp_path / "second.db") as second,
    ):
        filled(first)
        first.append([name(f"odd {k}", key, f"kind {k}") for k, key in enumerate(ODD)])
        question = {"kind": "grid", "exemplar": ODD[0], "candidates": ODD[1:]}
        first.append(
            [Fact("9", "answer", "=ada", 7.0, {"question": question, "clicked": ODD[2:4]})]
        )
        written = export_answers(first, tmp_path / f"out{ending}")
        held, new = import_answers(second, tmp_path / f"out{ending}")
        assert held == new >= written
        fields = ("a", "b", "value", "who", "when")
        assert said(second, *fields) == said(first, *fields)
        assert second.names() == first.names()
        # Once more, into the same project and into a file.
        assert import_answers(second, tmp_path / f"out{ending}")[1] == 0
        export_answers(second, tmp_path / f"again{ending}")
        with Store.open(tmp_path / "third.db") as third:
            import_answers(third, tmp_path / f"again{ending}")
            assert said(third, *fields) == said(first, *fields)


KEY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@given(keys=st.lists(KEY, min_size=3, max_size=6, unique=True), data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_any_keys_survive_every_format(keys, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("round")
    clicked = data.draw(st.lists(st.sampled_from(keys[1:]), unique=True))
    question = {"kind": "grid", "exemplar": keys[0], "candidates": keys[1:]}
    fact = Fact("1", "answer", "ada", 0.0, {"question": question, "clicked": clicked})
    with Store.open(folder / "first.db") as first:
        first.append([fact])
        for ending in (".jsonl", ".csv", ".json"):
            export_answers(first, folder / f"out{ending}")
            with Store.open(folder / f"{ending[1:]}.db") as second:
                import_answers(second, folder / f"out{ending}")
                assert said(second, "a", "b", "value") == said(first, "a", "b", "value")


def test_a_spreadsheet_finds_no_formula(tmp_path):
    with Store.open(tmp_path / "p.db") as store:
        store.append([name("1", "=HYPERLINK()", "@SUM(A1)")])
        export_answers(store, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "@", "+")]


def test_pairs_of_the_oracles_room_can_be_read(tmp_path):
    lines = [{"a": "x", "b": "y", "value": 1}, {"a": "x", "b": "z", "value": -1, "who": "bob"}]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    with Store.open(tmp_path / "p.db") as store:
        assert import_answers(store, path, who="ada") == (2, 2)
        assert said(store, "a", "b", "value", "who") == Counter(
            [("x", "y", 1.0, "ada"), ("x", "z", -1.0, "bob")]
        )


def test_image_classification_of_label_studio(tmp_path):
    def task(image, choice, **more):
        result = [{"type": "choices", "value": {"choices": [choice]}}]
        return {"data": {"image": image}, "annotations": [{"result": result, **more}]}

    cancelled = task("9.jpg", "cat", was_cancelled=True)
    tasks = [
        task("1.jpg", "cat", completed_by=7),
        task(
            "2.jpg", "dog", completed_by={"email": "bob@x.org"}, created_at="2024-01-01T00:00:00Z"
        ),
        task("3.jpg", "cat"),
        {"data": {"image": "4.jpg"}, "annotations": []},
        cancelled,
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    with Store.open(tmp_path / "p.db") as store:
        import_answers(store, tmp_path / "tasks.json")
        assert said(store, "a", "b", "value") == Counter(
            [("1.jpg", "2.jpg", -1.0), ("1.jpg", "3.jpg", 1.0)]
        )
        assert store.names() == {"1.jpg": "cat", "2.jpg": "dog"}
        people = {fact.who: fact.when for _, fact in store.facts()}
        assert people == {"7": 0.0, "bob@x.org": 1704067200.0, "import": 0.0}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("x.jsonl", '{"a": "x", "b": "y", "value": 1}\n{"a": 1', "line 2"),
        ("x.jsonl", '{"a": "x", "b": "y", "value": 0.3}', "value is 0.3"),
        ("x.jsonl", "[1]", "line 1"),
        ("x.csv", "a,b\nx,y\n", "it needs a, b, value"),
        ("x.csv", "a,b,value\nx,y,1\nx,x,1\n", "line 3: a and b are the same"),
        ("x.csv", "a,b,value\nx,y,often\n", "line 2"),
        ("x.json", "{}", "no list of tasks"),
        ("x.json", '[{"data": {"a": "x", "b": "y"}, "annotations": [{"result": [3]}]}]', "task 1"),
        ("x.json", "[", "x.json"),
        ("x.txt", "", "ends in '.txt'"),
    ],
)
def test_a_broken_file_adds_nothing(file, content, message, tmp_path):
    (tmp_path / file).write_text(content)
    with Store.open(tmp_path / "p.db") as store:
        with pytest.raises(ValueError, match=message):
            import_answers(store, tmp_path / file)
        assert store.facts() == []


def test_formats_are_told_by_the_name_or_by_the_user(tmp_path):
    assert format_of(tmp_path / "a.txt", "csv") == "csv"
    with pytest.raises(ValueError, match="format is 'xml'"):
        format_of(tmp_path / "a.csv", "xml")


def test_the_command(tmp_path, capsys):
    with Store.open(tmp_path / "p.db") as store:
        filled(store)
    assert answers_command("export", str(tmp_path / "p.db"), tmp_path / "a.jsonl") == 0
    assert "7 facts" in capsys.readouterr().err
    assert answers_command("import", str(tmp_path / "q.db"), tmp_path / "a.jsonl") == 0
    assert "7 new of 7 facts" in capsys.readouterr().err
    with pytest.raises(UsageError, match="there is no project"):
        answers_command("export", str(tmp_path / "none.db"), tmp_path / "b.jsonl")
    with pytest.raises(UsageError, match="there is no file"):
        answers_command("import", str(tmp_path / "q.db"), tmp_path / "none.jsonl")
    assert not (tmp_path / "none.db").exists()


# --- what a project says ------------------------------------------------------------------------


def test_answers_of_a_project_are_labels_and_a_graph(tmp_path):
    with Store.open(tmp_path / "p.db") as store:
        store.append([grid("1", "x", "abc", "ab"), name("2", "c", "dogs")])
    project = answers_of_project(tmp_path / "p.db")
    items = Keyed(["c", "new", "a", "x"])  # another order, one more, one less
    labels, names = project.labels(items)
    assert labels.tolist() == [0, -1, 1, 1]
    assert names == ["dogs", "class 2"]
    signs = np.array([[1, 0, -1, -1], [0, 1, 0, 0], [-1, 0, 1, 1], [-1, 0, 1, 1]])
    np.testing.assert_array_equal(project.graph(items).dense(), signs)
    with pytest.raises(ValueError, match="there is no project"):
        answers_of_project(tmp_path / "none.db")


def test_a_split_takes_items_out_and_leaves_the_class_together(tmp_path):
    # x is the exemplar that joined all: it leaves, and what it joined stays one class.
    with Store.open(tmp_path / "p.db") as store:
        store.append([grid("1", "x", "abcd", "abcd")])
        store.append([Fact("2", "split", "ada", 0.0, {"from": "a", "items": ["x", "d"]})])
        items = Keyed(list("xabcd"))

        def relations(of: str) -> list[int]:
            beliefs = answers_of_project(tmp_path / "p.db").beliefs(items)
            place = items.index_of(of)
            return [beliefs.relation(place, other) for other in range(5)]

        assert relations("a") == [-1, 1, 1, 1, -1]
        assert relations("x") == [1, -1, -1, -1, 1]  # x and d were said to be alike
        # Later answers count, over the split.
        store.append([grid("3", "b", "d", "d")])
        assert relations("a")[4] == 1
        store.append([undo("4", "3"), undo("5", "2")])
        assert relations("a") == [1, 1, 1, 1, 1]


def test_pairs_are_those_of_the_oracles_room():
    """Against `answers_of`, which works with numbers, on random clicks."""
    from likewise.annotate.facts import pairs_of
    from likewise.oracles import Grid, Outliers, Pair, answers_of

    rng = np.random.default_rng(0)
    for _ in range(100):
        items = rng.permutation(20)[: rng.integers(2, 9)].tolist()
        marks = {i: int(rng.integers(3)) for i in items[1:]}
        for question in (
            Grid(items[0], tuple(items[1:])),
            Pair(items[0], items[1]),
            Outliers(tuple(items)),
        ):
            shown = {i: mark for i, mark in marks.items() if i in question.items}
            clicked = [i for i, mark in shown.items() if mark == 1]
            unsure = [i for i, mark in shown.items() if mark == 2]
            keys = {
                name: [str(i) for i in value] if isinstance(value, list) else str(value)
                for name, value in question.to_dict().items()
            }
            body = {
                "question": keys,
                "clicked": [str(i) for i in clicked],
                "unsure": [str(i) for i in unsure],
            }
            found = pairs_of(3, Fact("f", "answer", "ada", 5.0, body))
            wanted = answers_of(question, clicked, unsure=unsure, who="ada", when=5.0, id="f")
            assert found == [
                Said(str(w.a), str(w.b), w.value, "ada", 5.0, w.id, question.kind, 3)
                for w in wanted
            ]
