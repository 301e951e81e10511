"""The brokers of a KafkaConnection answer with another cluster id than before. Nobody has edited it."""

import pytest
from tests.fakes.shared_clusters import Away, Cluster, listener_of

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.model.topology import Broker, BrokerId


@pytest.fixture
async def dev(world):
    """KafkaConnection k/prod has the cluster dev. Namespace a drains a broker of the cluster c."""
    world.servers["dev"] = dev = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    dev.cluster_id = "dev"
    dev.brokers = {broker: Broker(broker, host="kafka", port=9092) for broker in dev.brokers}
    world.connection(server="dev")
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    world.real.slow = {BrokerId(4)}
    world.create("a", brokers={"decommission": [1]}, throttle={"unlimited": True})
    world.see("a")
    await world.until(lambda: len(world.real.flying) == 4)
    return dev


async def owners(world):
    return {binding.cluster_id: binding.owner.namespace for binding in await world.supervisor._engines._owners.bound()}


async def answers_as(world, dev, cluster_id):
    """Seen after a restart."""
    dev.cluster_id = cluster_id
    await world.restart()
    world.see()


async def refused(world):
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Conflicted")
    return world.ready("k", "prod", CONNECTIONS)[1]


async def test_they_take_no_cluster_of_inline_connections(world, dev):
    """They show true ids of brokers and topics, and true addresses. The run goes on; later they answer as before."""
    await answers_as(world, dev, "c")
    assert "KafkaConnection k/prod leads there, but it has led to another cluster before" in await refused(world)
    await world.supervisor._engines.end_bindings()
    assert await owners(world) == {"c": "a", "dev": "k"}
    await answers_as(world, dev, "c")
    await refused(world)
    world.real.arrive()
    await world.until(lambda: world.state("a") == "Succeeded")
    dev.cluster_id = "dev"
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    assert await owners(world) == {"c": "a", "dev": "k"}


async def test_not_even_by_way_of_a_cluster_that_is_free(world, dev):
    await answers_as(world, dev, "free")
    await world.until(lambda: world.supervisor._engines.get("free"))
    await answers_as(world, dev, "c")
    await refused(world)


async def test_a_cluster_that_was_created_anew_is_free(world, dev):
    """The former one is no longer on record."""
    await answers_as(world, dev, "new")
    await world.until(lambda: world.supervisor._engines.get("new"))
    await world.supervisor._engines.end_bindings()
    assert await owners(world) == {"c": "a", "new": "k"}


async def test_a_cluster_of_inline_connections_is_taken_with_the_proof_by_addresses(world):
    """It was created anew, and namespace a was the first to reach it. Its brokers advertise the addresses of both."""
    hosts = {1: "kafka", 2: "dev", 3: "kafka-3", 4: "kafka-4"}
    world.real.brokers = {broker: Broker(broker, host=hosts[broker], port=9092) for broker in world.real.brokers}
    world.servers["dev"] = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    world.servers["dev"].cluster_id = "dev"
    world.connection(server="dev")
    world.create("a", execution={"suspend": True})
    world.see()
    await world.until(lambda: world.supervisor._engines.get("dev") and world.supervisor._engines.get("c"))
    world.servers["dev"] = world.real
    await world.restart()
    world.see()
    await world.until(lambda: (running := world.supervisor._engines.get("c")) and running.owner.connection)


@pytest.mark.parametrize("restart", [False, True])
async def test_a_connection_that_is_created_again_leads_where_its_creator_means(world, dev, restart):
    """An administrator lets it lead to the cluster in which the namespace works."""
    if restart:
        await world.supervisor.stop()
        del world.kube.resources[CONNECTIONS, "k", "prod"]
        world.begin()
    else:
        world.gone(CONNECTIONS, "k", "prod")
    world.connection()
    world.see()
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    await world.supervisor._engines.end_bindings()
    assert await owners(world) == {"c": "k"}
    world.real.arrive()


class TestTheYoungerOfTwo:
    """KafkaConnection l/prod has another listener of dev, which belongs to the older k/prod: it has no cluster."""

    @pytest.fixture
    async def listener(self, world, dev):
        world.servers["listener"] = listener = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        listener.cluster_id = "dev"
        world.connection("l", server="listener")
        await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "Conflicted")
        return listener

    async def refused(self, world):
        """Its brokers, which answer with the id of the cluster of namespace a, do not take it."""
        message = "KafkaConnection l/prod leads there, but it has led to another cluster before"
        await world.until(lambda: message in world.ready("l", "prod", CONNECTIONS)[1])
        assert await owners(world) == {"c": "a", "dev": "k"}

    async def test_takes_no_cluster_of_inline_connections(self, world, listener):
        """Also after it has answered as before, and after restarts: the id that was refused is not on record."""
        listener.cluster_id = "c"
        await self.refused(world)
        listener.cluster_id = "dev"
        await world.until(lambda: "older KafkaConnection k/prod" in world.ready("l", "prod", CONNECTIONS)[1])
        for _ in range(2):
            await answers_as(world, listener, "c")
            await self.refused(world)
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_not_after_a_restart_while_it_could_not_be_reached(self, world, listener):
        world.servers["listener"] = Away()
        await world.restart()
        world.see()
        await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "KafkaUnreachable")
        world.servers["listener"] = listener
        listener.cluster_id = "c"
        await self.refused(world)

    @pytest.mark.parametrize("reached", [False, True])
    async def test_takes_it_once_it_is_created_again(self, world, listener, reached):
        """An administrator means the cluster that it leads to now, also if it is not reached at first."""
        listener.cluster_id = "c"
        await self.refused(world)
        world.gone(CONNECTIONS, "l", "prod")
        if not reached:
            world.servers["listener"] = Away()
        world.connection("l", server="listener")
        if not reached:
            await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "KafkaUnreachable")
            await world.restart()
            world.see()
        world.servers["listener"] = world.real
        await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "Connected")
        assert await owners(world) == {"c": "l", "dev": "k"}


async def test_a_connection_that_has_lost_its_cluster_takes_no_other(world):
    """An older KafkaConnection, which could not be reached at first, has taken it."""
    world.servers["dev"] = dev = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    dev.cluster_id = "dev"
    dev.brokers = {broker: Broker(broker, host="dev", port=9092) for broker in dev.brokers}
    world.servers["older"] = Away()
    world.connection("l", server="older:9092,dev")
    await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "KafkaUnreachable")
    world.connection(server="dev")
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    world.servers["older"] = listener_of(dev, 9093)
    await refused(world)
    world.create("a", execution={"suspend": True})
    world.see("a")
    await world.until(lambda: world.supervisor._engines.get("c"))
    dev.cluster_id = "c"
    message = "KafkaConnection k/prod leads there, but it has led to another cluster before"
    await world.until(lambda: message in world.ready("k", "prod", CONNECTIONS)[1])
    assert await owners(world) == {"c": "a", "dev": "l"}
