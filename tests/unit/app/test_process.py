"""The watch ends, because the CRDs were deleted or for a reason that only a restart can mend, or overlooks a kind."""

import asyncio

import kopf
import pytest
from e2e.bench.waiting import wait_until
from tests.fakes.lagging_discovery import LaggingDiscovery

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.app import process, resource_watch
from kafka_rebalance.app.process import Settings
from kafka_rebalance.app.system_clock import SystemClock
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.model.ownership import Owner


class Watch:
    """Is ready at once, and fails when a test says so."""

    def __init__(self, namespaces, seen):
        self.failed, self.ready, self.age = asyncio.Event(), asyncio.Event(), 0.0
        self.stopped = self.kind_gone = False
        self.unwatched = self.overlooked = frozenset()

    def start(self):
        World.watches.append(self)
        self.ready.set()

    async def stop(self):
        self.stopped = True


class World:
    """The supervisor and the Lease. ``listing``: what the next attempts to list raise."""

    watches = ()

    def __init__(self):
        World.watches = []
        self.listing, self.stopped = [], False
        self.failed_tasks = ()

    async def start(self):
        pass

    async def know(self, namespaces):
        if self.listing:
            raise self.listing.pop(0)

    async def stop(self):
        self.stopped = True

    async def close_clients(self):
        pass

    def rounds(self):
        return {}

    def is_leader(self):
        return True

    standby_age = None

    async def keep(self):
        await asyncio.Event().wait()

    async def close(self):
        pass


@pytest.fixture
def world(monkeypatch):
    world = World()
    monkeypatch.setattr(process, "Watch", Watch)
    monkeypatch.setattr(process, "Supervisor", lambda *_, **__: world)
    monkeypatch.setattr(process.KubeClient, "connect", lambda *_, **__: world)
    monkeypatch.setattr(process, "_LISTING_SECONDS", 0.001)
    return world


async def watching(parts, count):
    await asyncio.to_thread(wait_until, "it watches", lambda: len(World.watches) == count and parts.state().watching)


class TestTheWatchEnds:
    @pytest.fixture
    def parts(self, world):
        return process._Parts(world)

    @pytest.fixture
    async def leading(self, parts):
        stop = asyncio.Event()
        task = asyncio.create_task(process._lead(Settings("me", ("kafka",)), parts, SystemClock(), stop))
        yield task
        stop.set()
        await asyncio.gather(task, return_exceptions=True)

    async def test_crds_that_were_deleted_are_waited_for(self, world, parts, leading):
        """The operator of single namespaces may not watch CRDs; it is not ready meanwhile, and alive."""
        await watching(parts, 1)
        world.listing = [NotFound("no such kind")] * 20
        World.watches[0].kind_gone = True
        World.watches[0].failed.set()
        await watching(parts, 2)
        assert World.watches[0].stopped
        assert not World.watches[1].stopped
        assert not leading.done()
        assert not world.stopped

    async def test_crds_that_are_back_at_once_are_watched_again(self, world, parts, leading):
        """As after `kubectl replace --force`: when the operator looks, every kind can be listed."""
        await watching(parts, 1)
        World.watches[0].kind_gone = True
        World.watches[0].failed.set()
        await watching(parts, 2)
        assert not leading.done()

    async def test_a_watch_that_ended_for_another_reason_ends_the_operator(self, world, parts, leading):
        await watching(parts, 1)
        World.watches[0].failed.set()
        failure = await leading
        assert failure.reason == "WatchEnded"
        assert world.stopped

    async def test_a_listing_that_fails_unexpectedly_ends_the_operator(self, world, parts):
        """Without what it lists, nothing may move: the process starts again."""
        world.listing = [KeyError("metadata")]
        with pytest.raises(KeyError):
            async with asyncio.timeout(60):
                await process._lead(Settings("me", ("kafka",)), parts, SystemClock(), asyncio.Event())
        assert World.watches == []


class TestClients:
    """Which clients are in processes of their own."""

    async def test_those_of_untrusted_servers(self, world, monkeypatch):
        """Creating KafkaConnections is an administrator's right, naming a server inline is not."""
        made, given = [], []

        class Isolated:
            def connect(self, settings, fence, namespace):
                made.append(f"isolated, of {namespace}")

            async def close(self):
                made.append("closed")

        def supervisor(_kube, connect, *_, **__):
            given.append(connect)
            return world

        monkeypatch.setattr(process, "Supervisor", supervisor)
        monkeypatch.setattr(process, "IsolatedClients", Isolated)
        monkeypatch.setattr(process, "connect", lambda *_: made.append("own"))
        stop = asyncio.Event()
        stop.set()
        await process._lead(Settings("me", ("kafka",)), process._Parts(world), SystemClock(), stop)
        settings = ConnectionSettings("kafka:9092")
        given[0](settings, Owner("team"))
        given[0](settings, Owner("team", "production"))
        assert made == ["closed", "isolated, of team", "own"]


class TestKopf:
    """kopf itself watches, at an API server whose discovery lags behind what it serves."""

    @pytest.fixture
    async def server(self, monkeypatch):
        server = LaggingDiscovery()
        async with server.served() as address:
            monkeypatch.setattr(resource_watch, "login", lambda **_: kopf.ConnectionInfo(server=address))
            yield server

    @pytest.fixture
    async def leading(self, server, monkeypatch):
        """Called with the namespaces, leads with a supervisor that can list every kind; the parts and the task."""
        world = World()
        monkeypatch.setattr(process, "Supervisor", lambda *_, **__: world)
        monkeypatch.setattr(process.KubeClient, "connect", lambda *_, **__: world)
        monkeypatch.setattr(process, "_DISCOVERY_SECONDS", 0.05)
        parts, stop = process._Parts(world), asyncio.Event()
        started = []

        def lead(*namespaces):
            leading = process._lead(Settings("me", namespaces), parts, SystemClock(), stop)
            started.append(asyncio.create_task(leading))
            return parts, started[0]

        yield lead
        stop.set()
        await asyncio.gather(*started, return_exceptions=True)

    @pytest.mark.parametrize("namespaces", [(), ("kafka",)], ids=["all namespaces", "single namespaces"])
    async def test_a_kind_that_discovery_lists_late_is_watched(self, server, leading, namespaces):
        """There is no CRD event after that, and kopf by itself would not look again; not ready meanwhile."""
        server.plurals.remove(REBALANCES)
        parts, task = leading(*namespaces)
        await until("it has been overlooked", lambda: REBALANCES in getattr(parts.watch, "overlooked", ()))
        assert not parts.state().watching
        server.plurals.append(REBALANCES)
        await until("it is watched", lambda: REBALANCES in server.watched and parts.state().watching)
        assert not task.done()


async def until(what, holds):
    await asyncio.to_thread(wait_until, what, holds)
