"""Files that verbs write and read: what is refused, what is replaced, what is said of it."""

from __future__ import annotations

import pytest

import likewise
from likewise.commands import main
from tests.commands.test_train import refused
from tests.library.pictures import folder_of


@pytest.fixture
def project(tmp_path):
    """A project with one answer about the pictures."""
    from likewise.annotate.facts import Fact
    from likewise.annotate.store import Store

    question = {"kind": "grid", "exemplar": "circle0.png", "candidates": ["circle1.png"]}
    body = {"question": question, "clicked": ["circle1.png"]}
    path = tmp_path / "project.db"
    with Store.open(path) as store:
        store.append([Fact("1", "answer", "ada", 0.0, body)])
    return path


class TestEmbed:
    def test_the_command_line_has_to_say_where_to(self, run, photos, capsys):
        said = refused(capsys, "embed", run, photos, "--device=cpu")
        assert "`likewise embed` needs --out: the Parquet file to write" in said
        assert likewise.embed(run, str(photos), device="cpu").rows.shape == (18, 128)

    def test_a_config_may_say_it(self, run, photos, tmp_path):
        (tmp_path / "c.yaml").write_text(f"out: {tmp_path / 'e.parquet'}\ndevice: cpu\n")
        assert main(["embed", str(run), str(photos), "--config", str(tmp_path / "c.yaml")]) == 0
        assert (tmp_path / "e.parquet").is_file()

    @pytest.mark.parametrize("name", ["e.csv", "e.npz", "e"])
    def test_refuses_names_of_other_files(self, name, run, photos, tmp_path, capsys):
        said = refused(capsys, "embed", run, photos, "--out", tmp_path / name)
        assert "embeddings are Parquet" in said
        assert not (tmp_path / name).exists()


class TestReplaced:
    """A file that was there is replaced, and that is said."""

    def said(self, capsys, *words):
        assert main([str(word) for word in words]) == 0
        found = capsys.readouterr()
        return " ".join((found.out + found.err).split())

    def twice(self, capsys, out, *words):
        first, second = (self.said(capsys, *words) for _ in range(2))
        assert "wrote" in first and "replaced" not in first
        # Long paths are broken into lines, at any place.
        assert f"replaced{out}" in second.replace(" ", "") and "wrote" not in second

    def test_embed(self, run, photos, tmp_path, capsys):
        out = tmp_path / "e.parquet"
        self.twice(capsys, out, "embed", run, photos, "--out", out, "--device=cpu")

    def test_export(self, run, tmp_path, capsys):
        out = tmp_path / "w.safetensors"
        self.twice(capsys, out, "export", run, "--out", out)

    def test_report(self, run, photos, tmp_path, capsys):
        rows, out = tmp_path / "e.parquet", tmp_path / "r.html"
        likewise.embed(run, str(photos), out=rows, device="cpu")
        capsys.readouterr()
        self.twice(capsys, out, "report", rows, "--out", out, "--device=cpu")

    def test_answers(self, project, tmp_path, capsys):
        out = tmp_path / "a.csv"
        self.twice(capsys, out, "answers", "export", project, out)

    def test_evaluate(self, run, tmp_path, capsys):
        labelled = folder_of(tmp_path / "labelled", each=6, classes=True)
        out = tmp_path / "scores.json"
        words = ["--train", labelled, "--test", labelled, "--neighbors=3", "--methods=[knn]"]
        self.twice(capsys, out, "evaluate", run, *words, "--out", out, "--device=cpu")

    def test_simulate(self, tmp_path, capsys):
        out = tmp_path / "pal.html"
        words = ["--sampler", "random", "--budget=1", "--runs=1"]
        self.twice(capsys, out, "simulate", "digits", *words, "--out", out)


class TestRemedies:
    def test_evaluate_on_images_without_labels(self, run, photos, tmp_path, capsys):
        labelled = folder_of(tmp_path / "labelled", each=6, classes=True)
        words = ["evaluate", run, "--device=cpu"]
        said = refused(capsys, *words, "--train", photos, "--test", photos)
        assert "train has no labels: give images in one folder a class" in said
        said = refused(capsys, *words, "--train", labelled, "--test", photos)
        assert "test has no labels: give images in one folder a class" in said

    def test_simulate_on_a_folder(self, photos, capsys):
        said = refused(capsys, "simulate", photos)
        assert "a folder: give 'digits', or the labelled embeddings" in said
        assert f"likewise embed RUN {photos} --out embeddings.parquet" in said

    def test_train_takes_answers_as_json_lines(self, project, photos, tmp_path):
        lines = tmp_path / "answers.jsonl"
        assert main(["answers", "export", str(project), str(lines)]) == 0
        quick = ["--encoder=tiny", "--epochs=1", "--batch-size=8", "--device=cpu"]
        other = ["--projector=[16,8]", "--logger=[csv]", "--monitor-every=0"]
        for place in (lines, project):
            out = tmp_path / f"run-{place.suffix[1:]}"
            words = ["train", photos, "--answers", place, "--out", out, *quick, *other]
            assert main([str(word) for word in words]) == 0
        kept = [(tmp_path / f"run-{k}" / "answers.jsonl").read_text() for k in ("jsonl", "db")]
        assert kept[0] == kept[1] != ""

    def test_train_says_which_keys_do_not_match(self, project, tmp_path, capsys):
        other = folder_of(tmp_path / "other", each=4, classes=True)
        words = ["--answers", project, "--out", tmp_path / "run", "--encoder=tiny"]
        said = refused(capsys, "train", other, *words, "--device=cpu")
        assert "none of them about these images" in said
        assert "it has 'circle0.png', they have 'circle/circle0.png'" in said

    def test_train_refuses_answers_of_another_kind(self, photos, tmp_path, capsys):
        (tmp_path / "answers.csv").write_text("a,b,value\n" * 100)
        words = ["--answers", tmp_path / "answers.csv", "--out", tmp_path / "run"]
        said = refused(capsys, "train", photos, *words, "--encoder=tiny", "--device=cpu")
        assert "is not a project" in said and "give one that `likewise ask` made" in said


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_names_to_type_are_never_cut(width, monkeypatch, capsys):
    from likewise.reproduce import REPRODUCTIONS
    from likewise.training import RECIPES

    monkeypatch.setenv("COLUMNS", width)
    for words, names in ((["recipes"], RECIPES), (["reproduce", "--list"], REPRODUCTIONS)):
        assert main(words) == 0
        shown = {line.split()[1] for line in capsys.readouterr().out.splitlines() if "│" in line}
        assert set(names) <= shown
