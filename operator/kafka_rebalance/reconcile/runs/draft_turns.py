"""One plan of a cluster at a time reads the cluster and is made in a thread: it may need hundreds of MB.

Users create any number of resources, so each namespace has one draft in the line for a cluster. A draft for a
KafkaConnection may need a process, for which others of its namespace in other clusters may have to end first, or any
others for memory, and which may take half an hour itself. It does not have the turn of its cluster meanwhile: other
namespaces need it.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import TypeVar

from kafka_rebalance.reconcile.runs.plan_memory import DraftMemory, MemoryTaken
from kafka_rebalance.reconcile.state.namespace_turns import NamespaceTurns

log = logging.getLogger(__name__)

T = TypeVar("T")


class DraftTurns:
    """The turns of one cluster: first come, first served, one draft of each namespace in the line."""

    def __init__(self) -> None:
        self._turns = NamespaceTurns()

    async def draft(self, make: Callable[[DraftMemory], Awaitable[T]], memory: DraftMemory) -> T:
        """What ``make`` returns. If it raises MemoryTaken it is called again with the memory taken, from the start.

        The turn ends when ``make`` takes the memory, which is for a process.
        """
        try:
            with suppress(MemoryTaken):
                return await self._in_turn(make, memory)
            log.info("a plan of namespace %s waits for another one of the namespace, or for memory", memory.namespace)
            await memory.wait()
            return await self._in_turn(make, memory)
        finally:
            memory.release()

    async def _in_turn(self, make: Callable[[DraftMemory], Awaitable[T]], memory: DraftMemory) -> T:
        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self._turns.of(memory.namespace))
            memory.ends_with_it(turn.aclose)
            return await make(memory)
