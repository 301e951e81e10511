"""A server that crashes its clients affects only the resources that name it."""

import pytest
from tests.fakes.hostile_server import CRASHING, HostileServer
from tests.fakes.shared_clusters import SharedClusters

from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated.isolated_admin import IsolatedClients


class Clusters(SharedClusters):
    """Connects to unknown servers with real clients in separate processes."""

    def __init__(self):
        self.isolated, self.attempts = IsolatedClients(), 0
        super().__init__()

    def connect(self, settings, owner):
        if settings.bootstrap_servers.startswith("127.0.0.1"):
            self.attempts += 1
            assert not owner.connection
            return self.isolated.connect(settings, Fence(lambda: True), owner.namespace)
        return super().connect(settings, owner)


@pytest.fixture
async def clusters():
    clusters = Clusters()
    yield clusters
    for supervisor in clusters.supervisors:
        await supervisor.stop()
    await clusters.isolated.close()


@pytest.mark.parametrize("case", CRASHING)
async def test_others_are_served(clusters, case):
    """The operator continues to serve them, and reports the crash on the resource."""
    async with HostileServer(**CRASHING[case]) as hostile:
        clusters.create("evil", kafka={"bootstrapServers": hostile.address})
        clusters.see()
        await clusters.until(lambda: clusters.state("evil") == "KafkaClientEnded")
        assert "crashed (SIGSEGV)" in clusters.ready("evil")[1]
        clusters.create("good", brokers={"decommission": [1]})
        clusters.see("good")
        await clusters.until(lambda: clusters.state("good") == "Succeeded")
        assert clusters.state("evil") == "KafkaClientEnded"
        assert clusters.attempts < 10
