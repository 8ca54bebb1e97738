"""Every loss of this literature as ``objective(z, graph)``.

>>> import torch
>>> from likewise import Graph
>>> z = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
>>> sorted(VICReg().terms(z, Graph.identity(4).views(2)))
['covariance', 'invariance', 'variance']
"""

from likewise.objectives.base import Objective
from likewise.objectives.batch import Batch
from likewise.objectives.class_regression import ClassRegression
from likewise.objectives.coding_rate import EMPSSL, TotalCodingRate
from likewise.objectives.coding_rate_reduction import MaximalCodingRateReduction
from likewise.objectives.contrastive import (
    BalancedContrastive,
    DecoupledContrastive,
    GeneralizedNTXent,
    InfoNCE,
    NTXent,
)
from likewise.objectives.covariance import BarlowTwins, VICReg
from likewise.objectives.entropy_coding import CorInfoMax, MaximumEntropyCoding
from likewise.objectives.matrix_information import MatrixAlignment, MatrixSSL, MatrixUniformity
from likewise.objectives.orthogonal_head import OrthogonalHead
from likewise.objectives.pairwise_vic2 import PairwiseVIC2
from likewise.objectives.prototype import PrototypeContrast
from likewise.objectives.regression import AbsoluteRegression, RelativeRegression, TraceObjective
from likewise.objectives.similarity import BYOLRegression, NegativeCosine
from likewise.objectives.spectral import VIC2, SpectralContrastive
from likewise.objectives.swav import SwAV
from likewise.objectives.uniformity import UniformityMCE, UniformityMKL
from likewise.objectives.whitening import WhiteningMSE

__all__ = [
    "EMPSSL",
    "VIC2",
    "AbsoluteRegression",
    "BYOLRegression",
    "BalancedContrastive",
    "BarlowTwins",
    "Batch",
    "ClassRegression",
    "CorInfoMax",
    "DecoupledContrastive",
    "GeneralizedNTXent",
    "InfoNCE",
    "MatrixAlignment",
    "MatrixSSL",
    "MatrixUniformity",
    "MaximalCodingRateReduction",
    "MaximumEntropyCoding",
    "NTXent",
    "NegativeCosine",
    "Objective",
    "OrthogonalHead",
    "PairwiseVIC2",
    "PrototypeContrast",
    "RelativeRegression",
    "SpectralContrastive",
    "SwAV",
    "TotalCodingRate",
    "TraceObjective",
    "UniformityMCE",
    "UniformityMKL",
    "VICReg",
    "WhiteningMSE",
]
