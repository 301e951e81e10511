"""Two readings of a whole cluster: what changed, and what is kept."""

from dataclasses import replace

from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.observe.cluster_readings import (
    ReplicaSizes,
    asked_together,
    compared,
    known_ones,
)


def state(topic, number, leader=1):
    ids = replicas_of(1, 2)
    return PartitionState(TopicPartition(topic, number), "id", ids, frozenset(ids), BrokerId(leader))


def by_name(*states):
    return {s.tp: s for s in states}


class TestCompared:
    def test_what_is_new_gone_or_different_has_changed(self):
        """The rest stays the very same objects."""
        before = by_name(state("t", 0), state("t", 1), state("t", 2))
        now = by_name(state("t", 0), state("t", 1, leader=2), state("t", 3))
        known, changed, _, _ = compared(now, before, {})
        assert {tp.partition for tp in changed} == {1, 2, 3}
        assert {tp.partition for tp in known} == {0, 1, 3}
        assert known[TopicPartition("t", 0)] is before[TopicPartition("t", 0)]

    def test_the_answer_becomes_the_reading(self):
        """A third mapping would take 10 MB for 267,000 partitions."""
        found = by_name(state("t", 0))
        assert compared(found, by_name(state("t", 0)), {})[0] is found

    def test_what_is_kept_is_as_before(self):
        """An answer that is missing says nothing."""
        before = by_name(state("t", 0), state("u", 0))
        known, changed, _, _ = compared(by_name(state("u", 0)), before, by_name(state("t", 0)))
        assert (known, changed) == (before, set())

    def test_the_unhealthy_ones_and_those_in_flight(self):
        """For the health gate, and for the limits."""
        sick = replace(state("t", 0), isr=frozenset(replicas_of(1)))
        flying = replace(state("t", 2), adding=replicas_of(2))
        _, _, unhealthy, in_flight = compared(by_name(sick, state("t", 1), flying), {}, {})
        assert (unhealthy, in_flight) == (by_name(sick), {flying.tp})


class TestReplicaSizes:
    def test_by_partition_and_broker(self):
        """A broker is replaced as a whole."""
        tp, sizes = TopicPartition("t", 0), ReplicaSizes()
        sizes.replace(BrokerId(1), {tp: 7})
        sizes.replace(BrokerId(2), {})
        assert (sizes[tp, BrokerId(1)], sizes.get((tp, BrokerId(2))), sizes.get((tp, BrokerId(3)), 5)) == (7, None, 5)
        assert (sizes.brokers, dict(sizes)) == ({BrokerId(1)}, {(tp, BrokerId(1)): 7})


class TestAskedTogether:
    def test_one_half_after_the_other_if_they_hold_very_many(self):
        """The former sizes of one half are freed before the other half is read."""
        brokers = {BrokerId(number) for number in range(1, 6)}
        assert asked_together(brokers, 199_999) == [replicas_of(1, 2, 3, 4, 5)]
        assert asked_together(brokers, 200_000) == [replicas_of(1, 3, 5), replicas_of(2, 4)]
        assert asked_together({BrokerId(1)}, 200_000) == [replicas_of(1)]


class TestKnownOnes:
    def test_equal_states_are_the_known_objects(self):
        """A plan makes a second reading of the cluster, which would take 50 MB for a large one."""
        known = by_name(state("t", 0), state("t", 1), state("t", 2))
        found = by_name(state("t", 0), state("t", 1, leader=2), state("t", 3))
        kept = known_ones(found, known)
        assert kept == found
        assert kept[TopicPartition("t", 0)] is known[TopicPartition("t", 0)]
        assert next(iter(kept)) is known[TopicPartition("t", 0)].tp
