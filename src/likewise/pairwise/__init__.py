"""Reductions over all pairs of rows that never hold the matrix of pairs."""

from likewise.pairwise.products import Precision
from likewise.pairwise.reductions import PairWeights, row_kernel_sum, row_logsumexp
from likewise.pairwise.tiles import NoSelf

__all__ = ["NoSelf", "PairWeights", "Precision", "row_kernel_sum", "row_logsumexp"]
