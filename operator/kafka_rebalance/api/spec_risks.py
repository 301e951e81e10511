"""Valid settings with a risk that a reviewer should see. `lint` reports them. Pure.

The condition SpecWarning does not report them: a user who has chosen such a setting needs no permanent warning.
"""

from collections.abc import Iterator

from kafka_rebalance.api.execution_spec import ApprovalPolicy, DeletionPolicy
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec

MANY_PARTITIONS = 1000
"""In flight at once: ten times the default."""
MANY_REPLICAS = 3
"""Of one partition in one step: each needs its space on disk until the step ends."""
FEW_BROKERS = 1
"""Brokers that one plan may empty without approval."""


def rebalance_risks(spec: KafkaRebalanceSpec) -> Iterator[str]:
    """One sentence for each: what may happen, and what to write instead."""
    execution, leaving = spec.execution, spec.brokers.decommission
    if spec.throttle is not None and spec.throttle.unlimited:
        yield "spec.throttle.unlimited: copies may take all the bandwidth and disk that clients need; set rates instead"
    if execution.parallel_partition_count > MANY_PARTITIONS:
        yield (
            f"spec.execution.parallelPartitionCount: up to {execution.parallel_partition_count} partitions have "
            f"additional replicas at once, and a rollback first cancels all of them; the default is 100"
        )
    if execution.parallel_replica_count > MANY_REPLICAS:
        yield (
            f"spec.execution.parallelReplicaCount: a partition may have {execution.parallel_replica_count} additional "
            "replicas at once, which need their space on disk; the default is 1"
        )
    if len(leaving) > FEW_BROKERS and spec.approval.policy is not ApprovalPolicy.MANUAL:
        yield (
            f"spec.brokers.decommission: {len(leaving)} brokers are emptied without a review of the plan; set "
            "spec.approval.policy: Manual"
        )
    if spec.replication_factor == 1:
        yield "spec.replicationFactor: with 1, the loss of one broker loses its partitions; use at least 2"
    if spec.deletion_policy is DeletionPolicy.ABANDON:
        yield (
            "spec.deletionPolicy: with Abandon, deleting it while it runs moves nothing back, and reassignments in "
            "flight go on; use Rollback or Revert"
        )
