"""Which brokers others empty, and which of these get no replicas."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.found_by_rounds import recorded
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.leaving_brokers import leaving_brokers, not_named, to_avoid
from kafka_rebalance.reconcile.state.assessment import LeavingBroker
from kafka_rebalance.reconcile.state.rebalance import Rebalance

DRAINED, BEING_DRAINED = LeavingBroker("kafka/r", NOON), LeavingBroker("kafka/r")


def rebalance(said="", created=NOON, **spec):
    said = [{"type": "Drained", "status": said, "reason": "Drained", "message": "", "lastTransitionTime": NOON}]
    body = {
        "metadata": {"name": "r", "namespace": "kafka", "uid": "u-1", "creationTimestamp": created.isoformat()},
        "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, "brokers": {"decommission": [2]}, **spec},
        "status": {"conditions": said if said[0]["status"] else []},
    }
    return Rebalance.of(body)


def with_run(mine, **run):
    found = Run("u-1", "kafka", "r", "c", "run", mine.desired.planning_hash, "p", NOON, started_at=NOON)
    return recorded(mine, run=replace(found, **run), was_read=True)


def held(*replicas):
    tp, present = TopicPartition("t", 0), replicas_of(*replicas)
    return {tp: PartitionState(tp, "T", present, frozenset(present), present[0])}


class TestLeaving:
    def test_from_the_start_of_its_run(self):
        assert leaving_brokers([with_run(rebalance())]) == {2: BEING_DRAINED}
        assert not leaving_brokers([with_run(rebalance(), started_at=None)])

    @pytest.mark.parametrize("topics", [{"include": ["t"]}, {"exclude": ["t"]}])
    def test_some_topics_may_leave_a_broker_that_stays(self, topics):
        """Then only the proof that the broker is empty counts."""
        assert not leaving_brokers([with_run(rebalance(topics=topics))])
        assert leaving_brokers([with_run(rebalance("True", topics=topics))]) == {2: DRAINED}

    def test_as_long_as_its_status_says_so(self):
        """Also after a restart, before its record was read."""
        ended = {"closed_at": NOON, "outcome": RunOutcome.SUCCEEDED}
        assert leaving_brokers([rebalance("True")]) == {2: DRAINED}
        assert leaving_brokers([with_run(rebalance("True"), **ended)]) == {2: DRAINED}
        assert not leaving_brokers([with_run(rebalance("False"), **ended)])

    def test_not_after_an_edit_nor_in_an_undo(self):
        """The status is written again later."""
        assert not leaving_brokers([with_run(rebalance("True"), planning_hash="of the spec before")])
        assert not leaving_brokers([with_run(rebalance("True"), undo=True)])


class TestNotNamed:
    @pytest.mark.parametrize(
        "spec",
        [
            {"brokers": {"include": [2]}},
            {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "a", "key": "k"}}, "brokers": {}},
        ],
    )
    def test_one_that_names_the_broker_fills_it(self, spec):
        assert not not_named(rebalance(**spec), {BrokerId(2): DRAINED})

    def test_any_other_one_does_not(self):
        assert not_named(rebalance(brokers={"include": [1, 3]}), {BrokerId(2): DRAINED}) == {2: DRAINED}

    def test_one_that_was_created_after_the_broker_was_drained_does(self):
        leaving = {BrokerId(2): DRAINED}
        assert not_named(rebalance(brokers={}, created=NOON), leaving) == leaving
        assert not not_named(rebalance(brokers={}, created=NOON + timedelta(seconds=1)), leaving)

    def test_not_while_the_broker_is_being_drained(self):
        leaving = {BrokerId(2): BEING_DRAINED}
        assert not_named(rebalance(brokers={}, created=NOON + timedelta(seconds=1)), leaving) == leaving


class TestToAvoid:
    def test_a_drained_broker_with_a_replica_is_in_use_again(self):
        assert to_avoid({BrokerId(2): DRAINED}, held(1, 3)) == {2}
        assert not to_avoid({BrokerId(2): DRAINED}, held(1, 2))

    def test_one_that_is_being_drained_holds_replicas(self):
        assert to_avoid({BrokerId(2): BEING_DRAINED}, held(1, 2)) == {2}
