"""How the supervisor handles a throttle resource: which engine gets it, when that wakes up, when it is forgotten."""

import asyncio
from datetime import timedelta

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import FINALIZER, REASSIGNMENT_THROTTLES
from kafka_rebalance.errors import Transient
from kafka_rebalance.reconcile import connection_retries
from kafka_rebalance.reconcile.supervisor import Supervisor

WHERE = (REASSIGNMENT_THROTTLES, "kafka", "limits")


class Engine:
    """What the supervisor uses of an engine."""

    def __init__(self):
        self.rebalances, self.throttles, self.woken = {}, {}, 0

    cluster_id = "c"

    def wake(self):
        self.woken += 1

    def see_throttles(self, throttles):
        self.throttles.update(throttles)


class World:
    def __init__(self):
        self.kube, self.clock, self.engine, self.attempts = KubeInMemory(), StoppedClock(), Engine(), 0
        self.reachable = True
        self.supervisor = Supervisor(self.kube, None, None, self.clock)
        self.supervisor._engines.reached_by = self.connect

    async def connect(self, connection):
        self.attempts += 1
        if not self.reachable:
            raise Transient("KafkaUnreachable", "no broker answered")
        return self.engine

    def applied(self, *, held=True, **spec):
        metadata = {"name": "limits", "namespace": "kafka", "uid": "k-1"}
        metadata["finalizers"] = [FINALIZER] if held else []
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "leaderRate": "50Mi", **spec}
        return self.kube.create(WHERE[0], {"metadata": metadata, "spec": spec})

    def seen(self, body, *, deleted=False):
        self.supervisor.throttle_seen(body, deleted=deleted)

    def deletion(self):
        return self.kube.delete(*WHERE, self.clock.at.isoformat())

    @property
    def mine(self):
        return self.engine.throttles.get("k-1")

    @property
    def status(self):
        conditions = self.kube.resources[WHERE].get("status", {}).get("conditions", ())
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), None)


async def until(what):
    """Only threads take time here."""
    for _ in range(30_000):
        if what():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come to that")


@pytest.fixture
async def world(monkeypatch):
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(connection_retries, name, 0)
    world = World()
    yield world
    await world.supervisor.stop()


class TestConnected:
    @pytest.fixture
    async def known(self, world):
        world.seen(world.applied())
        await until(lambda: world.mine)
        return world

    async def test_only_what_somebody_asks_for_wakes_the_engine(self, known):
        """A status update does not wake it; an edit and a deletion do. The engine always has the latest version."""
        for change, wakes in (
            (lambda: known.kube.edit(*WHERE), 0),
            (lambda: known.kube.edit(*WHERE, leaderRate="1Mi"), 1),
            (known.deletion, 1),
        ):
            before = known.engine.woken
            known.seen(change())
            assert known.engine.woken - before == wakes
            assert known.mine.metadata.resource_version == known.kube.resources[WHERE]["metadata"]["resourceVersion"]
        assert known.mine.metadata.deleting

    async def test_a_spec_that_cannot_be_read_hides_nothing(self, known):
        """The last valid spec applies until the resource is deleted."""
        known.seen(known.kube.edit(*WHERE, leaderRate="fast"))
        assert known.mine.spec.leader_rate == 50 * 2**20
        assert "spec.leaderRate" in known.mine.unread
        known.seen(known.deletion())
        assert known.mine.metadata.deleting

    async def test_gone(self, known):
        """Even if its last spec is invalid."""
        known.seen(known.kube.edit(*WHERE, leaderRate="fast"), deleted=True)
        assert known.mine is None

    async def test_let_go_but_held_by_others(self, known):
        """It is no longer ours; later events are ignored."""
        known.kube.resources[WHERE]["metadata"]["finalizers"] = ["example.com/theirs"]
        known.seen(known.deletion())
        assert known.mine is None
        known.seen(known.kube.resources[WHERE])
        assert known.mine is None

    async def test_deleted_while_nobody_watched(self, world):
        """Only the cluster is read from its spec: its rates no longer matter."""
        world.applied(bogus=1, leaderRate="fast")
        world.seen(world.deletion())
        await until(lambda: world.mine)
        assert world.mine.metadata.deleting


async def test_nothing_is_kept_of_what_is_gone(world):
    """A user may create and delete resources all day."""
    world.reachable = False
    for _ in range(3):
        world.seen(world.applied(held=False))
        await until(lambda: world.status == "KafkaUnreachable")
        world.seen(world.kube.resources.pop(WHERE), deleted=True)
        await until(lambda: not list(world.supervisor._book))
        assert not world.supervisor._resources._throttles_written


class TestNeverRead:
    async def test_it_is_said(self, world):
        """No other action is taken."""
        world.seen(world.applied(leaderRate="fast"))
        await until(lambda: world.status == "InvalidSpec")
        assert (world.attempts, world.kube.events) == (0, [])
        assert world.kube.resources[WHERE]["metadata"]["finalizers"] == [FINALIZER]

    async def test_its_deletion_is_not_held_up(self, world):
        """Without a cluster there is nothing to ask."""
        world.applied(kafka={})
        world.seen(world.deletion())
        await until(lambda: WHERE not in world.kube.resources)
        assert [reason for reason, _ in world.kube.events] == ["Abandoned"]

    async def test_its_deletion_does_not_concern_us(self, world):
        """It never had our finalizer: no connection is made for it."""
        world.kube.resources[WHERE] = world.applied(held=False)
        world.kube.resources[WHERE]["metadata"]["finalizers"] = ["example.com/theirs"]
        world.seen(world.deletion())
        world.seen(world.kube.resources[WHERE], deleted=True)
        assert list(world.supervisor._book) == []


class TestUnreachable:
    @pytest.fixture
    async def lost(self, world):
        world.reachable = False
        world.seen(world.applied())
        await until(lambda: world.status == "KafkaUnreachable")
        return world

    async def test_a_deletion_waits_for_two_minutes(self, lost):
        """Then the rest stays in the ledger, and the operator stops connecting."""
        lost.seen(lost.deletion())
        await until(lambda: lost.status == "Restoring")
        lost.clock.at = NOON + timedelta(seconds=119)
        attempts = lost.attempts
        await until(lambda: lost.attempts > attempts + 3)
        assert WHERE in lost.kube.resources
        lost.clock.at = NOON + timedelta(seconds=120)
        await until(lambda: WHERE not in lost.kube.resources)
        assert lost.kube.events[-1][0] == "Abandoned"
        await until(lambda: list(lost.supervisor._book) == [])

    async def test_a_deletion_that_nobody_saw(self, lost):
        """The operator must not retry for ever for a resource that is gone, or was replaced under the same name."""
        lost.kube.resources[WHERE]["metadata"]["uid"] = "k-2"
        await until(lambda: list(lost.supervisor._book) == [])

    async def test_it_comes_back(self, lost):
        """Then the engine handles the deletion."""
        lost.seen(lost.deletion())
        lost.reachable = True
        await until(lambda: lost.mine)
        assert lost.mine.metadata.deleting

    async def test_what_was_never_held_goes_at_once(self, world):
        """It gets no finalizer before it is in force: a typo in the address does not delay its deletion."""
        world.reachable = False
        body = world.applied(held=False)
        world.seen(body)
        await until(lambda: world.attempts > 3)
        assert world.deletion() is None
        world.seen(body, deleted=True)
        await until(lambda: list(world.supervisor._book) == [])
