"""Decides which of two owners a Kafka cluster belongs to.

Pure. The owner on record keeps it, even if another connection comes first after a restart. A KafkaConnection outranks
inline connections, because creating one is an administrator's right. If there are two KafkaConnections, the older one
has the cluster.
"""

from dataclasses import dataclass
from datetime import datetime

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Standing:
    """An owner that claims a cluster, or has it.

    ``named``: the KafkaConnection exists, or a resource with an inline connection names the cluster or may do so. If
    not, it claims the cluster only to end its work there. ``created``: the time of creation of the KafkaConnection.
    """

    owner: Owner
    named: bool = True
    created: datetime | None = None


def may_have(claimant: Standing, binding: Binding | None, holder: Standing, *, work: bool) -> Refused | None:
    """Why the claimant may not have the cluster; None: it may, and the cluster is bound to it from now on.

    ``work``: runs are open there, or throttles of ours are in place.
    """
    if binding is None or binding.owner == claimant.owner:
        return None
    if holder.named and not claimant.named:
        return _owned_elsewhere(binding)
    if claimant.owner.connection:
        if not holder.named or not holder.owner.connection or _age(claimant) < _age(holder):
            return None
        return Refused(
            Reason.CONFLICTED,
            f"Kafka cluster {binding.cluster_id} belongs to the older {holder.owner}: delete one of the two, and let "
            "spec.kafka.connectionRef name the other one",
        )
    if holder.named or work:
        return _owned_elsewhere(binding)
    return None


def _age(standing: Standing) -> tuple[str, Owner]:
    return (standing.created.isoformat() if standing.created else "", standing.owner)


def _owned_elsewhere(binding: Binding) -> Refused:
    owner, cluster = binding.owner, f"Kafka cluster {binding.cluster_id}"
    if owner.connection:
        instead = f"connectionRef: {{name: {owner.connection}, namespace: {owner.namespace}}}"
        message = f"{cluster} belongs to {owner}: write {instead} in spec.kafka instead of bootstrapServers"
    else:
        message = (
            f"{cluster} is in use by {owner}: have an administrator create a KafkaConnection whose allowedNamespaces "
            "permit both namespaces, and name it in spec.kafka.connectionRef instead of bootstrapServers"
        )
    return Refused(Reason.CLUSTER_OWNED_ELSEWHERE, message)
