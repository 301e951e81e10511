"""What is reported of a rebalance that makes no progress, or never can."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fakes.found_by_rounds import found, recorded, remembered

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Rates
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.progress_tracking import advance_of
from kafka_rebalance.reconcile.state.assessment import StepBlock
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
TP = TopicPartition("orders", 0)
BROKERS = {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3)}
FLYING = PartitionStatus(MovePhase.IN_FLIGHT, started=True)
WAITING = PartitionStatus(MovePhase.WAITING, "NoLeader", "no leader")
READY = PartitionStatus(MovePhase.READY, call=Alter(replicas_of(1, 2, 3), until_in_sync=replicas_of(3)))


def rebalance(rate=1000, status=FLYING, **execution):
    metadata = {"name": "r", "namespace": "kafka", "uid": "u"}
    mine = Rebalance.of(
        {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, "execution": execution}}
    )
    plan = Plan(
        (PlannedPartition(TP, replicas_of(1, 2), replicas_of(3, 2), size_bytes=10_000),), Certificate(1, optimal=True)
    )
    run = Run("u", "kafka", "r", "c", "run", mine.desired.planning_hash, plan.hash, NOON)
    recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))
    return found(mine, statuses={TP: status}, rates=ClusterRates(Rates(rate, rate)))


def cluster(*, adding=True):
    ids = (1, 2, 3) if adding else (1, 2)
    state = PartitionState(
        TP, "", replicas_of(*ids), frozenset(replicas_of(1, 2)), BrokerId(1), replicas_of(3) if adding else ()
    )
    return ClusterState("c", BROKERS, {TP: state})


def advanced(mine, *, on_disk=0, produced=None, now=0.0, adding=True):
    rates = {} if produced is None else {TP: produced}
    advance = advance_of(mine, cluster(adding=adding), {(TP, BrokerId(3)): on_disk}, rates, now)
    found(mine, advance=advance)
    return advance


class TestStalled:
    def test_what_advances_is_not_stalled(self):
        """One more byte is enough."""
        mine = rebalance(stallTimeout="10s")
        for second in range(0, 60, 5):
            assert not advanced(mine, on_disk=second, now=float(second)).stalled

    def test_what_does_not_is_said_with_what_it_waits_for_and_clears_by_itself(self):
        """Not a second before the timeout, and only while the stall lasts."""
        mine = found(rebalance(stallTimeout="10s"), since={TP: NOON})
        advanced(mine, on_disk=5)
        assert not advanced(mine, on_disk=5, now=9.9).stalled
        assert "orders-0" in advanced(mine, on_disk=5, now=10.0).stalled
        assert not advanced(mine, on_disk=6, now=11.0).stalled

    def test_standing_still_on_purpose_is_no_stall(self):
        """Suspended at rest: the clock restarts when it resumes."""
        mine = rebalance(stallTimeout="10s", status=PartitionStatus(MovePhase.WAITING, "Paused"))
        found(mine, step_block=StepBlock(Reason.SUSPENDED, ""))
        advanced(mine)
        assert not advanced(mine, now=100.0).stalled


class TestUnanswered:
    """Metadata allows every step, but Kafka carries out none of them."""

    @pytest.mark.parametrize(
        ("status", "asked"),
        [
            (PartitionStatus(MovePhase.READY, call=Elect(BrokerId(2))), "the election of broker 2 for orders-0"),
            (READY, "what is next for orders-0"),
        ],
    )
    def test_what_was_asked_is_named(self, status, asked):
        """With one partition and the total number."""
        mine = rebalance(status=status, stallTimeout="30s")
        advanced(mine, adding=False)
        assert f"{asked}, one of 1" in advanced(mine, adding=False, now=31.0).stalled


class TestThrottle:
    """The operator itself starts no copy while its throttle is not in place, so Kafka is not asked."""

    LOWER = "broker 3 already has a replication throttle of 5 B/s"

    def with_trouble(self, mine, kind="refused"):
        return found(mine, throttle=replace(mine.assessment.throttle, **{kind: self.LOWER}))

    @pytest.mark.parametrize("kind", ["refused", "not_allowed", "trouble"])
    def test_its_trouble_is_the_cause(self, kind):
        """A rollback of which nothing is in flight, for instance."""
        mine = self.with_trouble(rebalance(status=READY, stallTimeout="30s"), kind)
        advanced(mine, adding=False)
        assert advanced(mine, adding=False, now=31.0).stalled == f"nothing has advanced for more than 30s: {self.LOWER}"

    def test_beside_what_is_in_flight(self):
        """Both may be the cause."""
        mine = self.with_trouble(found(rebalance(stallTimeout="30s"), since={TP: NOON}))
        advanced(mine)
        assert advanced(mine, now=31.0).stalled.endswith(f": orders-0; {self.LOWER}")

    def test_not_that_of_another_cause(self):
        """Partitions that wait are named first."""
        mine = self.with_trouble(rebalance(status=WAITING, stallTimeout="30s"))
        advanced(mine, adding=False)
        said = advanced(mine, adding=False, now=31.0).stalled
        assert said.endswith(f"NoLeader (1, e.g. orders-0: no leader); {self.LOWER}")


class TestTooSlow:
    @pytest.mark.parametrize("status", [FLYING, READY])
    def test_a_throttle_below_what_is_produced_can_never_end(self, status):
        """Reported before and during the copy, with the broker and the minimum rate."""
        too_slow = advanced(rebalance(1000, status), produced=1000.0, adding=status is FLYING).too_slow
        assert "orders-0" in too_slow
        assert "needs at least" in too_slow

    def test_one_above_it_is_no_cause_for_alarm(self):
        """It takes long, but completes."""
        assert advanced(rebalance(1001), produced=1000.0).too_slow == ""

    def test_raising_it_clears_it(self):
        """In the next round."""
        mine = rebalance(1000)
        assert advanced(mine, produced=1000.0).too_slow
        found(mine, rates=ClusterRates(Rates(5000, 5000)))
        assert advanced(mine, produced=1000.0).too_slow == ""

    def test_the_rate_of_the_broker_in_question_counts(self):
        """A resource may give one broker a lower rate: that broker is the bottleneck and determines the time left."""
        mine = found(rebalance(), rates=ClusterRates(Rates(5000, 5000), {BrokerId(3): Rates(5000, 1000)}))
        assert "of broker 3 can never be enough" in advanced(mine, produced=1000.0).too_slow
        assert advanced(mine, on_disk=1, now=10.0).eta[0] == pytest.approx(10, abs=0.1)

    def test_the_load_model_tells_it_beforehand(self):
        """Before anything has been measured; measured rates take precedence."""
        mine = remembered(rebalance(1000, READY), expected_rates={TP: 2000.0})
        assert advanced(mine, adding=False).too_slow
        assert advanced(mine, adding=False, produced=10.0).too_slow == ""

    def test_without_a_throttle_or_a_rate_nothing_is_said(self):
        """Unlimited, or the produce rate is unknown."""
        unlimited = found(rebalance(), rates=ClusterRates())
        assert advanced(unlimited, produced=1e9).too_slow == advanced(rebalance()).too_slow == ""
