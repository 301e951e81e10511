"""Waits for a condition by polling, with a deadline; never for a fixed time.

The deadline says that something is broken, not that it is slow: other tests use the same cores.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(what: str, ask: Callable[[], T], *, timeout: float = 240, every: float = 0.1) -> T:
    """The first true result of `ask`; `TimeoutError` with `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:g} s in vain: {what}")
        time.sleep(every)
    return answer
