"""``balanced`` (Lee 2025): what balances a contrastive loss, and what its bounds leave out."""

from likewise.reproduce.balanced.augmentations import FIGURE_3
from likewise.reproduce.balanced.grid import FIGURE_5
from likewise.reproduce.balanced.tables import TABLE_1, TABLE_2, TABLE_4, TABLE_5
from likewise.reproduce.balanced.tightness import FIGURE_6

BALANCED = (FIGURE_3, FIGURE_5, FIGURE_6, TABLE_1, TABLE_2, TABLE_4, TABLE_5)
