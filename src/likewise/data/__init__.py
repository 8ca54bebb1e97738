"""Images by stable key: where they come from, and how they are held.

What the views of this room export lies in :mod:`likewise.data.views`, and is imported from there.
"""

from likewise.data.arrays import ArraySource
from likewise.data.available import available_memory
from likewise.data.built_in import digits
from likewise.data.decoding import decode
from likewise.data.fashion_mnist import fashion_mnist
from likewise.data.folder import FolderSource
from likewise.data.hugging_face import HuggingFaceSource
from likewise.data.images import Images, load_images
from likewise.data.keys import Keyed
from likewise.data.labels import labelled, read_label_file
from likewise.data.memory import bytes_needed, fits_in_memory
from likewise.data.opening import open_source
from likewise.data.parquet import ParquetSource
from likewise.data.resizing import canvas
from likewise.data.source import BrokenImage, Source
from likewise.data.statistics import channel_statistics, usual_size
from likewise.data.stream import StreamedImages

__all__ = [
    "ArraySource",
    "BrokenImage",
    "FolderSource",
    "HuggingFaceSource",
    "Images",
    "Keyed",
    "ParquetSource",
    "Source",
    "StreamedImages",
    "available_memory",
    "bytes_needed",
    "canvas",
    "channel_statistics",
    "decode",
    "digits",
    "fashion_mnist",
    "fits_in_memory",
    "labelled",
    "load_images",
    "open_source",
    "read_label_file",
    "usual_size",
]
