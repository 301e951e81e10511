"""What counts as moved by others while a run rested, and that the run takes no part until that is on record."""

from dataclasses import replace

import pytest
from tests.fakes.found_by_rounds import recorded
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.log_dir_moves import LogDirReading, ReplicaPlace
from kafka_rebalance.model.plan import Certificate, LogDirMove, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.rests import moved_by_others, needed_readings, replicas_with_log_dirs, takes_part
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

TP = TopicPartition("t", 0)
DIRS = ((BrokerId(1), "/a"), (BrokerId(2), "/a"))
NOTHING = LogDirReading()


def row(log_dirs=(), topic_id="T"):
    return Origin(TP, topic_id, replicas_of(1, 2), BrokerId(1), log_dirs=log_dirs)


def resting(origin, *, before=(1, 2), deleting=False):
    """A run that leads t-0 from brokers 1 and 2 to 3 and 2, and rests. ``before``: its replicas before the plan."""
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    metadata |= {"deletionTimestamp": NOON.isoformat()} if deleting else {}
    rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOON, started_at=NOON, rested=True)
    planned = PlannedPartition(TP, replicas_of(*before), replicas_of(3, 2), topic_id="T")
    moves = tuple(LogDirMove(TP, broker, "/a", "/b", "/a") for broker, _ in DIRS)
    plan = Plan((planned,), Certificate(1, optimal=True), log_dirs=moves)
    origins = {TP: origin}
    loaded = loaded_run_of(run, plan, "ref", origins)
    return recorded(rebalance, run=run, was_read=True, loaded_run=loaded, origins=origins)


def now(*replicas, topic_id="T", **moving):
    moving = {name: replicas_of(*ids) for name, ids in moving.items()}
    present = replicas_of(*replicas)
    return {TP: PartitionState(TP, topic_id, present, frozenset(present), BrokerId(2), **moving)}


def copying(*brokers):
    places = {(TP, broker): ReplicaPlace("/b", "/a" if broker in brokers else None) for broker, _ in DIRS}
    return LogDirReading(frozenset(b for b, _ in DIRS), places)


def answered_by(broker):
    """Nothing is copied there, and the other broker is down."""
    return LogDirReading(frozenset([broker]), {(TP, broker): ReplicaPlace("/b")})


class TestMovedByOthers:
    def test_what_is_in_flight(self):
        assert moved_by_others(resting(row()), now(1, 3, 2, adding=[1], removing=[3]), NOTHING) == {row(): None}

    @pytest.mark.parametrize("replicas", [(3, 2), (1, 2), (2, 1)])
    def test_not_what_the_run_may_have_left(self, replicas):
        assert moved_by_others(resting(row()), now(*replicas), NOTHING) == {}

    def test_a_larger_replication_factor_than_any_of_the_run(self):
        assert moved_by_others(resting(row()), now(1, 2, 3), NOTHING) == {row(): None}

    def test_not_the_one_before_its_plan(self):
        """Others had raised it before the run was planned again."""
        planned_again = resting(row(), before=(1, 2, 4))
        assert moved_by_others(planned_again, now(1, 2, 4), NOTHING) == {}
        assert moved_by_others(planned_again, now(1, 2, 4, 5), NOTHING) == {row(): None}

    def test_not_a_topic_that_is_gone_or_created_again(self):
        assert moved_by_others(resting(row()), {}, NOTHING) == {}
        assert moved_by_others(resting(row()), now(1, 2, 3, topic_id="other"), NOTHING) == {}

    def test_the_log_dir_of_a_replica_that_is_copied(self):
        found = moved_by_others(resting(row(DIRS)), now(3, 2), copying(2))
        assert found == {row(DIRS): row(DIRS[:1])}

    def test_all_log_dirs_of_an_earlier_version(self):
        assert moved_by_others(resting(row(None)), now(3, 2), copying(2)) == {row(None): row(())}

    def test_the_log_dir_of_a_broker_that_is_down(self):
        """It may come back with a copy of others in flight, or it is gone: then nothing is moved there anyway."""
        assert moved_by_others(resting(row(DIRS)), now(3, 2), answered_by(2)) == {row(DIRS): row(DIRS[1:])}
        assert moved_by_others(resting(row(None)), now(3, 2), answered_by(2)) == {row(None): row(())}

    def test_not_that_of_a_replica_that_stays_where_it_is(self):
        assert moved_by_others(resting(row(DIRS)), now(3, 2), copying()) == {}


class TestReplicasWithLogDirs:
    def test_those_on_record(self):
        assert replicas_with_log_dirs(resting(row(DIRS[:1]))) == {(TP, 1)}

    def test_those_of_the_plan_where_an_earlier_version_recorded_none(self):
        assert replicas_with_log_dirs(resting(row(None))) == {(TP, 1), (TP, 2)}


class TestNeededReadings:
    def test_those_of_all_runs(self):
        needed = needed_readings([resting(row(DIRS[:1])), resting(row(DIRS[1:]))], now(1, 2))
        assert needed.topics == {"t"}
        assert needed.replicas == {(TP, 1), (TP, 2)}
        assert needed.brokers == {1, 2}
        assert not needed.absent

    def test_origins_that_the_reading_lacks(self):
        """It lacks the topics that Kafka hides, without an error."""
        assert needed_readings([resting(row())], {}).absent == {TP}


class TestTakesPart:
    def test_not_before_its_rest_has_ended(self):
        rebalance = resting(row())
        assert not takes_part(rebalance, 0.0)
        recorded(rebalance, run=replace(rebalance.record.run, rested=False))
        assert takes_part(rebalance, 0.0)

    def test_it_is_observed_while_it_rests(self):
        rebalance = resting(row())
        rebalance.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "not permitted")
        assert takes_part(rebalance, 0.0)

    def test_not_if_it_is_deleted_before_it_is_known_whether_it_may_go_on(self):
        """Kafka cannot be reached for now: with permission, the deletion moves back what the run has moved."""
        rebalance = resting(row(), deleting=True)
        rebalance.refusal = Transient(Reason.KAFKA_UNREACHABLE, "no answer")
        assert not takes_part(rebalance, 0.0)
        assert rebalance.origins_back == {TP: row()}

    def test_it_ends_where_it_is_if_it_is_deleted_without_permission(self):
        rebalance = resting(row(), deleting=True)
        rebalance.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "not permitted")
        assert takes_part(rebalance, 0.0)
        assert not rebalance.origins_back
