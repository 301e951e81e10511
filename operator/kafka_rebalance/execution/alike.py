"""Judges untouched partitions by their pattern: what moves, whatever the ids of the brokers.

Most partitions of a large run are untouched, and of few different patterns. Judging each of them took half of the CPU
of opening a run. Those with equal lists share one status. Pure.
"""

from typing import NamedTuple

from kafka_rebalance.execution.partition_status import Direction, Observation, PartitionMove, PartitionStatus, judge
from kafka_rebalance.execution.steps import Alter, Call, Elect
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, Replicas, TopicPartition

_TP = TopicPartition("", 0)


class _Pattern(NamedTuple):
    """An untouched partition. Its brokers are numbered: first its replicas, then those that the target adds."""

    replicas: int
    target: Replicas
    leader: int
    min_insync: int
    elects: bool


class AlikeJudge:
    """``judge`` of one reading, one direction and one R. Made for one pass over the partitions, and then forgotten."""

    def __init__(self, seen: Observation, direction: Direction, parallel_replicas: int) -> None:
        self._seen = seen
        self._direction = direction
        self._parallel_replicas = parallel_replicas
        self._live = frozenset(seen.cluster.brokers)
        self._judged: dict[_Pattern, PartitionStatus] = {}
        self._of_lists: dict[tuple[Replicas, Replicas, BrokerId, int, bool], PartitionStatus] = {}
        """By replicas, target, leader, min.insync.replicas and ``elects`` of untouched partitions."""

    def status_of(self, move: PartitionMove) -> PartitionStatus:
        """As ``judge``."""
        seen, target = self._seen, move.target
        state = seen.cluster.partitions.get(move.tp)
        if state is not None and state.leader is not None and self._is_untouched(move, state):
            lists = state.replicas, target, state.leader, seen.min_insync[move.tp.topic], move.elects
            if (known := self._of_lists.get(lists)) is not None:
                return known
            brokers = state.replicas + tuple([b for b in target if b not in state.replicas])
            numbered = tuple([BrokerId(brokers.index(b)) for b in target])
            pattern = _Pattern(len(state.replicas), numbered, brokers.index(state.leader), lists[3], move.elects)
            found = self._judged.get(pattern)
            if found is None:
                found = self._judged[pattern] = self._status_of_pattern(pattern)
            if not found.message:  # else it may name brokers
                found = self._of_lists[lists] = _with_brokers(found, brokers, pattern, target)
                return found
        return judge(move, seen, self._direction, self._parallel_replicas)

    def _is_untouched(self, move: PartitionMove, state: PartitionState) -> bool:
        """Whether it is as before the run, and all its brokers are live and in sync, so that only R decides."""
        seen, topic, replicas = self._seen, move.tp.topic, state.replicas
        return (
            self._direction is Direction.FORWARD
            and replicas == move.planned_from == move.origin
            and state.leader in replicas
            and state.isr.issuperset(replicas)
            and self._live.issuperset(replicas)
            and self._live.issuperset(move.target)
            and not (state.adding or state.removing)
            and not (move.topic_id and state.topic_id and move.topic_id != state.topic_id)
            and topic in seen.min_insync
            and topic not in seen.unread
        )

    def _status_of_pattern(self, pattern: _Pattern) -> PartitionStatus:
        replicas = tuple(map(BrokerId, range(pattern.replicas)))
        live = {b: Broker(b) for b in (*replicas, *pattern.target)}
        state = PartitionState(_TP, "", replicas, frozenset(replicas), BrokerId(pattern.leader))
        seen = Observation(ClusterState("", live, {_TP: state}), {_TP.topic: pattern.min_insync})
        move = PartitionMove(_TP, "", replicas, replicas, pattern.target, elects=pattern.elects)
        return judge(move, seen, self._direction, self._parallel_replicas)


def _with_brokers(found: PartitionStatus, brokers: Replicas, pattern: _Pattern, target: Replicas) -> PartitionStatus:
    """The status of the pattern, with the brokers instead of their numbers."""

    def named(numbers: Replicas) -> Replicas:
        return target if numbers == pattern.target else tuple([brokers[number] for number in numbers])

    call: Call | None = found.call
    if isinstance(call, Alter):
        call = Alter(named(call.replicas), named(call.until_in_sync))
    elif isinstance(call, Elect):
        call = Elect(brokers[call.leader])
    return PartitionStatus(
        found.phase,
        found.reason,
        step=named(found.step),
        call=call,
        cancel=found.cancel,
        started=found.started,
        leader_movement=found.leader_movement,
        pausable=found.pausable,
        to_rest=Alter(named(found.to_rest.replicas)) if found.to_rest is not None else None,
    )
