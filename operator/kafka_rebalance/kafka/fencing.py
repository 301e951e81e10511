"""Only the leader sends orders to Kafka. Reads always pass, so that an operator that leads again is up to date.

The check is made as late as possible, on this process's own clock: a process that was suspended or cut off in the
middle of a round notices when it is about to send. Kafka has no fencing tokens for its admin API, so what remains is
the moment between the check and the socket.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafka_rebalance.errors import Transient
from kafka_rebalance.reasons import Reason

T = TypeVar("T")


class Fence:
    """Sends orders while ``is_leader`` returns True, and keeps track of those under way."""

    def __init__(self, is_leader: Callable[[], bool]) -> None:
        self._is_leader = is_leader
        self._under_way: set[asyncio.Task[Any]] = set()

    def check(self) -> None:
        """Transient("NotLeading") if this operator is not the leader. May be called in any thread."""
        if not self._is_leader():
            raise Transient(
                Reason.NOT_LEADING, "this operator does not hold the lease; nothing is sent", retry_after=1.0
            )

    async def order(self, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Send if we lead. If the caller is cancelled, what was sent continues; `wait_until_idle` waits for it."""
        self.check()
        task = asyncio.create_task(send())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def wait_until_idle(self) -> None:
        """Return when no order is under way: each ends within ``kafka.ports.CALL_SECONDS`` + 2 s."""
        if self._under_way:
            await asyncio.wait(self._under_way)
