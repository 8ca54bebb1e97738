"""The run folder: config, checkpoints, logs, embeddings; files that are never half-written."""

from likewise.runs.cache import cache_folder, distinct_name
from likewise.runs.embedding import embed_images
from likewise.runs.files import write_atomically
from likewise.runs.run import Preparation, Run, read_encoder, save_encoder

__all__ = [
    "Preparation",
    "Run",
    "cache_folder",
    "distinct_name",
    "embed_images",
    "read_encoder",
    "save_encoder",
    "write_atomically",
]
