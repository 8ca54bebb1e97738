"""What a representation is worth: nearest neighbours, linear probes, few labels, clusters.

All take rows (n, d) as tensors or arrays and class indices, where -1 means unknown: such rows are
left out of the scores and counted. Labels are used here to score, never to train an encoder.
"""

from likewise.evaluation.classification import Classification
from likewise.evaluation.clustering import Clustering, clustering_scores
from likewise.evaluation.embeddings import Embeddings, read_embeddings, write_embeddings
from likewise.evaluation.evaluate import evaluate_embeddings
from likewise.evaluation.few_labels import FewLabels, few_label_probe
from likewise.evaluation.knn import knn_accuracy, knn_probe, knn_scores
from likewise.evaluation.neighbors import nearest_neighbors
from likewise.evaluation.probe import Probe, linear_probe
from likewise.evaluation.scores import Evaluation

__all__ = [
    "Classification",
    "Clustering",
    "Embeddings",
    "Evaluation",
    "FewLabels",
    "Probe",
    "clustering_scores",
    "evaluate_embeddings",
    "few_label_probe",
    "knn_accuracy",
    "knn_probe",
    "knn_scores",
    "linear_probe",
    "nearest_neighbors",
    "read_embeddings",
    "write_embeddings",
]
