"""The owners of the Kafka clusters on record."""

import asyncio
import threading

import pytest
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.errors import Refused
from kafka_rebalance.kube import binding_store
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.blobs import KIND_LABEL
from kafka_rebalance.model.ownership import Binding, Owner


class Counting(KubeInMemory):
    """Counts the lists. Each waits until the event is set."""

    def __init__(self):
        super().__init__()
        self.lists, self.began, self.may_end = 0, asyncio.Event(), asyncio.Event()

    async def list_config_maps(self, labels):
        assert labels == {KIND_LABEL: "binding"}
        self.lists += 1
        self.began.set()
        await self.may_end.wait()
        return await super().list_config_maps(labels)


async def test_all_who_ask_at_the_same_time_share_a_list():
    """Users may have many servers claim a new cluster id, each of which needs the other bindings of its owner."""
    kube = Counting()
    store = BindingStore(kube)
    await store.save(Binding("c", Owner("a")))
    asking = [asyncio.create_task(store.refuse_more(Binding(f"c-{n}", Owner("a")), most=1)) for n in range(50)]
    for _ in range(5):
        await asyncio.sleep(0)
    kube.may_end.set()
    refused = await asyncio.gather(*asking, return_exceptions=True)
    assert {type(error) for error in refused} == {Refused}
    assert kube.lists == 1


async def test_the_limit_counts_what_was_saved_at_the_same_time():
    """A list that began before a binding was saved does not have it."""
    kube = Counting()
    kube.may_end.set()
    store = BindingStore(kube)
    saving = [store.save(Binding(f"c-{n}", Owner("a")), most=2) for n in range(5)]
    refused = [error for error in await asyncio.gather(*saving, return_exceptions=True) if error is not None]
    assert [type(error) for error in refused] == [Refused] * 3
    assert len(await store.load_all()) == 2


async def test_no_other_owner_waits_for_the_list_of_one_whose_clusters_are_counted():
    """Lists take a fifth of the time at most, so twenty new inline clusters may wait for half a minute."""
    kube = Counting()
    store = BindingStore(kube)
    counted = asyncio.create_task(store.save(Binding("c-1", Owner("a")), most=2))
    await kube.began.wait()
    others = Binding("c-2", Owner("b", "prod"))
    async with asyncio.timeout(10):
        await store.save(others)
        assert await store.replaces(others, Binding("c-2", Owner("b", "other")))
        await store.delete("c-2")
    assert not counted.done()
    kube.may_end.set()
    await counted
    assert [binding.cluster_id for binding in await store.load_all()] == ["c-1"]


@pytest.mark.parametrize("write", ["save", "replaces", "delete"])
async def test_two_writes_for_one_cluster_follow_each_other(write):
    kube = Counting()
    store = BindingStore(kube)
    first = asyncio.create_task(store.save(Binding("c", Owner("a")), most=2))
    await kube.began.wait()
    after = Binding("c", Owner("b", "prod"))
    writes = {
        "save": lambda: store.save(after),
        "replaces": lambda: store.replaces(None, after),
        "delete": lambda: store.delete("c"),
    }
    second = asyncio.create_task(writes[write]())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not second.done()
    kube.may_end.set()
    await asyncio.gather(first, second)
    written = await store.load("c")
    assert written == {"save": after, "replaces": Binding("c", Owner("a")), "delete": None}[write]


@pytest.mark.parametrize(("most", "in_loop"), [(3, True), (2, False)])
async def test_many_are_read_off_the_event_loop(monkeypatch, most, in_loop):
    """Each of an earlier version may have 400 KB."""
    monkeypatch.setattr(binding_store, "_MANY", most)
    readers, read = set(), BindingStore._decoded

    def decoded(self, found):
        readers.add(threading.current_thread())
        return read(self, found)

    monkeypatch.setattr(BindingStore, "_decoded", decoded)
    store = BindingStore(KubeInMemory())
    for n in range(2):
        await store.save(Binding(f"c-{n}", Owner("a")))
    assert [binding.cluster_id for binding in await store.load_all()] == ["c-0", "c-1"]
    assert (readers == {threading.main_thread()}) is in_loop
