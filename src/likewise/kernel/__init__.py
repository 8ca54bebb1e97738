"""Closed form: estimators with scikit-learn's interface for feature matrices."""

from likewise.kernel.classifier import GraphClassifier
from likewise.kernel.embedding import SpectralEmbedding
from likewise.kernel.optima import (
    barlow_twins_optimum,
    labels_from_templates,
    simclr_optimum,
    vic2_optimum,
)
from likewise.kernel.regressor import AbsoluteRegressor

__all__ = [
    "AbsoluteRegressor",
    "GraphClassifier",
    "SpectralEmbedding",
    "barlow_twins_optimum",
    "labels_from_templates",
    "simclr_optimum",
    "vic2_optimum",
]
