"""Content of ConfigMaps is read as it was written, or not at all."""

import pytest
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube import blobs
from kafka_rebalance.kube.api_errors import Conflict, StoredStateCorrupt
from kafka_rebalance.kube.blobs import BlobStore

OLD, NEW = b"old content", b"new content"


@pytest.mark.parametrize("shard_bytes", [1_000, 4])
async def test_content_that_was_not_written_is_never_read(monkeypatch, shard_bytes):
    """Though it could be decoded: somebody restored a part of an older record."""
    monkeypatch.setattr(blobs, "SHARD_BYTES", shard_bytes)
    kube = KubeInMemory()
    store = BlobStore(kube, "plan")
    await store.write("old", "u", OLD, {})
    await store.write("new", "u", NEW, {})
    assert (await store.read("new")).payload == NEW
    pieces = {name: found["binaryData"] for name, found in kube.config_maps.items() if "binaryData" in found}
    of_old, of_new = ([name for name in sorted(pieces) if name.startswith(record)] for record in ("old", "new"))
    for name, other in zip(of_new, of_old, strict=True):
        kube.config_maps[name]["binaryData"] = pieces[other]
    with pytest.raises(StoredStateCorrupt):
        await store.read("new")


class TestShards:
    """Pieces that the index no longer names are deleted, even those of another writer."""

    @pytest.fixture
    def kube(self, monkeypatch):
        monkeypatch.setattr(blobs, "SHARD_BYTES", 4)
        return KubeInMemory()

    @staticmethod
    async def written(kube, store, content):
        await store.write("ledger", "", content, {})
        assert (await store.read("ledger")).payload == content
        return len(kube.config_maps) - 1

    async def test_of_the_write_before(self, kube):
        store = BlobStore(kube, "ledger")
        assert [await self.written(kube, store, content) for content in (OLD, NEW, b"tiny", OLD)] == [3, 3, 0, 3]

    async def test_of_another_process(self, kube):
        await self.written(kube, BlobStore(kube, "ledger"), OLD)
        assert await self.written(kube, BlobStore(kube, "ledger"), NEW) == 3

    async def test_of_a_write_that_failed(self, kube, monkeypatch):
        store = BlobStore(kube, "ledger")
        await self.written(kube, store, OLD)

        async def fail(*_):
            raise Conflict("no")

        with monkeypatch.context() as patched:
            patched.setattr(kube, "replace_config_map", fail)
            with pytest.raises(Conflict):
                await store.write("ledger", "", NEW, {})
        assert await self.written(kube, store, b"other content") == 4


class Hanging(KubeInMemory):
    """Deletions of ``held`` fail, and are executed later."""

    held = ()

    async def delete_config_map(self, name, resource_version=None):
        if name in self.held:
            raise Transient("ApiServerUnreachable", "no answer")
        return await super().delete_config_map(name, resource_version)

    async def execute(self, names):
        for name in names:
            await super().delete_config_map(name)


@pytest.mark.parametrize("gone", [False, True], ids=["replaced", "deleted"])
async def test_a_deletion_of_shards_that_is_executed_late(monkeypatch, gone):
    """Meanwhile the same content is written again."""
    monkeypatch.setattr(blobs, "SHARD_BYTES", 4)
    kube = Hanging()
    store = BlobStore(kube, "ledger")
    await store.write("ledger", "u", OLD, {})
    kube.held = [name for name in kube.config_maps if name != "ledger"]
    with pytest.raises(Transient):
        await (store.delete_all("u") if gone else store.write("ledger", "u", NEW, {}))
    held, kube.held = kube.held, ()
    await store.write("ledger", "u", OLD, {})
    await kube.execute(held)
    assert (await store.read("ledger")).payload == OLD
