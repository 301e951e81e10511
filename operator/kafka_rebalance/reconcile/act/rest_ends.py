"""Ends the rests of runs that may go on, because their namespace is permitted again."""

import asyncio
from collections.abc import Iterable

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.log_dir_moves import LogDirReading
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.model.topology import ReplicaKey
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.turns import Turns
from kafka_rebalance.reconcile.decide.rests import moved_by_others, replicas_with_log_dirs
from kafka_rebalance.reconcile.observe.log_dir_reader import LogDirReader
from kafka_rebalance.reconcile.observe.observer import Observer
from kafka_rebalance.reconcile.state.pauses import with_pauses
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.round_thread import computed

_STAGE = "end the rest"
_MANY = 1000
"""The number of origins from which a thread goes through them."""


class RestEnds:
    """Of the runs of one cluster."""

    def __init__(
        self, admin: KafkaReader, lifecycle: Lifecycle, observer: Observer, turns: Turns, clock: Clock
    ) -> None:
        self._lifecycle, self._observer, self._turns, self._clock = lifecycle, observer, turns, clock
        self._admin = admin

    async def end(self, rebalances: Iterable[Rebalance], info: ClusterInfo) -> None:
        """Record what others move now, then that the runs go on. Without that record, a run sends nothing.

        Everything is read for that: a reading from the time of the rest does not show what moves now.
        """
        now = self._clock.monotonic()
        ending = [rebalance for rebalance in rebalances if rebalance.rest_ends and not rebalance.memory.blocked(now)]
        if not ending:
            return
        self._observer.expire()
        partitions = await self._observer.everything()
        keys = set[ReplicaKey]()
        async for rebalance in with_pauses(ending):
            keys |= replicas_with_log_dirs(rebalance)
        log_dirs = await LogDirReader(self._admin, self._clock).read(keys) or LogDirReading()

        for rebalance in self._turns.of(_STAGE, ending):
            await asyncio.sleep(0)  # each is a slice of its own
            async with self._lifecycle.problems_of(rebalance, _STAGE):
                self._refuse_unread(rebalance, log_dirs, info)
                many = len(rebalance.record.origins) >= _MANY
                theirs = await computed(moved_by_others, rebalance, partitions, log_dirs, many=many)
                await self._lifecycle.end_rest(rebalance, theirs)

    def _refuse_unread(self, rebalance: Rebalance, log_dirs: LogDirReading, info: ClusterInfo) -> None:
        if unread := self._observer.unread & {tp.topic for tp in rebalance.record.origins}:
            raise Transient(Reason.METADATA_MISSING, f"topic {min(unread)} cannot be read", 5.0)
        brokers = {broker for _, broker in replicas_with_log_dirs(rebalance)}
        if unknown := brokers & info.brokers.keys() - log_dirs.brokers:
            raise Transient(Reason.LOG_DIRS_UNKNOWN, f"broker {min(unknown)} does not describe its log dirs", 5.0)
