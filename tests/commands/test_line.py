"""The command line itself: what is said to someone whose call is refused, help and configs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import likewise
from likewise.commands import line, main
from likewise.commands.errors import UsageError
from likewise.commands.wording import ELSEWHERE, argument_helps, option_names


def said_of(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    """The lines that are said to someone whose call is refused."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == 2
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.splitlines()


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the verb `train` is called with, in place of a training."""
    given: dict[str, object] = {}

    # The signature is what the parser is made from.
    from functools import wraps

    @wraps(line.VERBS["train"])
    def train(**options: object) -> None:
        given.update(options)

    monkeypatch.setitem(line.VERBS, "train", train)
    return given


class TestRefusals:
    def test_a_verb_that_refuses_says_one_line(self, capsys, monkeypatch):
        def recipes() -> None:
            """List."""
            raise UsageError("the oven is cold: light it")

        monkeypatch.setitem(line.VERBS, "recipes", recipes)
        assert said_of(capsys, "recipes") == ["error: the oven is cold: light it"]

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (
                "train x --projector 128",
                "projector is '128': give a list of whole numbers, such as",
            ),
            ("train x --projector 128", "--projector '[2048, 128]'"),
            ("train x --projector", "--projector stands without a value: give a list"),
            ("train x --objective temperature=0.2", "--objective '{\"temperature\": 0.2}'"),
            ("train x --logger csv", "give a list of csv, tensorboard, wandb or mlflow, such as"),
            ("train x --epochs many", "epochs is 'many': give a whole number"),
            ("train x --lr fast", "lr is 'fast': give a number"),
            ("train x --compile perhaps", "compile is 'perhaps': give true or false"),
            (
                "train x --merge-duplicates=no",
                "--merge-duplicates is a switch and takes no value: leave out 'no', or both",
            ),
            ("train x --stem smal", "give auto, small or original (did you mean small?)"),
            ("export run --format tensorflow", "format is 'tensorflow': give safetensors, timm or"),
            ("answers exprot", "action is 'exprot': give export or import (did you mean export?)"),
            ("answers", "`likewise answers` needs ACTION, PROJECT and FILE"),
            ("answers export", "`likewise answers` needs PROJECT and FILE"),
            ("report", "`likewise report` needs RUNS: folders that `likewise train` wrote"),
            ("subset run photos", "`likewise subset` needs --size: how many images"),
            ("search run photos --top", "--top stands without a value: give a whole number"),
            ("train x y z", "y z: more words than `likewise train` takes"),
            ("train x --config none.yaml", "none.yaml: there is no such file"),
        ],
    )
    def test_in_plain_words_with_a_remedy(self, words, expected, capsys):
        said = said_of(capsys, *words.split())
        assert len(said) == 2
        assert said[0].startswith("error: ") and expected in said[0]
        assert said[1] == f"`likewise {words.split()[0]} --help` lists what it takes"
        raw = ("usage", "Parser key", "Expected", "Union", "Literal", "<class")
        assert not [word for word in raw if word in " ".join(said)]

    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            ("--label-wieght", "--label-weight"),
            ("--label_wieght=0.5", "--label-weight"),
            ("--batch", "--batch-size"),
            ("--projektor", "--projector"),
            ("--learning-rate", "--lr"),
            ("--learning_rate=0.1", "--lr"),
            ("--backbone", "--encoder"),
        ],
    )
    def test_a_misspelt_option(self, given, meant, capsys):
        said = said_of(capsys, "train", "x", given, "1")
        assert f": did you mean {meant}?" in said[0]

    def test_an_option_like_no_other(self, capsys):
        assert said_of(capsys, "train", "x", "--zzz")[0] == (
            "error: `likewise train` has no option --zzz"
        )

    def test_a_misspelt_verb_and_none(self, capsys):
        assert said_of(capsys, "trian", "x")[0] == (
            "error: there is no verb 'trian': did you mean train?"
        )
        assert "`likewise --help`" in said_of(capsys, "trian")[1]
        for words in ([], ["--epochs", "3"]):
            assert "give a verb first" in said_of(capsys, *words)[0]

    def test_a_misspelt_key_of_a_config(self, capsys, tmp_path):
        (tmp_path / "c.yaml").write_text("epocs: 3\n")
        said = said_of(capsys, "train", "x", "--config", tmp_path / "c.yaml")
        assert said[0].startswith("error: epocs in the config is no argument")
        assert said[0].endswith("did you mean epochs?")

    def test_a_key_of_a_config_as_another_library_calls_it(self, capsys, tmp_path):
        (tmp_path / "c.yaml").write_text("learning_rate: 0.1\n")
        said = said_of(capsys, "train", "x", "--config", tmp_path / "c.yaml")
        assert said[0].endswith("did you mean lr?")

    def test_other_names_stand_for_arguments_that_there_are(self):
        known = {name for verb in line.VERBS.values() for name in option_names(verb)}
        assert {here for names in ELSEWHERE.values() for here in names} <= known

    def test_where_a_name_means_something_it_is_not_led_elsewhere(self):
        for verb in line.VERBS.values():
            names = option_names(verb)
            for name in set(ELSEWHERE) & set(names):
                assert not set(ELSEWHERE[name]) & set(names)

    @pytest.mark.parametrize(
        ("verb", "given", "here"),
        [("search", "--k", "--top"), ("evaluate", "--k", "--neighbors"),
         ("finetune-lm", "--lr", "--learning-rate")],
    )  # fmt: skip
    def test_each_verb_has_its_own_word(self, verb, given, here, capsys):
        assert f"did you mean {here}?" in said_of(capsys, verb, "x", f"{given}=1")[0]

    def test_arguments_of_the_objective_are_names_that_one_can_give(self, capsys, tmp_path):
        words = ["--objective", '{"temprature": 1}', "--out", tmp_path / "run", "--device=cpu"]
        (said,) = said_of(capsys, "train", "digits", "--encoder=tiny", *words)
        assert "NTXent has no argument 'temprature' (did you mean 'temperature'?)" in said
        assert "it takes temperature, denominator, similarity" in said and "positives" in said


class TestSpelling:
    def test_help_has_dashes(self, capsys):
        with pytest.raises(SystemExit) as stopped:
            main(["train", "--help"])
        assert stopped.value.code == 0
        shown = capsys.readouterr().out
        assert "--label-weight LABEL_WEIGHT" in shown and "--label_weight" not in shown
        assert shown.startswith("usage: likewise train ")

    @pytest.mark.parametrize("spelt", ["--label-weight", "--label_weight"])
    def test_both_are_options(self, spelt, called):
        assert main(["train", "my-photos", spelt, "0.25", "--merge-duplicates"]) == 0
        assert called["label_weight"] == 0.25 and called["merge_duplicates"] is True
        assert called["data"] == "my-photos"

    @pytest.mark.parametrize("spelt", ["label-weight", "label_weight"])
    def test_both_are_keys_of_a_config(self, spelt, called, tmp_path):
        config = tmp_path / "c.yaml"
        config.write_text(f"data: my-photos\n{spelt}: 0.25\nobjective:\n  temperature: 0.3\n")
        assert main(["train", "--config", str(config), "--out", "a-run"]) == 0
        assert called["label_weight"] == 0.25 and called["data"] == "my-photos"
        assert called["objective"] == {"temperature": 0.3} and called["out"] == Path("a-run")


WITHOUT = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
from likewise.commands import main
sys.exit(main({words!r}))
"""


def without(blocked: list[str], *words: object) -> str:
    """What a verb says where libraries are missing; it must refuse."""
    code = WITHOUT.format(blocked=blocked, words=[str(word) for word in words])
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr
    return found.stderr


class TestMissingExtras:
    def test_answers(self, tmp_path):
        (tmp_path / "p.db").touch()
        said = without(["sqlalchemy"], "answers", "export", tmp_path / "p.db", tmp_path / "a.csv")
        assert said == (
            "error: `likewise answers` needs sqlalchemy: "
            "pip install '.[annotate]' in the checkout\n"
        )

    def test_training_and_classifying_with_answers(self, run, photos, tmp_path):
        (tmp_path / "p.db").touch()
        more = ["--answers", tmp_path / "p.db", "--device=cpu"]
        said = without(["sqlalchemy"], "classify", run, photos, *more)
        assert "--answers needs sqlalchemy: pip install '.[annotate]' in the checkout" in said
        assert "embedded" not in said  # refused before any work
        more += ["--encoder=tiny", "--out", tmp_path / "new"]
        said = without(["sqlalchemy"], "train", photos, *more)
        assert "SQLAlchemy: pip install '.[annotate]' in the checkout" in said
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize("library", ["fastapi", "sqlalchemy", "uvicorn"])
    def test_ask(self, library, photos):
        said = without([library], "ask", photos)
        assert f"`likewise ask` needs {library}: pip install '.[annotate]' in the checkout" in said

    def test_reproduce_before_any_trial(self, tmp_path):
        said = without(["matplotlib"], "reproduce", "pal-6", "--trials=2", "--out", tmp_path / "o")
        assert said == (
            "error: `likewise reproduce` needs matplotlib: pip install '.[plots]' in the checkout\n"
        )
        assert not (tmp_path / "o").exists()


def test_verbs_on_a_collection_take_the_same_and_say_the_same_of_it():
    verbs = [line.VERBS[name] for name in ("search", "cluster", "classify", "duplicates", "subset",
                                           "split")]  # fmt: skip
    shared = ("run", "data", "encoder", "pretrained", "image_size", "index", "rebuild",
              "image_column", "label_column", "batch_size", "device")  # fmt: skip
    for name in shared:
        assert len({argument_helps(verb)[name] for verb in verbs}) == 1
        parts = [inspect.signature(verb).parameters[name] for verb in verbs]
        assert len({(part.default, part.annotation, part.kind) for part in parts}) == 1


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.strip() == f"likewise {likewise.__version__}"


def test_the_package_lists_its_names():
    assert {"train", "Graph", "Run"} <= set(dir(likewise))
