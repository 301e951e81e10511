"""Why a rebalance starts no new step: each check by itself, and which one is shown if several apply."""

from datetime import UTC, datetime

import pytest
from tests.fakes.found_by_rounds import found, recorded

from kafka_rebalance.api.v1alpha1 import parse_throttle
from kafka_rebalance.execution.health_gate import Change, Vitals
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.step_blocks import BlockInputs, step_block_for
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
KAFKA = {"bootstrapServers": "kafka:9092"}
TP, FOREIGN = TopicPartition("t", 0), TopicPartition("foreign", 0)
NIGHT = {"cron": "0 1 * * *", "duration": "5h"}


def rebalance(*, deleting=False, undo=False, place=None, execution=None, **spec):
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    if deleting:
        metadata["deletionTimestamp"] = NOON.isoformat()
    mine = Rebalance.of({"metadata": metadata, "spec": {"kafka": KAFKA, "execution": execution or {}, **spec}})
    plan = Plan((PlannedPartition(TP, replicas_of(1, 2), replicas_of(3, 2)),), Certificate(1, optimal=True))
    run = Run("u-1", "kafka", "r", "c", "run-1", mine.desired.planning_hash, plan.hash, NOON, undo=undo)
    recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))
    return found(mine, place=place or Place(runs=True))


def vitals(*isr, replicas=(1, 2, 3), change=None, min_insync=1):
    state = PartitionState(
        FOREIGN, "", replicas_of(*replicas), frozenset(replicas_of(*isr)), BrokerId(isr[0]) if isr else None
    )
    live = frozenset(replicas_of(1, 2, 3, 4))
    return Vitals({FOREIGN: state}, {"foreign": min_insync}, change, live)


HEALTHY = vitals(1, 2, 3)


def frozen(**spec):
    metadata = {"name": "stop", "namespace": "kafka", "uid": "k-1"}
    return {"k-1": parse_throttle({"metadata": metadata, "spec": {"kafka": KAFKA, "freeze": True, **spec}})}


def why(mine, *, seen=HEALTHY, throttles=None, now=NOON):
    block = step_block_for(mine, BlockInputs(now, seen, {TP}, throttles or {}))
    return block and (block.reason, block.message, block.gives_up_place)


class TestEachCheck:
    def test_nothing_holds_back(self):
        """Healthy, no windows, its turn: new steps start."""
        assert why(rebalance()) is None

    def test_a_freeze_names_the_resource_that_says_so(self):
        """From any throttle resource of the cluster; the rebalance keeps its place, as it did not set the freeze."""
        reason, message, gives_up_place = why(rebalance(), throttles=frozen())
        assert (reason, gives_up_place) == (Reason.FROZEN, False)
        assert "kafka/stop" in message

    def test_suspended(self):
        """At rest it lets others pass."""
        reason, _, gives_up_place = why(rebalance(execution={"suspend": True}))
        assert (reason, gives_up_place) == (Reason.SUSPENDED, True)

    def test_queued_and_yielding(self):
        """Behind another rebalance, or about to let one pass."""
        assert why(rebalance(place=Place(runs=False, behind="kafka/a", position=2)))[0] is Reason.QUEUED
        reason, message, _ = why(rebalance(place=Place(runs=False, behind="kafka/a", position=1, yields=True)))
        assert reason is Reason.YIELDING
        assert "kafka/a" in message

    def test_approval_names_the_hash_and_takes_only_that(self):
        """The approval of another plan does not count."""
        manual = {"policy": "Manual"}
        mine = rebalance(approval=manual)
        reason, message, gives_up_place = why(mine)
        assert (reason, gives_up_place) == (Reason.AWAITING_APPROVAL, True)
        assert mine.record.loaded_run.plan.hash in message
        assert why(rebalance(approval={**manual, "planHash": "sha256:" + "0" * 64}))[0] is Reason.AWAITING_APPROVAL
        assert why(rebalance(approval={**manual, "planHash": mine.record.loaded_run.plan.hash})) is None

    def test_a_window_that_is_shut_says_when_it_opens(self):
        """At noon; the window opens at 01:00 in Berlin, which is midnight UTC."""
        reason, message, gives_up_place = why(
            rebalance(execution={"windows": [{**NIGHT, "timeZone": "Europe/Berlin"}]})
        )
        assert (reason, gives_up_place) == (Reason.OUTSIDE_WINDOW, True)
        assert "2026-03-05T00:00:00Z" in message
        assert why(rebalance(execution={"windows": [NIGHT]}), now=NOON.replace(hour=3)) is None

    @pytest.mark.parametrize(
        "window", [{"cron": "99 1 * * *", "duration": "5h"}, {**NIGHT, "timeZone": "Europe/Berln"}]
    )
    def test_a_window_that_cannot_be_read_is_shut(self, window):
        """The message names the field; the resource is still reconciled."""
        reason, message, gives_up_place = why(rebalance(execution={"windows": [window]}))
        assert (reason, gives_up_place) == (Reason.INVALID_SPEC, True)
        assert "spec.execution.windows" in message

    def test_an_unhealthy_cluster_names_the_check_and_the_partition(self):
        """Under-replicated partitions that nothing of ours moves, up to maxUnhealthy."""
        reason, message, gives_up_place = why(rebalance(), seen=vitals(1, 2))
        assert (reason, gives_up_place) == (Reason.CLUSTER_UNHEALTHY, False)
        assert "foreign-0" in message
        assert why(rebalance(execution={"maxUnhealthy": 1}), seen=vitals(1, 2)) is None

    def test_brokers_that_are_decommissioned_may_be_away(self):
        """A dead broker must not block its own decommission."""
        assert why(rebalance(brokers={"decommission": [3]}), seen=vitals(1, 2)) is None

    def test_a_change_of_membership_settles(self):
        """For the time that the spec sets."""
        change = Change(30.0, frozenset(), frozenset({BrokerId(4)}))
        assert why(rebalance(), seen=vitals(1, 2, 3, change=change))[0] is Reason.CLUSTER_UNHEALTHY
        assert why(rebalance(execution={"brokerSettleTime": "20s"}), seen=vitals(1, 2, 3, change=change)) is None


class TestGoingBack:
    @pytest.mark.parametrize("back", [{"deleting": True}, {"undo": True}])
    def test_no_approval_and_no_foreign_partition_holds_up_a_way_back(self, back):
        """Foreign partitions, or the broker whose death is the reason for going back, must not block the finalizer."""
        left = Change(1.0, left=frozenset(replicas_of(1, 2, 3, 4)))
        for sick in (vitals(1, 2), vitals(min_insync=2, change=left)):
            assert why(rebalance(approval={"policy": "Manual"}, **back), seen=sick) is None

    @pytest.mark.parametrize("back", [{"deleting": True}, {"undo": True}])
    def test_a_freeze_a_suspend_and_a_window_do(self, back):
        """They also block new steps of a rollback (design, rest points)."""
        assert why(rebalance(**back), throttles=frozen())[0] is Reason.FROZEN
        assert why(rebalance(execution={"suspend": True}, **back))[0] is Reason.SUSPENDED
        assert why(rebalance(execution={"windows": [NIGHT]}, **back))[0] is Reason.OUTSIDE_WINDOW


class TestWhichIsShown:
    def test_what_holds_all_comes_before_what_holds_one(self):
        """A user who resumes a rebalance of a frozen cluster must see the freeze."""
        mine = rebalance(execution={"suspend": True, "windows": [NIGHT]})
        assert why(mine, throttles=frozen(), seen=vitals(1))[0] is Reason.FROZEN
        assert why(mine, seen=vitals(1))[0] is Reason.SUSPENDED
