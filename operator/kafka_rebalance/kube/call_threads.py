"""The threads for calls to the API server, and how many of them the objects of one namespace may hold.

All engines share the threads. Users of a namespace can make each write to their objects as slow as the time-out allows,
and can have an engine for each of their connections. So calls about the objects of other namespaces have threads that
those about the operator's own records do not need, and those of one namespace hold few of these at a time. Users cannot
make reads slow, and the rounds of clusters that others share read before they plan, so reads do not wait for writes.
Nor do they wait for reads of Secrets, of which a namespace may need many: each of its connections names some.
"""

import asyncio
from asyncio import AbstractEventLoop, Semaphore, get_running_loop, to_thread
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from typing import TypeVar
from weakref import WeakValueDictionary

from kafka_rebalance.errors import Transient
from kafka_rebalance.reasons import Reason

T = TypeVar("T")

_THREADS = 8
_OF_ONE_NAMESPACE = 2
_LONGEST_WAIT_SECONDS = 8.0
"""As long as the API server has to answer. The round of a cluster that others share waits for these calls too."""


class CallShare(Enum):
    """What the calls about a namespace do that wait for each other."""

    WRITES = auto()
    READS = auto()
    SECRETS = auto()


class CallThreads:
    """The threads of one client. All calls come from the same event loop."""

    def __init__(self) -> None:
        self._own = ThreadPoolExecutor(_THREADS, thread_name_prefix="kube")
        self._others = ThreadPoolExecutor(_THREADS, thread_name_prefix="kube-objects")
        self._reading = ThreadPoolExecutor(_THREADS, thread_name_prefix="kube-reads")
        self._turns: WeakValueDictionary[tuple[str, CallShare], Semaphore] = WeakValueDictionary()
        """By namespace and share. Calls that have a turn or wait for one keep it."""

    async def run(self, call: Callable[[], T], namespace: str | None, share: CallShare = CallShare.WRITES) -> T:
        """What ``call`` returns. ``namespace``: where the objects are that it is about, if not the operator's own.

        Transient("ApiServerBusy") if calls of the same share hold the threads of the namespace for too long: nothing is
        sent.
        """
        if namespace is None:
            return await get_running_loop().run_in_executor(self._own, call)
        turn = self._turns.setdefault((namespace, share), Semaphore(_OF_ONE_NAMESPACE))
        try:
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS):
                await turn.acquire()
        except TimeoutError as error:
            message = f"earlier calls about objects in namespace {namespace} take long; this one was not sent"
            raise Transient(Reason.API_SERVER_BUSY, message) from error
        threads = self._others if share is CallShare.WRITES else self._reading
        loop, begun = get_running_loop(), threads.submit(call)
        # Not when this task is cancelled: the thread goes on until the call has ended.
        begun.add_done_callback(lambda _: _release(turn, loop))
        return await asyncio.wrap_future(begun)

    async def close(self) -> None:
        """Calls that have not begun are cancelled. When this returns, none is under way."""
        for threads in (self._own, self._others, self._reading):
            await to_thread(threads.shutdown, cancel_futures=True)


def _release(turn: Semaphore, loop: AbstractEventLoop) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(turn.release)
