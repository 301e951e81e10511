"""Which partitions may be called again."""

from datetime import timedelta

import pytest
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.last_calls import LastCalls

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


def test_what_is_read_later_holds():
    """Another tool may have changed the partition."""
    last, clock = after(replicas_of(2), read(1))
    clock.at += timedelta(seconds=1.9)
    assert not last.shown(TP, read(3))
    clock.at += timedelta(seconds=0.1)
    assert last.shown(TP, read(3))


def test_what_kafka_refused_need_not_be_shown():
    last, _ = after(replicas_of(2), read(1))
    last.forget([TP])
    assert last.shown(TP, read(1))
