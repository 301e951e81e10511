"""Decides which of two owners a Kafka cluster belongs to.

Pure. The owner on record keeps it, even if another connection comes first after a restart. A KafkaConnection outranks
inline connections, because creating one is an administrator's right. If there are two KafkaConnections, the older one
owns the cluster, no matter which connects first, if it is proved that both lead to it: the server of the older one may
only claim its id. One whose spec was edited takes a cluster from no other owner, because its editor could name such a
server; from inline connections it does with this proof, and an idle one that no resource or KafkaConnection names.
The same holds for one that has led to another cluster: those who run its brokers could let them claim any id.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kafka_rebalance.api.connection import Kafka, KafkaSource
from kafka_rebalance.api.v1alpha1 import KafkaConnection, ObjectMeta
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Standing:
    """An owner that claims a cluster, or has it.

    ``named``: the KafkaConnection exists, or a resource with an inline connection names the cluster or may do so. If
    not, it claims the cluster only to end its work there. ``created``: the time of creation of the KafkaConnection;
    ``edited``: its spec has changed since, or may have before it was deleted. ``moved``: it has led to another cluster.
    """

    owner: Owner
    named: bool = True
    created: datetime | None = None
    edited: bool = False
    moved: bool = False
    uid: str = ""

    @property
    def as_created(self) -> bool:
        """Whether the cluster to which it leads is known to be the one that its creator meant."""
        return not (self.edited or self.moved)

    def after(self, former: Iterable[Binding]) -> "Standing":
        """The same with the bindings of other clusters to which it has led; some may be of an earlier one of this name.

        Those who run the brokers of a KafkaConnection may let them claim any id.
        """
        return replace(self, moved=self.moved or any(binding.uid in {"", self.uid} for binding in former))


@dataclass(frozen=True, slots=True)
class LastUse:
    """How an owner was last connected to a cluster in which it has left work, as it is on record.

    ``secrets``: by name, the uids of the Secrets that were used. ``uid``: of the KafkaConnection that had these
    settings, which is another one than that of now if it was created again; empty: not known, or the owner has none.
    """

    settings: Kafka | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""

    @classmethod
    def of(cls, binding: Binding) -> "LastUse":
        """Raises ValueError if the connection is not on record, or cannot be read."""
        return cls(Kafka.model_validate_json(binding.connection), binding.secrets, binding.uid)


@dataclass(frozen=True, slots=True)
class LedTo:
    """Where a KafkaConnection has led, whether or not it got the clusters: not all of them are on record.

    ``cluster_id``: the first one, also that of before a restart. ``moved``: it has led to another one since.
    """

    uid: str = ""
    cluster_id: str = ""
    moved: bool = False

    def then(self, connection: KafkaConnection | None, cluster_id: str) -> "LedTo":
        """After its server has answered with this id. One that was edited may lead anywhere, and counts as edited."""
        if connection is None:
            return self
        about = connection.metadata
        if about.generation > 1:
            return LedTo(about.uid, cluster_id)
        known = self if about.uid == self.uid else LedTo(about.uid, connection.status.cluster_id or cluster_id)
        return replace(known, moved=known.moved or known.cluster_id != cluster_id)

    def reported_of(self, about: ObjectMeta | None, own: str | None) -> str:
        """The id for the status: that of its ``own`` cluster, else the first one. Empty: not known, it is as it was.

        An id that was refused is not reported: after a restart it would count as the first one. Nor is one of an
        earlier KafkaConnection of this name.
        """
        return (own or self.cluster_id) if about is not None and about.uid == self.uid else ""


def owner_of(source: KafkaSource, namespace: str) -> Owner:
    """The owner of the connection that a resource of this namespace names."""
    named = source.named
    return Owner(namespace) if isinstance(named, Kafka) else Owner(named.namespace or namespace, named.name)


def refusal_at_once(claimant: Standing, binding: Binding, holder: Standing) -> Refused | None:
    """The refusal of an inline connection to the cluster of another owner that names it, whatever work there is.

    None: it has to be known. A server may claim the id again and again, and to look for work takes long.
    """
    if claimant.owner.connection or not holder.named:
        return None
    return refusal_of_claim(claimant, binding, holder, work=False, running=False, proved=False, confirmed=False)


def refusal_of_claim(
    claimant: Standing,
    binding: Binding | None,
    holder: Standing,
    *,
    work: bool,
    running: bool,
    proved: bool,
    confirmed: bool,
) -> Refused | None:
    """Why the claimant may not have the cluster; None: it may, and the cluster is bound to it from now on.

    ``work``: runs are open there, or throttles of ours are in place. ``running``: an engine works there. ``proved``:
    the server of the claimant is the cluster of the holder. ``confirmed``: an administrator says so.
    """
    if binding is None or binding.owner == claimant.owner:
        return None
    if holder.named and not claimant.named:
        return _owned_elsewhere(binding)
    if claimant.owner.connection:
        if not holder.owner.connection:
            # While their resources are changed to name a KafkaConnection that is to be created, only work names them.
            kept = (holder.named or work) and not (claimant.as_created or proved)
            return _changed(claimant, binding) if kept else None
        if not holder.named:
            # The KafkaConnection may be created again soon. The server of another one may only claim the id, and who
            # has edited it may know the addresses of the cluster, but no credentials that permit to end work there.
            kept = work and (not claimant.as_created or not proved) and not confirmed
            return _work_kept(claimant, binding) if kept else None
        return _conflict(claimant, binding, holder, work=work, proved=proved)
    if holder.named or (work and not confirmed) or running:
        return _owned_elsewhere(binding)
    return None


def _conflict(claimant: Standing, binding: Binding, holder: Standing, *, work: bool, proved: bool) -> Refused | None:
    """The refusal if both owners are KafkaConnections; None: the claimant gets the cluster."""
    older = _age(claimant) < _age(holder)
    if older and claimant.as_created and not work and proved:
        return None
    cluster = f"Kafka cluster {binding.cluster_id}"
    if not older:
        why = f"{cluster} belongs to the older {holder.owner}"
    elif not claimant.as_created:
        why = (
            f"{cluster} belongs to {holder.owner}. {claimant.owner} is older, but {_change(claimant)}, and "
            "takes a cluster from no other KafkaConnection"
        )
    elif not proved:
        why = (
            f"{cluster} belongs to {holder.owner}. {claimant.owner} is older, but it is not known that the bootstrap "
            "servers of both lead to the same cluster"
        )
    else:
        why = (
            f"{cluster} belongs to {holder.owner}, which has unfinished work there. It passes to the older "
            f"{claimant.owner} when that work has ended"
        )
    return Refused(
        Reason.CONFLICTED,
        f"{why}. Delete one of the two, and let spec.kafka.connectionRef name the other one",
    )


def _change(claimant: Standing) -> str:
    return "its spec was edited" if claimant.edited else "it has led to another cluster before"


def _changed(claimant: Standing, binding: Binding) -> Refused:
    """The refusal of a KafkaConnection that would outrank inline connections if it were as it was created."""
    return Refused(
        Reason.CONFLICTED,
        f"Kafka cluster {binding.cluster_id} belongs to {binding.owner}. {claimant.owner} leads there, but "
        f"{_change(claimant)}, and takes a cluster from no other owner, unless the bootstrap servers of both are known "
        "to lead to the same cluster. Delete the KafkaConnection and create it again",
    )


def _work_kept(claimant: Standing, binding: Binding) -> Refused:
    """The refusal of a KafkaConnection while there is work of one that was deleted."""
    cluster = f"Kafka cluster {binding.cluster_id} belongs to {binding.owner}"
    if not claimant.as_created:
        message = (
            f"{cluster}. {claimant.owner} leads there, but {_change(claimant)}, and takes over no work of another "
            f"KafkaConnection. Create {binding.owner} again. If that is not possible, delete {claimant.owner} and "
            f"create it again, with all bootstrap servers of {binding.owner}"
        )
    else:
        message = f"{cluster}, and it is not known that the bootstrap servers of both lead to the same cluster"
    return Refused(Reason.CONFLICTED, message)


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
