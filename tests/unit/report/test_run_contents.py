"""The course of a run from the status of its resource."""

from datetime import timedelta

from tests.unit.cli.commands.resource_runs import ENDED, WAITING, plan, status
from tests.unit.cli.commands.status_runs import NOW

from kafka_rebalance.api.resource_status import (
    BatchRow,
    ByteProgress,
    KafkaRebalanceStatus,
    PartitionProgress,
    ProgressStatus,
    ReplicaProgress,
    ThrottleStatus,
)
from kafka_rebalance.report.run_contents import course_of, next_command, run_facts

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


class TestNext:
    def test_by_state(self):
        """The command to paste."""
        assert next_command("r", "kafka", seen(WAITING)) == "kafka-rebalance approve r -n kafka"
        assert next_command("r", "kafka", seen(ENDED)) == "kafka-rebalance undo r -n kafka"
        assert next_command("r", "kafka", seen()) == ""
        assert next_command("r", "kafka", KafkaRebalanceStatus()) == ""
