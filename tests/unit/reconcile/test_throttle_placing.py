"""After a start, rebalances wait until the engine has the throttle resources that it can soon have."""

import asyncio

import pytest
from tests.fakes.shared_clusters import REF, Away, placed

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES
from kafka_rebalance.errors import Transient
from kafka_rebalance.reconcile import throttle_placing

LOOKS = 4


@pytest.fixture
async def frozen(world, monkeypatch):
    """Namespace a has frozen the cluster, and a rebalance of its owner waits."""
    monkeypatch.setattr(throttle_placing, "_PAUSE_SECONDS", 0)
    world.kube.labels["a"] = {"kafka": "prod"}
    world.connection(selector={"matchLabels": {"kafka": "prod"}})
    world.create("a", name="stop", plural=REASSIGNMENT_THROTTLES, kafka=REF, freeze=True)
    world.see()
    await world.until(lambda: world.state("a", "stop", REASSIGNMENT_THROTTLES) == "Applied")
    world.create("k", kafka=REF, brokers={"decommission": [1]}, throttle={"unlimited": True})
    world.see("k")
    await world.until(lambda: world.state("k") == "Frozen")
    return world


@pytest.fixture
async def writing(frozen, monkeypatch):
    """After a restart Kafka does not answer at first; the status of the throttle resource then takes until ``set``."""
    begun, written, patch = asyncio.Event(), asyncio.Event(), frozen.kube.patch_status

    async def patch_status(plural, namespace, name, body):
        if plural == REASSIGNMENT_THROTTLES:
            begun.set()
            await written.wait()
        return await patch(plural, namespace, name, body)

    monkeypatch.setattr(frozen.kube, "patch_status", patch_status)
    frozen.servers["kafka"] = Away()
    await frozen.restart()
    await begun.wait()
    return written


class TestAStatusThatIsBeingWritten:
    async def test_rebalances_wait_for_it(self, frozen, writing, monkeypatch):
        """The freeze is in force when the rebalance is handed over."""
        served, before = placed(monkeypatch), frozen.real.lists("orders")
        frozen.servers["kafka"] = frozen.real
        await frozen.until(lambda: served.count("a/stop") >= LOOKS)
        assert "k/r" not in served
        writing.set()
        await frozen.until(lambda: "k/r" in served and frozen.state("k") == "Frozen")
        assert frozen.real.lists("orders") == before

    async def test_for_a_limited_time(self, frozen, writing, monkeypatch):
        """The API server may not answer for long."""
        monkeypatch.setattr(throttle_placing, "_MOST_SECONDS", 0)
        served = placed(monkeypatch)
        frozen.servers["kafka"] = frozen.real
        await frozen.until(lambda: "k/r" in served)
        writing.set()


async def test_rebalances_wait_for_labels(frozen, monkeypatch):
    """Whether the namespace may freeze the cluster is not known until they have been read."""
    read, unread = frozen.kube.namespace_labels, [None] * LOOKS

    async def labels(namespace):
        if unread:
            unread.pop()
            raise Transient("ApiServerUnreachable", "no answer")
        return await read(namespace)

    monkeypatch.setattr(frozen.kube, "namespace_labels", labels)
    await frozen.supervisor.stop()
    served, before = placed(monkeypatch), frozen.real.lists("orders")
    await frozen.restart()
    await frozen.until(lambda: "k/r" in served and frozen.state("k") == "Frozen")
    assert not unread
    assert served.index("a/stop") < served.index("k/r")
    assert frozen.real.lists("orders") == before
