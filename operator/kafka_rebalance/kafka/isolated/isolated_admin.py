"""`KafkaAdmin` with its client in a separate process. A server that crashes it affects only the resources that name it.

The fence stays in the operator. It is checked when an order is called. The process asks for it again when it starts the
order, and right before each request that changes something.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kafka.failures import client_ended
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated.kept_answers import AnswersOfClient, KeptAnswers
from kafka_rebalance.kafka.isolated.process_handle import ForkingProcess, ProcessEnded, ProcessHandle
from kafka_rebalance.kafka.isolated.reply_format import ORDERS, READS
from kafka_rebalance.kafka.ports import CALL_SECONDS, ClusterInfo, KafkaAdmin
from kafka_rebalance.kafka.settings import ConnectionSettings

_ORDER_SECONDS = CALL_SECONDS + 2
"""Longer than the time-outs of a client that does not hang; shorter than ``engines._LATE_SECONDS``."""
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 60.0
_STEADY_SECONDS = 600.0
"""If a process ran longer than this, the pause before the next one starts again at the minimum."""


class IsolatedClients:
    """Creates clients that run in separate processes."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._forking = ForkingProcess()
        self._kept = KeptAnswers()
        self._monotonic = monotonic

    def connect(self, settings: ConnectionSettings, fence: Fence, namespace: str) -> KafkaAdmin:
        """Like `kafka.admin.connect`. The process starts at the first call."""
        kept = self._kept.of_client(namespace)
        return cast("KafkaAdmin", _IsolatedAdmin(settings, fence, self._forking, self._monotonic, namespace, kept))

    async def close(self) -> None:
        """End all processes."""
        await asyncio.to_thread(self._forking.close)


class _IsolatedAdmin:
    """A process that has ended is replaced at the next call, after a pause that grows with each end."""

    def __init__(
        self,
        settings: ConnectionSettings,
        fence: Fence,
        forking: ForkingProcess,
        monotonic: Callable[[], float],
        namespace: str,
        kept: AnswersOfClient,
    ) -> None:
        self._settings = settings
        self._fence = fence
        self._forking = forking
        self._monotonic = monotonic
        self._namespace = namespace
        self._kept = kept
        self._starting = asyncio.Lock()
        self._process: ProcessHandle | None = None
        self._started = 0.0
        self._pause = 0.0
        self._not_before = float("-inf")
        self._how = ""
        self._closed = False
        self._cluster_id = ""
        """The cluster that was described first. The next process sends orders to no other one."""

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        """The methods of `KafkaAdmin`."""
        if method in ORDERS:
            return partial(self._order, method)
        if method in READS:
            return partial(self._call, method)
        raise AttributeError(method)

    async def describe_cluster(self) -> ClusterInfo:
        info: ClusterInfo = await self._call("describe_cluster")
        self._cluster_id = self._cluster_id or info.cluster_id
        return info

    async def close(self) -> None:
        self._closed = True
        self._kept.close()
        async with self._starting:
            process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _order(self, method: str, *arguments: Any, **options: Any) -> Any:
        return await self._fence.order(lambda: self._call_in_time(method, *arguments, **options))

    async def _call_in_time(self, method: str, *arguments: Any, **options: Any) -> Any:
        """End the process if it does not answer in time, so that it cannot send the order later."""
        try:
            async with asyncio.timeout(_ORDER_SECONDS):
                return await self._call(method, *arguments, **options)
        except TimeoutError:
            how = f"it did not answer an order within {_ORDER_SECONDS:.0f} s"
            if (process := self._process) is not None:
                self._note_end(process, ProcessEnded(how))
                process.end()
            raise client_ended(self._settings, method, how, self._left()) from None

    async def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        process = await self._running(method)
        try:
            return await process.ask(method, arguments, options)
        except ProcessEnded as ended:
            self._note_end(process, ended)
            raise client_ended(self._settings, method, ended.how, self._left()) from ended

    async def _running(self, method: str) -> ProcessHandle:
        async with self._starting:
            if self._closed:
                raise client_ended(self._settings, method, "it was closed", _FIRST_PAUSE_SECONDS)
            if self._process is None:
                if self._left() > 0:
                    raise client_ended(self._settings, method, self._how, self._left())
                try:
                    self._process = await ProcessHandle.start(
                        self._forking, self._settings, self._may_send, self._namespace, self._kept, self._cluster_id
                    )
                except OSError as error:  # too many files, threads or processes
                    raise client_ended(self._settings, method, str(error), _FIRST_PAUSE_SECONDS) from error
                self._started = self._monotonic()
            return self._process

    def _note_end(self, process: ProcessHandle, ended: ProcessEnded) -> None:
        """Note the end once for each process, because it ends all its calls."""
        if self._process is not process:
            return
        steady = self._monotonic() - self._started > _STEADY_SECONDS
        again = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
        self._pause = again if self._pause and not steady else _FIRST_PAUSE_SECONDS
        self._process, self._how, self._not_before = None, ended.how, self._monotonic() + self._pause

    def _left(self) -> float:
        return max(self._not_before - self._monotonic(), 0.0)

    def _may_send(self) -> bool:
        try:
            self._fence.check()
        except RebalanceError:
            return False
        return True
