"""Judges untouched partitions by their pattern: what moves, whatever the ids of the brokers.

Most partitions of a large run are untouched, and of few different patterns. Judging each of them took half of the CPU
of opening a run. Those with equal lists share one status. Pure.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, Observation, PartitionStatus, judge
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, Replicas, TopicPartition

_TP = TopicPartition("", 0)


_Key = tuple[int, tuple[int, ...], int, int, bool]
"""Of an untouched partition: how many replicas, target, leader, min.insync.replicas, and ``elects``.

Its brokers are numbered: first its replicas, then those that the target adds.
"""
_Taken = Callable[[Replicas, Replicas], Replicas]
"""From the numbered brokers of a partition and its target, a list of brokers."""


class _Pattern(NamedTuple):
    """The status of all untouched partitions of one key, and what differs between them."""

    status: PartitionStatus
    step: _Taken
    call: _Taken
    until_in_sync: _Taken
    to_rest: _Taken


class AlikeJudge:
    """``judge`` of one reading, one direction and one R. Made for one pass over the partitions, and then forgotten.

    ``recorded``: the move with what is on record now, which is of no importance for an untouched partition.
    """

    def __init__(
        self,
        seen: Observation,
        direction: Direction,
        parallel_replicas: int,
        recorded: Callable[[PartitionMove], PartitionMove] = lambda move: move,
    ) -> None:
        self._seen = seen
        self._recorded = recorded
        self._direction = direction
        self._parallel_replicas = parallel_replicas
        self._partitions = seen.cluster.partitions
        self._live = frozenset(seen.cluster.brokers)
        self._patterns: dict[_Key, _Pattern] = {}
        self._of_lists: dict[tuple[Replicas, Replicas, BrokerId, int, bool], PartitionStatus] = {}
        """By replicas, target, leader, min.insync.replicas and ``elects`` of untouched partitions."""

    def status_of(self, move: PartitionMove) -> PartitionStatus:
        """As ``judge``."""
        target, state = move.target, self._partitions.get(move.tp)
        if state is not None and (leader := state.leader) is not None and self._is_untouched(move, state):
            replicas, min_insync, elects = state.replicas, self._seen.min_insync[move.tp.topic], move.elects
            lists = replicas, target, leader, min_insync, elects
            if (known := self._of_lists.get(lists)) is not None:
                return known
            brokers = replicas + tuple([b for b in target if b not in replicas])
            key = len(replicas), tuple(map(brokers.index, target)), brokers.index(leader), min_insync, elects
            if (pattern := self._patterns.get(key)) is None:
                pattern = self._patterns[key] = self._pattern_of(key)
            if not pattern.status.message:  # else it may name brokers
                found = self._of_lists[lists] = _with_brokers(pattern, brokers, target)
                return found
        return judge(self._recorded(move), self._seen, self._direction, self._parallel_replicas)

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
            and (move.topic_id == state.topic_id or not (move.topic_id and state.topic_id))
            and topic in seen.min_insync
            and topic not in seen.unread
        )

    def _pattern_of(self, key: _Key) -> _Pattern:
        count, numbered, leader, min_insync, elects = key
        replicas, target = (tuple(map(BrokerId, numbers)) for numbers in (range(count), numbered))
        live = {b: Broker(b) for b in (*replicas, *target)}
        state = PartitionState(_TP, "", replicas, frozenset(replicas), BrokerId(leader))
        seen = Observation(ClusterState("", live, {_TP: state}), {_TP.topic: min_insync})
        move = PartitionMove(_TP, "", replicas, replicas, target, elects=elects)
        found = judge(move, seen, self._direction, self._parallel_replicas)
        call = found.call if isinstance(found.call, Alter) else Alter(())
        rest = found.to_rest.replicas if found.to_rest is not None else ()
        return _Pattern(found, *(_taken(row, target) for row in (found.step, call.replicas, call.until_in_sync, rest)))


def _taken(numbers: Replicas, target: Replicas) -> _Taken:
    """What takes the brokers of these numbers. ``target``: the numbers of the target, whose list is shared."""
    if numbers == target:
        return lambda _, actual: actual
    if len(numbers) < 2:  # itemgetter would return no tuple
        return lambda brokers, _: tuple([brokers[number] for number in numbers])
    get = itemgetter(*numbers)
    return lambda brokers, _: get(brokers)


def _with_brokers(pattern: _Pattern, brokers: Replicas, target: Replicas) -> PartitionStatus:
    """The status of the pattern, with the brokers instead of their numbers."""
    found = pattern.status
    step, call = pattern.step(brokers, target), found.call
    if isinstance(call, Alter):
        replicas = step if call.replicas == found.step else pattern.call(brokers, target)
        call = Alter(replicas, pattern.until_in_sync(brokers, target))
    elif isinstance(call, Elect):
        call = Elect(brokers[call.leader])
    to_rest = Alter(pattern.to_rest(brokers, target)) if found.to_rest is not None else None
    return PartitionStatus(
        found.phase,
        found.reason,
        "",
        step,
        call,
        found.cancel,
        found.started,
        found.leader_movement,
        found.pausable,
        to_rest,
    )
