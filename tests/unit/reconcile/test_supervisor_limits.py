"""After a start resources arrive one by one: nothing moves before the limits and freezes are known."""

import asyncio

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.reconcile import supervisor as supervising
from kafka_rebalance.reconcile.supervisor import Supervisor


class Engine:
    cluster_id = "c"

    def __init__(self):
        self.rebalances, self.throttles = {}, {}

    def wake(self):
        pass

    def see_throttles(self, throttles):
        self.throttles.update(throttles)


class World:
    """One cluster that a team names by two addresses. ``answers``: the results of connecting, by the host."""

    def __init__(self):
        self.kube, self.engine = KubeInMemory(), Engine()
        self.answers = {name: asyncio.get_running_loop().create_future() for name in ("limits", "moves")}
        self.supervisor = Supervisor(self.kube, None, None, StoppedClock())
        self.supervisor._engines.reached_by = self.connect

    async def connect(self, connection):
        host, _, _ = connection.inline.bootstrap_servers.partition(":")
        return await asyncio.shield(self.answers[host])

    def throttle(self, namespace="team"):
        return self._applied(REASSIGNMENT_THROTTLES, "limits", namespace, freeze=True)

    def rebalance(self):
        return self._applied(REBALANCES, "moves")

    def _applied(self, plural, host, namespace="team", **spec):
        metadata = {"name": "a", "namespace": namespace, "uid": f"u-{host}"}
        spec = {"kafka": {"bootstrapServers": f"{host}:9092"}, **spec}
        return self.kube.create(plural, {"metadata": metadata, "spec": spec})

    def see_rebalance(self):
        self.supervisor.rebalance_seen(self.rebalance(), deleted=False)

    async def settles(self):
        """Nothing here takes time."""
        for _ in range(50):
            await asyncio.sleep(0)

    @property
    def known(self):
        return bool(self.engine.throttles), bool(self.engine.rebalances)


@pytest.fixture
async def world():
    world = World()
    yield world
    await world.supervisor.stop()


async def test_a_throttle_that_is_slow_to_come(world):
    """The cluster answers at one address first; a resource with the other address has frozen it."""
    world.supervisor.throttle_seen(world.throttle(), deleted=False)
    world.see_rebalance()
    world.answers["moves"].set_result(world.engine)
    await world.settles()
    assert world.known == (False, False)
    world.see_rebalance()
    await world.settles()
    assert world.known == (False, False)
    world.answers["limits"].set_result(world.engine)
    await world.settles()
    assert world.known == (True, True)


async def test_a_throttle_of_a_cluster_that_does_not_answer(world):
    """After one attempt the others do not wait for the next one."""
    world.supervisor.throttle_seen(world.throttle(), deleted=False)
    world.see_rebalance()
    world.answers["moves"].set_result(world.engine)
    world.answers["limits"].set_exception(Transient("KafkaUnreachable", "no broker answered"))
    await world.settles()
    assert world.known == (False, True)


async def test_a_throttle_of_a_cluster_that_hangs(world, monkeypatch):
    """The others wait for a limited time."""
    monkeypatch.setattr(supervising, "_LIMITS_SECONDS", 0)
    world.supervisor.throttle_seen(world.throttle(), deleted=False)
    world.see_rebalance()
    world.answers["moves"].set_result(world.engine)
    await world.settles()
    assert world.known == (False, True)


async def test_a_throttle_of_another_owner(world):
    """It limits nothing in this owner's cluster, and its server may hang: nobody waits for it."""
    world.supervisor.throttle_seen(world.throttle("others"), deleted=False)
    world.see_rebalance()
    world.answers["moves"].set_result(world.engine)
    await world.settles()
    assert world.known == (False, True)


@pytest.mark.parametrize("namespaces", [(), ("team",)])
async def test_throttles_are_asked_for_before_anything_is_watched(world, namespaces):
    """The watch may deliver rebalances first."""
    world.throttle()
    await world.supervisor.know(namespaces)
    world.see_rebalance()
    for answer in world.answers.values():
        answer.set_result(world.engine)
    await world.settles()
    assert world.known == (True, True)


async def test_a_throttle_that_goes_meanwhile(world):
    """While rebalances wait, the engine has the latest version of the throttle."""
    hung = world.throttle()
    beside = {**hung, "metadata": {**hung["metadata"], "name": "b", "uid": "u-2"}, "spec": world.rebalance()["spec"]}
    world.supervisor.throttle_seen(hung, deleted=False)
    world.supervisor.throttle_seen(beside, deleted=False)
    world.see_rebalance()
    world.answers["moves"].set_result(world.engine)
    await world.settles()
    assert world.known == (True, False)
    world.supervisor.throttle_seen(beside, deleted=True)
    assert world.known == (False, False)
