import dataclasses
import math

import numpy as np
import pytest
import torch

from likewise.diagnostics import Thresholds, gather_evidence, verdict
from tests.diagnostics import naive

N, DIM = 400, 16


def two_views(signal, noise, seed=10):
    shape = (N, signal.shape[1])
    return [signal + noise * naive.normal(*shape, seed=seed + k) for k in (0, 1)]


def cases():
    """One of each, with what has to be said of it."""
    spread = naive.normal(N, DIM)
    balanced = np.arange(N) % 4
    tilted = np.where(np.arange(N) < 15, 1, 0)
    line = np.outer(naive.normal(N, seed=1), naive.normal(DIM, seed=2))
    both = np.hstack([spread, np.zeros((N, DIM))])
    moved = [
        both + np.hstack([np.zeros((N, DIM)), naive.normal(N, DIM, seed=20 + k)]) for k in (0, 1)
    ]
    return {
        "healthy": dict(zip(("z1", "z2"), two_views(spread, 0.5), strict=True)),
        "healthy, labelled": dict(
            zip(("z1", "z2"), two_views(spread, 0.5), strict=True), labels=balanced
        ),
        "dimensional collapse": dict(zip(("z1", "z2"), two_views(line, 0.02), strict=True)),
        "full collapse": dict(zip(("z1", "z2"), two_views(np.ones((N, DIM)), 0.01), strict=True)),
        "augmentation too strong": dict(zip(("z1", "z2"), two_views(spread, 3.0), strict=True)),
        "augmentation too weak": dict(zip(("z1", "z2"), two_views(spread, 0.01), strict=True)),
        "projector absorbs the augmentation": {
            "h1": moved[0],
            "h2": moved[1],
            "z1": moved[0][:, :DIM] + 0.2 * naive.normal(N, DIM, seed=30),
            "z2": moved[1][:, :DIM] + 0.2 * naive.normal(N, DIM, seed=31),
        },
        "class imbalance": dict(
            zip(("z1", "z2"), two_views(spread, 0.5), strict=True), labels=tilted
        ),
    }


@pytest.mark.parametrize("name", list(cases()))
def test_each_case_is_named_and_no_other(name):
    found = verdict(gather_evidence(**cases()[name]))
    assert found.names == (name.split(",")[0],)
    assert found.healthy == name.startswith("healthy")
    finding = found.findings[0]
    assert finding.sentence and all(
        math.isfinite(v) or k in ("label_lift", "confusion") for k, v in finding.figures.items()
    )
    assert found.healthy or finding.remedies
    assert name.split(",")[0] in found.text().lower()
    assert found.to_dict()["findings"][0]["name"] == finding.name


def test_several_at_once_the_gravest_first():
    given = cases()["dimensional collapse"] | {"labels": np.where(np.arange(N) < 15, 1, 0)}
    assert verdict(gather_evidence(**given)).names == ("dimensional collapse", "class imbalance")
    given = cases()["full collapse"] | {"labels": np.where(np.arange(N) < 15, 1, 0)}
    assert verdict(gather_evidence(**given)).names == ("full collapse", "class imbalance")


def test_an_invariant_encoder_that_knows_the_classes_is_not_blamed():
    """Views are all but equal and nearest negatives are of the same class."""
    y = np.arange(N) % 4
    signal = np.repeat(np.eye(4), 4, axis=1)[y] * 2 + 0.5 * naive.normal(N, DIM)
    one, two = two_views(signal, 0.005)
    blind, seeing = gather_evidence(one, two), gather_evidence(one, two, labels=y)
    assert seeing.label_lift > 0.9
    assert verdict(blind).names == ("augmentation too weak",)
    assert "augmentation too weak" not in verdict(seeing).names


@pytest.mark.parametrize(
    ("changes", "limit", "name"),
    [
        ({"spread": 0.01}, "full_collapse_spread", "full collapse"),
        ({"effective_rank": 1.6}, "dimensional_collapse_share", "dimensional collapse"),
        ({"noise": 0.7}, "strong_noise", "augmentation too strong"),
        ({"imbalance": 10.0, "classes": 2}, "imbalance_ratio", "class imbalance"),
    ],
)
def test_thresholds_are_where_they_are_said_to_be(changes, limit, name):
    base = dataclasses.replace(
        gather_evidence(**cases()["healthy, labelled"]), rows=1000, dim=16, **changes
    )
    figure = next(iter(changes))
    for side in (-1e-6, 1e-6):
        value = getattr(base, figure) + side
        names = verdict(dataclasses.replace(base, **{figure: value})).names
        below = side < 0
        # Noise and imbalance fire above, the others below.
        assert (name in names) == (below != (figure in ("noise", "imbalance")))
    value = getattr(Thresholds(), limit)
    assert verdict(
        base, Thresholds(**{limit: value * (1.01 if figure in ("noise", "imbalance") else 0.99)})
    ).healthy


# The last look at runs on digits that benchmarks/verdict.py made healthy or not: (spread, rank,
# dimensions, encoder's rank, noise, encoder's noise, confusion, label lift), and what is said.
TRAINED = {
    "SimCLR": ((0.998, 18.8, 64, 25.5, 0.191, 0.289, 0.352, 0.574), ("healthy",)),
    "SimCLR, wide": ((0.996, 17.7, 128, 17.7, 0.228, 0.313, 0.581, 0.395), ("healthy",)),
    "VICReg": ((0.885, 11.1, 256, 11.5, 0.198, 0.269, 0.790, 0.226), ("healthy",)),
    "SimSiam, no stop-gradient": (
        (0.129, 1.77, 256, 2.45, 0.947, 0.828, 0.995, 0.020),
        ("dimensional collapse", "augmentation too strong"),
    ),
    "VICReg, invariance alone": (
        (0.073, 33.4, 256, 2.69, 0.929, 0.759, 0.987, 0.0),
        ("dimensional collapse", "augmentation too strong"),
    ),
    "VICReg, no covariance": (
        (0.955, 1.15, 256, 4.41, 0.0997, 0.399, 0.978, 0.017),
        ("dimensional collapse", "projector absorbs the augmentation"),
    ),
    "slivers for views": (
        (0.039, 1.97, 64, 5.17, 0.815, 0.921, 0.998, -0.002),
        ("dimensional collapse", "augmentation too strong"),
    ),
    "hardly any augmentation": (
        (0.999, 19.2, 64, 20.0, 0.006, 0.005, 0.002, -0.004),
        ("augmentation too weak",),
    ),
}


@pytest.mark.parametrize("name", list(TRAINED))
def test_trained_runs_are_judged_by_how_they_were_made(name):
    figures, names = TRAINED[name]
    spread, rank, dim, inner, noise, encoder_noise, confusion, lift = figures
    base = gather_evidence(**cases()["healthy, labelled"])
    evidence = dataclasses.replace(
        base,
        rows=512,
        spread=spread,
        effective_rank=rank,
        dim=dim,
        encoder_rank=inner,
        encoder_dim=128,
        noise=noise,
        projector_noise=noise,
        encoder_noise=encoder_noise,
        confusion=confusion,
        label_lift=lift,
    )
    found = verdict(evidence)
    assert found.names == names
    if "augmentation too strong" in names:
        # After a collapse, the augmentation is one of several causes.
        assert "may be its cause" in found.findings[1].sentence


@pytest.mark.parametrize(("dim", "least"), [(16, 1.6), (50, 5.0), (80, 8.0), (2048, 8.0)])
def test_the_rank_asked_for_is_a_share_of_few_dimensions_and_no_more_of_many(dim, least):
    base = gather_evidence(**cases()["healthy, labelled"])
    for which, other in (("", "encoder_"), ("encoder_", "")):
        rank = {"": "effective_rank", "encoder_": "encoder_rank"}
        sizes = {f"{which}dim": dim, f"{other}dim": 16, rank[other]: 10.0, "rows": 4096}
        for side, expected in ((-1e-6, ("dimensional collapse",)), (1e-6, ("healthy",))):
            evidence = dataclasses.replace(base, **sizes, **{rank[which]: least + side})
            assert verdict(evidence).names == expected
        sentence = verdict(dataclasses.replace(base, **sizes, **{rank[which]: 1.1})).findings[0]
        assert ("encoder" in sentence.sentence) == bool(which)


def test_what_is_undefined_is_not_judged():
    z = naive.normal(N, DIM)
    one_view = verdict(gather_evidence(z))
    assert one_view.healthy and len(one_view.not_examined) == 3
    assert any("two views" in reason for reason in one_view.not_examined)
    assert any("labels" in reason for reason in one_view.not_examined)
    assert any("what compares views is undefined" in n for n in one_view.evidence.notes)
    single = gather_evidence(z, z + 0.5, labels=np.zeros(N, int))
    assert math.isnan(single.imbalance) and math.isnan(single.label_lift)
    narrow = verdict(gather_evidence(naive.normal(50, 2)))
    assert any("no dimensions to lose" in reason for reason in narrow.not_examined)


def test_a_collapse_of_nothing_is_not_called_healthy():
    found = verdict(gather_evidence(np.zeros((5, 3))))
    assert math.isnan(found.evidence.spread) and found.names == ("full collapse",)
    assert "every embedding is zero" in found.text()


def test_a_sample_agrees_with_all():
    given = cases()["healthy, labelled"]
    whole, part = gather_evidence(**given), gather_evidence(**given, max_rows=150)
    assert part.effective_rank == whole.effective_rank and part.noise == whole.noise
    assert part.uniformity == pytest.approx(whole.uniformity, abs=0.1)


def test_errors():
    z = naive.normal(10, 3)
    with pytest.raises(ValueError, match="one of h1 and h2"):
        gather_evidence(z, z, h1=z)
    with pytest.raises(ValueError, match="same samples"):
        gather_evidence(z, z, h1=z[:5], h2=z[:5])
    with pytest.raises(ValueError, match="labels has shape"):
        gather_evidence(z, z, labels=np.zeros(3, int))
    with pytest.raises(ValueError, match="strong_noise is"):
        Thresholds(strong_noise=-1.0)
    with pytest.raises(ValueError, match="at least 2"):
        gather_evidence(torch.ones(1, 3))
