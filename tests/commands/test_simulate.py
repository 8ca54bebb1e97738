"""``likewise simulate``, from Python."""

import numpy as np
import pytest

from likewise.commands.errors import UsageError
from likewise.commands.simulate import simulate
from likewise.evaluation.embeddings import Embeddings, write_embeddings
from tests.oracles.contract import blobs


def test_writes_one_page_and_returns_the_runs(tmp_path, capsys):
    out = tmp_path / "pal.html"
    found = simulate("digits", sampler=["default", "random"], budget=3, runs=1, out=out)
    assert set(found) == {"default", "random"} and len(found["default"][0]) == 3
    text = out.read_text()
    assert text.count("<svg") == 2 and "default" in text and "1,297 items" in text
    assert list(tmp_path.iterdir()) == [out]
    assert "wrote" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_page(tmp_path):
    for name in ("a.html", "b.html"):
        simulate(sampler=["default"], budget=2, runs=1, out=tmp_path / name, seed=4)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_labelled_embeddings(tmp_path):
    X, y = blobs(120, 3, 0)
    y[:5] = -1  # unlabelled rows cannot answer
    path = tmp_path / "embeddings.parquet"
    write_embeddings(path, Embeddings([str(k) for k in range(120)], X, labels=y))
    found = simulate(
        str(path), sampler=["default"], budget=6, grid=6, runs=1, out=tmp_path / "p.html"
    )
    assert found["default"][0].steps[-1].accuracy > 0.9
    bare = tmp_path / "bare.parquet"
    write_embeddings(bare, Embeddings([str(k) for k in range(120)], X))
    with pytest.raises(UsageError, match="has no labels"):
        simulate(str(bare), out=tmp_path / "q.html")
    assert not (tmp_path / "q.html").exists()


def test_arrays_of_embeddings(tmp_path):
    X, y = blobs(160, 3, 0)
    for name, part in (("train", slice(0, 120)), ("test", slice(120, 160))):
        np.savez(tmp_path / f"{name}.npz", embedding=X[part].astype(np.float16), label=y[part])
    found = simulate(
        str(tmp_path / "train.npz"),
        test=str(tmp_path / "test.npz"),
        sampler=["default", "outliers"],
        budget=6,
        grid=6,
        runs=1,
        out=tmp_path / "p.html",
    )
    assert all(runs[0].steps[-1].accuracy > 0.9 for runs in found.values())
    assert "120 items, 40 for the test" in (tmp_path / "p.html").read_text()
    np.savez(tmp_path / "other.npz", rows=X)
    with pytest.raises(UsageError, match="name the rows `embedding`"):
        simulate(str(tmp_path / "other.npz"), out=tmp_path / "q.html")
    np.savez(tmp_path / "short.npz", embedding=X, label=y[:9])
    with pytest.raises(UsageError, match=r"label \(9,\): give \(n, d\) and \(n,\)"):
        simulate(str(tmp_path / "short.npz"), out=tmp_path / "q.html")
    np.savez(tmp_path / "bare.npz", embedding=X)
    with pytest.raises(UsageError, match="has no labels"):
        simulate(str(tmp_path / "bare.npz"), out=tmp_path / "q.html")


def test_people_who_err(tmp_path):
    found = simulate(
        sampler=["default"], budget=3, runs=1, out=tmp_path / "p.html", false_yes=0.1, false_no=0.1
    )
    assert np.isfinite(found["default"][0].column("accuracy")).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"sampler": ["best"]}, "sampler is 'best': give some of default"),
        ({"budget": 0}, "budget is 0"),
        ({"grid": 0}, "grid is 0"),
        ({"runs": 0}, "runs is 0"),
        ({"data": "nowhere"}, "data is 'nowhere'"),
        ({"test": "other"}, "digits bring their own"),
    ],
)
def test_bad_arguments_are_named(options, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        simulate(**({"out": tmp_path / "p.html"} | options))
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_page(tmp_path):
    with pytest.raises(UsageError, match="a folder"):
        simulate(out=tmp_path)
