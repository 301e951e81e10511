"""An empty throttle ledger is deleted only as it was read."""

import pytest
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube import blobs
from kafka_rebalance.kube.api_errors import Conflict, StoredStateCorrupt
from kafka_rebalance.kube.ledger_store import LedgerStore

EMPTY, SET = {"brokers": {}}, {"brokers": {"1": "50"}}


class Late(KubeInMemory):
    """``late``: deletions get no answer, and are carried out later."""

    def __init__(self):
        super().__init__()
        self.late, self.pending = False, []

    async def delete_config_map(self, name, resource_version=None):
        if self.late:
            self.pending.append((name, resource_version))
            raise Transient("ApiServerUnreachable", "no answer")
        return await super().delete_config_map(name, resource_version)


def empty(ledger):
    return ledger == EMPTY


@pytest.fixture
def kube():
    return Late()


@pytest.mark.parametrize(("ledger", "left"), [(EMPTY, None), (SET, SET)])
async def test_only_if_there_is_nothing_to_restore(kube, ledger, left):
    await LedgerStore(kube).save("c", ledger)
    await LedgerStore(kube).save("other", EMPTY)
    await LedgerStore(kube).delete_if("c", empty)
    assert await LedgerStore(kube).load("c") == left
    assert await LedgerStore(kube).load("other") == EMPTY


async def test_none(kube):
    """As after a deletion without an answer."""
    await LedgerStore(kube).delete_if("c", empty)


async def test_a_damaged_one_stays(kube):
    """What was in it is not known."""
    await LedgerStore(kube).save("c", EMPTY)
    (record,) = kube.config_maps.values()
    record["binaryData"] = {}
    with pytest.raises(StoredStateCorrupt):
        await LedgerStore(kube).delete_if("c", empty)
    assert kube.config_maps


async def test_one_that_was_written_since_it_was_read_stays(kube):
    """By another operator, which leads by now. This store may have read an older version before."""
    store = LedgerStore(kube)
    await LedgerStore(kube).save("c", EMPTY)
    await store.load("c")
    await LedgerStore(kube).save("c", SET)
    await LedgerStore(kube).save("c", EMPTY)
    get = kube.get_config_map

    async def read(name):
        found = await get(name)
        kube.get_config_map = get
        await LedgerStore(kube).save("c", SET)
        return found

    kube.get_config_map = read
    with pytest.raises(Conflict):
        await store.delete_if("c", empty)
    assert await LedgerStore(kube).load("c") == SET


async def test_a_deletion_that_is_carried_out_late(kube):
    """Meanwhile the same empty ledger is stored for a new run."""
    await LedgerStore(kube).save("c", EMPTY)
    kube.late = True
    with pytest.raises(Transient):
        await LedgerStore(kube).delete_if("c", empty)
    kube.late = False
    await LedgerStore(kube).save("c", EMPTY)
    ((name, version),) = kube.pending
    with pytest.raises(Conflict):
        await kube.delete_config_map(name, version)
    assert await LedgerStore(kube).load("c") == EMPTY


async def test_the_clusters_with_a_ledger(kube):
    """At most that many, except those that are named. One that cannot be read is left out."""
    store = LedgerStore(kube)
    for cluster_id in ("a", "b", "c", "d"):
        await store.save(cluster_id, EMPTY)
    kube.config_maps[store.where("d").rpartition("/")[2]]["data"] = {}
    assert set(await store.cluster_ids(excepted={"b"}, most=10)) == {"a", "c"}
    assert len(await store.cluster_ids(excepted=(), most=2)) <= 2


async def unanswered_save(kube, monkeypatch, ledger):
    """The last request of an operator that was killed while it saved this; the API server has not carried it out."""
    late = []

    async def hangs(*request):
        late.append(request)
        raise Transient("ApiServerUnreachable", "no answer")

    with monkeypatch.context() as patched:
        patched.setattr(kube, "replace_config_map", hangs)
        with pytest.raises(Transient):
            await LedgerStore(kube).save("c", ledger)
    return late[0]


async def test_an_index_that_is_written_late(kube, monkeypatch):
    """By an operator that was killed. The next one has deleted its shards meanwhile."""
    monkeypatch.setattr(blobs, "SHARD_BYTES", 40)
    await LedgerStore(kube).save("c", SET)
    late = await unanswered_save(kube, monkeypatch, {"brokers": {"2": "60"}})
    assert await LedgerStore(kube).clean() > 1
    with pytest.raises(Conflict):
        await kube.replace_config_map(*late)
    assert await LedgerStore(kube).load("c") == SET


async def test_an_index_that_is_written_while_unfinished_parts_are_deleted(kube, monkeypatch):
    """What was read just before does not replace it."""
    monkeypatch.setattr(blobs, "SHARD_BYTES", 40)
    store = LedgerStore(kube)
    await store.save("c", SET)
    await unanswered_save(kube, monkeypatch, {"brokers": {"2": "60"}})
    read = kube.get_config_map

    async def overtaken(name):
        found = await read(name)
        kube.get_config_map = read
        await store.save("c", EMPTY)
        return found

    kube.get_config_map = overtaken
    with pytest.raises(Conflict):
        await store.clean()
    assert await LedgerStore(kube).load("c") == EMPTY


@pytest.mark.parametrize("after", ["indexes", "shards"])
async def test_an_index_that_arrives_between_the_lists_of_a_cleaning(kube, monkeypatch, after):
    """Its shards were listed as those of no index. They stay, and the next cleaning keeps them too."""
    monkeypatch.setattr(blobs, "SHARD_BYTES", 40)
    await LedgerStore(kube).save("c", SET)
    changed = {"brokers": {"2": "60"}}
    late = await unanswered_save(kube, monkeypatch, changed)
    listed, lists = [], kube.list_config_map_metadata

    async def overtaken(labels):
        found = await lists(labels)
        listed.append(labels)
        if len(listed) == ["indexes", "shards"].index(after) + 1:
            await kube.replace_config_map(*late)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(kube, "list_config_map_metadata", overtaken)
        assert await LedgerStore(kube).clean() == 0
    assert await LedgerStore(kube).load("c") == changed
    assert await LedgerStore(kube).clean() > 1
    assert await LedgerStore(kube).load("c") == changed
