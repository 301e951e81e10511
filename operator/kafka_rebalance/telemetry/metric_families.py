"""What the operator measures: each metric family with its labels and its help text. No client library.

Labels have few values: clusters, resources, and words from fixed lists. None is a topic, a partition or a broker. They
are not called `namespace`, `name` or `cluster`, which Prometheus and its operator set for the target themselves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "kafka_rebalance_"
CLUSTER = ("kafka_cluster_id",)
RESOURCE = (*CLUSTER, "resource_namespace", "resource_name")


class MetricKind(StrEnum):
    """The types of Prometheus that are used. A summary has a sum and a count, and no quantiles."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. ``name`` is without the prefix; that of a counter ends with ``_total``."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    kind: MetricKind = MetricKind.GAUGE


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a family. ``labels``: as in the family. ``count``: of a summary, whose sum is ``value``."""

    family: str
    labels: tuple[str, ...]
    value: float
    count: int = 0


_FAMILIES = (
    Family("leader", "Whether this operator holds the Lease: 1 or 0."),
    Family("build_info", "The version of the operator; always 1.", ("version",)),
    # One KafkaRebalance
    Family("state", "The state of a KafkaRebalance, as in kubectl get; always 1.", (*RESOURCE, "state")),
    Family("stalled", "Whether the condition Stalled is True, so that somebody has to act: 1 or 0.", RESOURCE),
    Family("completed_timestamp_seconds", "When the last run ended, as a Unix time.", RESOURCE),
    Family("started_timestamp_seconds", "When the open run submitted its first step, as a Unix time.", RESOURCE),
    Family("direction", "Direction of the open run: Forward, Rollback or Revert; always 1.", (*RESOURCE, "direction")),
    Family("partitions", "Partitions of the open run by phase. The sum is the number of all.", (*RESOURCE, "phase")),
    Family(
        "held_partitions",
        "Partitions of the open run that wait, or are skipped, for a reason of their own.",
        (*RESOURCE, "phase", "reason"),
    ),
    Family("step_block", "Why no new step of the open run starts; 1, or no series.", (*RESOURCE, "reason")),
    Family("problem", "The problem that the operator retries; 1, or no series.", (*RESOURCE, "reason")),
    Family("replica_moves", "Replica moves of the open run.", RESOURCE),
    Family("replica_moves_completed", "Replica moves whose new replica is in sync.", RESOURCE),
    Family(
        "partitions_above_replication_factor",
        "Partitions of the open run that temporarily have more replicas than their replication factor.",
        RESOURCE,
    ),
    Family("copy_bytes", "Bytes that the open run copies.", RESOURCE),
    Family("copied_bytes", "Bytes that the open run has copied.", RESOURCE),
    Family("remaining_bytes", "Bytes that the open run has still to copy.", RESOURCE),
    Family("copy_rate_bytes_per_second", "Recent copy rate of the open run.", RESOURCE),
    Family(
        "throttle_bytes_per_second",
        "Rate that applies on each broker without one of its own; no series: unlimited. side: leader or follower.",
        (*RESOURCE, "side"),
    ),
    Family("throttled_brokers", "Brokers on which the throttle is set.", RESOURCE),
    Family("throttle_pending_brokers", "Live brokers that have not accepted the throttle yet.", RESOURCE),
    Family(
        "eta_seconds",
        "Estimated time until the open run ends, at the throttle (bound=least) and at the recent rate (bound=most).",
        (*RESOURCE, "bound"),
    ),
    Family("last_progress_timestamp_seconds", "When the open run last advanced, as a Unix time.", RESOURCE),
    Family(
        "window_end_timestamp_seconds",
        "When the open window closes, as a Unix time. Absent if that is more than two days away, or more than an hour "
        "for windows that open thousands of times.",
        RESOURCE,
    ),
    # One Kafka cluster
    Family("brokers", "Live brokers of the Kafka cluster.", CLUSTER),
    Family("rounds_total", "Rounds of the engine by outcome: ok or failed.", (*CLUSTER, "outcome"), MetricKind.COUNTER),
    Family("round_duration_seconds", "Duration of the rounds.", CLUSTER, MetricKind.SUMMARY),
    Family(
        "round_cpu_seconds_total",
        "CPU time of the operator's main thread during the rounds. Rounds of several clusters overlap.",
        CLUSTER,
        MetricKind.COUNTER,
    ),
    Family("round_problem", "Why the last round failed, or cannot throttle; 1, or no series.", (*CLUSTER, "reason")),
    Family(
        "throttle_ledger_entries",
        "Configs to restore: rates of brokers (kind=rate), lists of topics (list), cordons (cordon).",
        (*CLUSTER, "kind"),
    ),
    Family("throttle_reverts_total", "Times that another writer reverted the throttle.", CLUSTER, MetricKind.COUNTER),
    Family("throttle_contested", "Whether another writer keeps reverting the throttle: 1 or 0.", CLUSTER),
    Family("foreign_reassignments", "Reassignments of other tools under the throttle of the operator.", CLUSTER),
    Family("missing_permissions", "Permissions that the operator lacks in Kafka.", CLUSTER),
    Family(
        "samples_total",
        "Samples for load models by outcome: stored or failed. No series without spec.sampling.",
        (*CLUSTER, "outcome"),
        MetricKind.COUNTER,
    ),
    Family("last_sample_timestamp_seconds", "When the last stored sample was taken, as a Unix time.", CLUSTER),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in _FAMILIES}
"""All families that are computed from the state of the operator, by name, in the order of the docs."""


def samples(family: str, labels: tuple[str, ...], values: Mapping[str, float]) -> Iterable[Sample]:
    """Samples that differ only in the last label."""
    return (Sample(family, (*labels, last), value) for last, value in values.items())
