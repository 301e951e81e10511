"""A throttle resource's status, row by row; its state never hides a problem that requires action."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.throttle_resource import MAX_BROKER_ROWS, KafkaReassignmentThrottleStatus
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle, parse_throttle
from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.throttle_report import (
    BrokerThrottleRow,
    SideRow,
    ThrottleView,
    build_throttle_status,
)

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
MI = 2**20
MINE = "KafkaReassignmentThrottle kafka/limits"
RATES = {"leaderRate": "50Mi", "followerRate": "20Mi"}


def throttle(name: str = "limits", *, deleted: bool = False, **spec: Any) -> KafkaReassignmentThrottle:
    metadata = {"name": name, "namespace": "kafka", "uid": name, "generation": 2}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    return parse_throttle({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}})


def row(broker: int, leader: SideRow | None = None, follower: SideRow | None = None) -> BrokerThrottleRow:
    return BrokerThrottleRow(BrokerId(broker), leader, follower)


BUSY = ThrottleView((row(1, SideRow(50 * MI, MINE, 25 * MI)),), replicas=3)


def status_of(
    mine: KafkaReassignmentThrottle,
    view: ThrottleView = BUSY,
    *,
    ruling: KafkaReassignmentThrottle | None = None,
    problem: RebalanceError | None = None,
) -> KafkaReassignmentThrottleStatus:
    return build_throttle_status(mine, ruling or mine, view, cluster_id="c", now=NOW, problem=problem)


def said(status: KafkaReassignmentThrottleStatus) -> tuple[str, str, str]:
    """The STATE column, its message, and which of Ready, Reconciling and Stalled is True."""
    kinds = (ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED)
    found = [find_condition(status.conditions, kind) for kind in kinds]
    (true,) = [c.type for c in found if c is not None and c.status == "True"]
    assert found[0] is not None
    assert {c.observed_generation for c in found if c is not None} == {status.observed_generation}
    return found[0].reason, found[0].message, true


class TestState:
    """One word in STATE; exactly one of Ready, Reconciling and Stalled is True."""

    def test_applied(self) -> None:
        """With the number of throttled replicas, foreign reassignments, and rates lowered by hand."""
        view = ThrottleView(BUSY.rows, replicas=3, foreign=1, brakes="broker 4: leader rate 1.0 MiB/s was set by hand")
        reason, message, true = said(status_of(throttle(**RATES), view))
        assert (reason, true) == ("Applied", "Ready")
        assert message == (
            "holds for all reassignments of the cluster: 3 moving replicas on 1 broker, 1 reassignment of other tools "
            "among them; broker 4: leader rate 1.0 MiB/s was set by hand"
        )

    def test_nothing_moves(self) -> None:
        """Not a failure: it applies to the next reassignment."""
        reason, _, true = said(status_of(throttle(**RATES), ThrottleView()))
        assert (reason, true) == ("NothingToThrottle", "Ready")

    def test_a_resource_without_rates_is_no_claim(self) -> None:
        """Any limits on brokers then come from elsewhere."""
        view = ThrottleView(BUSY.rows, refused="x", contested="y", trouble="z")
        assert said(status_of(throttle(limits={"parallelPartitionCount": 1}), view)) == (
            "Applied",
            "sets no rate; its limits hold for all rebalances of the cluster",
            "Ready",
        )

    def test_the_older_one_rules(self) -> None:
        """The other one shows neither rows nor counts, because it does not cause them."""
        status = status_of(throttle(**RATES), ruling=throttle("older"))
        assert said(status) == ("Conflicted", "kafka/older is older: its rates hold instead", "Stalled")
        assert (status.brokers, status.brokers_total, status.throttled_replicas) == ((), 0, 0)

    def test_a_rate_that_is_probably_meant_in_another_unit(self) -> None:
        """A warning of its own, which holds nothing back and goes with its cause."""
        low = status_of(throttle(leaderRate=50))
        warning = find_condition(low.conditions, ConditionType.SPEC_WARNING)
        assert warning is not None
        assert (warning.status, warning.reason) == ("True", Reason.VERY_LOW_RATE)
        assert warning.message.startswith("spec.leaderRate: 50 B/s is very low")
        mended = status_of(throttle(**RATES).model_copy(update={"status": low}))
        assert find_condition(mended.conditions, ConditionType.SPEC_WARNING) is None
        assert said(low)[0] == said(mended)[0]

    def test_not_held_yet(self) -> None:
        """Nothing that a deletion could leave behind is claimed before the finalizer is confirmed."""
        mine = throttle(**RATES)
        status = build_throttle_status(mine, None, ThrottleView(), cluster_id="c", now=NOW)
        assert said(status)[::2] == ("Pending", "Reconciling")

    def test_a_newer_spec_that_cannot_be_read(self) -> None:
        """The effective rates are still shown; a deletion takes precedence."""
        unread = {"unread": "spec.leaderRate: must be a quantity"}
        status = status_of(throttle(**RATES).model_copy(update=unread))
        reason, message, true = said(status)
        assert (reason, true) == ("InvalidSpec", "Stalled")
        assert message == "spec.leaderRate: must be a quantity; the last valid spec still holds"
        assert status.brokers_total == 1
        assert said(status_of(throttle(deleted=True).model_copy(update=unread)))[0] == "Restoring"

    def test_the_freeze_is_said_in_any_state_that_counts(self) -> None:
        """It also applies for a conflicting resource, but not for one that is being deleted."""
        ends = "; freeze: no rebalance starts a new step"
        assert said(status_of(throttle(freeze=True)))[1].endswith(ends)
        assert said(status_of(throttle(freeze=True), ruling=throttle("older")))[1].endswith(ends)
        assert not said(status_of(throttle(freeze=True, deleted=True)))[1].endswith(ends)

    def test_a_replication_throttle_that_is_lower(self) -> None:
        """The brokers, both values, what applies meanwhile, and what to do."""
        reason, message, true = said(status_of(throttle(**RATES), ThrottleView(refused="broker 4: 50 above 30")))
        assert (reason, true) == ("ReplicationThrottleLower", "Stalled")
        assert message.startswith("broker 4: 50 above 30; no new copy starts there, and the previous rate stays")
        assert all(
            word in message for word in ("raise", "doctor --clear-throttles", "whenReplicationThrottled: Lowest")
        )

    def test_brokers_that_do_not_allow_a_rate(self) -> None:
        """A state of its own, with the answer and the way out."""
        reason, message, true = said(status_of(throttle(**RATES), ThrottleView(not_allowed="broker 4 does not")))
        assert (reason, true) == ("ThrottleNotAllowed", "Stalled")
        assert message.startswith("broker 4 does not; no copy starts without its throttle: allow ALTER_CONFIGS")
        assert "{unlimited: true}" in message

    def test_reassignments_that_the_lists_have_no_room_for(self) -> None:
        """What is not throttled, the limit, and what will happen."""
        view = ThrottleView(BUSY.rows, unlisted="partitions that other tools move: 7 at full speed, of topic t")
        reason, message, true = said(status_of(throttle(**RATES), view))
        assert (reason, true) == ("ThrottleListFull", "Reconciling")
        assert message.startswith("partitions that other tools move: 7 at full speed, of topic t; the lists")
        assert "30000 bytes" in message

    def test_what_a_person_must_act_on_comes_first(self) -> None:
        """A refusal, then a contest, then retries; none hides the others."""
        mine = throttle(**RATES)
        everything = ThrottleView(refused="refused", contested="contested", trouble="trouble", brakes="brakes")
        assert said(status_of(mine, everything))[::2] == ("ReplicationThrottleLower", "Stalled")
        assert said(status_of(mine, everything))[1].endswith("; contested; brakes; trouble")
        contested = ThrottleView(contested="contested", trouble="trouble")
        assert said(status_of(mine, contested)) == ("Contested", "contested; trouble", "Stalled")
        trouble = ThrottleView(trouble="trouble", brakes="brakes")
        assert said(status_of(mine, trouble)) == ("Pending", "trouble; brakes", "Reconciling")

    @pytest.mark.parametrize(
        ("problem", "expected"),
        [
            (Permanent("ThrottleLedgerDamaged", "unreadable"), ("ThrottleLedgerDamaged", "unreadable", "Stalled")),
            (Transient("KafkaUnreachable", "gone"), ("KafkaUnreachable", "gone; trying again", "Stalled")),
        ],
    )
    def test_a_round_that_failed(self, problem: RebalanceError, expected: tuple[str, str, str]) -> None:
        """The state is its reason; rates stay in Kafka, so the rows stay too."""
        before = status_of(throttle(**RATES))
        mine = throttle(**RATES).model_copy(update={"status": before})
        status = status_of(mine, ThrottleView(), problem=problem)
        assert said(status) == expected
        assert status.brokers == before.brokers != ()

    @pytest.mark.parametrize("problem", [None, Transient("KafkaUnreachable", "broker 4 does not answer")])
    def test_a_deletion(self, problem: RebalanceError | None) -> None:
        """The message says what it waits for."""
        view = ThrottleView(trouble="broker 4 does not answer")
        reason, message, true = said(status_of(throttle(deleted=True, **RATES), view, problem=problem))
        assert (reason, true) == ("Restoring", "Reconciling")
        assert message == "restoring the configs that it changed in Kafka; broker 4 does not answer"


class TestRows:
    """One row per broker: the rates in force, the binding claim, the measured rate."""

    def test_both_sides(self) -> None:
        view = ThrottleView((row(4, SideRow(50 * MI, MINE, 45 * MI), SideRow(20 * MI, "KafkaRebalance a/b")),))
        (found,) = status_of(throttle(**RATES), view).brokers
        assert found.model_dump(by_alias=True) == {
            "id": 4,
            "leaderRate": 50 * MI,
            "leaderClaim": MINE,
            "leaderBytesPerSecond": 45 * MI,
            "leaderUtilisationPercent": 90,
            "followerRate": 20 * MI,
            "followerClaim": "KafkaRebalance a/b",
            "followerBytesPerSecond": None,
            "followerUtilisationPercent": None,
        }

    @pytest.mark.parametrize(
        ("side", "percent"),
        [
            (None, None),
            (SideRow(100, MINE), None),
            (SideRow(0, MINE, 5), None),
            (SideRow(100, MINE, 0), 0),
            (SideRow(100, MINE, 130), 130),
        ],
    )
    def test_utilisation(self, side: SideRow | None, percent: int | None) -> None:
        """Absent if unknown; above 100 after a burst."""
        (found,) = status_of(throttle(**RATES), ThrottleView((row(1, side),))).brokers
        assert found.leader_utilisation_percent == percent

    def test_bounded_and_sorted(self) -> None:
        """The first fifty by id, and the total; even with the longest names below 64 KiB."""
        longest = f"KafkaReassignmentThrottle {'n' * 63}/{'r' * 253}"
        side = SideRow(2**50, longest, 2**49)
        view = ThrottleView(tuple(row(2**31 - n, side, side) for n in range(1, 201)), contested="x" * 9999)
        status = status_of(throttle(**RATES), view)
        assert [r.id for r in status.brokers] == list(range(2**31 - 200, 2**31 - 200 + MAX_BROKER_ROWS))
        assert status.brokers_total == 200
        assert len(json.dumps(status.as_patch())) < 64 * 1024


class TestColumns:
    """LEADER and FOLLOWER: the rate in force, else the requested one."""

    @pytest.mark.parametrize(
        ("spec", "view", "leader", "follower"),
        [
            (RATES, ThrottleView(), "50.0 MiB/s", "20.0 MiB/s"),
            ({"leaderRate": "50Mi"}, ThrottleView(), "50.0 MiB/s", "-"),
            ({}, ThrottleView(), "-", "-"),
            (
                {**RATES, "brokers": [{"id": 4, "leaderRate": "5Mi"}, {"id": 5, "followerRate": -1}]},
                ThrottleView(),
                "5.0 MiB-50.0 MiB/s",
                "20.0 MiB/s",
            ),
            (RATES, ThrottleView((row(1, SideRow(70 * MI, MINE)),)), "70.0 MiB/s", "20.0 MiB/s"),
            (
                RATES,
                ThrottleView((row(1, SideRow(MI, MINE)), row(2, SideRow(2 * MI, MINE), SideRow(7, MINE)))),
                "1.0 MiB-2.0 MiB/s",
                "7 B/s",
            ),
        ],
    )
    def test_display(self, spec: dict[str, Any], view: ThrottleView, leader: str, follower: str) -> None:
        display = status_of(throttle(**spec), view).display
        assert display is not None
        assert (display.leader, display.follower) == (leader, follower)

    def test_counts(self) -> None:
        """BROKERS, FOREIGN and the other counts."""
        view = ThrottleView(BUSY.rows, replicas=7, foreign=2, reverts=3)
        status = status_of(throttle(**RATES), view)
        counts = (status.brokers_total, status.throttled_replicas, status.foreign_reassignments, status.reverts)
        assert counts == (1, 7, 2, 3)
        assert (status.cluster_id, status.observed_generation) == ("c", 2)
