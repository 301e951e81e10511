"""The course of a run from the status of its resource."""

from datetime import timedelta

import pytest
from tests.unit.cli.commands.resource_runs import ENDED, WAITING, plan, status
from tests.unit.cli.commands.status_runs import NOW

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.api.resource_status import (
    BatchRow,
    ByteProgress,
    KafkaRebalanceStatus,
    PartitionProgress,
    ProgressStatus,
    ReplicaProgress,
    ThrottleStatus,
)
from kafka_rebalance.reasons import Reason
from kafka_rebalance.report.run_contents import course_of, moved_back, next_command, run_facts

PROGRESS = ProgressStatus(
    percent=37,
    partitions=PartitionProgress(total=9, completed=3, in_flight=2, waiting=3, skipped=1),
    replica_moves=ReplicaProgress(total=9, completed=3),
    bytes=ByteProgress(total=510 << 20, moved=189 << 20),
    rate=25 << 20,
    estimated_completion=NOW + timedelta(minutes=1),
    started_at=NOW - timedelta(minutes=2),
    above_replication_factor=1,
)


def seen(*arguments, **more):
    return KafkaRebalanceStatus.model_validate(status(*arguments, **more))


class TestCourse:
    def test_running(self):
        """Phases, bytes and what is in flight."""
        row = BatchRow(topic="t", partition=1, current=(1,), step=(2, 1), target=(2,), adding=(2,), bytes_remaining=5)
        found = course_of(seen(progress=PROGRESS, current_batch=(row,), current_batch_size=2), None)
        assert found.phases == {"completed": 3, "in flight": 2, "waiting": 3, "skipped": 1}
        assert (found.bytes_moved, found.bytes_total, found.in_flight) == (189 << 20, 510 << 20, 2)
        assert [(str(copy.tp), copy.adding, copy.bytes_remaining) for copy in found.batch] == [("t-1", (2,), 5)]
        assert "Ready" in [condition.kind for condition in found.conditions]

    def test_not_begun(self):
        assert course_of(seen(), None) is None


class TestFacts:
    def test_running(self):
        """The rate and the estimated end, and by what the throttle is set."""
        throttle = ThrottleStatus(leader_rate=25 << 20, follower_rate=None, source="spec.throttle")
        facts = {fact.label: fact.text for fact in run_facts(seen(progress=PROGRESS, throttle=throttle))}
        assert facts["Copied"] == "189 MiB of 510 MiB, 37%"
        assert facts["Rate"] == "25.0 MiB/s"
        assert facts["Estimated end"] == "2026-01-01T12:01:00Z"
        assert facts["Throttle"] == "leader 25.0 MiB/s per broker, by spec.throttle"
        assert facts["Partitions above their replication factor"] == "1"

    def test_ended(self):
        """The report shows how long the run took, without a rate or a remaining duration."""
        made = plan(eta="0s", eta_source="Throttle")
        facts = {fact.label: fact.text for fact in run_facts(seen(ENDED, made, progress=PROGRESS, completed_at=NOW))}
        assert facts["Ended"] == "2026-01-01T12:00:00Z, after 2m"
        assert "Rate" not in facts
        assert "Duration at the current throttle" not in facts

    @pytest.mark.parametrize("reason", [Reason.UNDONE, Reason.ROLLED_BACK])
    def test_rolled_back(self, reason):
        """The bytes and the end in the status are those of the rollback, the start is that of the run."""
        back = seen((ReadySummary.DONE, reason), progress=PROGRESS, completed_at=NOW)
        facts = {fact.label: fact.text for fact in run_facts(back)}
        assert facts["Copied by the rollback"] == "189 MiB of 510 MiB, 37%"
        assert facts["Rolled back"] == "2026-01-01T12:00:00Z, 2m after the run started"
        assert facts["Started"] == "2026-01-01T11:58:00Z"
        assert not {"Copied", "Ended"} & set(facts)

    @pytest.mark.parametrize("reason", [Reason.UNDOING, Reason.ROLLING_BACK])
    def test_rolling_back(self, reason):
        facts = {fact.label for fact in run_facts(seen((ReadySummary.IN_PROGRESS, reason), progress=PROGRESS))}
        assert "Copied by the rollback" in facts
        assert "Copied" not in facts


class TestNext:
    def test_by_state(self):
        """The command to paste."""
        assert next_command("r", "-n kafka", seen(WAITING)) == "kafka-rebalance approve r -n kafka"
        assert next_command("r", "-n kafka", seen(ENDED)) == "kafka-rebalance undo r -n kafka"
        assert next_command("r", "-n kafka", seen()) == ""
        assert next_command("r", "-n kafka", KafkaRebalanceStatus()) == ""


class TestMovedBack:
    @pytest.mark.parametrize("reason", [Reason.UNDOING, Reason.ROLLING_BACK])
    def test_in_progress(self, reason):
        """The figures of the plan are no target any more."""
        assert moved_back(seen((ReadySummary.IN_PROGRESS, reason))).startswith("Moves of the run are being taken back")

    @pytest.mark.parametrize("reason", [Reason.UNDONE, Reason.ROLLED_BACK])
    def test_done(self, reason):
        """The plan has no effect any more."""
        found = moved_back(seen((ReadySummary.DONE, reason)))
        assert found == "The moves of the run were taken back: the brokers have what is shown as before."

    def test_forward(self):
        assert (moved_back(seen()), moved_back(seen(ENDED)), moved_back(KafkaRebalanceStatus())) == ("", "", "")

    def test_a_revert(self):
        """It cancels what is in flight; completed moves stay."""
        assert moved_back(seen((ReadySummary.IN_PROGRESS, Reason.REVERTING))) == ""
