"""What the verbs say and write: lines for a terminal, CSV and JSON for machines, sheets to see."""

from likewise.library.results.clusters import print_clusters, write_clusters
from likewise.library.results.duplicates import print_duplicates, write_duplicates
from likewise.library.results.hits import print_hits, write_hits
from likewise.library.results.labels import print_labels, write_labels
from likewise.library.results.parts import print_split, write_split, write_subset
from likewise.library.results.shared import say_written

__all__ = [
    "print_clusters",
    "print_duplicates",
    "print_hits",
    "print_labels",
    "print_split",
    "say_written",
    "write_clusters",
    "write_duplicates",
    "write_hits",
    "write_labels",
    "write_split",
    "write_subset",
]
