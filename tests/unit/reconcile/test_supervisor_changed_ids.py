"""The brokers of a KafkaConnection answer with another cluster id than before. Nobody has edited it."""

import pytest
from tests.fakes.shared_clusters import Cluster

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
