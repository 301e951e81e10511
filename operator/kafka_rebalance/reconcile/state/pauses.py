"""Pauses of a loop over many rebalances: one event loop serves all clusters, and a user may create thousands."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

AT_ONCE = 20
"""Rebalances in one slice of the event loop."""


async def with_pauses(each: Iterable[T]) -> AsyncIterator[T]:
    """All of these. Other tasks have their turn after every few, and may delete or edit what comes next."""
    for number, one in enumerate(each):
        if number % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
        yield one
