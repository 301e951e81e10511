"""Inline connections get their cluster back after the KafkaConnection that had taken it over was deleted."""

import pytest
from tests.fakes.shared_clusters import listener_of

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.topology import BrokerId

INLINE = {"namespace": "a", "connection": ""}


async def taken_over(world, server):
    """The run of namespace a has begun before; it is proved if the KafkaConnection has the same bootstrap server."""
    world.servers["kafka-2"] = listener_of(world.real, 9093)
    world.real.slow = {BrokerId(4)}
    drain = {"brokers": {"decommission": [1]}, "execution": {"parallelPartitionCount": 1}}
    world.create("a", throttle={"unlimited": True}, **drain)
    world.see("a")
    await world.until(lambda: len(world.real.flying) == 1)
    world.connection(server=server, names=["b"])
    await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")
    await world.until(lambda: world.owner["connection"])
    world.real.slow = set()
    world.real.arrive()


@pytest.mark.parametrize("server", ["kafka", "kafka-2"])
async def test_their_own_open_run_does_not_keep_them_out(world, server):
    """It continues. If it was not proved that it began in this cluster, it is still not."""
    await taken_over(world, server)
    world.gone(CONNECTIONS, "k", "prod")
    world.supervisor._engines.get("c").engine.wake()
    await world.until(lambda: world.state("a") == "Succeeded")
    assert world.owner == INLINE
    (run,) = await RunStore(world.kube).list_all()
    assert run.unproved is (server == "kafka-2")
