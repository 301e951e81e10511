"""The rules of the judge for owners: whose client serves the cluster, and when the cluster passes to another owner."""

from datetime import datetime

from tests.simulation.process import at_once

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.store import RunStore

LAST_ROUND_SECONDS = 140.0
_UNREAD_SECONDS = 60.0
"""How long a new resource may not have reached the operator yet."""


class OwnerJudge:
    """The owners of the cluster, with the time at which each was first seen on record."""

    def __init__(self, world, judge):
        self.world, self.judge = world, judge
        self._owners = []
        self._on_record_until = 0.0
        """When the cluster was last seen to have an owner."""

    def recorded(self):
        """At each record: an owner may lose the cluster before it has sent anything."""
        owner = self._owner()
        if owner is not None:
            self._on_record_until = self.world.loop.now
        if owner is not None and (not self._owners or self._owners[-1][1] != owner):
            self._handed_over(owner)
            self._owners.append((self.world.loop.now, owner))

    def ordered(self, client, what):
        """Only the client of the owner sends. A former owner's engine may end its last round."""
        now, owner = self.world.loop.now, self._owner()
        if owner is None and client.basis.late and client.basis.at <= self._on_record_until:
            owner = self._owners[-1][1]
        if owner is None:
            self.judge.breach(f"{what}: sent to a cluster without an owner on record")
            return
        allowed = {self.world.host_of(owner)}
        if len(self._owners) > 1 and now - self._owners[-1][0] < LAST_ROUND_SECONDS:
            allowed.add(self.world.host_of(self._owners[-2][1]))
        if client.host.removesuffix("-other") not in allowed:
            self.judge.breach(f"{what}: sent by the client of {client.host}, and the owner is {owner}")

    def _owner(self):
        bindings = at_once(BindingStore(self.world.kube).load_unshared())
        return next((binding.owner for binding in bindings if binding.cluster_id == "c"), None)

    def _handed_over(self, owner):
        """An inline connection gets the cluster only if the former owner has no work there and leads there no more."""
        if not self._owners or owner.connection:
            return
        former, resources = self._owners[-1][1], self.world.kube.resources
        if former.connection:
            body = resources.get((CONNECTIONS, former.namespace, former.connection))
            if body is not None and "deletionTimestamp" not in body["metadata"]:
                self.judge.breach(f"{owner} has got the cluster of {former}, which exists")
            return
        left = [run.name for run in at_once(RunStore(self.world.kube).list_unshared()) if run.open]
        left = [key[2] for key, _ in self.world.rebalances() if key[1] == former.namespace and key[2] in left]
        if left:
            self.judge.breach(f"{owner} has got the cluster, although runs of {former} are open: {left}")
        there = [key[2] for key, body in resources.items() if key[1] == former.namespace and self._leads(key, body)]
        if there:
            self.judge.breach(f"{owner} has got the cluster, although {there} of {former} lead there")

    def _leads(self, key, body):
        """Whether a resource is known to lead to the cluster by an inline connection."""
        if key[0] not in {REBALANCES, REASSIGNMENT_THROTTLES} or "bootstrapServers" not in body["spec"]["kafka"]:
            return False
        metadata = body["metadata"]
        age = self.world.clock.now() - datetime.fromisoformat(metadata["creationTimestamp"])
        return "deletionTimestamp" not in metadata and age.total_seconds() > _UNREAD_SECONDS
