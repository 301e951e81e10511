"""A broker has died permanently: its replicas are replaced while it is down, on both release lines.

3.9 completes no reassignment while a replica of its target is out of sync; 4.3 removes no replica (without adding one)
while another one stays out of sync.
"""

import json
from collections.abc import Callable, Iterator

import pytest

from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.rebalance import state
from e2e.world import BIG, FAST, SMALL, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

DEAD = 5
WHOLE = {"brokerSettleTime": "1s", "maxUnhealthy": 100}


@pytest.fixture(scope="module")
def older_kafka() -> Iterator[KafkaCluster]:
    """The same five brokers, with Kafka 3.9."""
    with KafkaCluster(racks_of(range(1, 6)), version="3.9") as cluster:
        yield cluster


@pytest.fixture(params=["kafka", pytest.param("older_kafka", marks=pytest.mark.campaign)])
def world(
    request: pytest.FixtureRequest,
    kube: KubeCluster,
    operator: OperatorProcess,
    unique: Callable[[str], str],
) -> Iterator[World]:
    """A cluster of each release line; its broker 5 is started again at the end."""
    kafka: KafkaCluster = request.getfixturevalue(request.param)
    operator.ensure_running()
    world = World(kafka, kube, operator, unique)
    yield world
    if DEAD not in kafka.running:
        kafka.start_brokers(DEAD)
    world.close()


class TestDecommissioned:
    def test_its_replicas_are_replaced_without_it(self, world: World) -> None:
        """Both leaders and followers are replaced; a partition without a replica on broker 5 keeps its set."""
        topic = world.topic("dead", [(1, 2, 5), (5, 3, 1), (2, 5, 3), (1, 2, 3)], SMALL)
        _die(world, topic)
        rebalance = world.rebalance("dead", topic, throttle=FAST, brokers={"decommission": [DEAD]}, execution=WHOLE)
        rebalance.wait_for("Succeeded")
        after = world.partitions(topic)
        assert set(after[3].replicas) == {1, 2, 3}
        for partition in (0, 1, 2):
            assert len(after[partition].replicas) == 3
            assert DEAD not in after[partition].replicas
            assert set(after[partition].isr) == set(after[partition].replicas)
            assert after[partition].leader == after[partition].replicas[0]
        assert not world.in_flight(topic)

    @pytest.mark.campaign
    def test_two_of_three_are_gone(self, world: World) -> None:
        """Both are replaced in parallel, although parallelReplicaCount is 1."""
        topic = world.topic("two", [(1, 4, 5)], SMALL)
        _die(world, topic, 4)
        try:
            rebalance = world.rebalance("two", topic, throttle=FAST, brokers={"decommission": [4, 5]}, execution=WHOLE)
            rebalance.wait_for("Succeeded")
            (found,) = world.partitions(topic).values()
            assert set(found.replicas) == set(found.isr) == {1, 2, 3}
        finally:
            world.kafka.start_brokers(4)


class TestStays:
    def test_nothing_is_begun_beside_a_replica_that_stays_dead(self, world: World) -> None:
        """The broker dies after planning. The status names it; when it returns, the move completes."""
        topic = world.topic("stays", [(1, 2, 5)], SMALL)
        manual = {"policy": "Manual"}
        rebalance = world.rebalance(
            "stays", topic, throttle=FAST, brokers={"decommission": [2]}, execution=WHOLE, approval=manual
        )
        status = rebalance.wait_state("AwaitingApproval")
        _die(world, topic)
        rebalance.patch(approval={"planHash": status["plan"]["hash"]})
        said = f"Kafka drops no replica while broker {DEAD}"
        rebalance.until("the broker is named", lambda status: said in state(status)[1])
        assert not world.in_flight(topic)
        world.kafka.start_brokers(DEAD)
        rebalance.wait_for("Succeeded")
        (found,) = world.partitions(topic).values()
        assert 2 not in found.replicas
        assert not world.in_flight(topic)


class TestCancelled:
    @pytest.mark.campaign
    def test_no_null_leaves_fewer_than_min_insync_replicas(self, world: World) -> None:
        """One copy is in sync, the broker of the other one is dead, and two originals die: a deletion waits for one."""
        topic = world.topic("null", [(1, 2, 3)], BIG, min_insync_replicas="2")
        before = world.judge.describe_topics(topic)
        rows = [{"topic": topic, "partition": 0, "replicas": [1, 4, DEAD]}]
        lists = world.config_map("null", k=json.dumps({"version": 1, "partitions": rows}))
        goal = {"strategy": "Assignment", "assignment": {"configMapRef": {"name": lists, "key": "k"}}}
        rebalance = world.rebalance("null", topic, execution={**WHOLE, "parallelReplicaCount": 2}, **goal)
        wait_until("both copies are in flight", lambda: set(world.partitions(topic)[0].replicas) == {1, 2, 3, 4, DEAD})
        originals = (2, 3)
        try:
            _die(world, topic)
            rebalance.patch(throttle=FAST)
            wait_until("the other copy is in sync", lambda: 4 in world.partitions(topic)[0].isr)
            _die(world, topic, *originals)
            assert set(world.partitions(topic)[0].isr) == {1, 4}
            rebalance.delete()
            waits = f"CancelBelowMinInsyncReplicas (1, e.g. {topic}-0: "
            rebalance.until("it waits", lambda status: waits in state(status)[1])
            assert world.in_flight(topic)
            assert set(world.partitions(topic)[0].isr) == {1, 4}
            world.kafka.start_brokers(originals[0])
            wait_until("it is cancelled", lambda: not world.in_flight(topic))
            assert set(world.partitions(topic)[0].isr) >= {1, originals[0]}
        finally:
            world.kafka.start_brokers(*({DEAD, *originals} - set(world.kafka.running)))
        rebalance.wait_gone()
        world.wait_in_sync(topic)
        # Not the leader: on a busy machine, the cluster may have taken broker 1 for dead as well for a moment.
        assert world.judge.describe_topics(topic)[topic, 0].replicas == before[topic, 0].replicas
        # The rate of a broker that was dead is removed when it is back, by then without the resource.
        wait_until("the throttles are taken away", lambda: world.judge.throttles() == {}, every=1)
        world.assert_tidy()


def _die(world: World, topic: str, *others: int) -> None:
    """Kill broker 5 and these others, and wait until the cluster has noticed."""
    dead = {DEAD, *others}
    world.kafka.kill9(*dead & set(world.kafka.running))
    world.kafka.wait_gone(*dead)
    wait_until("they left the ISR", lambda: all(dead.isdisjoint(s.isr) for s in world.partitions(topic).values()))
