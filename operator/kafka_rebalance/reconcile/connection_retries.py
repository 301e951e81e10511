"""When a connection that has failed is tried again, and how often its resources are looked at.

Anyone may edit a resource that names the connection, also in a namespace that may not use it. Each attempt to connect
costs a client and a login at the brokers, so only the settings of the connection bring the next one forward. Each look
at the resources reads records, so there is a rest after it.
"""

import asyncio
import contextlib
from asyncio import sleep
from typing import NamedTuple

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.errors import RebalanceError, without_traceback
from kafka_rebalance.reconcile.claim_checks import Uids, uids_of
from kafka_rebalance.reconcile.connection_book import NamedConnection

FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0
_REST = 4.0
"""The rest, as a multiple of the time that the look took: looks take a fifth of the time."""
_LONGEST_REST_SECONDS = 1.0


class Tried(NamedTuple):
    """The settings of an attempt. A KafkaConnection that was created again counts as another one."""

    uids: Uids
    kafka: Kafka | None

    @classmethod
    def of(cls, connection: NamedConnection) -> "Tried":
        """The settings that an attempt uses now."""
        return cls(uids_of(connection), connection.reach)


class ConnectionRetries:
    """The attempts of one connection. The pause between them doubles, up to a minute."""

    def __init__(self) -> None:
        self._tried: Tried | None = None
        self._problem: RebalanceError | None = None
        self._pause = 0.0
        self._next = 0.0

    @property
    def seconds(self) -> float:
        """Until the next attempt."""
        return max(0.0, self._next - asyncio.get_running_loop().time())

    def early(self, settings: Tried) -> RebalanceError | None:
        """Why the last attempt has failed, if it is too early for another one with the same settings."""
        return self._problem if self._tried == settings and self.seconds > 0 else None

    def note(self, settings: Tried, problem: RebalanceError | None) -> None:
        """The outcome of an attempt with these settings: those of now may be others."""
        again = problem is not None and self._problem is not None and self._tried == settings
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS) if again else FIRST_PAUSE_SECONDS
        self._next = asyncio.get_running_loop().time() + self._pause
        # The traceback may refer to an engine that has ended meanwhile.
        self._tried, self._problem = settings, problem and without_traceback(problem)

    async def wait(self, connection: NamedConnection, most: float, began: float) -> None:
        """Wait for a change, ``most`` seconds. ``began``: when the last look at the resources began, as loop time."""
        rest = min(_REST * (asyncio.get_running_loop().time() - began), _LONGEST_REST_SECONDS, most)
        await sleep(rest)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most - rest):
                await connection.changed.wait()
