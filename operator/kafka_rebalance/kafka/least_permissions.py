"""The permissions that the operator's Kafka user needs, and which of them are missing (KIP-430). Pure.

An operation may include others: in Kafka, Alter includes Describe, and AlterConfigs includes DescribeConfigs. The four
permissions here are the minimum.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from heapq import nsmallest

from kafka_rebalance.kafka.ports import AuthorizedOperations

_NAMED = 3
CLUSTER, TOPIC = "Cluster", "Topic"


@dataclass(frozen=True, slots=True)
class MissingPermission:
    """An operation that is not permitted, on the cluster or on ``topics``, and what that costs."""

    operation: str
    resource: str
    costs: str
    topics: frozenset[str] = frozenset()

    @property
    def what(self) -> str:
        """Operation and resource, as in an ACL: "Describe on topics a, b"."""
        if self.resource == CLUSTER:
            return f"{self.operation} on the cluster"
        more = f" and {len(self.topics) - _NAMED} more" if len(self.topics) > _NAMED else ""
        plural = "s" if len(self.topics) > 1 else ""
        return f"{self.operation} on topic{plural} {', '.join(nsmallest(_NAMED, self.topics))}{more}"

    def about(self, topics: AbstractSet[str]) -> MissingPermission | None:
        """The part that concerns these topics; what is missing on the cluster concerns all."""
        if self.resource == CLUSTER:
            return self
        left = self.topics.intersection(topics)
        return replace(self, topics=left) if left else None


_ALTER = MissingPermission("Alter", CLUSTER, "no step can be submitted or cancelled, and no leader elected")
_NOTHING = MissingPermission("Alter", CLUSTER, "nothing can be read of reassignments and disks, so nothing is moved")
_ALTER_CONFIGS = MissingPermission(
    "AlterConfigs", CLUSTER, "no throttle rate can be set, so nothing is copied, and no broker can be cordoned"
)
_READ_CONFIGS = MissingPermission(
    "AlterConfigs", CLUSTER, "no throttle rate can be read or set, so nothing is copied, and no broker can be cordoned"
)
_DESCRIBE_TOPIC = MissingPermission(
    "Describe", TOPIC, "plans, the health gate and the check of an empty broker do not see them"
)
_ALTER_TOPIC_CONFIGS = MissingPermission("AlterConfigs", TOPIC, "none of their replicas can be throttled or copied")
_READ_TOPIC_CONFIGS = MissingPermission(
    "AlterConfigs", TOPIC, "min.insync.replicas and throttles cannot be read, so they wait"
)


def missing_permissions(found: AuthorizedOperations) -> tuple[MissingPermission, ...]:
    """What is missing of the least permissions: of the cluster first, then of topics.

    Without Describe on the cluster, Kafka does not say what else is permitted there.
    """
    missing = []
    if "Describe" not in found.cluster:
        missing.append(_NOTHING)
    else:
        if "Alter" not in found.cluster:
            missing.append(_ALTER)
        if "DescribeConfigs" not in found.cluster:
            missing.append(_READ_CONFIGS)
        elif "AlterConfigs" not in found.cluster:
            missing.append(_ALTER_CONFIGS)
    unread = frozenset(topic for topic, may in found.topics.items() if "DescribeConfigs" not in may)
    unaltered = frozenset(
        topic for topic, may in found.topics.items() if "DescribeConfigs" in may and "AlterConfigs" not in may
    )
    for permission, topics in (
        (_DESCRIBE_TOPIC, found.hidden_topics),
        (_READ_TOPIC_CONFIGS, unread),
        (_ALTER_TOPIC_CONFIGS, unaltered),
    ):
        if topics:
            missing.append(replace(permission, topics=topics))
    return tuple(missing)


def concerning(missing: Iterable[MissingPermission], topics: AbstractSet[str]) -> tuple[MissingPermission, ...]:
    """The part that concerns a rebalance of these topics; topics that are hidden from us concern every rebalance."""
    parts = (m if m.operation == "Describe" else m.about(topics) for m in missing)
    return tuple(part for part in parts if part is not None)


def sentence(missing: Iterable[MissingPermission]) -> str:
    """All of them in one sentence, for a condition."""
    return "; ".join(f"{m.what} is not permitted ({m.costs})" for m in missing)
