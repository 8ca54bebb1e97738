"""``likewise reproduce``, from the command line and from Python."""

import json
import subprocess
import sys

import pytest

from likewise.commands import main
from likewise.commands.errors import UsageError
from likewise.commands.reproduce import reproduce
from likewise.reproduce import REPRODUCTIONS, Check, Findings, Reproduction, registry


def test_list_names_all(capsys):
    assert main(["reproduce", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in REPRODUCTIONS)


def test_writes_what_it_found(tmp_path, capsys):
    out, page = tmp_path / "out", tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    arguments = ["--trials", "2", "--jobs", "1", "--out", str(out), "--docs", str(page)]
    assert main(["reproduce", "pal-6", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "verdict: holds" in shown and "±" in shown and "pal, figure 6" in shown
    assert {path.name for path in out.iterdir()} == {f"pal-6.{x}" for x in ("png", "svg", "json")}
    assert json.loads((out / "pal-6.json").read_text())["trials"] == 2
    assert "images/reproductions/pal-6.png" in page.read_text()
    assert (page.parent / "images/reproductions/pal-6.png").exists()


def test_arguments_from_a_file(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text(f"trials: 1\njobs: 1\nseed: 7\nout: {tmp_path / 'out'}\n")
    assert main(["reproduce", "pal-6", "--config", str(config)]) == 0
    found = json.loads((tmp_path / "out" / "pal-6.json").read_text())
    assert (found["trials"], found["seed"]) == (1, 7)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["pal-5"], "no reproduction is called 'pal-5': give one of pal-3, pal-4"),
        ([], "give the name of a reproduction"),
        (["pal-6", "--trials", "0"], "trials is 0"),
        (["pal-6", "--jobs", "0"], "jobs is 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message, capsys, tmp_path):
    with pytest.raises(SystemExit) as exit_code:
        main(["reproduce", *arguments, "--out", str(tmp_path)])
    assert exit_code.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_the_function_raises(tmp_path):
    with pytest.raises(UsageError, match="pal-5"):
        reproduce("pal-5", out=tmp_path)


def _fails(samples):
    return Findings([], [Check("never met", 1.0, "at most", 0.0)])


def test_strict_exits_with_1_where_a_check_fails(tmp_path, monkeypatch):
    real = REPRODUCTIONS["pal-6"]
    failing = Reproduction("fails", "nothing", {}, real.trial, _fails, real.draw)
    monkeypatch.setitem(registry.REPRODUCTIONS, "fails", failing)
    assert reproduce("fails", trials=1, jobs=1, out=tmp_path) == 0
    assert reproduce("fails", trials=1, jobs=1, out=tmp_path, strict=True) == 1
    assert reproduce("pal-6", trials=1, jobs=1, out=tmp_path, strict=True) == 0


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys; from likewise.commands import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'sklearn', 'matplotlib', 'scipy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
