"""Bounds, underflow, formats, and what must not be passed."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.language import MatrixCrossEntropy
from tests.language import naive
from tests.language.test_loss import matrix_part, problem, relative


@settings(max_examples=60, deadline=None)
@given(
    d=st.integers(1, 12),
    n=st.integers(1, 30),
    scale=st.floats(0, 12),
    seed=st.integers(0, 10**6),
    method=st.sampled_from(["exact", "lanczos"]),
    top_k=st.sampled_from([None, 3]),
)
def test_matrix_ssl_equation_23_bounds(d, n, scale, seed, method, top_k):
    """1 <= MCE <= 1 + CE for one-hot targets (data processing), and tr Q = 1."""
    generator = torch.Generator().manual_seed(seed)
    embedding = torch.randn(n, d, generator=generator, dtype=torch.float64)
    logits = scale * torch.randn(4, n, generator=generator, dtype=torch.float64)
    labels = torch.randint(n, (4,), generator=generator)
    loss = MatrixCrossEntropy(embedding, method=method, top_k=top_k, reduction="none")
    loss(logits, labels)
    found, entropy = loss.last.matrix_cross_entropy, loss.last.cross_entropy
    assert (found >= 1 - 1e-9).all()
    assert (found <= (1 + entropy) * (1 + 1e-3)).all()
    q = logits.softmax(1)
    for row in q:
        assert naive.density(embedding, row).trace() == pytest.approx(1)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 3e-4), (torch.float32, 3e-3)])
@pytest.mark.parametrize("gap", [5.0, 29.0, 31.0, 200.0, 1000.0])
def test_a_probability_that_underflows_keeps_its_value(gap, dtype, tolerance):
    generator = torch.Generator().manual_seed(3)
    embedding = torch.randn(6, 16, generator=generator, dtype=dtype)
    logits = torch.zeros(1, 6, dtype=dtype)
    logits[0, 3] = -gap
    expected = naive.precise(embedding.tolist(), logits[0].tolist(), 3)
    for method in ("lanczos", "exact"):
        found, gradient = matrix_part(embedding, logits, torch.tensor([3]), method=method)
        assert found.item() == pytest.approx(expected, rel=tolerance)
        assert torch.isfinite(gradient).all()
        # Below the floor the slope in log q_t is what is left of e_t outside of the others' span.
        assert -1.01 < gradient[0, 3].item() < -0.3


def test_masked_tokens_are_no_tokens():
    embedding, logits, labels = problem(6, 12)
    labels = labels % 9
    masked = logits.clone()
    masked[:, 9:] = -math.inf
    found, gradient = matrix_part(embedding, masked, labels)
    expected, inside = matrix_part(embedding[:9], logits[:, :9], labels)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient[:, :9], inside)
    assert not gradient[:, 9:].any()


def test_tokens_with_one_embedding_share_their_probability():
    """n tokens in one direction: Q = e e^T whatever q, and nothing is left to learn."""
    embedding = torch.ones(5, 3, dtype=torch.float64) * torch.arange(1, 6)[:, None]
    found, gradient = matrix_part(embedding, torch.randn(2, 5).double(), torch.tensor([0, 4]))
    torch.testing.assert_close(found, torch.ones(2, dtype=torch.float64))
    assert gradient.abs().max() < 1e-12


@pytest.mark.parametrize("kind", ["random", "peaked", "wide"])
@pytest.mark.parametrize("d, n", [(64, 40), (64, 1000), (256, 2000)])
def test_float32_is_as_good_as_float64(d, n, kind):
    embedding, logits, labels = problem(d, n, kind)
    embedding, logits = embedding.float(), logits.float()
    options = {"products": 20, "tolerance": 0.0}
    found, gradient = matrix_part(embedding, logits, labels, **options)
    wide, expected = matrix_part(embedding.double(), logits.double(), labels, **options)
    assert gradient.dtype == torch.float32
    torch.testing.assert_close(found.double(), wide, rtol=2e-4, atol=0)
    assert relative(gradient.double(), expected) < 2e-2


@pytest.mark.parametrize("kind", ["random", "peaked"])
@pytest.mark.parametrize("d, n", [(64, 40), (64, 1000), (256, 2000)])
def test_products_in_bfloat16_are_within_a_thousandth(d, n, kind):
    embedding, logits, labels = problem(d, n, kind)
    embedding, logits = embedding.bfloat16(), logits.bfloat16()
    exact, gradient = matrix_part(embedding.double(), logits.double(), labels, method="exact")
    found, close = matrix_part(embedding, logits.float(), labels, precision="bfloat16")
    torch.testing.assert_close(found.double(), exact, rtol=1.5e-3, atol=0)
    # On the way back the gradient takes the logits' format.
    _, half = matrix_part(embedding, logits, labels)
    assert half.dtype == torch.bfloat16
    assert relative(half.double(), close.double()) < 0.1


def test_autocast_does_not_reach_the_logarithm():
    embedding, logits, labels = problem(16, 40)
    embedding, logits = embedding.float(), logits.float()
    plain, _ = matrix_part(embedding, logits, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = matrix_part(embedding, logits, labels)
    torch.testing.assert_close(found, plain)


def test_a_step_that_diverged_is_seen():
    embedding, logits, labels = problem(4, 9)
    logits[2, 3] = math.nan
    found, gradient = matrix_part(embedding, logits, labels)
    bad = torch.arange(len(labels)) == 2
    assert torch.equal(found.isnan(), bad)
    assert torch.equal(gradient.isnan().any(1), bad)


def test_tied_embeddings_are_left_alone_unless_asked():
    embedding, _, labels = problem(4, 9)
    hidden = torch.randn(len(labels), 4, dtype=torch.float64)
    gradients = []
    for asked in (False, True):
        head = torch.nn.Linear(4, 9, bias=False, dtype=torch.float64)
        head.weight.data = embedding.clone()
        loss = MatrixCrossEntropy(head, cross_entropy_weight=0.0, embedding_gradient=asked)
        assert not list(loss.parameters()) and not loss.state_dict()
        logits = head(hidden)
        logits.retain_grad()
        loss(logits, labels).backward()
        through_logits = logits.grad.T @ hidden
        gradients.append(head.weight.grad - through_logits)
    assert gradients[0].abs().max() < 1e-12
    assert gradients[1].abs().max() > 1e-3
    # A row's length does not matter, so the gradient stands at right angles to the row.
    assert (gradients[1] * embedding).sum(1).abs().max() < 1e-9


def test_the_embedding_is_read_at_every_call():
    embedding, logits, labels = problem(4, 9)
    weight = embedding.clone()
    loss = MatrixCrossEntropy(weight)
    before = loss(logits, labels)
    weight.copy_(torch.randn(9, 4))
    assert loss(logits, labels) != before


@pytest.mark.parametrize("options", [{}, {"embedding_gradient": True}, {"reduction": "sum"}])
def test_no_position_counts(options):
    embedding, logits, labels = problem(4, 9)
    embedding.requires_grad_()
    logits.requires_grad_()
    value = MatrixCrossEntropy(embedding, **options)(logits, torch.full_like(labels, -100))
    value.backward()
    assert value.item() == 0 and not logits.grad.any()


def test_it_is_differentiable_once():
    embedding, logits, labels = problem(4, 9)
    logits.requires_grad_()
    value = MatrixCrossEntropy(embedding)(logits, labels)
    (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiable once"):
        gradient.sum().backward()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"labels": torch.tensor([0, 9])}, "labels hold 9, and there are 9 tokens: give 0 to 8"),
        ({"labels": torch.tensor([0, -1])}, "labels hold -1"),
        ({"labels": torch.tensor([0, 1, 2])}, r"logits have shape \(2, 9\) and labels \(3,\)"),
        ({"labels": torch.tensor([0.0, 1.0])}, "labels are torch.float32"),
        ({"logits": torch.zeros(2, 8)}, "logits are over 8 tokens and the embedding has 9 rows"),
        ({"logits": torch.zeros(2, 9, dtype=torch.long)}, "logits are torch.int64"),
        ({"embedding": torch.eye(9, 4)}, "5 rows that are zero, the first is 4"),
    ],
)
def test_bad_input_is_named(change, message):
    given = {"embedding": torch.ones(9, 4), "logits": torch.zeros(2, 9)}
    given = {**given, "labels": torch.tensor([0, 1]), **change}
    with pytest.raises(ValueError, match=message):
        MatrixCrossEntropy(given["embedding"])(given["logits"], given["labels"])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"method": "pade"}, "method is 'pade': give one of 'lanczos'"),
        ({"products": 0}, "products is 0: give a number of at least 1"),
        ({"products": 2.5}, "products is 2.5: give a whole number"),
        ({"top_k": 0}, "top_k is 0"),
        ({"order": 0}, "order is 0"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0"),
        ({"matrix_weight": -1.0}, "matrix_weight is -1.0"),
        ({"tolerance": math.nan}, "tolerance is nan"),
        ({"reduction": "max"}, "reduction is 'max'"),
        ({"precision": "float16"}, "precision is 'float16'"),
        ({"embedding_gradient": True, "reduction": "none"}, "reduction='sum'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        MatrixCrossEntropy(torch.ones(3, 2), **options)


def test_an_embedding_needs_rows():
    with pytest.raises(TypeError, match="embedding is a ReLU without a weight"):
        MatrixCrossEntropy(torch.nn.ReLU())
    with pytest.raises(ValueError, match=r"embedding has shape \(3,\)"):
        MatrixCrossEntropy(torch.ones(3))


@pytest.mark.gpu
@pytest.mark.parametrize("top_k", [None, 64])
def test_cuda_agrees_with_the_cpu(top_k):
    embedding, logits, labels = problem(256, 2000, "peaked")
    embedding, logits = embedding.bfloat16(), logits.bfloat16()
    wide, expected = matrix_part(
        embedding.double(), logits.double(), labels, top_k=top_k, method="exact"
    )
    found, gradient = matrix_part(embedding.cuda(), logits.cuda(), labels.cuda(), top_k=top_k)
    torch.testing.assert_close(found.cpu().double(), wide, rtol=1.5e-3, atol=0)
    assert relative(gradient.cpu().double(), expected) < 0.1
