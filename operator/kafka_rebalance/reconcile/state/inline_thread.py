"""The threads that match topics and make small plans. Inline connections have one, in which namespaces take turns.

Servers and expressions can be chosen so that each match takes seconds, and any number of clusters can be planned again
with each edit. So nothing of it uses the threads of the event loop, which the rounds of all clusters need. See
`namespace_turns` for the turns. The matches for KafkaConnections have two threads. Many connections may permit the same
namespace, so it has one piece of work there at a time. Small plans are made there in the order in which they arrive.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from kafka_rebalance.heartbeat import beat
from kafka_rebalance.reconcile.state.namespace_turns import Turn

T = TypeVar("T")

_BEAT_SECONDS = 10.0
_OF_INLINE = ThreadPoolExecutor(1, thread_name_prefix="inline")


class _NamespaceQueues:
    """A pool of threads, which work on one piece of each namespace at a time. For any event loop.

    The pool does what it has first come, first served. A namespace's other pieces wait until it has done one.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="match")
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        """By namespace that has a piece in the pool."""

    def submit(self, work: Callable[[], T], namespace: str | None) -> Future[T]:
        """Without a namespace, the piece does not wait for another one outside of the pool."""
        if namespace is None:
            return self._pool.submit(work)
        future = Future[T]()
        with self._lock:
            if namespace in self._waiting:
                self._waiting[namespace].append((future, work))
                return future
            self._waiting[namespace] = deque()
        self._pool.submit(self._run, namespace, future, work)
        return future

    def _run(self, namespace: str, future: Future[Any], work: Callable[[], Any]) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - it is raised where the future is awaited
                future.set_exception(error)
        del future, work  # a traceback keeps this frame
        with self._lock:
            waiting = self._waiting[namespace]
            if not waiting:
                del self._waiting[namespace]
                return
            following, its_work = waiting.popleft()
        self._pool.submit(self._run, namespace, following, its_work)


_OF_KAFKA_CONNECTIONS = _NamespaceQueues(2)


async def in_thread(work: Callable[[], T], turn: Turn | None, namespace: str | None = None) -> T:
    """The result of ``work``, whose time is limited. ``turn``: of an inline connection; None for a KafkaConnection.

    ``namespace``: of the resource whose expressions are matched. Waiting for the thread is a beat every few seconds:
    any number of others may be before.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T]
    if turn is None:
        future = asyncio.wrap_future(_OF_KAFKA_CONNECTIONS.submit(work, namespace))
    else:
        future = loop.create_task(_in_turn(work, turn))
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
