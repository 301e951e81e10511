"""A resource that was restored from a backup counts as executed only in the Kafka cluster of its run."""

import json

from tests.fakes.shared_clusters import REF, Away

from kafka_rebalance.api.v1alpha1 import COMPLETED_ANNOTATION, CONNECTIONS, REBALANCES
from kafka_rebalance.reconcile.state.desired import Desired


def restored(world, cluster_id, **spec):
    """Namespace a has a resource without status and records, which was carried out in this cluster before."""
    body = world.create("a", brokers={"decommission": [1]}, **spec)
    key = {
        "name": "a/r",
        "clusterId": cluster_id,
        "planningHash": Desired.of(body).planning_hash,
        "planHash": "sha256:1",
        "outcome": "Succeeded",
        "completedAt": "2026-03-01T12:00:00Z",
    }
    metadata = world.kube.resources[REBALANCES, "a", "r"]["metadata"]
    metadata["annotations"] = {COMPLETED_ANNOTATION: json.dumps(key)}
    world.see("a")


class TestBeforeItsKafkaConnection:
    async def test_in_another_cluster(self, world):
        """A run of another cluster does not count: the resource is executed when its cluster is known."""
        restored(world, "another", kafka=REF)
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        world.connection()
        await world.until(lambda: world.state("a") == "Succeeded")
        assert all(1 not in replicas for replicas in world.real.lists("orders"))

    async def test_in_the_same_cluster(self, world):
        """It is not executed again. Its status says so only when the cluster is known."""
        restored(world, "c", kafka=REF)
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        world.connection()
        await world.until(lambda: world.state("a") == "Succeeded")
        assert "carried out before the resource was restored" in world.ready("a")[1]
        assert world.real.altered == []


class TestBeforeItsClusterAnswers:
    async def unreachable(self, world, cluster):
        """The resource was executed in this cluster, and its connection does not answer."""
        world.servers["kafka"] = Away()
        restored(world, cluster)
        await world.until(lambda: world.state("a") == "KafkaUnreachable")

    async def test_in_another_cluster(self, world):
        await self.unreachable(world, "another")
        world.servers["kafka"] = world.real
        await world.until(lambda: world.state("a") == "Succeeded")
        assert all(1 not in replicas for replicas in world.real.lists("orders"))

    async def test_it_is_not_carried_out_again(self, world):
        await self.unreachable(world, "c")
        world.servers["kafka"] = world.real
        await world.until(lambda: world.state("a") == "Succeeded")
        assert world.real.altered == []

    async def test_deleted(self, world):
        """A deletion needs nothing from Kafka, in any cluster."""
        await self.unreachable(world, "c")
        world.kube.resources[REBALANCES, "a", "r"]["metadata"]["finalizers"] = ["kafkarebalance.dev/rollback"]
        world.kube.delete(REBALANCES, "a", "r", "2026-03-04T12:00:00Z")
        world.see("a")
        await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)


class TestTheConnectionLeadsToAnotherCluster:
    async def test_it_is_carried_out_there(self, world):
        """The KafkaConnection was deleted, and created anew for another cluster under the same name."""
        restored(world, "c", kafka=REF)
        world.connection()
        await world.until(lambda: world.state("a") == "Succeeded")
        assert world.real.altered == []
        world.gone(CONNECTIONS, "k", "prod")
        await world.until(lambda: not world.supervisor._engines.get("c"))
        world.real.cluster_id = "another"
        world.connection()
        await world.until(lambda: all(1 not in replicas for replicas in world.real.lists("orders")))
        await world.until(lambda: world.state("a") == "Succeeded")
