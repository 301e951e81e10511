"""What the status and the metrics say of the samples of a KafkaConnection. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.reasons import Reason
from kafka_rebalance.telemetry.metric_families import Sample, samples


@dataclass(frozen=True, slots=True)
class StoredSample:
    """A sample in the lake. ``missing``: what it lacks and why, or empty."""

    taken_at: datetime
    rows: int
    missing: str = ""


@dataclass(frozen=True, slots=True)
class SamplingState:
    """The samples of a cluster since sampling began. ``problem``: why the last one was not stored."""

    stored: int = 0
    failed: int = 0
    last: StoredSample | None = None
    problem: RebalanceError | None = None

    def with_stored(self, sample: StoredSample) -> "SamplingState":
        """After a sample that was stored."""
        return replace(self, stored=self.stored + 1, last=sample, problem=None)

    def with_failure(self, problem: RebalanceError) -> "SamplingState":
        """After a sample that was not."""
        return replace(self, failed=self.failed + 1, problem=problem)

    def finding(self, interval: str) -> tuple[bool, str, str] | None:
        """Status, reason and message of the condition; None before the first sample."""
        if self.problem is not None:
            again = "; trying again" if isinstance(self.problem, Transient) else ""
            return False, self.problem.reason, self.problem.message + again
        if self.last is None:
            return None
        missing = f"; {self.last.missing}" if self.last.missing else ""
        return True, Reason.SAMPLED, f"one sample each {interval} is stored{missing}"


def sampling_samples(cluster_id: str, state: SamplingState) -> Iterator[Sample]:
    """The metrics of the samples of one cluster."""
    yield from samples("samples_total", (cluster_id,), {"stored": state.stored, "failed": state.failed})
    if state.last is not None:
        yield Sample("last_sample_timestamp_seconds", (cluster_id,), state.last.taken_at.timestamp())
