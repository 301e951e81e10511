"""Labels and KafkaConnections that could not be read are not known: nothing ends because of that."""

from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile import unfinished_work

LOOKS = 200
"""The number of looks in which a rollback ends if nothing holds it."""


async def rolls_back(world):
    """A rebalance of namespace a is deleted, and one of its partitions is copied back."""
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    world.real.arrive()
    world.real.slow = {BrokerId(4)}
    await world.until(lambda: any(1 not in held for held in world.real.lists("orders")) and world.real.flying)
    world.real.arrive()
    world.real.slow = {BrokerId(1), BrokerId(4)}
    body = world.kube.delete(REBALANCES, "a", "r", world.clock.at.isoformat())
    world.supervisor.rebalance_seen(body, deleted=False)
    await world.until(lambda: world.state("a") == "RollingBack" and world.real.flying)


async def comes_to_its_end(world):
    """Wait until the resource is gone, and check that all replicas are where they were before the run."""
    await world.until(lambda: world.state("a") == "RollingBack")
    world.real.slow = set()
    world.real.arrive()
    await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)
    assert [sorted(held) for held in world.real.lists("orders")] == [[1, 2, 3]] * 4


async def test_a_rollback_waits_for_unread_labels(world, monkeypatch):
    """After a restart it goes on when they are known, and is not reverted before."""
    world.kube.labels["a"] = {"kafka": "prod"}
    world.connection(selector={"matchLabels": {"kafka": "prod"}})
    await rolls_back(world)
    read = world.kube.namespace_labels

    async def labels(_namespace):
        raise Transient("ApiServerBusy", "retry later")

    monkeypatch.setattr(world.kube, "namespace_labels", labels)
    await world.restart()
    await world.until(lambda: world.state("a") == "ApiServerBusy")
    assert world.runs == {"a": None}
    monkeypatch.setattr(world.kube, "namespace_labels", read)
    await comes_to_its_end(world)


async def test_a_rollback_waits_for_an_unread_connection(world, monkeypatch):
    """An earlier version of the operator does not know one of its fields, and connects for the throttles on record."""
    monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.05)
    world.connection(names=["a"])
    await rolls_back(world)
    spec = world.kube.resources[CONNECTIONS, "k", "prod"]["spec"]
    spec["later"] = True
    await world.supervisor.stop()
    world.begin()
    await world.supervisor.start()
    await world.supervisor.know(())
    await world.until(lambda: world.state("a") == "ConnectionNotFound" and world.supervisor.rounds())
    world.real.slow = set()
    world.real.arrive()
    looks = iter(range(LOOKS))
    await world.until(lambda: next(looks, None) is None)
    assert world.runs == {"a": None}
    del spec["later"]
    world.see("k")
    await comes_to_its_end(world)


async def test_nothing_begins_while_labels_are_unread(world, monkeypatch):
    """Not even for a resource that the engine has because its namespace was permitted by name before."""
    world.connection(names=["a"])
    world.create("a", kafka=REF, topics={"include": ["none"]})
    world.see("a")
    await world.until(lambda: world.state("a") == "NothingToDo")
    read = world.kube.namespace_labels

    async def labels(_namespace):
        raise Transient("ApiServerBusy", "retry later")

    monkeypatch.setattr(world.kube, "namespace_labels", labels)
    world.edit(
        CONNECTIONS, "k", "prod", allowedNamespaces={"selector": {"matchLabels": {"kafka": "prod"}}, "names": None}
    )
    await world.until(lambda: world.supervisor.connection_of("u-2").refusals)
    world.edit(REBALANCES, "a", "r", topics={"include": ["orders"]}, brokers={"decommission": [1]})
    await world.until(lambda: world.state("a") == "ApiServerBusy")
    assert not world.real.altered
    world.kube.labels["a"] = {"kafka": "prod"}
    monkeypatch.setattr(world.kube, "namespace_labels", read)
    await world.until(lambda: world.state("a") == "Succeeded")


class TestWhileTheOperatorRuns:
    """The labels of the namespace were read before, and permit it."""

    async def permitted(self, world, monkeypatch, error):
        """From now on, the labels cannot be read for this reason."""
        world.kube.labels["a"] = {"kafka": "prod"}
        world.connection(selector={"matchLabels": {"kafka": "prod"}})
        world.create("a", kafka=REF, topics={"include": ["none"]})
        world.see("a")
        await world.until(lambda: world.state("a") == "NothingToDo")
        asked = []

        async def labels(namespace):
            asked.append(namespace)
            raise error

        monkeypatch.setattr(world.kube, "namespace_labels", labels)
        await world.until(lambda: asked)

    async def test_the_right_to_read_them_is_removed(self, world, monkeypatch):
        """The permission may have ended since, so nothing begins until they can be read again."""
        read = world.kube.namespace_labels
        await self.permitted(world, monkeypatch, Forbidden("may not read namespaces"))
        await world.until(lambda: world.supervisor.connection_of("u-2").refusals)
        world.edit(REBALANCES, "a", "r", topics={"include": ["orders"]}, brokers={"decommission": [1]})
        await world.until(lambda: world.state("a") == "ApiServerForbidden")
        assert "labels of namespace a not read" in world.ready("a")[1]
        assert not world.real.altered
        monkeypatch.setattr(world.kube, "namespace_labels", read)
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_the_api_server_does_not_answer(self, world, monkeypatch):
        """The last answer counts."""
        await self.permitted(world, monkeypatch, Transient("ApiServerBusy", "retry later"))
        world.edit(REBALANCES, "a", "r", topics={"include": ["orders"]}, brokers={"decommission": [1]})
        await world.until(lambda: world.state("a") == "Succeeded")
        assert not world.supervisor.connection_of("u-2").refusals

    async def test_an_open_run_goes_on(self, world, monkeypatch):
        """What has begun does not end because the right was removed."""
        read = world.kube.namespace_labels
        world.kube.labels["a"] = {"kafka": "prod"}
        world.connection(selector={"matchLabels": {"kafka": "prod"}})
        await world.draining(kafka=REF)

        async def labels(_namespace):
            raise Forbidden("may not read namespaces")

        monkeypatch.setattr(world.kube, "namespace_labels", labels)
        await world.until(lambda: world.supervisor.connection_of("u-2").refusals)
        looks = iter(range(LOOKS))
        await world.until(lambda: next(looks, None) is None)
        assert world.runs == {"a": None}
        assert world.real.flying
        monkeypatch.setattr(world.kube, "namespace_labels", read)
        world.real.arrive()
        world.real.slow = set()
        await world.until(lambda: world.state("a") == "Succeeded")
