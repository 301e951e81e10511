"""Which partitions may be called again."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.last_calls import LastCalls
from kafka_rebalance.reconcile.decide.arrival_proof import HUNG_SECONDS

TP = TopicPartition("t", 0)


def read(*held, adding=(), removing=()):
    held = replicas_of(*held)
    state = PartitionState(TP, "id", held, frozenset(held), held[0], replicas_of(*adding), replicas_of(*removing))
    return ClusterState("c", {}, {TP: state})


def after(call, before):
    clock = StoppedClock()
    last = LastCalls(clock)
    last.note({TP: call}, before)
    return last, clock


@pytest.mark.parametrize(
    ("seen", "shown"),
    [
        (read(1, 2, 5), True),
        (read(1, 2, 5, 4, removing=[4]), True),
        (read(1, 4, 5, 2), False),
        (read(1, 4, 5), False),
        (read(1, 2, 5, 4), False),
    ],
)
def test_after_a_list_was_sent(seen, shown):
    """It is in flight, or it is there."""
    last, _ = after(replicas_of(1, 2, 5), read(1, 4, 5, 2))
    assert last.shown(TP, seen) is shown


@pytest.mark.parametrize(
    ("seen", "shown"), [(read(1, 2), True), (read(1, 2, 3), False), (read(1, 3, adding=[3]), False)]
)
def test_after_a_cancellation(seen, shown):
    """The replica that was copied is gone."""
    last, _ = after(None, read(1, 2, 3, adding=[3]))
    assert last.shown(TP, seen) is shown


def test_readings_that_contradict_it_for_long_are_believed():
    """Another tool may have changed the partition."""
    last, clock = after(replicas_of(2), read(1))
    for _ in range(10):
        clock.at += timedelta(seconds=1)
        assert not last.shown(TP, read(3))
    clock.at += timedelta(seconds=1)
    assert last.shown(TP, read(3))


@pytest.mark.parametrize("waited", [9, 50])
def test_the_first_one_may_come_late(waited):
    """A broker that hangs answers when it resumes."""
    last, clock = after(replicas_of(2), read(1))
    clock.at += timedelta(seconds=waited)
    for _ in range(4):
        clock.at += timedelta(seconds=1)
        assert not last.shown(TP, read(1))


def test_a_reading_that_shows_it_ends_the_doubt():
    last, clock = after(replicas_of(2), read(1))
    for seen, shown in [(read(1), False), (read(2), True), (read(1), False)]:
        clock.at += timedelta(seconds=6)
        assert last.shown(TP, seen) is shown


def test_single_readings_far_apart_are_not_believed():
    """A broker hung twice."""
    last, clock = after(replicas_of(2), read(1))
    assert not last.shown(TP, read(1))
    clock.at += timedelta(seconds=11)
    assert not last.shown(TP, read(1))


def test_a_call_that_was_sent_long_ago_is_forgotten():
    last, clock = after(replicas_of(2), read(1))
    clock.at += timedelta(seconds=60)
    assert last.shown(TP, read(1))


def test_what_kafka_refused_need_not_be_shown():
    last, _ = after(replicas_of(2), read(1))
    last.forget([TP])
    assert last.shown(TP, read(1))


def test_a_call_is_kept_for_as_long_as_a_broker_can_hang():
    """The time of a partition that is called again begins anew, and that of the others ends meanwhile."""
    other, clock = TopicPartition("t", 1), StoppedClock()
    last, cluster = LastCalls(clock), read(1)
    cluster = replace(cluster, partitions={**cluster.partitions, other: replace(cluster.partitions[TP], tp=other)})
    last.note({TP: replicas_of(2), other: replicas_of(2)}, cluster)
    clock.at += timedelta(seconds=HUNG_SECONDS - 1)
    last.note({TP: replicas_of(3)}, cluster)
    clock.at += timedelta(seconds=1)
    last.note({}, cluster)
    assert not last.shown(TP, cluster)
    assert last.shown(other, cluster)
