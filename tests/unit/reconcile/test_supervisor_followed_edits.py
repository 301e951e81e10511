"""The client of a KafkaConnection comes to a server that an edit has named, and with which no claim has succeeded."""

from tests.fakes.shared_clusters import Away, Cluster

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import BrokerId

K2 = {"connectionRef": {"name": "k2", "namespace": "k2"}}


class HalfSilent(Cluster):
    """It does not answer what is asked of all topics."""

    async def topic_ids(self, topics=None):
        if topics is None:
            raise Transient("KafkaUnreachable", "no answer", retry_after=0.01)
        return await super().topic_ids(topics)


async def test_its_run_proves_nothing_from_then_on(world, monkeypatch):
    """Another KafkaConnection for the same cluster, without that server, does not get the run."""
    world.connection("k2", name="k2")
    world.real.slow = {BrokerId(4)}
    one_step = {"parallelPartitionCount": 1}
    world.create("evil", kafka=K2, brokers={"decommission": [1]}, throttle={"unlimited": True}, execution=one_step)
    world.see("evil")
    await world.until(lambda: len(world.real.flying) == 1)
    world.servers["fake"] = fake = HalfSilent([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    fake.slow = {BrokerId(4)}
    world.edit(CONNECTIONS, "k2", "k2", bootstrapServers="fake:9092")
    await world.until(lambda: world.state("k2", "k2", CONNECTIONS) == "KafkaUnreachable")
    assert world.binding["servers"] == ["kafka:9092"]
    with monkeypatch.context() as away:
        away.setattr(world.real, "describe_cluster", Away().describe_cluster)
        await world.until(lambda: fake.altered)
    assert sorted(world.binding["servers"]) == ["fake:9092", "kafka:9092"]
    world.gone(CONNECTIONS, "k2", "k2")
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) in {"Connected", "Conflicted"})
    assert (world.state("k", "prod", CONNECTIONS), world.owner["namespace"]) == ("Conflicted", "k2")
