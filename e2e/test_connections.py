"""KafkaConnections, and servers that claim to be a cluster: whose client moves whose partitions."""

from collections.abc import Callable, Iterator

import pytest

from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.connection import Connection
from e2e.lane import TEAM
from e2e.rebalance import Rebalance, state
from e2e.world import BIG, FAST, FINE, World, targets

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

ONE_AT_A_TIME = {"parallelPartitionCount": 1}


@pytest.fixture
def team(kube: KubeCluster) -> Iterator[str]:
    """A second namespace that the operator watches."""
    kube.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {TEAM}}}\n")
    yield TEAM
    kube.kubectl("delete", "namespace", TEAM, "--ignore-not-found")


class TestPermission:
    """spec.allowedNamespaces."""

    def test_lost_in_mid_run(self, world: World, connect: Callable[..., Connection], team: str) -> None:
        """Steps in flight complete, nothing new starts, and no throttle stays.

        The run continues when it is permitted again.
        """
        topic = world.skewed("permission", *[BIG // 4] * 12, batch_bytes=FINE)
        before = world.judge.describe_topics(topic)
        connection = connect(allowedNamespaces={"names": [team]})
        rebalance = world.rebalance("permission", topic, kafka=connection.ref, namespace=team, execution=ONE_AT_A_TIME)
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        connection.apply(allowedNamespaces={"from": "Same"})
        rebalance.wait_state("ConnectionNotPermitted")
        begun = world.begun(topic, before)
        wait_until("it is at rest", lambda: not world.in_flight(topic) and world.judge.throttles() == {}, every=1)
        assert world.moved(topic, before) <= begun < {number for _, number in targets(plan)}
        rebalance.patch(throttle=FAST)
        connection.apply(allowedNamespaces={"names": [team]})
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))
        _delete(rebalance)

    @pytest.mark.campaign
    def test_the_connection_is_deleted_in_mid_run(
        self, world: World, connect: Callable[..., Connection], operator: OperatorProcess
    ) -> None:
        """It comes to rest with the client in memory; created again, also after a restart, the run goes on."""
        topic = world.skewed("deleted", *[BIG // 4] * 4, batch_bytes=FINE)
        before = world.judge.describe_topics(topic)
        connection = connect()
        rebalance = world.rebalance("deleted", topic, kafka=connection.ref, execution=ONE_AT_A_TIME)
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        connection.delete()
        rebalance.wait_state("ConnectionNotFound")
        wait_until("it is at rest", lambda: not world.in_flight(topic) and world.judge.throttles() == {}, every=1)
        operator.restart()
        rebalance.patch(throttle=FAST)
        connection.apply()
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))


class TestListeners:
    """Two listeners of one cluster, whose addresses are all different."""

    @pytest.mark.campaign
    def test_the_other_one_is_first_after_a_restart(self, world: World, operator: OperatorProcess) -> None:
        """It is the same cluster: the open run goes on, and the limits of the other resource hold."""
        topic = world.skewed("listeners", *[BIG] * 4)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("listeners", topic, execution=ONE_AT_A_TIME)
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        other = {"bootstrapServers": world.kafka.other_bootstrap_servers}
        behind = world.rebalance("behind", topic, kafka=other, execution={"suspend": True})
        behind.wait_state("Queued")
        operator.restart()
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))

    @pytest.mark.campaign
    def test_a_connection_moves_to_the_other_one(
        self, world: World, connect: Callable[..., Connection], operator: OperatorProcess
    ) -> None:
        """While a run is open, and before a restart: it goes on."""
        topic = world.skewed("moved", *[BIG] * 4)
        before = world.judge.describe_topics(topic)
        connection = connect()
        rebalance = world.rebalance("moved", topic, kafka=connection.ref, execution=ONE_AT_A_TIME)
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        connection.apply(bootstrapServers=world.kafka.other_bootstrap_servers)
        operator.restart()
        connection.wait_state("Connected")
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))


class TestClaims:
    """A server with the id of a cluster."""

    @pytest.fixture
    def claimant(self, world: World) -> Iterator[KafkaCluster]:
        """Another cluster with the same id, a broker 1, and none of the topics."""
        cluster = KafkaCluster(racks_of([1]), cluster_id=world.kafka.cluster_id).start()
        yield cluster
        cluster.close()

    @pytest.mark.campaign
    def test_before_and_after_a_restart(
        self, world: World, operator: OperatorProcess, claimant: KafkaCluster, team: str
    ) -> None:
        """It gets no run, from another namespace or from the owner's, in any order."""
        topic = world.skewed("claimed", *[BIG] * 4)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("claimed", topic, execution=ONE_AT_A_TIME)
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        server = {"bootstrapServers": claimant.bootstrap_servers}
        foreign = world.rebalance("foreign", topic, kafka=server, namespace=team, brokers={"decommission": [1]})
        own = world.rebalance("own", topic, kafka=server, brokers={"decommission": [1]})
        for _ in range(2):
            assert "connectionRef" in state(foreign.wait_state("ClusterOwnedElsewhere"))[1]
            assert "topics on record" in state(own.wait_state("ClusterIdCollision"))[1]
            operator.restart()
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))
        for other in (foreign, own):
            _delete(other)


def _delete(rebalance: Rebalance) -> None:
    rebalance.delete()
    rebalance.wait_gone()
