"""Is it collapsing, and why? Pure functions of embeddings, weights, labels and graphs.

All take tensors and arrays alike, rows (n, d), and answer in kind: numbers, or a result whose
undefined figures are NaN with a note that says why. Sums over rows are made in float64 by chunks,
so that a million embeddings fit.
"""

from likewise.diagnostics.alignment import (
    Uniformity,
    ViewNoise,
    alignment,
    uniformity,
    view_noise,
)
from likewise.diagnostics.balance import BalanceEffect, balance_effect
from likewise.diagnostics.bounds import InfoNCEParts, info_nce_parts
from likewise.diagnostics.classes import ClassRanks, class_ranks
from likewise.diagnostics.collapse import NeuralCollapse, etf_distance, neural_collapse
from likewise.diagnostics.displacement import (
    AugmentationDirections,
    augmentation_directions,
    displacements,
    fraction_unexplained,
)
from likewise.diagnostics.evidence import Evidence, gather_evidence
from likewise.diagnostics.figures import Figures
from likewise.diagnostics.generator import LieGenerator, lie_generator
from likewise.diagnostics.known_graph import (
    GraphCloseness,
    KnownGraph,
    components,
    graph_closeness,
    known_graph,
)
from likewise.diagnostics.long_tail import long_tail_sizes, long_tail_subset, uniform_subset
from likewise.diagnostics.negatives import NearestNegatives, nearest_negatives
from likewise.diagnostics.neighbors import nearest_of_many
from likewise.diagnostics.projector import (
    LocalMaps,
    SpanDifference,
    local_affine_maps,
    local_fraction_unexplained,
    span_difference,
)
from likewise.diagnostics.prototype import PrototypeBias, prototype_bias
from likewise.diagnostics.prototype_bounds import BoundGaps, prototype_bounds
from likewise.diagnostics.regression import (
    ConfusionRate,
    DirectionGradients,
    RegressionLosses,
    confusion_rate,
    direction_gradients,
    regression_losses,
)
from likewise.diagnostics.spectrum import (
    BatchCrossEntropy,
    Spectrum,
    cross_entropy_by_batches,
    rank_tau,
    spectrum,
    weight_spectrum,
)
from likewise.diagnostics.verdict import Finding, Thresholds, Verdict, verdict

__all__ = [
    "AugmentationDirections",
    "BalanceEffect",
    "BatchCrossEntropy",
    "BoundGaps",
    "ClassRanks",
    "ConfusionRate",
    "DirectionGradients",
    "Evidence",
    "Figures",
    "Finding",
    "GraphCloseness",
    "InfoNCEParts",
    "KnownGraph",
    "LieGenerator",
    "LocalMaps",
    "NearestNegatives",
    "NeuralCollapse",
    "PrototypeBias",
    "RegressionLosses",
    "SpanDifference",
    "Spectrum",
    "Thresholds",
    "Uniformity",
    "Verdict",
    "ViewNoise",
    "alignment",
    "augmentation_directions",
    "balance_effect",
    "class_ranks",
    "components",
    "confusion_rate",
    "cross_entropy_by_batches",
    "direction_gradients",
    "displacements",
    "etf_distance",
    "fraction_unexplained",
    "gather_evidence",
    "graph_closeness",
    "info_nce_parts",
    "known_graph",
    "lie_generator",
    "local_affine_maps",
    "local_fraction_unexplained",
    "long_tail_sizes",
    "long_tail_subset",
    "nearest_negatives",
    "nearest_of_many",
    "neural_collapse",
    "prototype_bias",
    "prototype_bounds",
    "rank_tau",
    "regression_losses",
    "span_difference",
    "spectrum",
    "uniform_subset",
    "uniformity",
    "verdict",
    "view_noise",
    "weight_spectrum",
]
