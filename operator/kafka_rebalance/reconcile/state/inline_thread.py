"""The thread that matches topics and makes small plans for inline connections: one at a time for all of them.

Their servers and expressions can be chosen so that each match takes seconds, and any number of clusters can be planned
again with each edit. The threads of the event loop serve all clusters. Namespaces take turns (`namespace_turns`).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kafka_rebalance.heartbeat import beat
from kafka_rebalance.reconcile.state.namespace_turns import Turn

T = TypeVar("T")

_BEAT_SECONDS = 10.0
_OF_INLINE = ThreadPoolExecutor(1, thread_name_prefix="inline")


async def in_thread(work: Callable[[], T], turn: Turn | None) -> T:
    """The result of ``work``, whose time is limited. ``turn``: of an inline connection; None for a KafkaConnection.

    Waiting for the thread is a beat every few seconds: any number of others may be before.
    """
    future = asyncio.ensure_future(asyncio.to_thread(work) if turn is None else _in_turn(work, turn))
    try:
        while not future.done():
            await asyncio.wait({future}, timeout=_BEAT_SECONDS)
            beat()
    finally:
        future.cancel()
    return future.result()


async def _in_turn(work: Callable[[], T], turn: Turn) -> T:
    async with turn():
        return await asyncio.get_running_loop().run_in_executor(_OF_INLINE, work)
