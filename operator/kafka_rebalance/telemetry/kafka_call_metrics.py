"""Counts the calls to Kafka. A call is a method of `kafka.ports`, and may send several requests."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram

from kafka_rebalance.telemetry.metric_families import CLUSTER, PREFIX

CALL = (*CLUSTER, "call")
_SECONDS = (0.01, 0.05, 0.25, 1, 5, 10)
"""A call ends within ten seconds."""


class KafkaCallMetrics:
    """Counters that last as long as the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            f"{PREFIX}kafka_calls",
            "Calls to Kafka by outcome: ok, no_answer (retried), refused or cancelled.",
            (*CALL, "outcome"),
            registry=registry,
        )
        self._seconds = Histogram(
            f"{PREFIX}kafka_call_duration_seconds",
            "Duration of calls to Kafka.",
            CALL,
            registry=registry,
            buckets=_SECONDS,
        )
        self._changes = Counter(
            f"{PREFIX}kafka_changes",
            "Changes that the operator sent to Kafka, by Kafka's answer: partitions, replicas, brokers or topics.",
            (*CALL, "answer"),
            registry=registry,
        )

    def ended(self, cluster_id: str, call: str, outcome: str, seconds: float) -> None:
        """A call has ended."""
        self._calls.labels(cluster_id, call, outcome).inc()
        self._seconds.labels(cluster_id, call).observe(seconds)

    def answered(self, cluster_id: str, call: str, answers: Iterable[str]) -> None:
        """Kafka has answered to each change of a call."""
        for answer, count in Tally(answers).items():
            self._changes.labels(cluster_id, call, answer).inc(count)
