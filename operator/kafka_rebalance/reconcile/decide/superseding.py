"""What becomes of copies in flight when the plan is superseded (KIP-236's rule for duplicates). Pure.

The new plan is made as if each of them had been cancelled. Where its next call for the partition is the very call that
is in flight, cancelling would only throw away what has been copied: that one stays, the others are cancelled first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionMove, judge
from kafka_rebalance.execution.steps import Alter
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState


def copies_of(
    work: RebalanceState, partitions: Mapping[TopicPartition, PartitionState], brokers: Mapping[BrokerId, Broker]
) -> dict[TopicPartition, PartitionState]:
    """What the superseded plan has in flight, as far as it has not been decided yet that it be cancelled."""
    seen = Observation(ClusterState("", brokers, partitions))
    return {
        e.tp: partitions[e.tp]
        for e in work.errands
        if e.tp in partitions
        and partitions[e.tp].in_flight
        and work.keeps(e.tp)
        and judge(e, seen, Direction.FORWARD, 1).phase is MovePhase.IN_FLIGHT
    }


def as_if_cancelled(state: PartitionState) -> PartitionState:
    """As a null leaves the partition."""
    left = tuple(b for b in state.replicas if b not in state.adding)
    leader = state.leader if state.leader in left else next((b for b in left if b in state.isr), None)
    return replace(state, replicas=left, isr=state.isr & set(left), leader=leader, adding=(), removing=())


def gone_on_with(
    errands: Iterable[PartitionMove],
    copies: Mapping[TopicPartition, PartitionState],
    brokers: Mapping[BrokerId, Broker],
    min_insync: Mapping[str, int],
    parallel_replicas: int,
) -> frozenset[TopicPartition]:
    """The copies that these errands would begin again just so, were they cancelled now."""
    before = {tp: as_if_cancelled(state) for tp, state in copies.items()}
    seen = Observation(ClusterState("", brokers, before), min_insync)

    def same(errand: PartitionMove) -> bool:
        state = copies[errand.tp]
        if state.leader in state.adding:
            return False
        call = judge(errand, seen, Direction.FORWARD, parallel_replicas).call
        listed = tuple(b for b in state.replicas if b not in state.removing)
        return isinstance(call, Alter) and call.replicas == listed and set(call.until_in_sync) == set(state.adding)

    return frozenset(e.tp for e in errands if e.tp in copies and same(e))
