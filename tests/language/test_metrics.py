"""Entropy, rank and synonym mass of predictions, and answers to questions."""

import numpy as np
import pytest
import torch

from likewise.language import predictive_entropy, predictive_rank, synonym_mass
from likewise.language.answers import boxed_in, number_in, same_expression, same_number
from likewise.language.metrics import predictive_spectrum
from likewise.language.questions import score
from tests.language import naive


@pytest.mark.parametrize("d, n", [(4, 9), (9, 4)])
def test_entropy_is_that_of_the_density(d, n):
    generator = torch.Generator().manual_seed(0)
    embedding = torch.randn(n, d, generator=generator, dtype=torch.float64)
    logits = torch.randn(2, 3, n, generator=generator, dtype=torch.float64)
    found = predictive_entropy(logits, embedding)
    assert found.shape == (2, 3)
    for i, row in zip(np.ndindex(2, 3), logits.softmax(-1).reshape(-1, n), strict=True):
        values = np.linalg.eigvalsh(naive.density(embedding, row))
        values = values[values > 1e-14]
        expected = 1 - (values * np.log(values)).sum()
        assert found[i].item() == pytest.approx(expected)
        # Tokens that are alike count as one: never above the entropy of q.
        q = row.numpy()
        assert found[i] <= 1 - (q * np.log(q)).sum() + 1e-12
    torch.testing.assert_close(predictive_rank(logits, embedding), (found - 1).exp())


def test_top_tokens_of_a_sure_prediction_are_all_that_matters():
    embedding = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    logits = torch.zeros(50)
    logits[:3] = 20.0
    whole, top = (predictive_entropy(logits, embedding, top_k=k) for k in (None, 5))
    torch.testing.assert_close(whole, top, rtol=1e-4, atol=1e-4)
    assert predictive_spectrum(logits, embedding, top_k=5).sum().item() == pytest.approx(1)


def test_synonym_mass_counts_by_similarity():
    embedding = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    logits = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    found = synonym_mass(logits, torch.tensor([0]), embedding, similarity=[-1.1, -0.1, 0.5, 0.9])
    torch.testing.assert_close(found, torch.tensor([[1.0, 0.6, 0.3, 0.1]]))
    with pytest.raises(ValueError, match="labels reach from 7 to 7: give 0 to 3"):
        synonym_mass(logits, torch.tensor([7]), embedding)
    with pytest.raises(ValueError, match="the embedding 3 rows"):
        synonym_mass(logits, torch.tensor([0]), embedding[:3])
    with pytest.raises(ValueError, match="the embedding has 3 rows"):
        predictive_rank(logits, embedding[:3])


@pytest.mark.parametrize(
    "text, number",
    [
        ("Janet sells 9 eggs a day.\n#### 18", "18"),
        ("so 2 + 3 = 5 dollars. The answer is: $1,250.00", "1250"),
        ("The answer is 7. Check: 3 + 4 = 7. The answer is: -7", "-7"),
        ("It takes 3/4 of an hour", "3/4"),
        ("There is no number here", None),
        ("the answer is unknown, but 12 is likely", "12"),
    ],
)
def test_gsm8k_answers_are_found(text, number):
    assert number_in(text) == number


@pytest.mark.parametrize(
    "left, right, same",
    [("18", "18.0", True), ("3/4", "0.75", True), ("18", "19", False), ("1/0", "1/0", True)],
)
def test_gsm8k_answers_are_numbers(left, right, same):
    assert same_number(left, right) is same


@pytest.mark.parametrize(
    "text, answer",
    [
        (r"Thus $\boxed{3}$ is wrong and $\boxed{\frac{2}{x^{3}}}$ right.", r"\frac{2}{x^{3}}"),
        (r"The answer is: $\frac{1}{2}$.", r"\frac{1}{2}"),
        (r"\boxed{never closed", None),
        ("nothing", None),
    ],
)
def test_math_answers_are_found(text, answer):
    assert boxed_in(text) == answer


@pytest.mark.parametrize(
    "left, right, same",
    [
        (r"\dfrac{1}{2}", "1/2", True),
        (r"\frac12", r"\tfrac{1}{2}", True),
        (r"12\text{ cm}", "12", True),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})", True),
        (r"50\%", "50", True),
        (".5", "0.50", True),
        ("x=4", "4", True),
        (r"\sqrt3", r"\sqrt{3}", True),
        (r"\text{east}", "east", True),
        ("1,000", "1000", True),
        (r"\frac{1}{3}", r"\frac{1}{2}", False),
        ("(1,2)", "(2,1)", False),
    ],
)
def test_math_answers_are_compared_by_spelling(left, right, same):
    assert same_expression(left, right) is same


def test_a_score_counts_right_answers():
    entries = [{"problem": "p", "solution": rf"\boxed{{{x}}}"} for x in (1, 2, 3)]
    found = score("math", entries, [r"\boxed{1}", "no idea", r"The answer is: 3."])
    assert [x.right for x in found.answered] == [True, False, True]
    assert "math: 66.7 % of 3 are right" in str(found)
