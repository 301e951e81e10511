"""Distinguishes a slow round from one that hangs: each call that ends, with or without an answer, is a beat.

A call to Kafka or to the API server ends within ten seconds. A round of many calls to a slow server takes far longer.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listeners: ContextVar[Collection[Callable[[], None]]] = ContextVar("listeners", default=())


def beat() -> None:
    """Record that a call has ended. The clients call this; outside of ``heard_by`` it has no effect."""
    for heard in tuple(_listeners.get()):
        heard()


@contextmanager
def heard_by(listener: Callable[[], None]) -> Iterator[None]:
    """Until the end of this context, call ``listener`` at each beat of this task, and of those that it starts.

    These tasks keep their context variables, also when they have ended. They do not keep the listener.
    """
    listeners = [listener]
    token = _listeners.set(listeners)
    try:
        yield
    finally:
        _listeners.reset(token)
        listeners.clear()
