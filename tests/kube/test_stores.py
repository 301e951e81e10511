"""The stores on a real API server: saved content can be loaded, even if the writer was killed meanwhile."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.kube.namespaces import Namespace

from kafka_rebalance.kube import blobs
from kafka_rebalance.kube.api_errors import Conflict, StoredStateCorrupt
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import TopicPartition, replicas_of

pytestmark = pytest.mark.apiserver

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


class Killed(BaseException):
    """The operator's process died."""


class MortalClient(KubeClient):
    """The real client; its process is killed instead of its n-th write."""

    writes_left = 10**9

    def _call(self, method: str, *rest: object) -> Json:
        if method != "GET":
            if self.writes_left == 0:
                raise Killed
            self.writes_left -= 1
        return super()._call(method, *rest)  # type: ignore[arg-type]


@pytest.fixture
async def mortal(namespace: Namespace) -> AsyncIterator[MortalClient]:
    connected = MortalClient.connect(namespace.name, kubeconfig=str(namespace.cluster.admin_kubeconfig))
    assert isinstance(connected, MortalClient)
    yield connected
    await connected.close()


def plan(partitions: int, seed: int = 1) -> Plan:
    """A plan with long random lists, which do not compress well."""
    chance = random.Random(seed)
    rows = []
    for n in range(partitions):
        brokers = chance.sample(range(1000), 60)
        tp = TopicPartition(f"topic-{n // 100:05d}", n % 100)
        rows.append(PlannedPartition(tp, replicas_of(*brokers[:30]), replicas_of(*brokers[30:]), f"id-{n // 100}", n))
    return Plan(tuple(rows), Certificate(partitions, optimal=False))


def origin(topic: str, partition: int, *replicas: int, topic_id: str = "") -> Origin:
    return Origin(TopicPartition(topic, partition), topic_id or f"id-{topic}", replicas_of(*replicas))


async def names(client: KubeClient) -> set[str]:
    return {found["name"] for found in await client.list_config_map_metadata({})} - {"kube-root-ca.crt"}


LARGE = 15_000
"""Partitions of a plan that needs more than one shard."""


SEVERAL = 200
"""Partitions of a plan that needs several shards when shards are small."""


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shards, so that a small plan needs many writes."""
    monkeypatch.setattr(blobs, "SHARD_BYTES", 8 * 1024)


class TestPlans:
    """One plan per resource and spec, of any size, complete or absent."""

    @pytest.mark.parametrize("size", [0, 10, LARGE])
    async def test_round_trip(self, client: KubeClient, size: int) -> None:
        store = PlanStore(client)
        before = plan(size)
        ref = await store.save("u", "sha256:spec", "cluster", before, NOW)
        stored = await store.load("u", "sha256:spec")
        assert stored is not None
        assert (stored.plan, stored.ref, stored.cluster_id, stored.created_at) == (before, ref, "cluster", NOW)
        assert await store.load("u", "sha256:other") is None
        assert await store.load("v", "sha256:spec") is None
        assert (len(await names(client)) > 2) == (size == LARGE)

    @pytest.mark.usefixtures("small_shards")
    async def test_replaced(self, client: KubeClient) -> None:
        """The later plan for the same spec replaces the earlier one completely."""
        store = PlanStore(client)
        await store.save("u", "h", "c", plan(SEVERAL), NOW)
        ref = await store.save("u", "h", "c", plan(10), NOW)
        assert await names(client) == {ref}

    @pytest.mark.usefixtures("small_shards")
    async def test_delete(self, client: KubeClient) -> None:
        store = PlanStore(client)
        kept = await store.save("u", "new", "c", plan(10), NOW)
        await store.save("u", "old", "c", plan(SEVERAL), NOW)
        other = await store.save("v", "old", "c", plan(10), NOW)
        await store.delete("u", keep=["new"])
        assert await names(client) == {kept, other}
        await store.delete("u")
        await store.delete("u")
        assert await names(client) == {other}

    @pytest.mark.usefixtures("small_shards")
    async def test_damage_is_noticed(self, client: KubeClient) -> None:
        """An incomplete plan counts as absent; saving it again repairs it."""
        store = PlanStore(client)
        ref = await store.save("u", "h", "c", plan(SEVERAL), NOW)
        shard = min(await names(client) - {ref})
        found = await client.get_config_map(shard)
        assert found is not None
        await client.delete_config_map(shard)
        assert await store.load("u", "h") is None
        meta = {"name": shard, "labels": found["metadata"]["labels"]}
        await client.create_config_map({"metadata": meta, "binaryData": {"payload": "AAAA"}})
        assert await store.load("u", "h") is None
        await store.save("u", "h", "c", plan(SEVERAL), NOW)
        stored = await store.load("u", "h")
        assert stored is not None
        assert stored.plan == plan(SEVERAL)


@pytest.mark.usefixtures("small_shards")
class TestKilledBetweenWrites:
    """Killed at any write: the old or the new content is stored, and a retry completes it."""

    @staticmethod
    async def at_every_write(mortal: MortalClient, act: Callable[[], Awaitable[object]]) -> AsyncIterator[int]:
        """Yields after each kill; ends when ``act`` completes."""
        for writes in range(50):
            mortal.writes_left = writes
            try:
                await act()
            except Killed:
                mortal.writes_left = 10**9
                yield writes
                continue
            mortal.writes_left = 10**9
            assert writes > 0
            return
        raise AssertionError("never got through")

    async def test_saving_a_plan(self, mortal: MortalClient) -> None:
        store, old, new = PlanStore(mortal), plan(SEVERAL, seed=1), plan(SEVERAL, seed=2)
        await store.save("u", "h", "c", old, NOW)
        size = len(await names(mortal))
        deaths = 0
        async for _ in self.at_every_write(mortal, lambda: store.save("u", "h", "c", new, NOW)):
            deaths += 1
            stored = await store.load("u", "h")
            assert stored is not None
            assert stored.plan in (old, new)
        assert deaths > size
        stored = await store.load("u", "h")
        assert stored is not None
        assert stored.plan == new
        assert len(await names(mortal)) == size

    async def test_deleting_plans(self, mortal: MortalClient) -> None:
        store, old = PlanStore(mortal), plan(SEVERAL)
        await store.save("u", "h", "c", old, NOW)
        async for _ in self.at_every_write(mortal, lambda: store.delete("u")):
            stored = await store.load("u", "h")
            assert stored is None or stored.plan == old
        assert await names(mortal) == set()

    async def test_garbage_is_cleaned(self, mortal: MortalClient) -> None:
        store = PlanStore(mortal)
        ref = await store.save("u", "h", "c", plan(10), NOW)
        mortal.writes_left = 1
        with pytest.raises(Killed):
            await store.save("u", "h", "c", plan(SEVERAL), NOW)
        mortal.writes_left = 10**9
        assert len(await names(mortal)) == 2
        assert await store.clean() == 1
        assert await names(mortal) == {ref}
        assert await store.clean() == 0

    async def test_appending_origins(self, mortal: MortalClient) -> None:
        store = OriginStore(mortal)
        first = [origin("a", 0, 1, 2)]
        await store.append("u", "r", first)
        more = [origin(f"t{n // 100}", n % 100, *random.Random(n).sample(range(1000), 60)) for n in range(SEVERAL)]
        async for _ in self.at_every_write(mortal, lambda: store.append("u", "r", [*first, *more])):
            assert len(await store.load("u", "r")) in (1, 1 + SEVERAL)
        assert len(await store.load("u", "r")) == 1 + SEVERAL


class TestOrigins:
    """The first record wins, by topic id; runs are independent."""

    async def test_first_touch_wins(self, client: KubeClient) -> None:
        store = OriginStore(client)
        first, later = origin("a", 0, 1, 2), origin("a", 0, 3, 4)
        assert await store.append("u", "r", [first]) == {first.tp: first}
        added = origin("b", 0, 5)
        assert await store.append("u", "r", [later, added]) == {first.tp: first, added.tp: added}
        assert await OriginStore(client).load("u", "r") == {first.tp: first, added.tp: added}

    async def test_a_topic_created_anew(self, client: KubeClient) -> None:
        """Another topic id is another topic, with its own origin."""
        store = OriginStore(client)
        before, anew = origin("a", 0, 1, 2, topic_id="id-1"), origin("a", 0, 3, 4, topic_id="id-2")
        await store.append("u", "r", [before])
        await store.append("u", "r", [anew])
        assert await store.load("u", "r") == {anew.tp: anew}

    async def test_nothing_new_writes_nothing(self, mortal: MortalClient) -> None:
        store = OriginStore(mortal)
        await store.append("u", "r", [origin("a", 0, 1)])
        mortal.writes_left = 0
        await store.append("u", "r", [origin("a", 0, 2)])

    async def test_runs_are_apart(self, client: KubeClient) -> None:
        store = OriginStore(client)
        await store.append("u", "r1", [origin("a", 0, 1)])
        await store.append("u", "r2", [origin("a", 0, 2)])
        await store.append("v", "r1", [origin("a", 0, 3)])
        await store.delete("u", keep=["r2"])
        assert await store.load("u", "r1") is None
        assert len(await store.load("u", "r2")) == 1
        assert len(await store.load("v", "r1")) == 1
        await store.delete("u")
        assert await store.load("u", "r2") is None
        assert len(await store.load("v", "r1")) == 1

    async def test_a_second_writer_is_noticed(self, client: KubeClient, mortal: MortalClient) -> None:
        """Another operator's write between our read and our write is never lost."""
        store = OriginStore(mortal)
        theirs = origin("a", 0, 1, 2)
        await store.append("u", "r", [origin("z", 0, 1)])
        real_replace = mortal.replace_config_map

        async def replace_after_them(name: str, body: Json) -> Json:
            await OriginStore(client).append("u", "r", [theirs])
            return await real_replace(name, body)

        mortal.replace_config_map = replace_after_them  # type: ignore[method-assign, assignment]
        with pytest.raises(Conflict):
            await store.append("u", "r", [origin("a", 0, 3, 4)])
        assert (await OriginStore(client).load("u", "r"))[theirs.tp] == theirs

    async def test_damage_is_never_taken_for_nothing(self, client: KubeClient) -> None:
        """Without its origins a run cannot be rolled back: fail rather than record the current state as origin."""
        store = OriginStore(client)
        await store.append("u", "r", [origin("a", 0, 1)])
        (name,) = await names(client)
        await client.replace_config_map(name, {"metadata": {"name": name}, "data": {}})
        with pytest.raises(StoredStateCorrupt):
            await store.load("u", "r")
        with pytest.raises(Conflict):  # it is not what this store has written
            await store.append("u", "r", [origin("a", 1, 2)])
        with pytest.raises(StoredStateCorrupt):
            await store.append("u", "r", [origin("a", 1, 2)])


class TestRuns:
    """The last save wins; runs of deleted resources are listed too."""

    @staticmethod
    def run(uid: str, minutes: int = 0) -> Run:
        return Run(uid, "kafka", "a", "cluster", "r-1", "sha256:a", "sha256:b", NOW + timedelta(minutes=minutes))

    async def test_round_trip(self, client: KubeClient) -> None:
        store = RunStore(client)
        assert await store.load("u") is None
        opened = self.run("u")
        await store.save(opened)
        assert await store.load("u") == opened
        closed = Run("u", "kafka", "a", "cluster", "r-1", "h", "p", NOW, NOW, RunOutcome.SUCCEEDED)
        await store.save(closed)
        assert await store.load("u") == closed
        await store.delete("u")
        await store.delete("u")
        assert await store.load("u") is None

    async def test_a_request_that_is_carried_out_late(self, client: KubeClient) -> None:
        """It is refused also if the next process has stored the run just as it was read."""
        await RunStore(client).save(self.run("u"))
        (late,) = await client.list_config_maps({blobs.KIND_LABEL: "run"})
        store = RunStore(client)
        stored = await store.load("u")
        assert stored is not None
        await store.save(stored)
        with pytest.raises(Conflict):
            await client.replace_config_map(late["metadata"]["name"], {**late, "data": {}})
        assert await store.load("u") == stored

    async def test_list(self, client: KubeClient) -> None:
        store = RunStore(client)
        for run in (self.run("late", 5), self.run("early")):
            await store.save(run)
        assert [run.uid for run in await store.list_all()] == ["early", "late"]

    async def test_how_to_see(self, client: KubeClient, namespace: Namespace) -> None:
        """The command in a message lists the records of one resource, and nothing else."""
        await RunStore(client).save(self.run("u"))
        await PlanStore(client).save("u", "h", "c", plan(10), NOW)
        await OriginStore(client).append("u", "r", [origin("a", 0, 1)])
        mine = await names(client)
        await RunStore(client).save(self.run("v"))
        _, *command = RunStore(client).how_to_see("u").split()
        assert set(namespace.cluster.kubectl(*command, "-o", "name").split()) == {f"configmap/{name}" for name in mine}


class TestLedgers:
    """One per Kafka cluster, whose id is case-sensitive, of any size."""

    async def test_round_trip(self, client: KubeClient) -> None:
        store = LedgerStore(client)
        assert await store.load("AbC") is None
        await store.save("AbC", {"brokers": {"1": None}})
        await store.save("aBc", {})
        assert await store.load("AbC") == {"brokers": {"1": None}}
        assert await store.load("aBc") == {}
        await store.delete_if("AbC", lambda _: True)
        assert await store.load("AbC") is None
        assert await store.load("aBc") == {}

    async def test_larger_than_a_config_map(self, client: KubeClient) -> None:
        store, chance = LedgerStore(client), random.Random(3)
        ledger = {"entries": [chance.getrandbits(64) for _ in range(200_000)]}
        await store.save("c", ledger)
        assert await store.load("c") == ledger
        await store.save("c", {})
        assert len(await names(client)) == 1
