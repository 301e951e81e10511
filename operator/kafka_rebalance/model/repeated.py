"""Finds a value that is listed twice, so that a message can name it. Pure."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

H = TypeVar("H", bound=Hashable)


def repeated(values: Iterable[H]) -> H | None:
    """The first value that occurs a second time; None: each occurs once."""
    seen: set[H] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
