"""Has the C library return freed memory to the system.

glibc maps large blocks on their own and returns them when they are freed. But with its default settings it raises the
limit from which a block is large, up to 32 MiB, each time a larger one is freed. The tables and answers of a large
cluster are then cut from its heap, and what is freed there stays with the process.
"""

import contextlib
import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h
_LARGE_BYTES = 256 * 1024
_KEPT_BYTES = 1024 * 1024
_HEAPS = 2


def return_freed_memory() -> None:
    """From now on, for this process: fix the limits, and let all threads share two heaps."""
    libc = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):  # another C library has other rules
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        libc.mallopt(_M_ARENA_MAX, _HEAPS)
