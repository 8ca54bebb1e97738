"""search, cluster, classify, duplicates, subset and split as a user calls them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import likewise
from likewise.commands import main
from likewise.evaluation import Embeddings, write_embeddings
from likewise.oracles import Answer, write_answers
from tests.commands.test_train import refused
from tests.library.pictures import KINDS, picture


@pytest.fixture
def labels(photos: Path, tmp_path: Path) -> Path:
    path = tmp_path / "some.csv"
    lines = [f"{kind}{number}.png,{kind}" for kind in KINDS for number in range(3)]
    path.write_text("key,label\n" + "\n".join(lines) + "\n")
    return path


def call(verb: str, *words: object) -> int:
    return main([verb, *map(str, words), "--device=cpu"])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class TestSearch:
    def test_writes_what_it_finds_in_three_forms(self, run, photos, tmp_path):
        out = [tmp_path / f"hits.{kind}" for kind in ("html", "csv", "json")]
        query = tmp_path / "query.png"
        Image.fromarray(picture(1, 3)).save(query)
        assert call("search", run, photos, "--query", query, "--top", 4, "--out", *out) == 0
        rows = table(out[1])
        assert [row["rank"] for row in rows] == ["1", "2", "3", "4"]
        assert rows[0]["key"] == "square3.png" and float(rows[0]["similarity"]) > 0.999
        found = json.loads(out[2].read_text())
        assert [hit["key"] for hit in found["queries"][0]["hits"]] == [r["key"] for r in rows]
        assert found["changes"]["first"] and found["changes"]["embedded"] == 18
        assert out[0].read_text().count("<img") == 5  # the query and four hits

    def test_says_what_changed_between_calls(self, run, photos, tmp_path, capsys):
        call("search", run, photos, "--query", "circle0.png")
        capsys.readouterr()
        (photos / "circle1.png").rename(photos / "round.png")
        (photos / "circle2.png").unlink()
        Image.fromarray(picture(0, 40)).save(photos / "new.png")
        found = likewise.search(str(run), str(photos), query=["circle0.png"], device="cpu")
        said = " ".join(capsys.readouterr().err.split())
        assert "1 added (new.png), 1 removed (circle2.png)" in said
        assert "1 renamed (circle1.png to round.png)" in said and "1 image embedded" in said
        keys = {hit.key for hit in found[0].hits}
        assert {"round.png", "new.png"} <= keys and "circle2.png" not in keys

    def test_the_index_is_kept_beside_the_run(self, run, photos):
        call("search", run, photos, "--query", "circle0.png")
        assert list(run.glob("index/photos-*/items.parquet"))

    def test_refuses_a_query_that_is_no_image(self, run, photos, tmp_path, capsys):
        path = tmp_path / "letter.txt"
        path.write_text("Dear Sir")
        said = refused(capsys, "search", run, photos, "--query", path)
        assert "letter.txt" in said and "no image" in said
        assert "neither a key" in refused(capsys, "search", run, photos, "--query", "x.png")

    def test_refuses_an_index_of_another_encoder(self, run, photos, tmp_path, capsys):
        index = tmp_path / "index"
        call("search", run, photos, "--query", "circle0.png", "--index", index)
        words = ["search", photos, "--encoder", "tiny", "--query", "circle0.png"]
        said = refused(capsys, *words, "--index", index)
        assert "another encoder" in said and "--rebuild" in said
        assert call(*words, "--index", index, "--rebuild") == 0

    def test_refuses_files_of_other_kinds_before_any_work(self, run, photos, capsys):
        said = refused(capsys, "search", run, photos, "--query", "circle0.png", "--out", "a.pdf")
        assert "out is 'a.pdf'" in said and "embedded" not in said

    def test_refuses_what_is_no_run(self, photos, tmp_path, capsys):
        said = refused(capsys, "search", tmp_path, photos, "--query", "circle0.png")
        assert "not a run" in said


class TestCluster:
    def test_a_table_and_a_sheet_of_examples(self, run, photos, tmp_path):
        assert call("cluster", run, photos, "--k", 3, "--out", tmp_path / "c.csv") == 0
        rows = table(tmp_path / "c.csv")
        assert len(rows) == 18 and {row["cluster"] for row in rows} == {"1", "2", "3"}
        page = (tmp_path / "c.html").read_text()
        assert page.count("<section>") == 3 and page.count("<img") == 18

    def test_an_embeddings_file_and_a_number_that_is_found(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        kinds = np.repeat(np.arange(4), 30)
        rows = rng.standard_normal((4, 12))[kinds] + 0.2 * rng.standard_normal((120, 12))
        path = tmp_path / "e.parquet"
        write_embeddings(path, Embeddings([f"{i}.png" for i in range(120)], rows, kinds))
        found = likewise.cluster(str(path))
        assert found.k == 4 and found.found
        assert "adjusted Rand index 1.000" in capsys.readouterr().out

    def test_refuses_more_clusters_than_images(self, run, photos, capsys):
        assert "k is 18" in refused(capsys, "cluster", run, photos, "--k", "18")


class TestClassify:
    def test_every_image_gets_a_label_or_none(self, run, photos, labels, tmp_path):
        out = [tmp_path / f"l.{kind}" for kind in ("csv", "json", "html")]
        words = ["--labels", labels, "--threshold", 0.6, "--ask", 4, "--out", *out]
        assert call("classify", run, photos, *words) == 0
        rows = table(out[0])
        assert len(rows) == 18
        for row in rows:
            sure = float(row["confidence"])
            if row["source"] == "answer":
                assert row["label"] == row["key"].rstrip("0123456789.png") and sure == 1
            elif row["source"] == "abstained":
                assert row["label"] == "" and row["likeliest"] in KINDS and sure < 0.6
            else:
                assert row["label"] in KINDS and sure >= 0.6
        assert sum(row["source"] == "answer" for row in rows) == 9
        found = json.loads(out[1].read_text())
        low, high = (found["expected_accuracy"][end] for end in ("low", "high"))
        assert 0 <= low <= found["expected_accuracy"]["value"] <= high <= 1
        asked = sorted((int(row["ask"]), row["key"]) for row in rows if row["ask"])
        assert [key for _, key in asked] == found["ask_next"]
        assert "Ask next" in out[2].read_text()

    def test_its_labels_can_be_read_back(self, run, photos, labels, tmp_path):
        from likewise.data import read_label_file

        call(
            "classify",
            run,
            photos,
            "--labels",
            labels,
            "--threshold",
            0,
            "--out",
            tmp_path / "l.csv",
        )
        assert set(read_label_file(tmp_path / "l.csv").values()) <= set(KINDS)

    def test_answers_of_a_file_by_number(self, run, photos, tmp_path):
        from likewise.data import open_source

        keys = open_source(photos).keys
        kind = [key.rstrip("0123456789.png") for key in keys]
        facts = [
            Answer(a, b, 1.0 if kind[a] == kind[b] else -1.0)
            for a in range(0, 18, 6)
            for b in range(0, 18, 2)
            if a != b
        ]
        write_answers(tmp_path / "a.jsonl", facts)
        found = likewise.classify(
            str(run), str(photos), answers=str(tmp_path / "a.jsonl"), device="cpu"
        )
        assert len(found.classes) == 3 and found.known.sum() == 9

    def test_answers_of_a_project(self, run, photos, tmp_path):
        from likewise.annotate.facts import Fact
        from likewise.annotate.store import Store

        path = tmp_path / "project.db"
        question = {
            "kind": "grid",
            "exemplar": "circle0.png",
            "candidates": ["circle1.png", "circle2.png", "square0.png"],
        }
        body = {
            "question": question,
            "clicked": ["circle1.png", "circle2.png"],
            "unsure": [],
            "skipped": False,
            "seconds": 1.0,
            "question_id": "q1",
        }
        name = {"item": "circle0.png", "name": "circles"}
        with Store.open(path) as store:
            store.append(
                [Fact("1", "answer", "ada", 0.0, body), Fact("2", "name", "ada", 1.0, name)]
            )
        found = likewise.classify(str(run), str(photos), answers=str(path), device="cpu")
        assert "circles" in found.classes and found.known.sum() == 4

    def test_refuses_no_answers_yet(self, run, photos, tmp_path, capsys):
        missing = tmp_path / "none.jsonl"
        said = refused(capsys, "classify", run, photos, "--answers", missing)
        assert "no answers yet" in said
        missing.write_text("")
        said = refused(capsys, "classify", run, photos, "--answers", missing)
        assert "no answers yet" in said
        write_answers(missing, [Answer(0, 1, 0.0)])  # somebody was unsure
        said = refused(capsys, "classify", run, photos, "--answers", missing)
        assert "no answers yet" in said
        said = refused(capsys, "classify", run, photos)
        assert "--answers or --labels" in said

    def test_refuses_a_project_without_answers(self, run, photos, tmp_path, capsys):
        from likewise.annotate.store import Store

        path = tmp_path / "project.db"
        Store.open(path).close()
        assert "no answers yet" in refused(capsys, "classify", run, photos, "--answers", path)

    def test_refuses_answers_about_other_images(self, run, photos, tmp_path, capsys):
        from likewise.annotate.exchange import export_answers
        from likewise.annotate.facts import Fact
        from likewise.annotate.store import Store

        question = {"kind": "grid", "exemplar": "dog1.png", "candidates": ["dog2.png"]}
        body = {"question": question, "clicked": ["dog2.png"]}
        with Store.open(tmp_path / "dogs.db") as store:
            store.append([Fact("1", "answer", "ada", 0.0, body)])
            export_answers(store, tmp_path / "dogs.jsonl")
        for file in ("dogs.db", "dogs.jsonl"):
            said = refused(capsys, "classify", run, photos, "--answers", tmp_path / file)
            assert f"{file} holds 1 answer, none of them about these images" in said
            assert "it has 'dog1.png', they have 'circle0.png'" in said
            assert "no answers yet" not in said

    def test_refuses_one_class_only(self, run, photos, tmp_path, capsys):
        path = tmp_path / "one.csv"
        path.write_text("key,label\ncircle0.png,circle\ncircle1.png,circle\n")
        said = refused(capsys, "classify", run, photos, "--labels", path)
        assert "one class" in said and "at least two" in said

    def test_refuses_labels_of_other_images(self, run, photos, tmp_path, capsys):
        path = tmp_path / "other.csv"
        path.write_text("key,label\nx.png,a\ny.png,b\n")
        assert "none of the 2 keys" in refused(capsys, "classify", run, photos, "--labels", path)


class TestDuplicates:
    def test_copies_are_grouped_and_the_file_goes_into_training(self, run, photos, tmp_path):
        original = Image.open(photos / "stripes0.png")
        original.save(photos / "again.bmp")
        out = [tmp_path / f"d.{kind}" for kind in ("html", "csv", "json")]
        assert call("duplicates", run, photos, "--out", *out) == 0
        groups: dict[str, set[str]] = {}
        for row in table(out[1]):
            groups.setdefault(row["group"], set()).add(row["key"])
        assert {"again.bmp", "stripes0.png"} in groups.values()
        found = json.loads(out[2].read_text())
        assert found["effect"]["with_twin"] >= 2
        assert "Group 1" in out[0].read_text()

        quick = ["--encoder=tiny", "--projector=[16,8]", "--epochs=1", "--batch-size=8"]
        other = ["--logger=[csv]", "--monitor-every=0", "--duplicates", out[1]]
        assert call("train", photos, "--out", tmp_path / "b", *quick, *other) == 0


class TestSubsetAndSplit:
    def test_a_balanced_subset(self, run, photos, labels, tmp_path):
        out = tmp_path / "s.csv"
        words = ["--size", 6, "--method", "balanced", "--labels", labels, "--out", out]
        assert call("subset", run, photos, *words) == 0
        rows = table(out)
        assert sorted(row["group"] for row in rows) == sorted([*KINDS] * 2)

    @pytest.mark.parametrize("method", ["typical", "diverse", "random"])
    def test_other_subsets(self, run, photos, method, tmp_path):
        found = likewise.subset(
            str(run), str(photos), size=5, method=method, device="cpu", out=[tmp_path / "s.html"]
        )
        assert len(set(found)) == 5 and (tmp_path / "s.html").read_text().count("<img") == 5

    def test_twins_are_in_one_part(self, run, photos, tmp_path):
        for number in range(3):
            Image.open(photos / f"circle{number}.png").save(photos / f"copy{number}.bmp")
        out = [tmp_path / f"p.{kind}" for kind in ("csv", "json", "html")]
        assert call("split", run, photos, "--test", 0.3, "--out", *out) == 0
        part = {row["key"]: row["part"] for row in table(out[0])}
        assert all(part[f"circle{n}.png"] == part[f"copy{n}.bmp"] for n in range(3))
        assert 4 <= sum(own == "test" for own in part.values()) <= 9
        assert {k for keys in json.loads(out[1].read_text())["parts"].values() for k in keys} == {
            *part
        }

    def test_refuses_shares_before_any_work(self, run, photos, capsys):
        said = refused(capsys, "split", run, photos, "--test", "1.5")
        assert "test is 1.5" in said and "embedded" not in said
        assert "size is 99" in refused(capsys, "subset", run, photos, "--size", "99")


def test_every_verb_follows_a_folder_that_changes(run, photos, labels, tmp_path, capsys):
    verbs = {
        "search": ["--query", "square0.png"],
        "cluster": ["--k", "2"],
        "classify": ["--labels", labels],
        "duplicates": [],
        "subset": ["--size", "3"],
        "split": ["--duplicates", "false"],
    }
    call("subset", run, photos, "--size", 2)
    for number, (verb, words) in enumerate(verbs.items()):
        capsys.readouterr()
        Image.fromarray(picture(1, 60 + number)).save(photos / f"more{number}.png")
        (photos / f"circle{number}.png").rename(photos / f"disc{number}.png")
        if number:
            (photos / f"more{number - 1}.png").unlink()
        assert call(verb, run, photos, *words) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert f"1 added (more{number}.png)" in said
        assert f"1 renamed (circle{number}.png to disc{number}.png)" in said
        assert number == 0 or f"1 removed (more{number - 1}.png)" in said
        assert "1 image embedded" in said
