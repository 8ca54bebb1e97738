"""What a step frees stays with the process for the next one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

# The names that malloc.h gives to what mallopt changes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

_NEVER = -1
_LARGEST_KEPT = 2**30
_AFTER_MANY_CALLS = 2**25
"""What glibc's own threshold grows to in a process that frees large blocks, and at most."""


@contextmanager
def keep_freed_memory() -> Iterator[None]:
    """Blocks of up to 1 GiB that are freed meanwhile are used again, and not given back.

    The activations of a large encoder are the same large blocks at every step. glibc gives each
    back when it is freed and asks for it anew, and the system hands it out page by page, zeroed, at
    the first touch: on a CPU much of a step goes there. A place that is kept does not suit every
    block, so that somewhat more is held than is used. At the end all that is free goes back.
    Elsewhere than on glibc nothing happens.

    >>> with keep_freed_memory():
    ...     bytearray(2**26)[:3]
    bytearray(b'\\x00\\x00\\x00')
    """
    try:
        library = ctypes.CDLL(None)
        choose, give_back = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        yield
        return
    give_back.argtypes = (ctypes.c_size_t,)
    choose(_MMAP_THRESHOLD, _LARGEST_KEPT)
    choose(_TRIM_THRESHOLD, _NEVER)
    try:
        yield
    finally:
        choose(_MMAP_THRESHOLD, _AFTER_MANY_CALLS)
        choose(_TRIM_THRESHOLD, 2 * _AFTER_MANY_CALLS)
        give_back(0)
