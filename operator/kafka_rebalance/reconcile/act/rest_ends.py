"""Ends the rests of runs that may go on, because their namespace is permitted again."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from weakref import WeakKeyDictionary

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.execution.log_dir_moves import LogDirReading
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.turns import Turns
from kafka_rebalance.reconcile.decide.rests import NeededReadings, moved_by_others, needed_readings
from kafka_rebalance.reconcile.observe.log_dir_reader import LogDirReader
from kafka_rebalance.reconcile.observe.observer import GONE_AFTER_READINGS, Observer
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
        self._absent = WeakKeyDictionary[Rebalance, dict[str, int]]()
        """For each run, in how many successive readings its topics did not exist."""

    async def end(self, rebalances: Iterable[Rebalance], info: ClusterInfo) -> None:
        """Record what others move now, then that the runs go on. Without that record, a run sends nothing.

        Everything is read for that: a reading from the time of the rest does not show what moves now. A topic that
        Kafka hides may be what others move. A deletion that changes nothing in Kafka does not come here.
        """
        now = self._clock.monotonic()
        ending = [rebalance for rebalance in rebalances if rebalance.rest_ends and not rebalance.memory.blocked(now)]
        if not ending:
            return
        self._observer.expire()
        partitions = await self._observer.everything()
        many = sum(1 + len(rebalance.record.origins) for rebalance in ending) >= _MANY
        needed = await computed(needed_readings, ending, partitions, many=many)
        await self._observer.describe(needed.absent)
        log_dirs = await LogDirReader(self._admin, self._clock).read(needed.replicas) or LogDirReading()

        for rebalance in self._turns.of(_STAGE, ending):
            await asyncio.sleep(0)  # each is a slice of its own
            async with self._lifecycle.problems_of(rebalance, _STAGE):
                many = len(rebalance.record.origins) >= _MANY
                its = await computed(needed_readings, (rebalance,), partitions, many=many)
                before = self._absent.pop(rebalance, {})  # a reading that is refused interrupts the succession
                self._refuse_unread(its, log_dirs, info)
                self._refuse_absent(rebalance, before, frozenset([tp.topic for tp in its.absent]))
                theirs = await computed(moved_by_others, rebalance, partitions, log_dirs, many=many)
                await self._lifecycle.end_rest(rebalance, theirs)

    def _refuse_unread(self, needed: NeededReadings, log_dirs: LogDirReading, info: ClusterInfo) -> None:
        if denied := self._observer.undescribed.keys() & needed.topics:
            why = self._observer.undescribed[min(denied)]
            raise Permanent(Reason.TOPIC_FORBIDDEN, f"{why}; the run waits, as others may be moving the topic")
        if unread := self._observer.unread & needed.topics:
            raise Transient(Reason.METADATA_MISSING, f"topic {min(unread)} cannot be read", 5.0)
        if unknown := needed.brokers & info.brokers.keys() - log_dirs.brokers:
            raise Transient(Reason.LOG_DIRS_UNKNOWN, f"broker {min(unknown)} does not describe its log dirs", 5.0)

    def _refuse_absent(self, rebalance: Rebalance, before: Mapping[str, int], topics: Collection[str]) -> None:
        """Refuse to go on without these topics, which do not exist, before several readings have shown that."""
        now = {topic: before.get(topic, 0) + 1 for topic in topics}
        if missing := [topic for topic, readings in now.items() if readings < GONE_AFTER_READINGS]:
            self._absent[rebalance] = now
            raise Transient(Reason.METADATA_MISSING, f"no broker reported topic {min(missing)}", 5.0)
