"""One plan of a cluster is drafted at a time: it may need hundreds of MB, and users create any number of resources.

A draft for a KafkaConnection may need a process, for which others of its namespace in other clusters may have to end
first, or any others for memory: half an hour each. Meanwhile it does not have the turn of its cluster, which other
namespaces need for plans that need no process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from kafka_rebalance.reconcile.runs.plan_memory import DraftMemory, MemoryTaken

log = logging.getLogger(__name__)

T = TypeVar("T")

_KEPT_SECONDS = 60.0
"""How long a draft keeps its memory while it waits for the turn of its cluster. A draft that needs no process ends
sooner. One that needs a process may take half an hour, in which others can use the memory.
"""


class DraftTurns:
    """The turns of one cluster: first come, first served."""

    def __init__(self) -> None:
        self._drafting = asyncio.Lock()

    async def draft(self, make: Callable[[DraftMemory], Awaitable[T]], memory: DraftMemory) -> T:
        """What ``make`` returns. If it raises MemoryTaken it is called again with the memory taken, from the start.

        No draft waits for memory while it has the turn of its cluster, so each one that has a turn comes to its end.
        """
        try:
            async with self._drafting:
                with suppress(MemoryTaken):
                    return await make(memory)
            while True:
                log.info(
                    "a plan of namespace %s waits for another one of the namespace, or for memory", memory.namespace
                )
                await memory.wait()
                await self._take_turn(memory)
                try:
                    with suppress(MemoryTaken):
                        await memory.take()  # before the cluster is read
                        return await make(memory)
                finally:
                    self._drafting.release()
        finally:
            memory.release()

    async def _take_turn(self, memory: DraftMemory) -> None:
        """Wait for the turn. The ``memory`` is released if that takes long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_KEPT_SECONDS):
                await self._drafting.acquire()
                return
        memory.release()
        await self._drafting.acquire()
