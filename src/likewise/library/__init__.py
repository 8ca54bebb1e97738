"""Use what was learned: search, cluster, classify, find duplicates, choose subsets.

All work on a :class:`Collection`: images by key with a row each, from the encoder of a run, an
encoder by name, or an embeddings file. Rows are kept in an :class:`Index` beside the run: an image
is embedded once.
"""

from likewise.library.calibration import calibration_error, expected_accuracy, fit_temperature
from likewise.library.changes import Changes
from likewise.library.classify import Labelled, classify_rows
from likewise.library.clusters import Clusters, find_clusters
from likewise.library.collection import Collection, open_collection
from likewise.library.duplicates import (
    Duplicates,
    duplicates_of_pictures,
    duplicates_of_rows,
)
from likewise.library.embedder import Embedder, embedder_by_name, embedder_of_run
from likewise.library.exact import search_rows
from likewise.library.index import Index
from likewise.library.pictures import find_duplicates
from likewise.library.search import Found, Hit, search_images
from likewise.library.sheet import Section, Sheet, Tile
from likewise.library.splits import split_items
from likewise.library.subsets import choose_subset

__all__ = [
    "Changes",
    "Clusters",
    "Collection",
    "Duplicates",
    "Embedder",
    "Found",
    "Hit",
    "Index",
    "Labelled",
    "Section",
    "Sheet",
    "Tile",
    "calibration_error",
    "choose_subset",
    "classify_rows",
    "duplicates_of_pictures",
    "duplicates_of_rows",
    "embedder_by_name",
    "embedder_of_run",
    "expected_accuracy",
    "find_clusters",
    "find_duplicates",
    "fit_temperature",
    "open_collection",
    "search_images",
    "search_rows",
    "split_items",
]
