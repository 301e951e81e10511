"""The threads that match topics and make small plans. Inline connections have one, in which namespaces take turns.

Servers and expressions can be chosen so that each match takes seconds, and any number of clusters can be planned again
with each edit. So nothing of it uses the threads of the event loop, which the rounds of all clusters need. See
`namespace_turns` for the turns. The matches for KafkaConnections have two threads. Many connections may permit the same
namespace, so it has one piece of work there at a time, be it a match or a small plan.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from kafka_rebalance.heartbeat import beat
from kafka_rebalance.reconcile.state.namespace_turns import Turn

T = TypeVar("T")

_BEAT_SECONDS = 10.0
_OF_INLINE = ThreadPoolExecutor(1, thread_name_prefix="inline")
_OF_KAFKA_CONNECTIONS = ThreadPoolExecutor(2, thread_name_prefix="match")
_one_piece = WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]]()
"""By namespace: held while a piece of its resources is in the threads for KafkaConnections."""


async def in_thread(work: Callable[[], T], turn: Turn | None, namespace: str | None = None) -> T:
    """The result of ``work``, whose time is limited. ``turn``: of an inline connection; None for a KafkaConnection.

    ``namespace``: of the resource that is matched or planned. Waiting for the thread is a beat every few seconds:
    any number of others may be before.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T]
    if turn is not None:
        future = loop.create_task(in_turn(work, turn, _OF_INLINE))
    elif namespace is not None:
        future = loop.create_task(_one_of(namespace, work))
    else:
        future = loop.run_in_executor(_OF_KAFKA_CONNECTIONS, work)
    return await with_beats(future)


async def with_beats(future: asyncio.Future[T]) -> T:
    """Its result. It is cancelled if this is. To wait for it is a beat every few seconds."""
    try:
        while not future.done():
            await asyncio.wait({future}, timeout=_BEAT_SECONDS)
            beat()
    finally:
        future.cancel()
    return future.result()


async def in_turn(work: Callable[[], T], turn: Turn, threads: ThreadPoolExecutor) -> T:
    """The result of ``work``, which one of the ``threads`` does when it is the turn of the namespace."""
    async with turn():
        return await asyncio.get_running_loop().run_in_executor(threads, work)


async def _one_of(namespace: str, work: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    lock = _one_piece.setdefault(loop, WeakValueDictionary()).setdefault(namespace, asyncio.Lock())
    async with lock:
        piece = loop.run_in_executor(_OF_KAFKA_CONNECTIONS, work)
        try:
            return await asyncio.shield(piece)
        except asyncio.CancelledError:
            await asyncio.wait({piece})  # the thread goes on
            piece.exception()
            raise
