"""Which brokers others empty, and which of these get no replicas."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.fakes.found_by_rounds import recorded
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.leaving_brokers import (
    drain_of,
    filled_again,
    filling,
    held_again,
    leaving_brokers,
    not_named,
    on_drained,
    to_avoid,
)
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


def leaving(*rebalances):
    """What these rebalances empty, as the engine notes it."""
    rows = [(r.desired.spec.brokers.decommission, drain_of(r)) for r in rebalances]
    return leaving_brokers([(brokers, row) for brokers, row in rows if row is not None])


def beside(row, **spec):
    """A rebalance beside another one that empties broker 2."""
    mine = rebalance(**spec)
    mine.assessment = replace(mine.assessment, leaving={BrokerId(2): row})
    return mine


def held(*replicas):
    tp, present = TopicPartition("t", 0), replicas_of(*replicas)
    return {tp: PartitionState(tp, "T", present, frozenset(present), present[0])}


class TestLeaving:
    def test_from_the_start_of_its_run(self):
        assert leaving(with_run(rebalance())) == {2: BEING_DRAINED}
        assert not leaving(with_run(rebalance(), started_at=None))

    @pytest.mark.parametrize("topics", [{"include": ["t"]}, {"exclude": ["t"]}])
    def test_some_topics_may_leave_a_broker_that_stays(self, topics):
        """Then only the proof that the broker is empty counts."""
        assert not leaving(with_run(rebalance(topics=topics)))
        assert leaving(with_run(rebalance("True", topics=topics))) == {2: DRAINED}

    def test_as_long_as_its_status_says_so(self):
        """Also after a restart, before its record was read."""
        ended = {"closed_at": NOON, "outcome": RunOutcome.SUCCEEDED}
        assert leaving(rebalance("True")) == {2: DRAINED}
        assert leaving(with_run(rebalance("True"), **ended)) == {2: DRAINED}
        assert not leaving(with_run(rebalance("False"), **ended))

    def test_not_after_an_edit_nor_in_an_undo(self):
        """The status is written again later."""
        assert not leaving(with_run(rebalance("True"), planning_hash="of the spec before"))
        assert not leaving(with_run(rebalance("True"), undo=True))

    def test_the_latest_proof_counts_of_a_broker_that_two_have_drained(self):
        """A resource that was created between the two proofs is older than the latest one."""
        earlier, later = LeavingBroker("kafka/a", NOON), LeavingBroker("kafka/b", NOON + timedelta(seconds=1))
        assert leaving_brokers([([2], later), ([2], earlier)]) == {2: later}
        assert leaving_brokers([([2], earlier), ([2], later)]) == {2: later}


class TestNotNamed:
    @pytest.mark.parametrize(
        "spec",
        [
            {"brokers": {"include": [2]}},
            {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "a", "key": "k"}}, "brokers": {}},
        ],
    )
    def test_one_that_names_the_broker_fills_it(self, spec):
        assert not not_named(beside(DRAINED, **spec), [2])

    def test_any_other_one_does_not(self):
        assert not_named(beside(DRAINED, brokers={"include": [1, 3]}), [2]) == {2: DRAINED}

    def test_one_that_was_created_after_the_broker_was_drained_does(self):
        assert not_named(beside(DRAINED, brokers={}, created=NOON), [2]) == {2: DRAINED}
        assert not not_named(beside(DRAINED, brokers={}, created=NOON + timedelta(seconds=1)), [2])

    def test_not_while_the_broker_is_being_drained(self):
        newer = beside(BEING_DRAINED, brokers={}, created=NOON + timedelta(seconds=1))
        assert not_named(newer, [2]) == {2: BEING_DRAINED}

    def test_only_of_the_brokers_asked_for(self):
        assert not not_named(beside(DRAINED, brokers={}), [1, 3])


class TestToAvoid:
    def test_a_drained_broker_with_a_replica_is_in_use_again(self):
        assert to_avoid({BrokerId(2): DRAINED}, held(1, 3)) == {2}
        assert not to_avoid({BrokerId(2): DRAINED}, held(1, 2))

    def test_one_that_is_being_drained_holds_replicas(self):
        assert to_avoid({BrokerId(2): BEING_DRAINED}, held(1, 2)) == {2}


class TestFilledAgain:
    def test_by_the_list_of_an_order(self):
        drain = filled_again(rebalance("True"), filling([OTHER], orders(1, 2, 3)))
        assert (drain.empty, drain.message) == (False, "kafka/other moves replicas to brokers 2 again")

    def test_not_by_what_goes_elsewhere(self):
        assert filled_again(rebalance("True"), filling([OTHER], orders(1, 3, 4))) is None

    def test_its_own_replicas_are_not_meant(self):
        assert filled_again(rebalance("True"), filling([rebalance()], orders(1, 2, 3, uid="u-1"))) is None


class TestHeldAgain:
    def test_replicas_on_a_drained_broker(self):
        assert on_drained({BrokerId(2): DRAINED}, held(1, 2)) == {2: TopicPartition("t", 0)}
        drain = held_again(rebalance("True"), {BrokerId(2): TopicPartition("t", 0)})
        assert (drain.empty, drain.message) == (False, "brokers 2 hold replicas again, for example of t-0")

    def test_not_of_one_that_is_being_drained_nor_of_other_brokers(self):
        assert not on_drained({BrokerId(2): BEING_DRAINED}, held(1, 2))
        assert not on_drained({BrokerId(2): DRAINED}, held(1, 3))
        assert held_again(rebalance("True"), {BrokerId(3): TopicPartition("t", 0)}) is None


OTHER = SimpleNamespace(desired=SimpleNamespace(uid="u-2", name="kafka/other"))


def orders(*replicas, uid="u-2"):
    return {uid: Orders(alters={TopicPartition("t", 0): replicas_of(*replicas)})}
