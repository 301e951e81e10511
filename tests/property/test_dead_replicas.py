"""With any dead brokers and any state of a partition, no direction repeats the same call for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, judge
from kafka_rebalance.execution.steps import Elect
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of

TP = TopicPartition("t", 0)
ORIGIN = replicas_of(1, 2, 3)
TARGETS = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True)
ROUNDS = 60


@st.composite
def outages(draw):
    """A partition half way between its origin and its target, with some of its brokers dead."""
    target = replicas_of(*draw(TARGETS))
    known = sorted({*ORIGIN, *target})
    fewest = min(len(ORIGIN), len(target))
    present = tuple(draw(st.lists(st.sampled_from(known), min_size=fewest, unique=True)))
    dead = draw(st.frozensets(st.integers(1, 6), max_size=3))
    in_sync = [broker for broker in present if broker not in dead]
    return target, present, dead, in_sync


class Kafka:
    """One partition on brokers of one version line, as recorded (docs/kafka-behaviour.md)."""

    def __init__(self, present, in_sync, alive, family):
        self.replicas, self.isr, self.leader = present, set(in_sync), in_sync[0]
        self.adding, self.removing = (), ()
        self.alive, self.family = alive, family

    @property
    def state(self):
        return PartitionState(TP, "", self.replicas, frozenset(self.isr), self.leader, self.adding, self.removing)

    def alter(self, target):
        self.adding = tuple(b for b in target if b not in self.replicas)
        self.removing = tuple(b for b in self.replicas if b not in target)
        self.replicas = (*target, *self.removing)
        self.isr |= {b for b in self.adding if b in self.alive}
        self.end()

    def cancel(self):
        kept = [b for b in self.replicas if b not in self.adding]
        self.replicas, self.adding, self.removing = tuple(kept), (), ()
        self.isr &= set(self.replicas)

    def elect(self):
        self.leader = self.replicas[0] if self.replicas[0] in self.isr else self.leader

    def end(self):
        target = [b for b in self.replicas if b not in self.removing]
        shrinks = len(self.removing) > len(self.adding)
        awaited = self.adding if self.family == "4.3" and not shrinks else target
        moving = self.adding or self.removing
        if moving and not set(awaited) <= self.isr:
            return
        self.replicas, self.adding, self.removing = tuple(target), (), ()
        self.isr &= set(target)
        if self.leader not in target:
            self.leader = next(b for b in target if b in self.isr)


class TestTermination:
    @examples(2)
    @pytest.mark.parametrize("family", ["3.9", "4.3"])
    @pytest.mark.parametrize("direction", list(Direction))
    @given(outages(), st.integers(1, 3))
    def test_it_comes_to_rest(self, direction, family, outage, parallel_replicas):
        """Done, skipped or waiting: never alternating between alter and null. Going back, nothing waits in flight."""
        target, present, dead, in_sync = outage
        if not in_sync:
            return
        alive = frozenset(range(1, 7)) - dead
        kafka = Kafka(present, in_sync, alive, family)
        brokers = {BrokerId(b): Broker(BrokerId(b)) for b in alive}
        move = PartitionMove(TP, "", ORIGIN, ORIGIN, target, origin_leader=ORIGIN[0])
        for _ in range(ROUNDS):
            seen = Observation(ClusterState("c", brokers, {TP: kafka.state}), {"t": 1})
            status = judge(move, seen, direction, parallel_replicas)
            if status.phase is not MovePhase.READY:
                break
            if status.cancel:
                kafka.cancel()
            elif isinstance(status.call, Elect):
                kafka.elect()
            else:
                kafka.alter(status.call.replicas)
        assert status.phase is not MovePhase.READY, f"{kafka.state} after {ROUNDS} rounds: {status}"
        if direction is not Direction.FORWARD:
            assert status.phase is not MovePhase.IN_FLIGHT
