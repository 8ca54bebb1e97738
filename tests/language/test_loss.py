"""Value and gradient of the loss, by every method, against the formula."""

import pytest
import torch
import torch.nn.functional as F

from likewise.language import MatrixCrossEntropy
from tests.language import naive

SIZES = [(8, 5), (8, 50), (64, 40), (64, 1000), (256, 150), (256, 2000)]


def problem(d, n, kind="random", positions=8, seed=0):
    """Embedding, logits and labels of cross-entropy at most 10, in float64."""
    generator = torch.Generator().manual_seed(seed)
    embedding = 3 * torch.randn(n, d, generator=generator, dtype=torch.float64)
    logits = torch.randn(positions, n, generator=generator, dtype=torch.float64)
    if kind == "peaked":
        best = torch.randint(n, (positions, 1), generator=generator)
        logits.scatter_add_(1, best, torch.full((positions, 1), 12.0, dtype=torch.float64))
    elif kind == "wide":
        logits *= 3
    allowed = (logits.log_softmax(1) >= -10).double()
    return embedding, logits, torch.multinomial(allowed, 1, generator=generator)[:, 0]


def matrix_part(embedding, logits, labels, **options):
    """Values (N,) and gradient (N, n) of the matrix cross-entropy alone."""
    logits = logits.clone().requires_grad_()
    options = {"reduction": "sum", "cross_entropy_weight": 0.0, **options}
    loss = MatrixCrossEntropy(embedding, **options)
    loss(logits, labels).backward()
    return loss.last.matrix_cross_entropy, logits.grad


def relative(a, b):
    return ((a - b).norm(dim=-1) / b.norm(dim=-1)).max().item()


@pytest.mark.parametrize("d, n", [(3, 7), (6, 4)])
@pytest.mark.parametrize("method", ["exact", "lanczos", "taylor"])
def test_value_and_gradients_are_those_of_the_formula(d, n, method):
    embedding, logits, labels = problem(d, n, positions=2)
    rule = naive.matrix_cross_entropy
    if method == "taylor":
        rule = lambda e, z, t: naive.taylor(e, z, t, 4)  # noqa: E731

    def total(e, z):
        return sum(rule(e, z[i], int(labels[i])) for i in range(len(labels)))

    embedding.requires_grad_()
    logits.requires_grad_()
    loss = MatrixCrossEntropy(
        embedding,
        method=method,
        tolerance=0.0,
        reduction="sum",
        cross_entropy_weight=0.0,
        embedding_gradient=True,
    )
    value = loss(logits, labels)
    value.backward()
    e, z = embedding.detach().numpy(), logits.detach().numpy()
    assert value.item() == pytest.approx(total(e, z), rel=1e-9)
    expected = naive.differences(lambda x: total(e, x), logits)
    torch.testing.assert_close(logits.grad, expected, rtol=1e-5, atol=1e-7)
    expected = naive.differences(lambda x: total(x, z), embedding)
    torch.testing.assert_close(embedding.grad, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["random", "peaked"])
@pytest.mark.parametrize("d, n", SIZES)
def test_ten_products_are_within_a_thousandth(d, n, kind):
    for seed in range(3):
        given = problem(d, n, kind, seed=seed)
        exact, _ = matrix_part(*given, method="exact")
        found, _ = matrix_part(*given, products=10, max_products=10)
        torch.testing.assert_close(found, exact, rtol=1e-3, atol=0)


@pytest.mark.parametrize("d, n", SIZES)
def test_wide_logits_get_the_products_that_they_need(d, n):
    given = problem(d, n, "wide")
    exact, gradient = matrix_part(*given, method="exact")
    found, _ = matrix_part(*given)
    torch.testing.assert_close(found, exact, rtol=2e-3, atol=0)
    more, close = matrix_part(*given, products=min(n, d), max_products=min(n, d), tolerance=0.0)
    torch.testing.assert_close(more, exact, rtol=1e-6, atol=0)
    assert relative(close, gradient) < 1e-4


def test_the_gradient_comes_closer_with_more_products():
    given = problem(64, 1000, "wide")
    _, exact = matrix_part(*given, method="exact")
    errors = [
        relative(matrix_part(*given, products=k, tolerance=0.0)[1], exact) for k in (5, 10, 20, 40)
    ]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-3


def test_the_taylor_polynomial_is_far_off_where_eigenvalues_are_small():
    given = problem(64, 1000)  # Q is close to I / 64
    exact, _ = matrix_part(*given, method="exact")
    found, _ = matrix_part(*given, method="taylor", order=4)
    assert ((exact - found) / exact).min() > 0.3


@pytest.mark.parametrize("method", ["lanczos", "exact", "taylor"])
def test_top_tokens_are_a_smaller_vocabulary(method):
    embedding, logits, labels = problem(16, 60, positions=6)
    for i in range(6):
        kept = logits[i].topk(12).indices
        if labels[i] not in kept:
            kept[-1] = labels[i]
        label = int((kept == labels[i]).nonzero()[0, 0])
        options = {"method": method, "tolerance": 0.0, "products": 12}
        small, inside = matrix_part(
            embedding[kept], logits[i : i + 1, kept], torch.tensor([label]), **options
        )
        found, gradient = matrix_part(
            embedding, logits[i : i + 1], labels[i : i + 1], top_k=12, **options
        )
        torch.testing.assert_close(found, small, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(gradient[:, kept], inside, rtol=1e-6, atol=1e-9)
        assert gradient.abs().sum() == pytest.approx(inside.abs().sum().item())


@pytest.mark.parametrize("top_k", [None, 12])
def test_the_embedding_gets_its_gradient_through_the_top_tokens_too(top_k):
    embedding, logits, labels = problem(5, 20, positions=3)
    options = {"tolerance": 0.0, "top_k": top_k, "embedding_gradient": True, "reduction": "sum"}
    gradients = []
    for method in ("lanczos", "exact"):
        weight = embedding.clone().requires_grad_()
        MatrixCrossEntropy(weight, method=method, **options)(logits, labels).backward()
        gradients.append(weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-8)
    assert gradients[0].abs().max() > 1e-3


def test_chunks_do_not_change_the_result():
    given = problem(16, 40, "wide", positions=11)
    whole, gradient = matrix_part(*given)
    parts, same = matrix_part(*given, memory=20_000)
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(same, gradient)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_is_that_of_pytorch(reduction):
    embedding, logits, labels = problem(4, 9, positions=12)
    labels[3] = -100
    ours = logits.clone().requires_grad_()
    theirs = logits.clone().requires_grad_()
    options = {"reduction": reduction, "label_smoothing": 0.1}
    loss = MatrixCrossEntropy(embedding, matrix_weight=0.0, **options)
    found = loss(ours.view(3, 4, 9), labels.view(3, 4))
    expected = F.cross_entropy(theirs, labels, **options)
    torch.testing.assert_close(found.flatten(), expected.flatten())
    weights = torch.rand(found.shape, dtype=torch.float64)
    (found * weights).sum().backward()
    (expected * weights.view(expected.shape)).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_the_loss_is_the_weighted_sum_of_both():
    embedding, logits, labels = problem(4, 9)
    loss = MatrixCrossEntropy(embedding, cross_entropy_weight=0.5, matrix_weight=2.0)
    value = loss(logits, labels)
    parts = loss.last.cross_entropy.mean(), loss.last.matrix_cross_entropy.mean()
    assert value.item() == pytest.approx(0.5 * parts[0].item() + 2 * parts[1].item())


@pytest.mark.parametrize("options", [{}, {"method": "exact"}, {"top_k": 6}])
def test_label_smoothing_is_right_on_average(options):
    embedding, logits, labels = problem(3, 6, positions=1)
    many = 4000
    loss = MatrixCrossEntropy(
        embedding, label_smoothing=0.3, reduction="none", tolerance=0.0, **options
    )
    loss(logits.expand(many, -1), labels.expand(many))
    found = loss.last.matrix_cross_entropy
    expected = naive.matrix_cross_entropy(embedding, logits[0].numpy(), int(labels[0]), 0.3)
    spread = found.std() / many**0.5
    assert spread > 0
    assert abs(found.mean().item() - expected) < 4 * spread.item()


def test_the_gradient_of_label_smoothing_is_that_of_its_value():
    embedding, logits, labels = problem(3, 6, positions=2)

    def value(z, e=embedding):
        loss = MatrixCrossEntropy(e, label_smoothing=0.3, reduction="sum", tolerance=0.0)
        return loss(torch.as_tensor(z), labels)  # the same seed, the same probes

    z, weight = logits.clone().requires_grad_(), embedding.clone().requires_grad_()
    loss = MatrixCrossEntropy(
        weight, label_smoothing=0.3, reduction="sum", tolerance=0.0, embedding_gradient=True
    )
    loss(z, labels).backward()
    expected = naive.differences(lambda x: value(x).item(), logits)
    torch.testing.assert_close(z.grad, expected, rtol=1e-5, atol=1e-7)
    expected = naive.differences(lambda x: value(logits, torch.as_tensor(x)).item(), embedding)
    torch.testing.assert_close(weight.grad, expected, rtol=1e-4, atol=1e-6)


def test_a_synonym_costs_less_than_another_wrong_token():
    embedding = torch.eye(4, dtype=torch.float64)[[0, 1, 2, 0]] + 0.05
    logits = torch.zeros(1, 4, dtype=torch.float64)
    logits[0, 0] = 6.0
    synonym, _ = matrix_part(embedding, logits, torch.tensor([3]))
    other, _ = matrix_part(embedding, logits, torch.tensor([1]))
    assert synonym.item() < 1.1 and other.item() > 3


def test_more_products_than_the_tokens_span():
    """128 tokens in 64 dimensions: a Krylov space ends before its coefficients do."""
    embedding, logits, labels = problem(64, 1500, positions=4)
    exact, gradient = matrix_part(embedding, logits, labels, top_k=128, method="exact")
    options = {"products": 60, "max_products": 60, "tolerance": 0.0}
    found, close = matrix_part(embedding, logits, labels, top_k=128, **options)
    torch.testing.assert_close(found, exact, rtol=1e-6, atol=0)
    assert relative(close, gradient) < 1e-4


def test_half_precision_logits_with_ignored_positions():
    embedding, logits, labels = problem(16, 60)
    labels[::3] = -100
    wide = logits.bfloat16().double()
    expected, gradient = matrix_part(embedding, wide, labels)
    found, narrow = matrix_part(embedding.float(), logits.bfloat16(), labels)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    kept = labels >= 0
    assert relative(narrow[kept].double(), gradient[kept]) < 1e-2
    assert narrow.dtype == torch.bfloat16 and not narrow[::3].any()
