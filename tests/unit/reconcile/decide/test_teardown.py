"""How a deletion ends: the successor that takes over, and the barriers to a complete rollback."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.found_by_rounds import found, recorded, remembered

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.teardown import successors_of, teardown_of
from kafka_rebalance.reconcile.observe.selected_partitions import SelectedPartitions
from kafka_rebalance.reconcile.state.assessment import RollbackBarrier, Successor
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def tp(number, topic="orders"):
    return TopicPartition(topic, number)


def resource(name, *, deleting=False, metadata=None, **spec):
    given = {"creationTimestamp": NOON.isoformat(), **(metadata or {})}
    metadata = {"name": name, "namespace": "kafka", "uid": f"uid-{name}", "finalizers": [FINALIZER], **given}
    if deleting:
        metadata["deletionTimestamp"] = NOON.isoformat()
    mine = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}})
    return recorded(mine, was_read=True)


def dying(*numbers, **spec):
    mine = resource("old", deleting=True, **spec)
    rows = tuple(PlannedPartition(tp(n), replicas_of(1, 2), replicas_of(3, 4), size_bytes=100) for n in numbers)
    plan = Plan(rows, Certificate(len(rows), optimal=True))
    run = Run(mine.uid, "kafka", "old", "c", "run-1", mine.desired.planning_hash, plan.hash, NOON)
    return recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))


def cluster(*replicas, adding=()):
    held = replicas_of(*replicas)
    state = PartitionState(tp(0), "", held, frozenset(held) - set(adding), held[0], replicas_of(*adding))
    return ClusterState("c", {}, {tp(0): state})


EVERYTHING = {
    key: PartitionState(key, "", replicas_of(1, 2), frozenset(replicas_of(1, 2)), BrokerId(1))
    for key in (tp(0), tp(1), tp(0, "other"))
}


def barrier_of(old, seen, now=NOON):
    return teardown_of(old, seen, now).barrier


def successor_of(old, *others):
    """As a round finds it: the successor is set on the rebalance that it replaces."""
    everybody = [old, *others]
    successor = successors_of(everybody, SelectedPartitions().of(everybody, EVERYTHING)).get(old.uid)
    found(old, successor=successor)
    return successor


class TestSuccessors:
    def test_a_new_resource_that_wants_all_its_partitions_takes_over(self):
        """Renamed in Git: its partitions are not moved back only to be moved again."""
        old, new = dying(0, 1), resource("new", topics={"include": ["orders"]})
        assert successor_of(old, new) == Successor(new.uid, "kafka/new")
        assert barrier_of(old, cluster(3, 4)) is RollbackBarrier.SUCCESSOR

    def test_one_that_lacks_a_partition_does_not(self):
        """Partitions that it does not cover would stay where no spec wants them."""
        old, new = dying(0, 1), resource("new", topics={"include": ["other"]})
        assert successor_of(old, new) is None

    def test_partitions_that_were_left_alone_need_no_successor(self):
        """They are not moved back either."""
        old, new = dying(0, 7), resource("new", topics={"include": ["orders"]})
        found(old, statuses={tp(7): PartitionStatus(MovePhase.SKIPPED, "TopicDeleted")})
        assert successor_of(old, new).uid == new.uid

    @pytest.mark.parametrize(
        "change",
        [
            {"problem": Refused("UnknownBroker", "7")},
            {"metadata": {"namespace": "other"}},
            {"metadata": {"creationTimestamp": (NOON - timedelta(hours=1)).isoformat()}},
        ],
    )
    def test_one_that_cannot_be_the_same_under_a_new_name_does_not(self, change):
        """Refused by planning, in another namespace, or created long before: the rollback was requested."""
        old, new = dying(0), resource("new", metadata=change.get("metadata"))
        remembered(new, problem=change.get("problem"))
        assert successor_of(old, new) is None

    def test_one_with_a_past_of_its_own_or_on_its_way_out_does_not(self):
        """Its own origins would be mixed with the inherited ones."""
        old, used, leaving = dying(0), resource("used"), resource("leaving", deleting=True)
        recorded(used, run=old.record.run)
        assert successor_of(old, used, leaving) is None

    def test_a_successor_that_goes_away_is_none(self):
        """The rollback continues."""
        old = dying(0)
        assert successor_of(old, resource("new"))
        assert successor_of(old) is None
        assert barrier_of(old, cluster(3, 4)) is None


class TestBarriers:
    def test_without_one_everything_goes_back(self):
        """The bytes to copy are known before it begins."""
        old = dying(0)
        teardown = teardown_of(old, cluster(3, 4), NOON)
        assert (teardown.barrier, teardown.bytes_to_move_back) == (None, 200)

    @pytest.mark.parametrize(
        ("replicas", "adding", "back"),
        [((1, 2), (), 0), ((3, 2), (), 100), ((1, 2, 3), (3,), 0), ((3, 4, 1), (1,), 200)],
    )
    def test_only_originals_without_a_copy_count(self, replicas, adding, back):
        """A copy in flight is cancelled first, so it does not count as present."""
        old = dying(0)
        assert teardown_of(old, cluster(*replicas, adding=adding), NOON).bytes_to_move_back == back

    def test_more_than_max_data_waits_for_a_word(self):
        """Up to the limit, it moves back."""
        assert barrier_of(dying(0, rollback={"maxData": 199}), cluster(3, 4), NOON) is RollbackBarrier.TOO_LARGE
        assert barrier_of(dying(0, rollback={"maxData": 200}), cluster(3, 4), NOON) is None

    def test_the_timeout_counts_from_the_deletion(self):
        """After the timeout, copies in flight are cancelled and the rest is named."""
        old = dying(0, rollback={"timeout": "1h"})
        assert barrier_of(old, cluster(3, 4), NOON + timedelta(hours=1)) is None
        assert barrier_of(old, cluster(3, 4), NOON + timedelta(hours=1, seconds=1)) is RollbackBarrier.TIMED_OUT

    def test_a_namespace_that_goes_takes_it_along(self):
        """A finalizer never blocks the deletion of a namespace."""
        old = dying(0)
        remembered(old, terminating=True)
        assert barrier_of(old, cluster(3, 4), NOON) is RollbackBarrier.TERMINATING

    @pytest.mark.parametrize("policy", ["Revert", "Abandon"])
    def test_a_policy_that_moves_nothing_back_needs_none(self, policy):
        """Also if it was changed while a barrier applied."""
        old = dying(0, deletionPolicy=policy, rollback={"maxData": 1})
        assert barrier_of(old, cluster(3, 4), NOON) is None
