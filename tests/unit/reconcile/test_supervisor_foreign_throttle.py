"""Rates for reassignments of other tools, when an engine does not get the throttle resource that had set them."""

from dataclasses import replace

import pytest
from tests.fakes.shared_clusters import REF, Away

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile import unfinished_work

MOVED = TopicPartition("orders", 0)
INLINE, OTHER = {"bootstrapServers": "kafka:9092"}, {"bootstrapServers": "other:9092"}
ROUNDS = 5


class Failing(Away):
    """A server with which no connection can be made."""

    def __init__(self, error):
        self.error = error

    async def describe_cluster(self):
        raise self.error


async def limit(world, kafka):
    """Another tool moves a partition, and a throttle resource of namespace a with this spec.kafka limits that."""
    state = world.real.states[MOVED]
    world.real.states[MOVED] = replace(state, replicas=(*state.replicas, BrokerId(4)), adding=(BrokerId(4),))
    world.create("a", plural=REASSIGNMENT_THROTTLES, name="t", kafka=kafka, leaderRate="1", followerRate="1")
    world.see()
    await world.until(lambda: limited(world))


def limited(world):
    """Wakes the engine, which otherwise looks every half minute."""
    running = world.supervisor._engines.get("c")
    if running is not None:
        running.engine.wake()
    return "1" in world.real.values.values()


def throttle_state(world):
    return world.state("a", "t", REASSIGNMENT_THROTTLES)


async def stays(world):
    await world.until(lambda: world.supervisor._engines.get("c") is not None)
    ended = world.supervisor._engines.get("c").engine.figures.rounds.succeeded
    await world.until(
        lambda: limited(world) and world.supervisor._engines.get("c").engine.figures.rounds.succeeded > ended + ROUNDS
    )
    assert limited(world)


class TestRemoved:
    async def test_permission_withdrawn_while_the_operator_is_down(self, world):
        world.connection(names=["a"])
        await limit(world, REF)
        await world.supervisor.stop()
        world.kube.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        world.begin()
        world.see()
        await world.until(lambda: throttle_state(world) == "ConnectionNotPermitted")
        await world.until(lambda: not limited(world))

    async def test_the_cluster_has_another_owner(self, world):
        """The administrator creates a KafkaConnection that others may use."""
        await limit(world, INLINE)
        world.connection(names=["b"])
        await world.until(lambda: throttle_state(world) == "ClusterOwnedElsewhere")
        await world.until(lambda: not limited(world))

    @pytest.mark.parametrize("kafka", [REF, INLINE])
    async def test_deleted_while_the_operator_is_down(self, world, kafka, monkeypatch):
        """Without its finalizer, which somebody has removed."""
        monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.02)
        if kafka is REF:
            world.connection(names=["a"])
        await limit(world, kafka)
        await world.supervisor.stop()
        del world.kube.resources[REASSIGNMENT_THROTTLES, "a", "t"]
        world.begin()
        await world.supervisor.start()
        world.see()
        await world.supervisor.know(())
        await world.until(lambda: not limited(world))


class TestKept:
    """The resource may still come, and would set them again."""

    async def test_its_permission_is_not_known(self, world, monkeypatch):
        world.kube.labels["a"] = {"kafka": "prod"}
        world.connection(selector={"matchLabels": {"kafka": "prod"}})
        await limit(world, REF)
        read = world.kube.namespace_labels

        async def unread(_namespace):
            raise Transient("ApiServerUnreachable", "no answer")

        with monkeypatch.context() as failing:
            failing.setattr(world.kube, "namespace_labels", unread)
            await world.restart()
            world.see()
            await world.until(lambda: throttle_state(world) == "ApiServerUnreachable")
            await stays(world)
        assert world.kube.namespace_labels == read
        await world.until(lambda: throttle_state(world) == "Applied")
        await stays(world)

    async def test_its_spec_cannot_be_read(self, world):
        """For example because it has a field of a later version."""
        world.connection(names=["a"])
        await limit(world, REF)
        await world.supervisor.stop()
        world.kube.edit(REASSIGNMENT_THROTTLES, "a", "t", ofALaterVersion=True)
        world.begin()
        world.see()
        await world.until(lambda: throttle_state(world) == "InvalidSpec")
        await stays(world)
        world.gone(REASSIGNMENT_THROTTLES, "a", "t")
        await world.until(lambda: not limited(world))

    async def test_its_connection_cannot_be_read(self, world, monkeypatch):
        """For example because it has a field of a later version. The work there is done with the settings on record."""
        monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.02)
        world.connection(names=["a"])
        await limit(world, REF)
        await world.supervisor.stop()
        world.kube.edit(CONNECTIONS, "k", "prod", ofALaterVersion=True)
        world.begin()
        await world.supervisor.start()
        await world.supervisor.know(())
        await world.until(lambda: world.supervisor._engines.get("c"))
        await stays(world)

    @pytest.mark.parametrize(
        "error",
        [
            Transient("KafkaUnreachable", "no broker answered"),
            Permanent("KafkaSettingsInvalid", "no such mechanism"),
            Permanent("KafkaAuthorizationFailed", "no ACL"),
        ],
        ids=lambda error: error.reason,
    )
    async def test_its_connection_leads_nowhere(self, world, error):
        """Another connection of the namespace leads to the cluster."""
        world.servers["other"] = world.real
        world.create("a", kafka=INLINE, brokers={"decommission": [1]}, execution={"suspend": True})
        await limit(world, OTHER)
        world.servers["other"] = Failing(error)
        await world.restart()
        world.see()
        await world.until(lambda: throttle_state(world) == error.reason)
        await stays(world)
        world.gone(REASSIGNMENT_THROTTLES, "a", "t")
        await world.until(lambda: not limited(world))
