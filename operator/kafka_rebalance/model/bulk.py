"""Millions of values without cycles: how they are made quickly, and the garbage collector is kept away meanwhile."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, TypeVar

C = TypeVar("C")

LARGE = 10_000
"""The number of values from which it pays to switch the collector off, or to make them in a thread."""
_DUE = 50
"""Searches of 40,000 young values, after which all are searched."""


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


def made_in_bulk(cls: type[C]) -> type[C]:
    """Make a frozen dataclass with slots as fast as one that is not frozen: in a third of the time.

    The type checker still refuses assignments to its fields, Python does not any more.
    """
    rows = [(of.name, Any, _with_default(of)) for of in fields(cls)]  # type: ignore[arg-type]
    plain = make_dataclass(cls.__name__, rows, eq=False, repr=False)
    cls.__init__ = plain.__init__  # type: ignore[method-assign, misc]
    del cls.__setattr__, cls.__delattr__  # those of a frozen dataclass, which refuse everything
    return cls


def _with_default(of: Any) -> Any:
    if of.default_factory is not MISSING:
        return field(default_factory=of.default_factory)
    return field() if of.default is MISSING else field(default=of.default)


def collect_rarely() -> None:
    """For a process with an event loop: with its default settings, Python stops all threads for seconds at a time.

    Young values are searched 20,000 at a time, so for some milliseconds, and all of them only after four million have
    been added, or a quarter of what is there. ``collect_if_due`` does it before that.
    """
    gc.set_threshold(20_000, 2, 2 * _DUE)


def collect_if_due() -> None:
    """Search all values if two million have been added: that takes 40 ms with 200,000 planned partitions.

    For a slice of the event loop that does nothing else. Python would do it in any slice, also in the longest.
    """
    if gc.isenabled() and gc.get_count()[2] >= _DUE:
        gc.collect()


@contextmanager
def kept_for_long(values: int) -> Iterator[None]:
    """Exclude all objects that exist at the end of this context from the garbage collector, if ``values`` is large.

    Do not use it for objects that are made repeatedly: the collector would never free their reference cycles. Nothing
    in such a cycle may refer to the excluded objects when they are no longer used. ``gc.unfreeze`` would include them
    again, but the next search would then visit the objects of all other clusters too, which stops all threads.
    """
    with without_collector():
        yield
        if values >= LARGE:
            gc.freeze()
