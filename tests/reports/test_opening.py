"""What a report says of runs that lack something, and of wrong input."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.data import open_source
from likewise.diagnostics import gather_evidence
from likewise.evaluation import Embeddings, write_embeddings
from likewise.reports import open_subject, page
from likewise.training.records import evidence_of, read_records
from tests.reports.folders import figures_of, write_pictures, write_run


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("photos"))


@pytest.fixture
def run(photos: Path, tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", photos)


def test_a_whole_run(run: Path) -> None:
    subject = open_subject(run)
    assert subject.sample is not None and subject.verdict is not None
    assert len(subject.sample) == 45 and subject.sample.rows.shape == (45, 128)
    assert subject.measured == "now" and subject.remarks == []
    assert subject.record is not None and subject.record["projector"]["dim"] == 8
    assert [len(values) for values in subject.weights] == [16, 8]
    html = page([subject])
    for section in ("verdict", "figures", "training", "rank", "map", "neighbours", "classes",
                    "config", "reproduce"):  # fmt: skip
        assert f'<section id="{section}">' in html
        assert f'href="#{section}"' in html
    data = figures_of(html)
    assert data["keys"] == subject.sample.keys
    assert data["names"] == ["cat", "dog", "owl"]


def test_the_figures_are_of_two_views_through_encoder_and_projector(run: Path) -> None:
    """By hand: the saved weights, the run's views."""
    import likewise
    from likewise.data import load_images
    from likewise.data.views import Views
    from likewise.models import MLP

    encoder, preparation = likewise.Run.open(run).encoder()
    head = MLP([128, 16, 8], last_norm=True)
    saved = torch.load(run / "checkpoints/last.ckpt", weights_only=True)["state_dict"]
    head.load_state_dict({name.split("projector.")[1]: value for name, value in saved.items()})
    images = load_images(open_source(str(open_subject(run).config["data"])), 16)
    views = Views("simclr", 16, 2, mean=preparation.mean, std=preparation.std)
    drawn = views.draw(45, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        h = encoder(views.apply(images.pixels, drawn)[0])
        z = head.eval()(h)
    expected = gather_evidence(z[::2], z[1::2], h1=h[::2], h2=h[1::2], labels=images.labels)
    subject = open_subject(run)
    assert subject.verdict is not None
    found = subject.verdict.evidence
    for name in ("noise", "encoder_noise", "effective_rank", "alignment", "imbalance"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-3), name


def test_images_that_are_gone(run: Path, photos: Path, tmp_path: Path) -> None:
    config = (run / "config.yaml").read_text().replace(str(photos), str(tmp_path / "gone"))
    (run / "config.yaml").write_text(config)
    subject = open_subject(run)
    assert subject.sample is None and subject.measured == "while training"
    assert subject.verdict is not None
    assert subject.verdict.evidence == evidence_of(read_records(run)[-1])
    assert any("cannot be read" in remark and "gone" in remark for remark in subject.remarks)
    html = page([subject])
    assert "As written down at step 12 of the training" in html
    assert 'id="map"' not in html and 'id="classes"' not in html and 'id="rank"' in html


def test_without_labels(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", write_pictures(tmp_path / "photos", classes=1))
    subject = open_subject(run)
    assert subject.sample is not None and subject.sample.labels is None
    html = page([subject])
    assert 'id="classes"' not in html and "Loners" in html and "kNN accuracy</b>" not in html
    assert "Label lift" not in html


def test_labels_of_a_file(tmp_path: Path) -> None:
    photos = write_pictures(tmp_path / "photos", classes=1)
    lines = [f"{i:03}.png,{'warm' if i % 2 else 'cold'}" for i in range(30)]
    (tmp_path / "labels.csv").write_text("key,label\n" + "\n".join(lines) + "\n")
    run = write_run(tmp_path / "run", photos, labels=str(tmp_path / "labels.csv"))
    subject = open_subject(run)
    assert subject.sample is not None and subject.sample.labels is not None
    assert (subject.sample.labels >= 0).sum() == 30
    html = page([subject])
    assert 'id="classes"' in html and set(figures_of(html)["names"]) == {"cold", "warm"}
    (tmp_path / "labels.csv").unlink()
    gone = open_subject(run)
    assert gone.sample is not None and gone.sample.labels is None
    assert "labels of the run cannot be read" in " ".join(gone.remarks)


def test_without_checkpoint_or_curves_or_end(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    for name in ("metrics.csv", "diagnostics.jsonl", "summary.json"):
        (run / name).unlink()
    subject = open_subject(run)
    said = " ".join(subject.remarks)
    assert (
        "has not ended" in said and "no metrics.csv" in said and "projector cannot be read" in said
    )
    assert subject.record is not None and subject.record["projector"] is None
    assert "Nothing was written down while training" in page([subject])
    (run / "encoder.safetensors").unlink()
    bare = open_subject(run)
    assert bare.verdict is None and "nothing to embed with" in " ".join(bare.remarks)
    assert "No verdict" in page([bare])


def test_changed_data_is_said(run: Path, photos: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    shutil.copytree(photos, more)
    shutil.copy(more / "cat" / "000.png", more / "cat" / "new.png")
    (more / "dog" / "broken.png").write_bytes(b"no picture")
    text = (run / "config.yaml").read_text().replace(f"data: {photos}", f"data: {more}")
    (run / "config.yaml").write_text(text)
    remarks = " ".join(open_subject(run).remarks)
    assert "not quite those of the training" in remarks and "1 broken" in remarks


def test_other_data_and_fewer_of_them(run: Path, tmp_path: Path) -> None:
    other = write_pictures(tmp_path / "other", n=30)
    subject = open_subject(run, data=str(other), samples=12)
    assert subject.sample is not None and len(subject.sample) == 12 and subject.sample.of == 30
    again = open_subject(run, data=str(other), samples=12)
    assert again.sample is not None and again.sample.keys == subject.sample.keys
    another = open_subject(run, data=str(other), samples=12, seed=1)
    assert another.sample is not None and another.sample.keys != subject.sample.keys


def test_an_encoder_that_gives_nan(run: Path) -> None:
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    path = run / "encoder.safetensors"
    with safe_open(str(path), "pt") as file:
        about = file.metadata()
    weights = load_file(path)
    first = next(name for name, value in weights.items() if value.is_floating_point())
    weights[first][:] = torch.nan
    save_file(weights, path, metadata=about)
    subject = open_subject(run)
    assert "diverged" in " ".join(subject.remarks) and subject.measured == "while training"
    page([subject])


def test_an_embeddings_file(photos: Path, tmp_path: Path) -> None:
    source = open_source(str(photos))
    rows = np.random.default_rng(0).normal(size=(45, 6)).astype(np.float32)
    found = Embeddings(source.keys, rows, source.labels, source.class_names, {"data": str(photos)})
    path = tmp_path / "rows.parquet"
    write_embeddings(path, found)
    subject = open_subject(path)
    assert subject.kind == "embeddings" and subject.sample is not None
    assert subject.sample.pixels is not None and subject.verdict is not None
    html = page([subject])
    assert 'id="training"' not in html and 'id="map"' in html and 'id="classes"' in html
    found.metadata = {}
    write_embeddings(path, found)
    bare = open_subject(path)
    assert bare.sample is not None and bare.sample.pixels is None
    assert any("--data" in remark for remark in bare.remarks)
    # Keys stand where pictures would.
    html = page([bare])
    assert "data:image" not in html and html.count('class="pic word') > 8 * 9
    assert re.search(r">\d{3}\.png</span>", html)
    assert open_subject(path, data=str(photos)).sample.pixels is not None  # type: ignore[union-attr]


def test_runs_side_by_side(run: Path, photos: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "elsewhere" / "run", photos, seed=1, epochs=9)
    html = page([open_subject(run), open_subject(other)])
    assert "Side by side" in html and html.count("data-map=") == 2
    assert f"{run}" in html and f"{other}" in html  # of one name: called by their paths
    assert html.count("data:image/webp") == 1  # the same images: one picture
    differs = html[html.index("Configuration</h2>") :]
    assert '<tr class="differs"><th scope="row">epochs</th><td>4</td><td>9</td></tr>' in differs
    assert '<tr class="differs"><th scope="row">recipe' not in differs
    same = page([open_subject(run), open_subject(run)])
    assert f"{run} (1)" in same and f"{run} (2)" in same


def test_what_a_file_is_called_is_never_markup(tmp_path: Path) -> None:
    photos = write_pictures(tmp_path / "photos")
    evil = "<img src=x onerror=alert(1)>&\"'"
    (photos / "cat").rename(photos / evil)
    (photos / "dog" / "001.png").rename(photos / "dog" / "<script>alert(2)<∕script>.png")
    html = page([open_subject(write_run(tmp_path / "run", photos))])
    assert "<img src=x" not in html and "<script>alert" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert evil in figures_of(html)["names"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "nowhere", "is no folder"),
        (lambda folder: folder, "holds no config.yaml"),
        (lambda folder: _write(folder / "notes.txt"), "is a file"),
    ],
)
def test_wrong_input_is_refused(tmp_path: Path, make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        open_subject(make(tmp_path))


def test_few_samples_are_refused(run: Path) -> None:
    with pytest.raises(ValueError, match="samples is 3"):
        open_subject(run, samples=3)
    with pytest.raises(ValueError, match="nothing to report on"):
        page([])
    with pytest.raises(ValueError, match="not there"):
        open_subject(run, data="nowhere at all")


def _write(path: Path) -> Path:
    path.write_text(json.dumps({}))
    return path
