"""``geometry`` (Cosentino et al. 2022): what augmentation does to encoder and projector."""

from likewise.reproduce.geometry.bound import FIGURE_3
from likewise.reproduce.geometry.negatives import FIGURE_5, FIGURE_6
from likewise.reproduce.geometry.projectors import PROJECTORS
from likewise.reproduce.geometry.rank import FIGURE_1
from likewise.reproduce.geometry.rotation import FIGURE_10
from likewise.reproduce.geometry.span import FIGURE_7
from likewise.reproduce.geometry.spectra import FIGURE_4, FIGURE_9

GEOMETRY = (
    FIGURE_1,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FIGURE_9,
    FIGURE_10,
    PROJECTORS,
)
