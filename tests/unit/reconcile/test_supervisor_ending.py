"""An engine ends with the last resource that names its cluster, unless it still has something to restore there."""

import asyncio
from dataclasses import replace

import pytest
from e2e.bench.waiting import wait_until
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.kafka.ports import Answers, ClusterInfo
from kafka_rebalance.kube.blobs import object_name
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reconcile.supervisor import Supervisor

RUN = Run("u-left", "kafka", "left", "c", "run-1", "sha256:a", "sha256:b", NOON)
RUN_RECORD = object_name("run", RUN.uid)


class Brokers:
    """The first call returns the cluster id; afterwards they are unreachable, like a cluster that was shut down."""

    def __init__(self):
        self.asked = self.closed = 0

    async def describe_cluster(self):
        self.asked += 1
        if self.asked > 1:
            raise Transient("KafkaUnreachable", "nobody answers", retry_after=0.001)
        return ClusterInfo("c", {})

    async def describe_partitions(self, topics=None):
        return Answers()

    async def topic_ids(self, topics=None):
        return Answers()

    async def close(self):
        self.closed += 1


class Kube(KubeInMemory):
    """``answers``: listing records waits for it. ``away``: the API server is unreachable."""

    def __init__(self):
        super().__init__()
        self.answers, self.away, self.listing = None, False, 0

    async def list_config_maps(self, labels):
        self.listing += 1
        if self.answers is not None:
            await self.answers.wait()
        if self.away:
            raise Transient("ApiServerUnreachable", "nobody answers", 1.0)
        return await super().list_config_maps(labels)


class World:
    def __init__(self):
        self.kube, self.brokers = Kube(), []
        self.supervisor = Supervisor(self.kube, self.connect, None, StoppedClock())

    def connect(self, _settings, _owner):
        self.brokers.append(Brokers())
        return self.brokers[-1]

    def applied(self, name="r", plural=REBALANCES, *, see=True, server="kafka:9092"):
        metadata = {"name": name, "namespace": "kafka", "uid": f"u-{name}"}
        spec = {"kafka": {"bootstrapServers": server}}
        body = self.kube.create(plural, {"metadata": metadata, "spec": spec})
        if see:
            self.seen(body)
        return body

    def seen(self, body, *, deleted=False):
        throttle = body["metadata"]["name"] == "limits"
        (self.supervisor.throttle_seen if throttle else self.supervisor.rebalance_seen)(body, deleted=deleted)

    def gone(self, body, plural=REBALANCES):
        self.kube.resources.pop((plural, "kafka", body["metadata"]["name"]))
        self.seen(body, deleted=True)

    async def running(self):
        await until(lambda: self.engine is not None and self.engine.rebalances and self.asked > 2 + len(self.brokers))
        return self.engine

    async def rounds(self):
        """Run a few more rounds; all of them fail."""
        asked = self.asked
        await until(lambda: self.asked > asked + 3)

    async def ended(self):
        await until(lambda: self.engine is None and self.brokers[0].closed)

    @property
    def asked(self):
        return sum(brokers.asked for brokers in self.brokers)

    @property
    def engine(self):
        running = self.supervisor._engines.get("c")
        return running.engine if running is not None else None


async def until(holds):
    await asyncio.to_thread(wait_until, "it holds", holds, every=0.005)


@pytest.fixture
async def world():
    world = World()
    yield world
    await world.supervisor.stop()


class TestNobodyNamesIt:
    async def test_it_ends_with_the_last_one(self, world):
        """The operator stops contacting a cluster that was shut down, and closes its client once."""
        first, second = world.applied(), world.applied("s", server="other:9092")
        engine = await world.running()
        await until(lambda: len(engine.rebalances) == 2)
        world.gone(first)
        await world.rounds()
        assert world.engine is engine
        world.gone(second)
        await world.ended()
        assert list(world.supervisor._book) == []
        assert world.supervisor.rounds() == {}
        assert world.brokers[0].closed == 1

    async def test_throttles_name_it_too(self, world):
        """It throttles foreign reassignments."""
        limits, mine = world.applied("limits", REASSIGNMENT_THROTTLES), world.applied()
        engine = await world.running()
        world.gone(mine)
        await world.rounds()
        assert world.engine is engine
        world.gone(limits, REASSIGNMENT_THROTTLES)
        await world.ended()

    async def test_the_next_one_begins_anew(self, world):
        """With its own client."""
        mine = world.applied()
        first = await world.running()
        world.gone(mine)
        await world.ended()
        world.applied()
        assert await world.running() is not first
        assert [brokers.closed for brokers in world.brokers] == [1, 0]


class TestSomethingIsLeft:
    async def test_a_throttle(self, world):
        """A broker that is down may return: its configs are restored then."""
        left = {**ledger_to_json(Ledger()), "entries": {"t": {"follower.replication.throttled.replicas": ["0:1"]}}}
        await LedgerStore(world.kube).save("c", left)
        world.gone(await self.seen(world))
        await world.rounds()
        assert world.engine is not None

    async def test_an_open_run(self, world):
        """The run of an existing resource counts until it is closed. Runs of other clusters do not count."""
        runs = RunStore(world.kube)
        world.applied("left", see=False, server="elsewhere:9092")
        await runs.save(RUN)
        await runs.save(replace(RUN, uid="u-9", cluster_id="d"))
        world.gone(await self.seen(world))
        await world.rounds()
        assert world.engine is not None
        await runs.save(replace(RUN, closed_at=NOON, outcome=RunOutcome.ABANDONED))
        await world.ended()

    async def test_an_open_run_without_a_resource(self, world):
        """Nothing can end it, so it does not block the end."""
        runs = RunStore(world.kube)
        world.applied("left", see=False, server="elsewhere:9092")
        await runs.save(RUN)
        world.gone(await self.seen(world))
        await world.rounds()
        del world.kube.resources[REBALANCES, "kafka", "left"]
        await world.ended()
        await until(lambda: "Abandoned" in world.kube.config_maps[RUN_RECORD]["data"]["run.json"])

    async def test_what_is_left_cannot_be_read(self, world):
        """Then it is unknown what is left."""
        mine = await self.seen(world)
        world.kube.away = True
        world.gone(mine)
        await world.rounds()
        assert world.engine is not None
        world.kube.away = False
        await world.ended()

    @staticmethod
    async def seen(world):
        mine = world.applied()
        await world.running()
        return mine


class TestSomebodyComesMeanwhile:
    async def test_while_it_looks_what_is_left(self, world):
        """The engine continues with its client."""
        mine = world.applied()
        engine = await world.running()
        world.kube.answers, listed = asyncio.Event(), world.kube.listing
        world.gone(mine)
        await until(lambda: world.kube.listing > listed)
        world.applied("s")
        world.kube.answers.set()
        await world.rounds()
        assert world.engine is engine
        assert (list(engine.rebalances), world.brokers[0].closed) == (["u-s"], 0)

    async def test_connected_and_not_handed_over(self, world):
        """The new resource waits for its limits: until then the engine does not have it."""
        mine = world.applied()
        engine = await world.running()
        known = asyncio.Event()
        world.supervisor._limits_known = lambda _owner: known.wait()
        world.applied("s", server="other:9092")
        await until(lambda: len(world.brokers) > 1 and world.brokers[1].closed)
        world.gone(mine)
        await world.rounds()
        assert (world.engine, engine.rebalances) == (engine, {})
        known.set()
        await until(lambda: list(engine.rebalances) == ["u-s"])

    @pytest.mark.parametrize("turns", range(8))
    async def test_at_any_turn_of_its_end(self, world, turns):
        """Either the old engine has it or a new one; it never stays with an engine that has ended."""
        mine = world.applied()
        await world.running()
        world.gone(mine)
        for _ in range(turns):
            await asyncio.sleep(0)
        world.applied("s")
        await until(lambda: world.engine is not None and list(world.engine.rebalances) == ["u-s"])
        await world.rounds()
        assert list(world.engine.rebalances) == ["u-s"]
        assert world.brokers[-1].closed == 0
