"""``matrix-ssl`` (Zhang et al. 2024): methods compared by rank, maps and accuracy."""

from likewise.reproduce.matrix_ssl.accuracies import TABLE_1, TABLE_4, TABLE_5
from likewise.reproduce.matrix_ssl.maps import FIGURE_2, FIGURE_5
from likewise.reproduce.matrix_ssl.ranks import FIGURE_3

MATRIX_SSL = (FIGURE_2, FIGURE_3, FIGURE_5, TABLE_1, TABLE_4, TABLE_5)
