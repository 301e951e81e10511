"""Switches the garbage collector off while millions of values are made, or modules are imported."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """No search for reference cycles in this context or decorated function.

    The values have no cycles, and each search visits all of them; reference counts still free memory. Reading and
    planning a million partitions takes two thirds of the time, importing a command nine tenths. Not for code that keeps
    running.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
