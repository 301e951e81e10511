"""Distinguishes a slow round from one that hangs: each call that ends, with or without an answer, is a beat.

A call to Kafka or to the API server ends within ten seconds. A round of many calls to a slow server takes far longer.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_beat: ContextVar[Callable[[], None] | None] = ContextVar("beat", default=None)


def beat() -> None:
    """Record that a call has ended. The clients call this; outside of ``heard_by`` it has no effect."""
    heard = _beat.get()
    if heard is not None:
        heard()


@contextmanager
def heard_by(listener: Callable[[], None]) -> Iterator[None]:
    """Call ``listener`` at each beat of this task, and of those that it starts meanwhile."""
    token = _beat.set(listener)
    try:
        yield
    finally:
        _beat.reset(token)
