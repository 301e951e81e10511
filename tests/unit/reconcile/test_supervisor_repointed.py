"""A KafkaConnection is edited, or created again, for another cluster: nothing for that one is done in the first."""

import pytest
from tests.fakes.shared_clusters import REF, Away, Cluster

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.execution.reassignment_throttle import RATE_NAMES

DRAIN = {"kafka": REF, "brokers": {"decommission": [1]}, "throttle": {"unlimited": True}}


@pytest.fixture
async def done(world):
    """A rebalance of a permitted namespace has ended."""
    world.connection(names=["a"])
    world.create("a", kafka=REF)
    world.see()
    await world.until(lambda: world.state("a") == "Succeeded")
    return world


def repoint(world, how="edited"):
    """The connection leads to a cluster that does not answer yet, and permits another namespace too."""
    world.servers["new"] = Away()
    if how == "edited":
        allowed = {"names": ["a", "dev"]}
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9092", allowedNamespaces=allowed)
    else:
        world.gone(CONNECTIONS, "k", "prod")
        world.connection(server="new", names=["a", "dev"])


def new_cluster(world):
    """It answers now."""
    world.servers["new"] = other = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    other.cluster_id = "d"
    return other


def rates(world):
    """All throttle rates in the first cluster."""
    return {value for (_, name), value in world.real.values.items() if name in RATE_NAMES}


@pytest.mark.parametrize("how", ["edited", "created again"])
class TestToAClusterThatDoesNotAnswer:
    async def test_a_new_rebalance_waits_for_it(self, done, how):
        before = done.real.lists("orders")
        repoint(done, how)
        await done.until(lambda: done.state("k", "prod", CONNECTIONS) == "KafkaUnreachable")
        done.create("dev", **DRAIN)
        done.see("dev")
        await done.until(lambda: done.state("dev") == "KafkaUnreachable")
        other = new_cluster(done)
        await done.until(lambda: done.state("dev") == "Succeeded")
        assert (done.real.lists("orders"), 1 in other.lists("orders")[0]) == (before, False)

    async def test_a_new_throttle_resource_waits_for_it(self, done, how):
        repoint(done, how)
        await done.until(lambda: done.state("k", "prod", CONNECTIONS) == "KafkaUnreachable")
        done.create("dev", name="t", plural=REASSIGNMENT_THROTTLES, kafka=REF, leaderRate="1Mi")
        done.see("dev")
        await done.until(lambda: done.state("dev", "t", REASSIGNMENT_THROTTLES) == "KafkaUnreachable")
        assert rates(done) == set()

    async def test_an_edited_rebalance_waits_for_it(self, done, how):
        """Also if the edit comes before the attempt to connect has failed."""
        before = done.real.lists("orders")
        repoint(done, how)
        done.edit(REBALANCES, "a", "r", **DRAIN)
        await done.until(lambda: done.state("a") == "KafkaUnreachable")
        other = new_cluster(done)
        await done.until(lambda: done.state("a") == "Succeeded")
        assert (done.real.lists("orders"), 1 in other.lists("orders")[0]) == (before, False)


async def test_an_open_run_goes_on_meanwhile(world):
    """In the cluster where it began."""
    world.connection()
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    repoint(world)
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaUnreachable")
    world.real.arrive()
    await world.until(lambda: world.state("a") == "Succeeded")


async def test_a_run_without_permission_does_not_go_on(world):
    """Only the settings for the new cluster permit its namespace again."""
    world.connection(names=["a"])
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
    await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
    world.real.slow = set()
    world.real.arrive()
    await world.until(lambda: not any(world.real.values.values()))
    before = world.real.lists("orders")
    repoint(world)
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaUnreachable")
    world.create("dev", **DRAIN)
    world.see("dev")
    await world.until(lambda: world.state("dev") == "KafkaUnreachable")  # all have been looked at again
    assert (world.real.lists("orders"), world.runs["a"]) == (before, None)


class TestUnderAnOpenRun:
    """The connection says ClusterChanged until the run has ended."""

    @pytest.fixture
    async def changed(self, world):
        world.connection(names=["a"])
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        repoint(world)
        new_cluster(world)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterChanged")
        return world

    async def test_a_new_throttle_resource_is_refused(self, changed):
        """It would freeze the run, which then would never end."""
        changed.create("dev", name="t", plural=REASSIGNMENT_THROTTLES, kafka=REF, freeze=True, leaderRate="1")
        changed.see("dev")
        await changed.until(lambda: changed.state("dev", "t", REASSIGNMENT_THROTTLES) == "ClusterChanged")
        changed.real.arrive()
        await changed.until(lambda: changed.state("k", "prod", CONNECTIONS) == "Connected")
        assert "1" not in rates(changed)


async def test_settings_are_on_record_with_the_servers_that_they_led_to(world, monkeypatch):
    """The connection is edited while its server is asked for the first time."""
    describe, servers = world.real.describe_cluster, []

    async def edited_meanwhile():
        if not servers:
            servers.append("new:9092")
            world.servers["new"] = Away()
            world.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9092")
        return await describe()

    monkeypatch.setattr(world.real, "describe_cluster", edited_meanwhile)
    world.connection(names=["a"])
    world.create("a", kafka=REF)
    world.see()
    await world.until(lambda: world.binding)
    assert world.binding["servers"] == ["kafka:9092"]
    assert "new:9092" not in world.binding["connection"]
