"""Counts the calls to Kafka. A call is a method of `kafka.ports`, and may send several requests."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram

from kafka_rebalance.telemetry.metric_families import CLUSTER, PREFIX

CALL = (*CLUSTER, "call")
_SECONDS = (0.01, 0.05, 0.25, 1, 5, 10)
"""A call ends within ten seconds."""


class KafkaCallMetrics:
    """Counters of each cluster, which last as long as a client of the cluster: any server may claim any id."""

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
        self._clients = Tally[str]()

    def connected(self, cluster_id: str) -> None:
        """A client has found out the id of its cluster."""
        self._clients[cluster_id] += 1

    def closed(self, cluster_id: str) -> None:
        """A client of this cluster was closed, and will make no calls that count for it."""
        self._clients[cluster_id] -= 1
        if not self._clients[cluster_id]:
            del self._clients[cluster_id]
            for metric in (self._calls, self._seconds, self._changes):
                metric.remove_by_labels(dict(zip(CLUSTER, (cluster_id,), strict=True)))

    def ended(self, cluster_id: str, call: str, outcome: str, seconds: float) -> None:
        """A call has ended."""
        self._calls.labels(cluster_id, call, outcome).inc()
        self._seconds.labels(cluster_id, call).observe(seconds)

    def answered(self, cluster_id: str, call: str, answers: Iterable[str]) -> None:
        """Kafka has answered to each change of a call."""
        for answer, count in Tally(answers).items():
            self._changes.labels(cluster_id, call, answer).inc(count)
