"""Holds back the next call of a partition as long as Kafka may still execute the first one, if the two calls differ.

The record of a partition names one first call, by which its result is recognised. The next call takes its place there.
If Kafka executed the first call after that, the result would count as a change by others.
"""

from collections.abc import Collection

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.first_call import carried_out
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import ClusterState, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reconcile.decide.arrival_proof import HUNG_SECONDS
from kafka_rebalance.reconcile.decide.step_orders import orders_where
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import on_record


class UnansweredFirstCalls:
    """Which partitions of one cluster wait, and since when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, dict[TopicPartition, float]] = {}
        """By uid. A partition is removed with the next call that is let through."""

    def keep(self, uids: Collection[str]) -> None:
        """Forget all other resources."""
        self._since = {uid: since for uid, since in self._since.items() if since and uid in uids}

    def without_held(self, rebalance: RebalanceView, orders: Orders, cluster: ClusterState, *, late: bool) -> Orders:
        """The orders that may be sent. ``late``: whether Kafka may still execute an earlier call of the run.

        Cancellations and elections are never held back. Other calls wait for ``HUNG_SECONDS`` at most, because calls of
        the run may go on failing without an answer.
        """
        now, since = self._clock.monotonic(), self._since.setdefault(rebalance.desired.uid, {})
        held = set()
        for tp, call in orders.alters.items():
            state = cluster.partitions[tp]
            recorded = on_record(tp, state.topic_id, rebalance.record.origins)
            differs = late and recorded is not None and _differs(recorded, state, call)
            if differs and now - since.setdefault(tp, now) < HUNG_SECONDS:
                held.add(tp)
            else:
                since.pop(tp, None)
        return orders_where(orders, lambda tp: tp not in held) if held else orders

    def waiting(self, uid: str) -> Collection[TopicPartition]:
        """The partitions of the resource that wait, as of the last call that was chosen for each."""
        return self._since.get(uid, {}).keys()


def _differs(recorded: Origin, state: PartitionState, call: Replicas) -> bool:
    """Whether this is not the first call on record, and that one was not carried out."""
    if recorded.first_call in {(), recorded.replicas, call}:
        return False
    return carried_out(recorded.replicas, recorded.first_call, state) is False
