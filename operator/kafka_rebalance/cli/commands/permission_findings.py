"""Permissions in Kafka that the operator needs and this user does not have, as findings of doctor."""

from __future__ import annotations

from kafka_rebalance.cli.tables.findings_table import Finding
from kafka_rebalance.kafka.least_permissions import missing_permissions
from kafka_rebalance.kafka.ports import KafkaReader
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.observe.permission_probe import hidden_topics

_MEANING = (
    "the operator needs these permissions in Kafka, and the user of this command does not have them; docs/security.md "
    "has the ACLs"
)


async def permission_findings(admin: KafkaReader) -> list[Finding]:
    """The missing permissions on the cluster and on all topics, including topics that are hidden from this user.

    Without Describe on the cluster, topics are not checked, because neither reassignments nor log dirs can be read.
    """
    found = await admin.authorized_operations(())
    if "Describe" in found.cluster:
        partitions = await admin.describe_partitions()
        brokers = (await admin.describe_cluster()).brokers
        hidden = await hidden_topics(admin, await admin.log_dirs(tuple(brokers)), partitions)
        found = await admin.authorized_operations({tp.topic for tp in partitions} | hidden)
    return [
        Finding(
            reason=Reason.PERMISSIONS_MISSING,
            meaning=_MEANING,
            row={"MISSING": missing.what, "WITHOUT IT": missing.costs},
            fields={
                "operation": missing.operation,
                "resource": missing.resource,
                "topics": sorted(missing.topics),
                "costs": missing.costs,
            },
        )
        for missing in missing_permissions(found)
    ]
