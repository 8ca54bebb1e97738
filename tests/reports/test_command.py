"""`likewise report` as a user calls it, on real trainings."""

from __future__ import annotations

from pathlib import Path

import pytest

import likewise
from likewise.commands import main
from tests.reports.folders import figures_of, write_pictures, write_run

QUICK = ["--encoder=tiny", "--projector=[16,8]", "--epochs=2", "--batch-size=8", "--device=cpu",
         "--logger=[csv]"]  # fmt: skip


def test_a_streamed_run_and_a_collapsed_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = write_pictures(tmp_path / "photos", n=24)
    out = tmp_path / "streamed"
    arguments = [str(photos), "--out", str(out), *QUICK, "--stream=true", "--workers=0"]
    assert main(["train", *arguments]) == 0
    assert (out / "diagnostics.jsonl").is_file()
    # Rows that all point one way: the learner's last bias is all that is left.
    collapsed = write_run(tmp_path / "collapsed", photos)
    import torch

    saved = torch.load(collapsed / "checkpoints/last.ckpt", weights_only=True)
    for name, value in saved["state_dict"].items():
        if value.is_floating_point():
            value.fill_(0.0 if name.endswith("weight") else 1.0)
    torch.save(saved, collapsed / "checkpoints/last.ckpt")
    capsys.readouterr()
    page = tmp_path / "report.html"
    assert main(["report", str(out), str(collapsed), "--out", str(page)]) == 0
    said = capsys.readouterr().err
    assert "collapsed: full collapse" in said
    html = page.read_text()
    assert "Full collapse" in html and "What to try" in html
    assert "Side by side" in html and len(figures_of(html)["keys"]) == 24
    assert f"likewise report {out} {collapsed} --out {page}" in html
    assert "--projector &#x27;[16, 8]&#x27;" in html and "--stream" in html


def test_from_python(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", write_pictures(tmp_path / "photos"))
    page = likewise.report([run], out=tmp_path / "report.html", samples=20, device="cpu")
    assert len(figures_of(page.read_text())["keys"]) == 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "is no folder"),
        ([], "RUNS"),
        (["{run}", "--samples", "2"], "samples is 2"),
        (["{run}", "--out", "{folder}"], "a folder: give the name"),
        (["{run}", "--data", "nowhere"], "which is not there"),
    ],
)
def test_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    run = write_run(tmp_path / "run", write_pictures(tmp_path / "photos"))
    filled = [word.format(run=run, folder=tmp_path) for word in words]
    with pytest.raises(SystemExit) as stopped:
        main(["report", *filled])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split()) and "Traceback" not in told
