"""The linear probe against scikit-learn and SciPy; invariances, choice of penalty, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.preprocessing import StandardScaler

from likewise.evaluation import linear_probe
from likewise.evaluation.logistic import LogisticRegression, principal_axes
from likewise.evaluation.minibatch import train_linear
from likewise.optimizers import LARS
from likewise.pairwise.products import matmul_precision
from tests.evaluation.blobs import blobs, rotation

Z, Y = blobs(300, dim=8, spread=1.5, seed=1)
T, TY = blobs(200, dim=8, spread=1.5, seed=2)


def loss(weight, bias, rows, y, penalty):
    """Mean cross-entropy and penalty, in float64."""
    logits = np.float64(rows) @ np.float64(weight).T + np.float64(bias)
    logits -= logits.max(axis=1, keepdims=True)
    log_shares = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -log_shares[np.arange(len(y)), y].mean() + penalty / 2 * np.square(weight).sum()


def peer(rows, y, penalty):
    return Peer(C=1 / (len(rows) * penalty), tol=1e-10, max_iter=100_000).fit(np.float64(rows), y)


# --- the optimum


@pytest.mark.parametrize("penalty", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("kind", ["tall", "wide", "uneven", "deficient"])
def test_scikit_learn(kind, penalty):
    """As many rows as there are, fewer rows than columns, columns of other sizes, or in a plane."""
    rng = np.random.default_rng(0)
    rows, y = blobs(*{"wide": (40, 3, 100)}.get(kind, (300, 4, 8)), spread=1.5)
    if kind == "uneven":
        rows = rows * np.logspace(-2, 2, 8) @ rotation(8) + 50
    if kind == "deficient":
        rows = rows[:, :3] @ rng.normal(size=(3, 8))
    rows = rows.astype(np.float32)
    found = linear_probe(rows, y, rows, y, penalty=penalty, tolerance=1e-9)
    assert found.settings["converged"] and found.settings["penalty"] == penalty
    scaler = StandardScaler().fit(np.float64(rows))
    model = peer(scaler.transform(np.float64(rows)), y, penalty)
    weight = found.weight * scaler.scale_  # in the standardised columns
    bias = found.bias + found.weight @ scaler.mean_
    best = loss(model.coef_, model.intercept_, scaler.transform(rows), y, penalty)
    assert loss(weight, bias, scaler.transform(rows), y, penalty) == pytest.approx(best, abs=1e-6)
    scale = np.abs(model.coef_).max()
    np.testing.assert_allclose(weight, model.coef_, atol=5e-3 * scale)
    np.testing.assert_allclose(bias - bias.mean(), model.intercept_, atol=5e-3 * scale)
    assert (found.predict(rows) == model.predict(scaler.transform(rows))).mean() > 0.99


def test_coefficients_at_a_usual_penalty():
    found = linear_probe(Z, Y, T, TY, penalty=0.01, tolerance=1e-10)
    scaler = StandardScaler().fit(np.float64(Z))
    model = peer(scaler.transform(np.float64(Z)), Y, 0.01)
    np.testing.assert_allclose(found.weight * scaler.scale_, model.coef_, atol=1e-4)
    assert found.accuracy == model.score(scaler.transform(np.float64(T)), TY)


def test_two_classes_are_two_columns():
    """scikit-learn has one column w for two classes: W = (-w/2, w/2), at twice the penalty."""
    y = Y % 2
    found = linear_probe(Z, y, T, TY % 2, penalty=0.02, scaling="none", tolerance=1e-10)
    model = peer(Z, y, 0.01)
    np.testing.assert_allclose(found.weight[1] - found.weight[0], model.coef_[0], atol=1e-4)


def test_minimum_against_scipy():
    """The solver by itself, from a start elsewhere, on rows that are not in their axes."""
    rows, y = Z[:50] - Z[:50].mean(axis=0), Y[:50]

    def objective(flat):
        matrix = flat.reshape(4, 9)
        return (
            loss(matrix[:, :8], matrix[:, 8], rows, y, 0.0) + 0.05 * np.square(matrix[:, :8]).sum()
        )

    best = minimize(objective, np.zeros(36), method="BFGS", options={"gtol": 1e-8})
    solver = LogisticRegression(torch.tensor(rows), torch.tensor(y), 4)
    start = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    for begin in (None, start):
        found = solver.minimise(0.1, begin, tolerance=1e-9)
        assert found.converged
        matrix = found.weight - found.weight.mean(dim=0)
        expected = best.x.reshape(4, 9) - best.x.reshape(4, 9).mean(axis=0)
        np.testing.assert_allclose(matrix[:, :8], expected[:, :8], atol=2e-4)
        assert objective(found.weight.double().numpy().ravel()) <= best.fun + 1e-7


def test_the_gap_is_about_right():
    """How far above the minimum the solver believes to be, early and late."""
    rows, y = torch.tensor(Z - Z.mean(axis=0)), torch.tensor(Y)
    axes = principal_axes(rows)
    solver = LogisticRegression(axes.rows, y, 4)
    best = solver.minimise(0.01, tolerance=1e-10).weight.numpy()
    lowest = loss(best[:, :-1], best[:, -1], axes.rows, Y, 0.01)
    for tolerance in (1e-3, 1e-5):
        found = solver.minimise(0.01, tolerance=tolerance)
        w = found.weight.numpy()
        assert found.gap <= tolerance
        assert loss(w[:, :-1], w[:, -1], axes.rows, Y, 0.01) - lowest <= 10 * tolerance


@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
def test_principal_axes_turn_and_turn_back(shape):
    rows = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    axes = principal_axes(rows)
    assert axes.rows.shape == (shape[0], min(shape))
    covariance = axes.rows.T @ axes.rows
    off = covariance - covariance.diag().diag()
    assert off.abs().max() < 1e-4 * covariance.max()
    weight = torch.randn(3, min(shape), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        rows @ axes.back(weight).T, axes.rows @ weight.T, atol=1e-4, rtol=1e-4
    )


def test_columns_too_many_for_their_axes(monkeypatch):
    from likewise.evaluation import logistic

    mix = rotation(8) * np.logspace(0, 2, 8, dtype=np.float32) @ rotation(8, seed=5)
    expected = linear_probe(Z @ mix, Y, T @ mix, TY, penalty=0.01, tolerance=1e-9)
    monkeypatch.setattr(logistic, "LARGEST_EIGENPROBLEM", 4)
    found = linear_probe(Z @ mix, Y, T @ mix, TY, penalty=0.01, tolerance=1e-9)
    assert found.settings["steps"] != expected.settings["steps"]
    np.testing.assert_allclose(found.weight, expected.weight, atol=1e-3)


def test_separable_without_penalty_does_not_fail():
    """There is no minimum: the weights grow until the tolerance is met, or it says so."""
    rows = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)
    y = np.repeat([0, 1, 2], 4)
    found = linear_probe(rows, y, rows, y, penalty=0.0)
    assert found.accuracy == 1.0 and np.isfinite(found.weight).all()


def test_a_step_that_does_not_descend_is_no_convergence():
    """Round-off can turn a direction round: the solver then goes on without its history."""
    rows, y = torch.tensor(Z - Z.mean(axis=0)), torch.tensor(Y)
    solver = LogisticRegression(rows, y, 4)
    expected = solver.minimise(0.01, tolerance=1e-9)
    turned = []

    def line_search(*arguments):
        if len(turned) < 1 and arguments[2].abs().sum() > 0:
            turned.append(True)
            arguments = (arguments[0], -arguments[1], arguments[2], -arguments[3], *arguments[4:])
            length, gap = LogisticRegression._line_search(solver, *arguments)
            assert (length, gap) == (0.0, float("inf"))
            return length, gap
        return LogisticRegression._line_search(solver, *arguments)

    solver._line_search = line_search
    found = solver.minimise(0.01, tolerance=1e-9)
    assert turned and found.converged
    torch.testing.assert_close(found.weight, expected.weight, atol=1e-3, rtol=1e-3)


def test_unfinished_descent_is_said():
    found = linear_probe(Z, Y, T, TY, penalty=1e-4, iterations=2)
    assert not found.settings["converged"]
    assert any("had not converged after 2 iterations" in note for note in found.notes)
    assert not linear_probe(Z, Y, T, TY, penalty=1e-4).notes


# --- invariances


def test_rotation_changes_nothing():
    turn = rotation(8)
    plain = linear_probe(Z, Y, T, TY, scaling="global")
    turned = linear_probe(Z @ turn, Y, T @ turn, TY, scaling="global")
    assert turned.settings["penalty"] == plain.settings["penalty"]
    np.testing.assert_allclose(turned.scores(T @ turn), plain.scores(T), atol=5e-3)
    assert turned.accuracy == pytest.approx(plain.accuracy, abs=0.006)


@pytest.mark.parametrize("scaling", ["feature", "global"])
@pytest.mark.parametrize(("factor", "place"), [(100, 30), (1e25, 0), (1e-25, 0)])
def test_scale_and_place_change_nothing(scaling, factor, place):
    factor = np.float32(factor)
    plain = linear_probe(Z, Y, T, TY, scaling=scaling, penalty=0.01)
    rows, tests = factor * Z + place, factor * T + place
    moved = linear_probe(rows, Y, tests, TY, scaling=scaling, penalty=0.01)
    np.testing.assert_allclose(moved.scores(tests), plain.scores(T), atol=2e-3)


def test_rows_too_large_to_take_as_they_are():
    with pytest.raises(ValueError, match="the loss is not finite.*scaling='feature'"):
        linear_probe(np.float32(1e25) * Z, Y, T, TY, scaling="none", penalty=0.01)


def test_scale_of_a_column_changes_nothing_with_feature_scaling():
    factors = np.logspace(-4, 4, 8).astype(np.float32)
    plain = linear_probe(Z, Y, T, TY, penalty=0.01)
    scaled = linear_probe(Z * factors, Y, T * factors, TY, penalty=0.01)
    np.testing.assert_allclose(scaled.scores(T * factors), plain.scores(T), atol=2e-3)


def test_constant_columns_have_no_weight():
    rows = np.c_[Z, np.full(300, 1234.567, dtype=np.float32)]
    tests = np.c_[T, np.linspace(0, 1e6, 200, dtype=np.float32)]
    found = linear_probe(rows, Y, tests, TY, penalty=0.01)
    assert (found.weight[:, 8] == 0).all()
    assert found.accuracy == linear_probe(Z, Y, T, TY, penalty=0.01).accuracy


# --- the choice of the penalty


def test_penalty_is_the_best_on_held_out_rows():
    found = linear_probe(Z, Y, T, TY, penalty=[1e-3, 10.0, 0.1])
    errors = found.settings["held_out_errors"]
    assert list(errors) == ["10", "0.1", "0.001"]
    best = min(errors.values())
    # Equal ones in favour of the larger.
    first = next(float(penalty) for penalty, share in errors.items() if share == best)
    assert found.settings["penalty"] == first
    again = linear_probe(Z, Y, T, TY, penalty=first)
    np.testing.assert_allclose(found.scores(T), again.scores(T), atol=1e-2)


def test_held_out_rows_were_not_trained_on():
    """Labels at random, and room to learn them by heart: only honest rows say that it is futile."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(200, 150)), rng.integers(0, 2, 200)
    found = linear_probe(rows, y, rows, y)
    assert min(found.settings["held_out_errors"].values()) > 0.35
    assert linear_probe(rows, y, rows, y, penalty=1e-6).accuracy == 1.0


def test_noise_gets_a_larger_penalty_than_signal():
    rng = np.random.default_rng(0)
    rows, y = blobs(200, 2, 100, spread=12.0)
    weak = linear_probe(rows, y, rows, y).settings["penalty"]
    clean = np.c_[np.eye(2)[y] + 0.01 * rng.normal(size=(200, 2))]
    assert weak >= 0.1
    assert linear_probe(clean, y, clean, y).accuracy == 1.0


def test_of_equal_penalties_the_largest():
    rows = np.repeat(np.eye(4), 10, axis=0)
    found = linear_probe(rows, np.repeat(range(4), 10), rows, np.repeat(range(4), 10))
    assert set(found.settings["held_out_errors"].values()) == {0.0}
    assert found.settings["penalty"] == 10.0


def test_of_few_rows_all_penalties_are_tried(monkeypatch):
    from likewise.evaluation import penalty

    rows, y = np.repeat(np.eye(4), 10, axis=0), np.repeat(range(4), 10)
    tried = linear_probe(rows, y, rows, y).settings["held_out_errors"]
    assert len(tried) == len(penalty.PENALTIES)
    monkeypatch.setattr(penalty, "FEW_ROWS", 30)
    tried = linear_probe(rows, y, rows, y).settings["held_out_errors"]
    assert len(tried) == 1 + penalty.PATIENCE


def test_many_rows_hold_out_a_tenth(monkeypatch):
    from likewise.evaluation import penalty

    monkeypatch.setattr(penalty, "MANY_ROWS", 100)
    sizes = []
    original = penalty.LogisticRegression

    def watched(rows, labels, n_classes):
        sizes.append(torch.bincount(labels).tolist())
        return original(rows, labels, n_classes)

    monkeypatch.setattr(penalty, "LogisticRegression", watched)
    linear_probe(Z[:200], Y[:200], T, TY)
    assert sizes == [[45] * 4, [50] * 4]


def test_the_same_seed_gives_the_same_probe():
    for method, options in (("lbfgs", {}), ("sgd", {"epochs": 3})):
        first, second, other = (
            linear_probe(Z, Y, T, TY, method=method, seed=seed, **options) for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first.weight, second.weight)
        if method == "sgd":
            assert (first.weight != other.weight).any()


# --- minibatches


def naive_training(rows, y, n_classes, lars, epochs, rate, batch, momentum, decay, seed):
    """By autograd, with a layer and an optimiser of PyTorch's own (or the room's LARS)."""
    generator = torch.Generator().manual_seed(seed)
    layer = torch.nn.Linear(rows.shape[1], n_classes)
    with torch.no_grad():
        layer.weight.copy_(0.01 * torch.randn(n_classes, rows.shape[1], generator=generator))
        layer.bias.zero_()
    top = rate * batch / 256
    if lars:
        groups = [
            {"params": [layer.weight], "weight_decay": decay},
            {"params": [layer.bias], "adapt": False},
        ]
        optimizer = LARS(groups, top, momentum=momentum)
    else:
        parameters = layer.parameters()
        optimizer = torch.optim.SGD(parameters, top, momentum=momentum, weight_decay=decay)
    steps = epochs * -(-len(rows) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        order = torch.randperm(len(rows), generator=generator)
        for start in range(0, len(rows), batch):
            chosen = order[start : start + batch]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(layer(rows[chosen]), y[chosen]).backward()
            optimizer.step()
            schedule.step()
    return layer.weight.detach(), layer.bias.detach()


@pytest.mark.parametrize("optimizer", ["sgd", "lars"])
@pytest.mark.parametrize("decay", [0.0, 1e-2])
def test_minibatches_against_autograd(optimizer, decay):
    rows, y = torch.tensor(Z), torch.tensor(Y)
    weight, bias = train_linear(
        rows,
        y,
        4,
        optimizer=optimizer,
        epochs=4,
        learning_rate=0.2,
        batch_size=64,
        momentum=0.8,
        weight_decay=decay,
        seed=5,
    )
    expected = naive_training(rows, y, 4, optimizer == "lars", 4, 0.2, 64, 0.8, decay, 5)
    torch.testing.assert_close(weight, expected[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(bias, expected[1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("method", "options"), [("sgd", {}), ("lars", {"learning_rate": 10.0, "batch_size": 64})]
)
def test_minibatches_come_near_the_full_batch(method, options):
    exact = linear_probe(Z, Y, T, TY, penalty=1e-3)
    found = linear_probe(Z, Y, T, TY, method=method, epochs=60, **options)
    assert found.accuracy == pytest.approx(exact.accuracy, abs=0.04)
    assert found.settings["method"] == method and found.settings["epochs"] == 60


def test_the_paper_defaults_of_lars():
    """matrix-ssl appendix F: batch 4096, 0.9, no weight decay, 0.03, 100 epochs."""
    found = linear_probe(Z, Y, T, TY, method="lars")
    assert found.settings == {
        "method": "lars",
        "scaling": "feature",
        "seed": 0,
        "epochs": 100,
        "learning_rate": 0.03,
        "batch_size": 4096,
        "momentum": 0.9,
        "weight_decay": 0.0,
    }
    # Steps that suit ImageNet leave so few rows where they started, and the result says so.
    assert any("LARS took 100 steps" in note for note in found.notes)


def test_divergence_is_said():
    """With this weight decay every step overshoots by more than the last."""
    options = {"learning_rate": 1e4, "weight_decay": 1e4, "epochs": 20}
    with pytest.raises(ValueError, match="learning_rate is 10000.0: training has diverged"):
        linear_probe(Z, Y, T, TY, method="sgd", **options)


# --- the result


def test_scores_by_loops():
    rows, y = blobs(400, classes=7, dim=5, spread=1.5)
    tests, truth = blobs(100, classes=7, dim=5, spread=1.5, seed=4)
    found = linear_probe(rows, 3 * y + 2, tests, 3 * truth + 2, penalty=0.01)
    logits = tests @ found.weight.T + found.bias
    assert found.trained_classes.tolist() == found.classes == [2, 5, 8, 11, 14, 17, 20]
    predicted = 3 * logits.argmax(axis=1) + 2
    assert (found.predict(tests) == predicted).all()
    assert found.accuracy == pytest.approx(np.mean(predicted == 3 * truth + 2))
    five = [truth[i] in np.argsort(-logits[i])[:5] for i in range(100)]
    assert found.top5 == pytest.approx(np.mean(five)) and found.accuracy < found.top5 < 1
    assert found.confusion.sum() == 100 and found.confusion.shape == (7, 7)
    assert found.confusion[2, 3] == np.sum((truth == 2) & (predicted == 11))
    assert found.per_class[11] == np.mean(predicted[truth == 3] == 11)
    plain = found.to_dict()
    assert plain["confusion"] == found.confusion.tolist() and "weight" not in plain


def test_answers_in_kind():
    found = linear_probe(torch.tensor(Z), torch.tensor(Y), torch.tensor(T), TY, penalty=0.1)
    assert isinstance(found.weight, torch.Tensor)
    assert isinstance(found.predict(torch.tensor(T)), torch.Tensor)
    assert isinstance(found.predict(T), np.ndarray)
    assert isinstance(linear_probe(Z, Y, T, TY, penalty=0.1).bias, np.ndarray)
    with pytest.raises(ValueError, match="z has rows of 3 numbers: the probe was fitted to .* 8"):
        found.predict(T[:, :3])


def test_autocast_changes_nothing():
    expected = linear_probe(torch.tensor(Z), Y, torch.tensor(T), TY, penalty=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = linear_probe(torch.tensor(Z), Y, torch.tensor(T), TY, penalty=0.1)
    torch.testing.assert_close(found.weight, expected.weight)


# --- labels that are missing, and bad input


def test_unlabelled_rows_are_left_out_and_counted():
    y, truth = np.where(np.arange(300) < 200, Y, -1), np.where(np.arange(200) < 150, TY, -1)
    found = linear_probe(Z, y, T, truth, penalty=0.01)
    expected = linear_probe(Z[:200], Y[:200], T[:150], TY[:150], penalty=0.01)
    assert found.accuracy == expected.accuracy
    np.testing.assert_array_equal(found.weight, expected.weight)
    assert found.unlabelled == {"train": 100, "test": 50}
    assert (found.n_train, found.n_test) == (200, 150)
    assert found.notes == [
        "100 train rows have no label and are left out",
        "50 test rows have no label and are left out",
    ]


def test_a_class_that_training_never_saw_counts_as_wrong():
    known = Y != 3
    found = linear_probe(Z[known], Y[known], T, TY, penalty=0.01)
    without = linear_probe(Z[known], Y[known], T[TY != 3], TY[TY != 3], penalty=0.01)
    assert found.accuracy == pytest.approx(0.75 * without.accuracy)
    assert found.per_class[3] == 0.0 and found.classes == [0, 1, 2, 3]
    assert found.notes == [
        "50 test rows are of a class that training never saw (3); they count as wrong"
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_labels": np.full(300, 3)}, r"one class only \(3\)"),
        ({"train_labels": np.full(300, -1)}, "train_labels hold no label"),
        ({"test_labels": np.full(200, -1)}, "test_labels hold no label"),
        ({"test_labels": np.full(200, 9)}, r"no class of test_labels \(9\) occurs in train_labels"),
        ({"test": T[:, :4]}, "train has rows of 8 numbers and test of 4"),
        ({"train": np.where(np.arange(300) == 7, np.nan, 0)[:, None] + Z}, "the first is row 7"),
        ({"train": Z[:0], "train_labels": Y[:0]}, "train has 0 rows"),
        ({"method": "adam"}, "method is 'adam': give 'lbfgs', 'sgd' or 'lars'"),
        ({"scaling": "some"}, "scaling is 'some'"),
        ({"penalty": -1.0}, "penalty is -1.0: give a number from 0"),
        ({"penalty": []}, "penalty is empty"),
        ({"method": "sgd", "penalty": 1.0}, "penalty is no option of method='sgd': it has epochs"),
        ({"method": "sgd", "epochs": 0}, "epochs is 0"),
        ({"method": "lars", "learning_rate": 0.0}, "learning_rate is 0.0: give a positive number"),
    ],
)
def test_bad_input(changes, message):
    given = {"train": Z, "train_labels": Y, "test": T, "test_labels": TY, **changes}
    with pytest.raises(ValueError, match=message):
        linear_probe(**given)


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["lbfgs", "sgd", "lars"])
def test_cuda_agrees_with_the_cpu(method):
    big, y = blobs(40000, classes=10, dim=64, spread=4.0)
    tests, truth = blobs(3000, classes=10, dim=64, spread=4.0, seed=7)
    options = {
        "lbfgs": {},
        "sgd": {"epochs": 5},
        "lars": {"epochs": 20, "learning_rate": 3.0, "batch_size": 1024},
    }[method]
    expected = linear_probe(big, y, tests, truth, method=method, **options)
    with matmul_precision(torch.device("cuda"), "tf32"):  # what a user may have set
        found = linear_probe(big, y, tests, truth, method=method, device="cuda", **options)
    assert found.accuracy == pytest.approx(expected.accuracy, abs=0.01)
    if method == "lbfgs":
        np.testing.assert_allclose(found.weight, expected.weight, atol=1e-3)
