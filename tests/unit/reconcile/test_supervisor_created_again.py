"""A KafkaConnection is deleted and created again: nothing is done with its former settings for the new one.

The former settings may be those of a user who may only edit it. An administrator has written those of the new one.
"""

import asyncio

import pytest
from tests.fakes.shared_clusters import Cluster
from tests.unit.reconcile.test_supervisor_two_connections import DRAIN, owner_of

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.reconcile import connection_retries


class Held(Cluster):
    """A server that answers when it is let go, with the ids of the cluster c."""

    def __init__(self, *arguments, **lists):
        super().__init__(*arguments, **lists)
        self.described, self.answers = asyncio.Event(), asyncio.Event()

    async def describe_cluster(self):
        self.described.set()
        await self.answers.wait()
        return await super().describe_cluster()


@pytest.fixture
async def held(world):
    """e/prod has its own cluster d, and was edited to lead to a server that answers late."""
    world.servers["own"] = own = Cluster([1, 2, 3, 4], mine=[[1, 2, 3]])
    own.cluster_id = "d"
    world.connection("e", "own")
    await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Connected")
    world.servers["fake"] = Held([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    return world


async def answered_after(world, *events):
    """e/prod is edited to lead to the fake server and to the cluster c. ``events`` come before the first answer."""
    fake = world.servers["fake"]
    world.edit(CONNECTIONS, "e", "prod", bootstrapServers="fake:9092,kafka:9092")
    await world.until(fake.described.is_set)
    for event in events:
        event()
    fake.answers.set()
    return fake


@pytest.mark.parametrize("server", ["own", "kafka"])
async def test_the_former_settings_take_nothing(held, server):
    """They are not judged as if an administrator had written them. Namespace a has a throttled run in cluster c."""
    await held.draining()
    fake = await answered_after(held, lambda: held.gone(CONNECTIONS, "e", "prod"), lambda: held.connection("e", server))
    await held.until(lambda: held.state("e", "prod", CONNECTIONS) in {"Connected", "ClusterChanged"})
    assert owner_of(held, "c") == ("a" if server == "own" else "e")
    assert "fake:9092" not in held.binding["servers"]
    held.real.arrive()
    await held.until(lambda: not any(held.real.values.values()))
    assert fake.altered == []


async def test_nor_while_it_does_not_exist(held):
    """Who has written the last settings of a KafkaConnection that is gone is not known: it takes nothing either."""
    await held.draining()
    fake = await answered_after(held, lambda: held.gone(CONNECTIONS, "e", "prod"))
    await held.until(lambda: not any(known.owner.connection for known in held.supervisor._book))
    assert owner_of(held, "c") == "a"
    held.real.arrive()
    await held.until(lambda: held.state("a") == "Succeeded")
    assert (any(held.real.values.values()), fake.altered) == (False, [])


async def test_the_former_client_is_used_no_more(held):
    """It works, but its server only shows the ids of the cluster. A client is kept after an edit only."""
    fake = held.servers["fake"]
    fake.answers.set()
    held.edit(CONNECTIONS, "e", "prod", bootstrapServers="fake:9092")
    await held.until(lambda: held.supervisor._engines.get("c"))
    held.gone(CONNECTIONS, "e", "prod")
    held.connection("e", "kafka")
    held.create("b", kafka={"connectionRef": {"name": "prod", "namespace": "e"}}, **DRAIN)
    held.see("b")
    await held.until(lambda: held.state("b") == "Succeeded")
    assert fake.altered == []
    assert not any(1 in replicas for replicas in held.real.lists("orders"))


async def test_the_new_settings_are_tried_at_once(held, monkeypatch):
    """The attempt before has failed with other ones, so its pause is not theirs."""
    monkeypatch.setattr(connection_retries, "FIRST_PAUSE_SECONDS", 3600.0)
    await answered_after(held, lambda: held.gone(CONNECTIONS, "e", "prod"), lambda: held.connection("e", "own"))
    await held.until(lambda: held.state("e", "prod", CONNECTIONS) == "Connected")
