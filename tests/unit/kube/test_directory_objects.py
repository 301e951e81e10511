"""Objects in a directory behave as on the API server, as far as the engine relies on it."""

import asyncio
from datetime import UTC, datetime

import pytest

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.blobs import BlobStore
from kafka_rebalance.kube.directory_objects import DirectoryObjects, GivenObjects
from kafka_rebalance.kube.record_files import RecordFiles

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
R = (REBALANCES, "kafka", "r")


def opened(directory):
    return DirectoryObjects(RecordFiles.to_write(directory), lambda: NOON)


@pytest.fixture
async def kube(tmp_path):
    kube = opened(tmp_path)
    yield kube
    await kube.close()


def manifest(annotations=None, **spec):
    metadata = {"name": "r", "namespace": "kafka"} | ({"annotations": annotations} if annotations else {})
    return {"metadata": metadata, "spec": spec}


def record(name="a", **labels):
    return {"metadata": {"name": name, "labels": labels}, "data": {}}


class TestApply:
    async def test_created(self, kube):
        body = await kube.apply(REBALANCES, manifest(priority=1))
        assert body["metadata"]["creationTimestamp"] == "2026-03-04T12:00:00Z"
        assert body["metadata"]["generation"] == 1
        assert await kube.get(*R) == body
        assert await kube.list_resources(REBALANCES) == await kube.list_resources(REBALANCES, "kafka") == [body]
        assert await kube.list_resources(REBALANCES, "elsewhere") == []

    async def test_again(self, kube):
        """The same manifest changes nothing; another spec replaces the whole spec, and raises the generation."""
        first = await kube.apply(REBALANCES, manifest(priority=1, topics={"include": ["a"]}))
        assert await kube.apply(REBALANCES, manifest(priority=1, topics={"include": ["a"]})) == first
        second = await kube.apply(REBALANCES, manifest(priority=2))
        assert second["spec"] == {"priority": 2}
        assert second["metadata"]["generation"] == 2
        assert second["metadata"]["uid"] == first["metadata"]["uid"]

    async def test_changes_by_commands(self, kube):
        """A field keeps the value of a command until the manifest changes the field."""
        await kube.apply(REBALANCES, manifest(execution={"parallelPartitionCount": 1}, throttle={"leaderRate": "1Mi"}))
        body = await kube.get(*R)
        changed = {"spec": {"execution": {"suspend": True}, "throttle": {"leaderRate": None, "unlimited": True}}}
        await kube.patch(*R, changed, body["metadata"]["resourceVersion"])
        more = manifest(execution={"parallelPartitionCount": 2}, throttle={"leaderRate": "1Mi"})
        found = (await kube.apply(REBALANCES, more))["spec"]
        assert found == {"execution": {"suspend": True, "parallelPartitionCount": 2}, "throttle": {"unlimited": True}}
        found = (await kube.apply(REBALANCES, manifest(throttle={"leaderRate": "2Mi"})))["spec"]
        assert found == {"throttle": {"leaderRate": "2Mi"}}

    async def test_annotations_that_are_not_in_the_manifest(self, kube):
        """They stay: an order to undo is one."""
        uid = (await kube.apply(REBALANCES, manifest()))["metadata"]["uid"]
        assert await kube.annotate(*R, uid, {"mine": "1"})
        assert not await kube.annotate(*R, "another", {"mine": "2"})
        assert not await kube.annotate(REBALANCES, "kafka", "gone", uid, {"mine": "2"})
        body = await kube.apply(REBALANCES, manifest(annotations={"yours": "2"}))
        assert body["metadata"]["annotations"] == {"mine": "1", "yours": "2"}


class TestChanges:
    async def test_patch(self, kube):
        """Null removes a field; a version that is outdated is a conflict."""
        body = await kube.apply(REBALANCES, manifest(priority=1, execution={"suspend": True}))
        version = body["metadata"]["resourceVersion"]
        after = await kube.patch(*R, {"spec": {"execution": {"suspend": None}}}, version)
        assert after["spec"] == {"priority": 1, "execution": {}}
        assert after["metadata"]["generation"] == 2
        with pytest.raises(Conflict):
            await kube.patch(*R, {"spec": {"priority": 3}}, version)
        assert await kube.patch(REBALANCES, "kafka", "gone", {}, version) is None

    async def test_status(self, kube):
        """Merged, and no new generation."""
        await kube.apply(REBALANCES, manifest())
        assert await kube.patch_status(*R, {"status": {"clusterId": "c", "plan": {"hash": "h"}}})
        assert await kube.patch_status(*R, {"status": {"plan": None}})
        body = await kube.get(*R)
        assert (body["status"], body["metadata"]["generation"]) == ({"clusterId": "c"}, 1)
        assert not await kube.patch_status(REBALANCES, "kafka", "gone", {"status": {}})

    async def test_status_of_an_outdated_version(self, kube):
        """Refused if the patch names the version, as by the API server."""
        metadata = (await kube.apply(REBALANCES, manifest()))["metadata"]
        seen = {"metadata": {"resourceVersion": metadata["resourceVersion"]}}
        assert await kube.patch_status(*R, {**seen, "status": {"clusterId": "c"}})
        with pytest.raises(Conflict):
            await kube.patch_status(*R, {**seen, "status": {"clusterId": "d"}})
        assert (await kube.get(*R))["status"] == {"clusterId": "c"}

    async def test_deletion_waits_for_finalizers(self, kube):
        body = await kube.apply(REBALANCES, manifest())
        uid = body["metadata"]["uid"]
        before = body["metadata"]["resourceVersion"]
        body = await kube.patch_finalizers(*R, ["f"], before)
        with pytest.raises(Conflict):
            await kube.delete_resource(*R, "another")
        with pytest.raises(Conflict):
            await kube.delete_resource(*R, uid, before)
        assert await kube.delete_resource(*R, uid, body["metadata"]["resourceVersion"])
        body = await kube.get(*R)
        assert body["metadata"]["deletionTimestamp"] == "2026-03-04T12:00:00Z"
        assert body["metadata"]["generation"] == 2
        with pytest.raises(Conflict):
            await kube.patch_finalizers(*R, [], "0")
        await kube.patch_finalizers(*R, [], body["metadata"]["resourceVersion"])
        assert await kube.get(*R) is None
        assert not await kube.delete_resource(*R, uid)

    async def test_seen_as_by_a_watch(self, kube):
        """The callback gets each change once, in order, also if the caller has been cancelled."""
        seen = []
        kube.seen = lambda plural, body, gone: seen.append((plural, body["metadata"]["resourceVersion"], gone))
        body = await kube.apply(REBALANCES, manifest())
        uid = body["metadata"]["uid"]
        annotating = asyncio.create_task(kube.annotate(*R, uid, {"a": "1"}))
        await asyncio.sleep(0)
        annotating.cancel()
        await kube.annotate(*R, uid, {"a": "1"})
        await kube.create_config_map(record())
        await kube.delete_resource(*R, uid)
        await asyncio.sleep(0)
        assert seen == [(REBALANCES, "1", False), (REBALANCES, "2", False), (REBALANCES, "2", True)]

    async def test_versions_after_a_restart(self, kube, tmp_path):
        """They go on, so that a version that was read before is never valid for something else."""
        await kube.create_config_map(record("a"))
        await kube.create_config_map(record("b"))
        await kube.close()
        again = opened(tmp_path)
        assert (await again.create_config_map(record("c")))["metadata"]["resourceVersion"] == "3"
        await again.close()


class TestRecords:
    async def test_config_maps(self, kube):
        created = await kube.create_config_map(record("a", kind="run"))
        with pytest.raises(Conflict):
            await kube.create_config_map(record("a"))
        with pytest.raises(NotFound):
            await kube.replace_config_map("b", record("b"))
        with pytest.raises(Conflict):
            await kube.replace_config_map("a", {"metadata": {"name": "a", "resourceVersion": "0"}})
        await kube.replace_config_map("a", created)
        assert [found["name"] for found in await kube.list_config_map_metadata({"kind": "run"})] == ["a"]
        assert await kube.list_config_maps({"kind": "plan"}) == []
        assert await kube.delete_config_map("a")
        assert not await kube.delete_config_map("a")

    async def test_a_blob_in_shards(self, kube):
        """What the stores keep is read back as it was written."""
        blobs, payload = BlobStore(kube, "plan"), bytes(range(256)) * 8000
        await blobs.write(blobs.name("u"), "u", payload, {"about": "x"})
        found = await BlobStore(kube, "plan").read(blobs.name("u"))
        assert (found.payload, found.attributes, len(found.shards)) == (payload, {"about": "x"}, 3)
        await blobs.write(blobs.name("u"), "u", b"small", {})
        assert len(await kube.list_config_map_metadata({})) == 1


class TestGivenObjects:
    async def test_read_and_not_stored(self, kube, tmp_path):
        kube.given = GivenObjects({("kafka", "s"): {"password": b"x"}}, {("kafka", "m"): {"k": "v"}})
        assert (await kube.read_secret("kafka", "s")).data == {"password": b"x"}
        assert await kube.read_config_map("kafka", "m") == {"k": "v"}
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]

    async def test_missing(self, kube):
        with pytest.raises(Refused, match="Secret kafka/s is not in the file"):
            await kube.read_secret("kafka", "s")
        with pytest.raises(Transient, match="ConfigMap kafka/m is not in the file"):
            await kube.read_config_map("kafka", "m")
