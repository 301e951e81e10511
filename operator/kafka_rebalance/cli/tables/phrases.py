"""Numbers and lists as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MOST_NAMED = 12


def counted(number: int, one: str, many: str = "") -> str:
    """``1 replica``, ``2 replicas``; ``many`` where it is not ``one`` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def few(things: Sequence[object]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(things) - _MOST_NAMED} more" if len(things) > _MOST_NAMED else ""
    return ", ".join(map(str, things[:_MOST_NAMED])) + more


def listed(parts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
