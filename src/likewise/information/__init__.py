"""Matrix entropy, divergence, coding rate and effective rank, with stable logs and gradients.

All functions take torch tensors (with any leading batch dimensions), compute in float32 at least
(also under autocast) and are differentiable once. Eigenvalues of size up to 8 eps |A|_F count as
zero; no function ever takes log(0) for 0.
"""

from likewise.information.checks import Method
from likewise.information.coding_rate import coding_rate, log_det_identity_plus
from likewise.information.divergence import (
    matrix_cross_entropy,
    matrix_kl,
    uniform_cross_entropy,
)
from likewise.information.entropy import matrix_entropy, von_neumann_entropy
from likewise.information.logarithm import has_principal_log, matrix_log
from likewise.information.rank import effective_rank, rank_me
from likewise.information.simplex import simplex_etf

__all__ = [
    "Method",
    "coding_rate",
    "effective_rank",
    "has_principal_log",
    "log_det_identity_plus",
    "matrix_cross_entropy",
    "matrix_entropy",
    "matrix_kl",
    "matrix_log",
    "rank_me",
    "simplex_etf",
    "uniform_cross_entropy",
    "von_neumann_entropy",
]
