"""Untouched partitions are judged by their pattern, with the status that ``judge`` gives each of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.execution.alike import AlikeJudge
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, Observation, judge
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition

BROKERS = [BrokerId(b) for b in range(1, 10)]
LISTS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True).map(tuple)
UNTOUCHED = PartitionMove(TopicPartition("a", 0), "x", (1, 2), (1, 2), (3, 4))
AT_REST = PartitionState(UNTOUCHED.tp, "x", (1, 2), frozenset({1, 2}), BrokerId(1))
OF_STATE = {"replicas", "isr", "leader", "adding", "removing"}
HIDDEN = TopicPartition("without min.insync.replicas", 0)

# Direction, and what a partition has instead of what an untouched one has.
OTHERS = {
    "topic created anew": (Direction.FORWARD, {"topic_id": "y"}),
    "no min.insync.replicas": (Direction.FORWARD, {"tp": HIDDEN}),
    "unread": (Direction.FORWARD, {"tp": TopicPartition("unread", 0)}),
    "moved since it was planned": (Direction.FORWARD, {"replicas": (2, 1)}),
    "moved by an earlier plan": (Direction.FORWARD, {"replicas": (2, 1), "origin": (2, 1)}),
    "goes to a later list": (Direction.FORWARD, {"origin": (1, 2, 4), "planned_from": (1, 2, 4), "target": (4, 2, 3)}),
    "out of sync": (Direction.FORWARD, {"isr": frozenset()}),
    "led by another": (Direction.FORWARD, {"leader": 2}),
    "without a leader": (Direction.FORWARD, {"leader": None}),
    "led by a former replica": (Direction.FORWARD, {"leader": 4}),
    "target is dead": (Direction.FORWARD, {"target": (99, 3)}),
    "adding": (Direction.FORWARD, {"adding": (2,)}),
    "removing": (Direction.FORWARD, {"removing": (2,)}),
    "rollback": (Direction.ROLLBACK, {"origin_leader": 2}),
    "revert": (Direction.REVERT, {}),
}


def observed(*states):
    live = {b: Broker(b) for b in BROKERS}
    cluster = ClusterState("c", live, {state.tp: state for state in states})
    return Observation(cluster, {"a": 1, "b": 2, "unread": 1}, unread={"unread"})


@given(st.data(), st.integers(1, 3))
def test_the_status_is_that_of_each_partition(data, r):
    """Whatever partitions of the same pattern were judged before, with other brokers."""
    rows = []
    for number in range(8):
        tp, start, target = TopicPartition(data.draw(st.sampled_from("ab")), number), data.draw(LISTS), data.draw(LISTS)
        target = data.draw(st.sampled_from([target, start, start[::-1]]))
        move = PartitionMove(tp, "", start, start, target, elects=data.draw(st.booleans()))
        rows.append((move, PartitionState(tp, "", start, frozenset(start), data.draw(st.sampled_from(start)))))
    seen = observed(*(state for _, state in rows))
    alike = AlikeJudge(seen, Direction.FORWARD, r)
    for move, _ in rows:
        found, expected = alike.status_of(move), judge(move, seen, Direction.FORWARD, r)
        assert (found, found.pausable) == (expected, expected.pausable)


def test_equal_lists_share_a_status():
    """Of a large run thousands have the same lists."""
    other = TopicPartition("a", 1)
    seen = observed(AT_REST, replace(AT_REST, tp=other))
    alike = AlikeJudge(seen, Direction.FORWARD, 1)
    assert alike.status_of(UNTOUCHED) is alike.status_of(replace(UNTOUCHED, tp=other))


@pytest.mark.parametrize(("direction", "other"), OTHERS.values(), ids=OTHERS)
def test_others_are_judged_one_by_one(direction, other):
    """What decides on them is in no pattern, even if their lists have the pattern of an untouched partition."""
    like = replace(UNTOUCHED, **{name: value for name, value in other.items() if name == "target"})
    move = replace(UNTOUCHED, **{name: v for name, v in other.items() if name not in OF_STATE | {"topic_id"}})
    state = replace(AT_REST, **{name: v for name, v in other.items() if name in OF_STATE | {"tp", "topic_id"}})
    move, state = (replace(row, tp=row.tp._replace(partition=1)) for row in (move, state))
    seen = observed(AT_REST, state)
    alike = AlikeJudge(seen, direction, parallel_replicas=1)
    assert alike.status_of(like) == judge(like, seen, direction, 1)
    found, expected = alike.status_of(move), judge(move, seen, direction, 1)
    assert (found, found.pausable) == (expected, expected.pausable)
