"""Nothing begins while it is not known whether a namespace may use its connection."""

import asyncio

import pytest
from tests.fakes.shared_clusters import REF, Away

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.model.topology import BrokerId

SELECTOR = {"matchLabels": {"kafka": "prod"}}


@pytest.fixture
async def labelled(world, monkeypatch):
    """A namespace that may use the connection because of its labels. ``forbid``: these cannot be read any more."""
    labels, forbidden = world.kube.namespace_labels, False

    async def read(namespace):
        if forbidden:
            raise Forbidden("may not read namespaces")
        return await labels(namespace)

    async def forbid(uid, rebalance):
        nonlocal forbidden
        forbidden = True
        await world.until(lambda: uid in world.supervisor.connection_of(rebalance).refusals)

    async def permit(uid, rebalance):
        nonlocal forbidden
        forbidden = False
        await world.until(lambda: uid not in world.supervisor.connection_of(rebalance).refusals)

    world.kube.labels["a"] = {"kafka": "prod"}
    monkeypatch.setattr(world.kube, "namespace_labels", read)
    world.connection(selector=SELECTOR)
    world.forbid, world.permit = forbid, permit
    return world


def approve(world):
    plan = world.kube.resources[REBALANCES, "a", "r"]["status"]["plan"]["hash"]
    world.edit(REBALANCES, "a", "r", approval={"policy": "Manual", "planHash": plan})


class TestRuns:
    """One that has sent nothing. Approval, a window, or the end of another one would let it begin."""

    async def test_not_while_the_labels_cannot_be_read(self, labelled):
        labelled.create("a", kafka=REF, brokers={"decommission": [1]}, approval={"policy": "Manual"})
        labelled.see("a")
        await labelled.until(lambda: labelled.state("a") == "AwaitingApproval")
        await labelled.forbid("u-2", "u-2")
        approve(labelled)
        await labelled.until(lambda: labelled.state("a") == "ApiServerForbidden")
        assert labelled.real.altered == []
        await labelled.permit("u-2", "u-2")
        await labelled.until(lambda: labelled.state("a") == "Succeeded")

    async def test_not_while_the_connection_leads_nowhere(self, world):
        """It was edited: perhaps it is to lead to another cluster."""
        world.connection(names=["a"])
        world.create("a", kafka=REF, brokers={"decommission": [1]}, approval={"policy": "Manual"})
        world.see("a")
        await world.until(lambda: world.state("a") == "AwaitingApproval")
        world.servers["new"] = Away()
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9092")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaUnreachable")
        approve(world)
        await world.until(lambda: world.state("a") == "KafkaUnreachable")
        assert world.real.altered == []


async def test_a_throttle_keeps_its_rates(labelled):
    labelled.create("a", plural=REASSIGNMENT_THROTTLES, name="t", kafka=REF, leaderRate="1000", followerRate="1000")
    labelled.create("a", kafka=REF, brokers={"decommission": [1]}, execution={"parallelPartitionCount": 1})
    labelled.real.slow = {BrokerId(4)}
    labelled.see("a")
    await labelled.until(lambda: "1000" in labelled.real.values.values())
    await labelled.forbid("u-2", "u-3")
    labelled.edit(REASSIGNMENT_THROTTLES, "a", "t", leaderRate="7777", followerRate="7777")
    for _ in range(100):
        await asyncio.sleep(0.002)
    assert set(labelled.real.values.values()) & {"1000", "7777"} == {"1000"}
    await labelled.permit("u-2", "u-3")
    await labelled.until(lambda: "7777" in labelled.real.values.values())


async def test_a_plan_of_before_is_not_opened(world):
    """The plan of a resource that has lost its permission meanwhile, when it has it again: others may have moved."""
    answers = asyncio.Event()

    async def loads(_):
        await answers.wait()

    world.loads = loads
    await world.restart()
    world.connection(names=["a"])
    world.create("a", kafka=REF, brokers={"decommission": [1]}, goals={"load": {"resources": [{"name": "Disk"}]}})
    world.see("a")
    rebalance = world.supervisor.connection_of("u-2").rebalances["u-2"]
    await world.until(lambda: rebalance.memory.planning is not None)
    task = rebalance.memory.planning
    world.supervisor.connection_of("u-2").leave("u-2")
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()
    answers.set()
    world.edit(REBALANCES, "a", "r", priority=1)
    await world.until(lambda: world.state("a") == "Succeeded")
    assert rebalance.memory.planning is not task
