"""Why a server does not get a cluster that is on record, and what an administrator can do about it.

Nothing is read from servers, and nothing is written.
"""

from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.claimed_server import Claimed
from kafka_rebalance.reconcile.act.cluster_ledgers import ClusterLedgers
from kafka_rebalance.reconcile.act.cluster_work import Work
from kafka_rebalance.reconcile.decide.cluster_identity import at_known_address, confirmed, contradiction


class ClaimRefusals:
    """The refusals of servers that claim a cluster id, with advice that names the records of these stores."""

    def __init__(self, bindings: BindingStore, ledgers: ClusterLedgers, runs: RunStore) -> None:
        self._bindings = bindings
        self._ledgers = ledgers
        self._runs = runs

    def refuse_other_cluster(self, binding: Binding, server: Claimed, *, believed: bool, otherwise: str = "") -> None:
        """Refuse a server that is not the cluster on record.

        ``believed``: the connection is the owner's, so addresses on record are enough. ``otherwise``: the advice about
        the throttles of another owner, if it is another cluster.
        """
        if confirmed(binding, server.servers) or (
            believed and at_known_address(binding, server.servers, server.brokers)
        ):
            return
        seen = server.ids_of(binding.topics)
        differs = contradiction(binding, server.brokers, seen)
        if differs and not contradiction(binding, server.brokers, binding.topics):
            seen.or_raise()  # only topics differ, and one that was not read may be there with its id
        if differs:
            instead = f"; otherwise {otherwise}" if otherwise else ""
            raise Refused(
                Reason.CLUSTER_ID_COLLISION,
                f"this server answers with the id of Kafka cluster {binding.cluster_id}, in which the operator has "
                f"work, but is another cluster: {differs}. Correct bootstrapServers, or give one of the clusters "
                f"another id. If it is the same cluster after all, {self.how_to_confirm(binding, server)}{instead}",
            )

    def without_us(self, binding: Binding) -> str:
        """The advice for a cluster that the operator cannot reach any more."""
        return f"restore them by hand and delete {self._ledgers.where(binding.cluster_id)}"

    def left_behind(self, refusal: Refused, binding: Binding, work: Work, server: Claimed, claimant: Owner) -> Refused:
        """Why another owner keeps the cluster although no resource names it, and what an administrator can do."""
        owner, same = binding.owner, ""
        gone = f"no resource of namespace {owner.namespace} names it any more"
        if owner.connection:
            gone = f"{owner} does not exist any more"
        if owner.connection or claimant.connection:
            same = f". If it leads there, {self.how_to_confirm(binding, server)}"
        if work.throttled:
            then = (
                f"the operator restores throttles and cordons with the last connection of {owner} and the same "
                f"Secrets. If these cannot be used any more, {self.without_us(binding)}"
            )
        else:
            then = (
                "delete their resources. The operator closes runs whose resource is gone within two minutes. If it may "
                f"not read their namespace, delete their records: {self._runs.how_to_see(work.open_runs[0].uid)}"
            )
        return Refused(refusal.reason, f"{refusal.message}. {gone}, but {work}: {then}{same}")

    def how_to_confirm(self, binding: Binding, server: Claimed) -> str:
        """The advice for an administrator who knows that this server is the cluster."""
        return f"run: {self._bindings.how_to_confirm(binding.cluster_id, server.servers)}"

    def unproven(self, binding: Binding, server: Claimed, otherwise: str) -> Refused:
        """A run is compared again with the server before it is used. The throttle ledger names no ids."""
        if binding.topics:
            addresses = ", ".join(sorted(binding.servers)[:3]) or "unknown addresses"
            mine = ", ".join(sorted(server.servers)[:3])
            why = f"{binding.owner} reached it at {addresses}: it is not known that {mine} leads to the same cluster"
            wait = "until the throttles are removed"
        else:
            why, wait = "no topic by which this server can be recognised is on record", "an hour until topics are"
        return Refused(
            Reason.CLUSTER_ID_COLLISION,
            f"throttles of the operator are in place in Kafka cluster {binding.cluster_id}, and {why}. If it is the "
            f"same cluster, wait {wait}, or {self.how_to_confirm(binding, server)}; otherwise {otherwise}",
        )

    def without_throttles(self, binding: Binding, *, held: bool) -> str:
        """How to remove the throttles of another owner. ``held``: the other owner has resources."""
        by_hand = f"remove the throttles by hand and delete {self._ledgers.where(binding.cluster_id)}"
        if not held:
            return by_hand
        return (
            f"delete the resources of {binding.owner} that lead to it and wait until the throttles are removed; where "
            f"nothing removes them, {by_hand}"
        )


def held(differs: Refused, holder: Owner, work: Work) -> Refused:
    """What an administrator can do, whose KafkaConnection outranks the holder."""
    return Refused(
        differs.reason,
        f"{differs.message}. The id belongs to {holder} so far, and {work}: if theirs is the wrong server, delete the "
        f"KafkaRebalances and KafkaReassignmentThrottles of namespace {holder.namespace} that lead to it",
    )
