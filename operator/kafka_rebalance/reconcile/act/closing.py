"""When a run may close: all has arrived, what leaves is proved empty, and what was cordoned for it is open again."""

from __future__ import annotations

import logging

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.clock import Clock
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.decide.teardown import outcome_of
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState, RollbackBarrier

log = logging.getLogger(__name__)

_UNCORDON_SECONDS = 30.0
_PROOF_SECONDS = 2.0
"""Between the two readings that prove a broker empty."""


class Closing:
    """Closes the runs of one cluster."""

    def __init__(self, admin: KafkaReader, lifecycle: Lifecycle, clock: Clock) -> None:
        self._admin = admin
        self._lifecycle = lifecycle
        self._clock = clock

    async def finish(self, work: RebalanceState, info: ClusterInfo) -> None:
        """Every partition has arrived or is left alone, and the throttle has been taken away: close the run.

        Where the plan is superseded, copies in flight may stay: it is planned again beside them.
        """
        if work.open is None or work.planning is not None or work.barrier is RollbackBarrier.TOO_LARGE:
            return
        if work.going_back and not self._uncordoned(work, info):
            return
        async with self._lifecycle.problems_of(work, "finish"):
            if work.replanning is not None:
                work.settled = True
            elif work.rebalance.metadata.deleting:
                await self._lifecycle.close(work, outcome_of(work), successor=work.heir or None)
                await self._lifecycle.let_go(work)
            elif work.going_back:
                await self._lifecycle.undone(
                    work, wholly=not {errand.tp for errand in work.errands} & set(work.skipped)
                )
            elif await self._drained(work) and _told_whether_drained(work):
                await self._lifecycle.close(work, RunOutcome.SUCCEEDED)

    def _uncordoned(self, work: RebalanceState, info: ClusterInfo) -> bool:
        """Whether the cordons of a way back are gone, or have had their time: nobody is held up by one for long."""
        if work.run is None or not set(work.run.cordoned) & set(info.brokers):
            return True
        now = self._clock.monotonic()
        work.unrestored_since = work.unrestored_since if work.unrestored_since is not None else now
        return now - work.unrestored_since >= _UNCORDON_SECONDS

    async def _drained(self, work: RebalanceState) -> bool:
        """Whether the run may close. What a leaving broker still holds is read from Kafka, over all topics.

        Proof are two empty readings, some time apart. What came to it since the plan was made is planned for again.
        """
        leaving = {BrokerId(b) for b in work.rebalance.spec.brokers.decommission}
        if not leaving:
            return True
        partitions = await self._admin.describe_partitions()
        left = {tp for tp, state in partitions.items() if leaving & set(state.replicas)}
        names = ", ".join(str(b) for b in sorted(leaving))
        known = {errand.tp for errand in work.errands} | set(work.skipped)
        if left & work.wanted(partitions) - known:
            log.info("%s: brokers %s have got new replicas: planning again", work.name, names)
            work.replanning, work.empty_since, work.drained = Reason.NOT_DRAINED, None, None
            return False
        if left:
            examples = ", ".join(str(tp) for tp in sorted(left)[:5])
            work.drained = False
            work.drain_message = f"brokers {names} still hold replicas of {len(left)} partitions: {examples}"
            return True
        now = self._clock.monotonic()
        work.empty_since = work.empty_since if work.empty_since is not None else now
        if now - work.empty_since < _PROOF_SECONDS:
            return False
        work.drained, work.drain_message = True, f"brokers {names} held no replica at two readings"
        if work.run is not None and work.run.cordoned:
            cordoned = ", ".join(str(b) for b in work.run.cordoned)
            work.drain_message += f"; {cordoned} stay cordoned, nothing new is placed there"
        return True


def _told_whether_drained(work: RebalanceState) -> bool:
    """Whether the status has it: once the run is closed nobody proves it again."""
    said = find_condition(work.written.conditions, ConditionType.DRAINED) if work.written is not None else None
    return work.drained is None or (said is not None and (said.status == "True") is work.drained)
