"""The closed form and the probe, against dense and slow references."""

import numpy as np
import pytest

from likewise.reproduce.embedding import Embedding, both_errors, probe_error
from likewise.reproduce.problems import circles, mixture, problem


@pytest.mark.parametrize("data", ["circles", "mixture"])
@pytest.mark.parametrize("kind", ["labels", "signed", "identity"])
def test_pal_section_5_closed_form(data, kind):
    """Z Z^T is the positive part, of rank 5 at most, of G - lambda K^-1 with K inverted densely."""
    drawn = problem(data, 60, np.random.default_rng(0))
    alike = drawn.labels[:, None] == drawn.labels
    graph = {
        "labels": alike.astype(float),
        "signed": np.where(alike, 1.0, -1.0),
        "identity": np.eye(60),
    }[kind]
    distance = np.linalg.norm(drawn.points[:, None] - drawn.points, axis=2)
    kernel = np.exp(-distance / 0.2)
    values, vectors = np.linalg.eigh(graph - 1e-3 * np.linalg.inv(kernel))
    values, vectors = np.maximum(values[-5:], 0), vectors[:, -5:]
    z, test_z = Embedding(drawn.points, drawn.test_points).fit(graph)
    np.testing.assert_allclose(z @ z.T, (vectors * values) @ vectors.T, atol=1e-8)
    across = np.exp(-np.linalg.norm(drawn.test_points[:, None] - drawn.points, axis=2) / 0.2)
    np.testing.assert_allclose(test_z, across @ np.linalg.solve(kernel, z), atol=1e-7)


def test_too_few_positive_eigenvalues_leave_zero_columns():
    drawn = circles(30, np.random.default_rng(0))
    z, test_z = Embedding(drawn.points, drawn.test_points).fit(-np.eye(30))
    assert z.shape == (30, 5) and test_z.shape == (1000, 5)
    assert not z.any() and not test_z.any()


def test_probe_is_least_squares_by_loops():
    generator = np.random.default_rng(0)
    z, labels = generator.standard_normal((40, 3)), generator.integers(4, size=40)
    test_z, test_labels = generator.standard_normal((25, 3)), generator.integers(4, size=25)
    gram, products = np.zeros((3, 3)), np.zeros((3, 4))
    for row, c in zip(z, labels, strict=True):
        for a in range(3):
            products[a, c] += row[a]
            for b in range(3):
                gram[a, b] += row[a] * row[b]
    weights = np.linalg.inv(gram) @ products
    wrong = 0
    for row, c in zip(test_z, test_labels, strict=True):
        outputs = [sum(row[a] * weights[a, k] for a in range(3)) for k in range(4)]
        wrong += outputs.index(max(outputs)) != c
    assert probe_error(z, labels, test_z, test_labels) == wrong / 25


def test_the_honest_probe_sees_no_test_label():
    drawn = mixture(80, np.random.default_rng(0))
    embeddings = drawn.points, drawn.test_points
    paper, honest = both_errors(embeddings, drawn)
    assert honest == probe_error(*embeddings[:1], drawn.labels, embeddings[1], drawn.test_labels)
    assert paper == probe_error(embeddings[1], drawn.test_labels, embeddings[1], drawn.test_labels)


def test_circles_are_as_in_the_paper():
    drawn = circles(4000, np.random.default_rng(0))
    radii = np.linalg.norm(drawn.points, axis=1)
    noise = radii - 1 - drawn.labels
    assert abs(noise.std() - 0.1) < 0.01
    assert np.bincount(drawn.test_labels).tolist() == [250] * 4
    np.testing.assert_allclose(np.linalg.norm(drawn.test_points, axis=1), 1 + drawn.test_labels)


def test_mixture_is_as_in_the_paper():
    drawn = mixture(4000, np.random.default_rng(0))
    noise = drawn.points - np.eye(4)[drawn.labels]
    assert abs(noise.mean()) < 0.01 and abs(noise.std() - 0.3) < 0.01
