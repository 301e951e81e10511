"""For what makes millions of values."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """No search for cycles meanwhile, also as a decorator: the values have none, and each search walks all of them.

    For a call that makes them, or a command that ends afterwards; not for what runs on. Reading and planning a million
    partitions takes two thirds of the time so; memory is given back by counting references, as ever.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
