"""Which calls wait because Kafka may still execute the first call of the partition."""

from datetime import timedelta

import pytest
from tests.fakes.found_by_rounds import recorded
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.unanswered_first_calls import UnansweredFirstCalls
from kafka_rebalance.reconcile.decide.arrival_proof import HUNG_SECONDS
from kafka_rebalance.reconcile.state.rebalance import Rebalance

TP = TopicPartition("t", 0)
BEFORE, FIRST, OTHER = replicas_of(1, 2), replicas_of(1, 2, 3), replicas_of(1, 2, 4)


class World:
    """A partition on brokers 1 and 2, whose first call on record is ``first``."""

    def __init__(self, first=FIRST):
        self.clock = StoppedClock()
        self.calls = UnansweredFirstCalls(self.clock)
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        body = {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}}
        origins = {} if first is None else {TP: Origin(TP, "id", BEFORE, first_call=first)}
        self.rebalance = recorded(Rebalance.of(body), origins=origins)

    def sends(self, call, held=BEFORE, *, late=True):
        state = PartitionState(TP, "id", held, frozenset(held), held[0])
        cluster, orders = ClusterState("c", {}, {TP: state}), Orders(alters={TP: call})
        return self.calls.without_held(self.rebalance, orders, cluster, late=late) == orders


@pytest.mark.parametrize(
    ("first", "call", "sent"),
    [
        (FIRST, OTHER, False),
        (FIRST, FIRST, True),
        (BEFORE, OTHER, True),
        ((), OTHER, True),
        (None, OTHER, True),
    ],
    ids=["another", "the same", "the first changes no list", "the first is carried out", "it is the first"],
)
def test_a_call_that_differs_waits(first, call, sent):
    assert World(first).sends(call) is sent


def test_until_kafka_cannot_execute_the_first_one_any_more():
    world = World()
    assert not world.sends(OTHER)
    assert set(world.calls.waiting("u-1")) == {TP}
    assert world.sends(OTHER, late=False)
    assert set(world.calls.waiting("u-1")) == set()


@pytest.mark.parametrize("held", [FIRST, replicas_of(4, 1)], ids=["by that call", "by others"])
def test_not_if_the_list_has_changed(held):
    assert World().sends(OTHER, held)


def test_a_null_never_waits():
    """A reassignment in flight is not the list on record."""
    world = World()
    state = PartitionState(TP, "id", FIRST, frozenset(FIRST), FIRST[0], adding=FIRST[2:])
    orders = Orders(cancels=(TP,))
    assert world.calls.without_held(world.rebalance, orders, ClusterState("c", {}, {TP: state}), late=True) == orders


def test_no_call_waits_for_ever():
    """Other calls of the run go on failing. Whichever call is chosen meanwhile, the time counts."""
    world = World()
    for number in range(int(HUNG_SECONDS)):
        assert not world.sends((OTHER, replicas_of(1, 2, 5))[number % 2])
        world.clock.at += timedelta(seconds=1)
    assert world.sends(OTHER)


def test_a_call_that_was_let_through_ends_the_time():
    """It is the next first call that may be executed late."""
    world = World()
    assert not world.sends(OTHER)
    world.clock.at += timedelta(seconds=HUNG_SECONDS - 1)
    assert world.sends(FIRST)
    world.clock.at += timedelta(seconds=1)
    assert not world.sends(OTHER)


def test_resources_that_are_gone_are_forgotten():
    world = World()
    assert not world.sends(OTHER)
    world.calls.keep({"u-1"})
    assert set(world.calls.waiting("u-1")) == {TP}
    world.calls.keep(set())
    assert set(world.calls.waiting("u-1")) == set()
