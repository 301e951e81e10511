"""A request that the API server carries out late does not overwrite what was written after it."""

import copy
from datetime import UTC, datetime

import pytest
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.blobs import BlobStore
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.run import Run

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class SlowKube(KubeInMemory):
    """While ``hanging``, the API server keeps replacements and answers nothing; ``arrive`` carries them out."""

    def __init__(self):
        super().__init__()
        self.hanging, self.kept = False, []

    async def replace_config_map(self, name, body):
        if self.hanging:
            self.kept.append((name, copy.deepcopy(body)))
            raise Transient("ApiServerUnreachable", "no answer")
        return await super().replace_config_map(name, body)

    async def delete_config_map(self, name, resource_version=None):
        if self.hanging:
            self.kept.append((name, resource_version))
            raise Transient("ApiServerUnreachable", "no answer")
        return await super().delete_config_map(name, resource_version)

    async def arrive(self):
        """How many of them the API server has refused."""
        self.hanging, refused = False, 0
        for name, body in self.kept:
            try:
                if isinstance(body, dict):
                    await self.replace_config_map(name, body)
                else:
                    await self.delete_config_map(name, body)
            except Conflict:
                refused += 1
        return refused


def run(plan):
    return Run("u", "kafka", "r", "c", "run-1", "h", plan, NOON)


async def runs(kube):
    store = RunStore(kube)
    return (lambda plan: store.save(run(plan))), (lambda: store.load("u")), run


async def ledgers(kube):
    store = LedgerStore(kube)
    return (lambda text: store.save("c", {"is": text})), (lambda: store.load("c")), (lambda text: {"is": text})


async def bindings(kube):
    store = BindingStore(kube)
    return (
        (lambda text: store.save(Binding("c", Owner(text)))),
        (lambda: store.load("c")),
        (lambda text: Binding("c", Owner(text))),
    )


@pytest.mark.parametrize("records", [runs, ledgers, bindings])
@pytest.mark.parametrize("early", [True, False], ids=["arrives first", "arrives last"])
async def test_a_request_without_an_answer(records, early):
    kube = SlowKube()
    save, load, content = await records(kube)
    await save("first")
    kube.hanging = True
    with pytest.raises(Transient):
        await save("late")
    if early:
        await kube.arrive()
        assert await load() == content("late")
    kube.hanging = False
    await save("last")
    assert early or await kube.arrive() == 1
    assert await load() == content("last")


@pytest.mark.parametrize("records", [runs, ledgers, bindings])
async def test_a_request_of_the_former_leader(records):
    """It has lost the Lease since it sent the request."""
    kube = SlowKube()
    save, _, _ = await records(kube)
    await save("first")
    kube.hanging = True
    with pytest.raises(Transient):
        await save("of the former leader")
    kube.hanging = False
    save_now, load, content = await records(kube)
    await save_now("of the leader")
    assert await kube.arrive() == 1
    assert await load() == content("of the leader")


async def test_what_others_have_written_is_replaced_at_the_second_attempt():
    """By hand, for example."""
    kube = KubeInMemory()
    save, load, content = await runs(kube)
    await save("first")
    ((name, found),) = kube.config_maps.items()
    await kube.replace_config_map(name, {**found, "data": {**found["data"], "note": "by hand"}})
    with pytest.raises(Conflict):
        await save("second")
    await save("second")
    assert await load() == content("second")


async def test_what_others_have_deleted_is_created_again():
    kube = KubeInMemory()
    save, load, content = await runs(kube)
    await save("first")
    kube.config_maps.clear()
    await save("second")
    assert await load() == content("second")


async def taken_over(kube, _former):
    """The store of the next owner, which has read the record."""
    store = BindingStore(kube)
    await store.load("c")
    return store


async def deleted_again(_kube, former):
    """The same store, whose second deletion is executed at once."""
    await former.delete("c")
    return former


class TestDeletion:
    @pytest.mark.parametrize("then", [taken_over, deleted_again])
    async def test_executed_late(self, then):
        """The cluster is bound to another owner before the API server executes the deletion: its binding stays."""
        kube = SlowKube()
        former = BindingStore(kube)
        await former.save(Binding("c", Owner("a")))
        kube.hanging = True
        with pytest.raises(Transient):
            await former.delete("c")
        kube.hanging = False
        store = await then(kube, former)
        await store.save(Binding("c", Owner("b")))
        assert await kube.arrive() == 1
        assert await store.load("c") == Binding("c", Owner("b"))

    async def test_of_a_version_that_was_not_read(self):
        """Another writer has changed the record meanwhile: it stays, and the owner is decided again."""
        kube = KubeInMemory()
        store, other = BindingStore(kube), BindingStore(kube)
        await store.save(Binding("c", Owner("a")))
        await other.load("c")
        await other.save(Binding("c", Owner("b")))
        with pytest.raises(Conflict):
            await store.delete("c")
        await store.load("c")
        await store.delete("c")
        await store.delete("c")
        assert await store.load("c") is None


@pytest.mark.parametrize("whole", [True, False], ids=["one plan", "all plans"])
async def test_a_deletion_without_an_answer(whole):
    """The blob is stored again before the deletion is carried out."""
    kube = SlowKube()
    store = BlobStore(kube, "plan")
    await store.write("plan-1", "u", b"content", {"at": "1"})
    blob = await store.read("plan-1")
    kube.hanging = True
    with pytest.raises(Transient):
        await (store.delete(blob) if whole else store.delete_all("u"))
    kube.hanging = False
    await store.write("plan-1", "u", b"content", {"at": "2"})
    assert await kube.arrive() == 1
    assert (await store.read("plan-1")).payload == b"content"
