"""Which copies in flight stay when the plan is superseded (KIP-236's rule for duplicates). Pure.

The new plan is made as if each of them had been cancelled. Where its next call for the partition equals the call in
flight, cancelling would only discard what has been copied: that copy stays, the others are cancelled first.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, judge
from kafka_rebalance.execution.steps import Alter
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.judgement import CopiesToKeep


def copies_of(
    moves: Iterable[PartitionMove],
    keep: CopiesToKeep,
    partitions: Mapping[TopicPartition, PartitionState],
    brokers: Mapping[BrokerId, Broker],
) -> dict[TopicPartition, PartitionState]:
    """The copies that the superseded plan, with these moves, has in flight, but for those not to keep."""
    seen = Observation(ClusterState("", brokers, partitions))
    return {
        move.tp: partitions[move.tp]
        for move in moves
        if move.tp in partitions
        and partitions[move.tp].in_flight
        and move.tp in keep
        and judge(move, seen, Direction.FORWARD, 1).phase is MovePhase.IN_FLIGHT
    }


def as_if_cancelled(state: PartitionState) -> PartitionState:
    """The partition as a null would leave it."""
    left = tuple(b for b in state.replicas if b not in state.adding)
    leader = state.leader if state.leader in left else next((b for b in left if b in state.isr), None)
    return replace(state, replicas=left, isr=state.isr & set(left), leader=leader, adding=(), removing=())


def continued_copies(
    moves: Iterable[PartitionMove],
    copies: Mapping[TopicPartition, PartitionState],
    brokers: Mapping[BrokerId, Broker],
    min_insync: Mapping[str, int],
    parallel_replicas: int,
) -> frozenset[TopicPartition]:
    """The copies that these moves would begin again in the same way if they were cancelled now."""
    before = {tp: as_if_cancelled(state) for tp, state in copies.items()}
    seen = Observation(ClusterState("", brokers, before), min_insync)

    def same(move: PartitionMove) -> bool:
        state = copies[move.tp]
        if state.leader in state.adding:
            return False
        call = judge(move, seen, Direction.FORWARD, parallel_replicas).call
        listed = tuple(b for b in state.replicas if b not in state.removing)
        return isinstance(call, Alter) and call.replicas == listed and set(call.until_in_sync) == set(state.adding)

    return frozenset(move.tp for move in moves if move.tp in copies and same(move))
