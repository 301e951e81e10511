"""Commands submit a change to a run, or make it without a run: exactly once, even if a process is killed."""

import asyncio
import json
import os
from dataclasses import asdict, replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from tests.fakes.mortal_disk import Died, MortalDisk

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube import directory_client, record_files
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.change_requests import ChangeRequest, ChangeRequests
from kafka_rebalance.kube.directory_client import DirectoryClient, carry_out_waiting
from kafka_rebalance.kube.directory_objects import DirectoryObjects
from kafka_rebalance.kube.record_files import RecordFiles
from kafka_rebalance.kube.spec_changes import change

R = (REBALANCES, "kafka", "r")
SPEC = {"kafka": {"bootstrapServers": "kafka:9092"}}
SUSPEND = {"spec": {"execution": {"suspend": True}}}


def noon():
    return datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def opened(directory):
    return DirectoryObjects(RecordFiles.to_write(directory), noon)


async def applied(kube):
    return await kube.apply(REBALANCES, {"metadata": {"name": "r", "namespace": "kafka"}, "spec": SPEC})


@pytest.fixture
async def run(tmp_path):
    """A run that has the lock of the directory; it takes requests when the test calls it."""
    kube = opened(tmp_path)
    await applied(kube)
    ChangeRequests(tmp_path).open()
    yield kube
    await kube.close()


@pytest.fixture
async def client(run, tmp_path):
    kube = DirectoryClient(tmp_path, noon)
    yield kube
    await kube.close()


@pytest.fixture
def requests(tmp_path):
    return ChangeRequests(tmp_path)


async def while_taken(run, requests, changing):
    """The result of a change, while the run takes the requests."""
    task = asyncio.ensure_future(changing)
    while not task.done():
        await carry_out_waiting(run, requests)
        await asyncio.sleep(0)
    return await task


async def handed_in(requests):
    while not list(requests.waiting()):  # noqa: ASYNC110 - a directory has no event
        await asyncio.sleep(0)


def suspend(client):
    return change(client, *R, lambda body: None if body["spec"].get("execution") else SUSPEND)


def suspended(body):
    return body["spec"].get("execution", {}).get("suspend", False)


class TestBesideARun:
    async def test_changed(self, run, client, requests):
        seen = []
        run.seen = lambda plural, body, gone: seen.append((plural, suspended(body), gone))
        assert suspended(await while_taken(run, requests, suspend(client)))
        assert suspended(await run.get(*R))
        assert seen == [(REBALANCES, True, False)]
        assert list(requests.waiting()) == []

    async def test_changed_in_between(self, run, client, requests):
        """The command decides again, on the changed resource, as with the API server."""
        decided = []

        def decide(body):
            decided.append(body["spec"].get("priority"))
            if len(decided) == 1:
                return {"spec": {"priority": 1}}
            return {"spec": {"priority": (decided[-1] or 0) + 1}}

        changing = asyncio.ensure_future(change(client, *R, decide))
        await handed_in(requests)
        found = await run.get(*R)
        await run.patch(*R, {"spec": {"priority": 7}}, found["metadata"]["resourceVersion"])
        assert (await while_taken(run, requests, changing))["spec"]["priority"] == 8
        assert decided == [None, 7]

    async def test_deleted(self, run, client, requests):
        """It exists until its finalizers are removed.

        Another resource of the name, or another version, is not deleted.
        """
        body = await run.get(*R)
        await run.patch_finalizers(*R, ["rollback"], body["metadata"]["resourceVersion"])
        await while_taken(run, requests, client.delete_resource(*R, "another"))
        outdated = body["metadata"]["resourceVersion"]
        await while_taken(run, requests, client.delete_resource(*R, body["metadata"]["uid"], outdated))
        assert "deletionTimestamp" not in (await run.get(*R))["metadata"]
        assert await while_taken(run, requests, client.delete_resource(*R, body["metadata"]["uid"]))
        assert "deletionTimestamp" in (await run.get(*R))["metadata"]

    async def test_refused(self, run, client, requests):
        """A change that the API server would refuse is not submitted."""
        with pytest.raises(Refused, match=r"spec\.priority"):
            await change(client, *R, lambda _: {"spec": {"priority": "high"}})
        assert list(requests.waiting()) == []

    async def test_a_run_that_does_not_answer(self, client, requests, monkeypatch):
        """The request is withdrawn, so that it does not come into force later."""
        monkeypatch.setattr(directory_client, "_LOOKS", 3)
        with pytest.raises(Transient, match="nothing was changed") as failed:
            await suspend(client)
        assert failed.value.reason == "RunDoesNotAnswer"
        assert list(requests.waiting()) == []

    async def test_a_run_that_ends_meanwhile(self, run, client, requests):
        """The command makes the change itself when the directory is free."""
        changing = asyncio.ensure_future(suspend(client))
        await handed_in(requests)
        await run.close()
        assert suspended(await changing)
        assert list(requests.waiting()) == []

    async def test_a_foreign_file_among_the_requests(self, run, requests, tmp_path):
        """Even a request that cannot be parsed, because it is nested too deeply."""
        for name, text in (("a.json", '{"plural": "secrets"}'), ("b.json", "[" * 2000), ("c.json", "null")):
            (tmp_path / "requests" / name).write_text(text)
        await carry_out_waiting(run, requests)
        assert list(requests.waiting()) == []


class TestWithoutARun:
    async def test_changed(self, run, client):
        await run.close()
        assert suspended(await suspend(client))
        assert await suspend(client) is None
        assert suspended(await client.get(*R))

    async def test_a_run_that_starts_waits_for_the_change(self, run, tmp_path, monkeypatch):
        """It is not refused because a command has the directory for a moment."""
        await run.close()
        command, waits = RecordFiles.to_write(tmp_path, command=True), []

        def wait(seconds):
            waits.append(seconds)
            if len(waits) == 3:
                command.close()

        monkeypatch.setattr(record_files, "time", SimpleNamespace(sleep=wait))
        RecordFiles.to_write(tmp_path).close()
        assert len(waits) == 3

    async def test_gone(self, run, client):
        await run.close()
        with pytest.raises(NotFound):
            await change(client, REBALANCES, "kafka", "misspelt", lambda _: SUSPEND)

    @pytest.mark.parametrize(
        "damaged",
        [
            ChangeRequest(*R, "{version}", {"spec": None}),
            ChangeRequest(*R, "{version}", {"metadata": None}),
            ChangeRequest(REBALANCES, "kafka", "a/b", "1", SUSPEND),
            ChangeRequest(REBALANCES, "kafka", "a\0b", "1"),
        ],
    )
    async def test_a_request_that_cannot_be_carried_out(self, run, requests, tmp_path, damaged):
        """It is removed, and the later requests are applied."""
        version = (await run.get(*R))["metadata"]["resourceVersion"]
        damaged = replace(damaged, seen=damaged.seen.format(version=version))
        for name, request in (("a", damaged), ("b", ChangeRequest(*R, version, SUSPEND))):
            (tmp_path / "requests" / f"{name}.json").write_text(json.dumps(asdict(request)))
        await carry_out_waiting(run, requests)
        assert suspended(await run.get(*R))
        assert list(requests.waiting()) == []

    async def test_a_disk_that_is_full(self, run, client, requests, monkeypatch):
        """The request stays until it can be applied."""
        version = (await run.get(*R))["metadata"]["resourceVersion"]
        requests.hand_in(ChangeRequest(*R, version, SUSPEND))

        def full(*_):
            raise Transient("RecordsNotWritten", "no space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(RecordFiles, "write", full)
            with pytest.raises(Transient, match="no space left"):
                await carry_out_waiting(run, requests)
        await carry_out_waiting(run, requests)
        assert suspended(await run.get(*R))

    async def test_a_run_that_starts_at_that_moment(self, run, requests, monkeypatch):
        """It removes only old unfinished files. This file is new and is about to be renamed."""
        rename = os.replace

        def late(*paths):
            requests.open()
            rename(*paths)

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", late)
            name = requests.hand_in(ChangeRequest(*R, "1", SUSPEND))
        assert requests.waits(name)


class TestKilled:
    """A process is killed at any write: the change is made once or not at all, and nothing else is lost."""

    @pytest.fixture
    def disk(self, monkeypatch):
        found = MortalDisk()
        monkeypatch.setattr(record_files, "os", found)
        return found

    @pytest.mark.parametrize("left", range(6))
    def test_the_command(self, disk, tmp_path, left):
        """An incompletely written request has no effect."""
        requests = ChangeRequests(tmp_path)
        requests.open()
        disk.left = left
        request = ChangeRequest(*R, "1", SUSPEND)
        try:
            requests.hand_in(request)
        except Died:
            assert left < 5
        disk.left = None
        assert [found for _, found in requests.waiting()] == ([request] if left >= 4 else [])
        for entry in os.scandir(tmp_path / "requests"):
            os.utime(entry, (0, 0))
        requests.open()
        assert len(os.listdir(tmp_path / "requests")) == (left >= 4)

    @pytest.mark.parametrize("deletes", [False, True])
    async def test_the_run(self, disk, tmp_path, deletes):
        """The next run applies it, or finds it applied, and does not undo a later change."""
        calls = 0
        for left in range(40):
            directory = tmp_path / str(left)
            kube, requests = opened(directory), ChangeRequests(directory)
            requests.open()
            body = await applied(kube)
            about = body["metadata"]
            seen = about["uid" if deletes else "resourceVersion"]
            requests.hand_in(ChangeRequest(*R, seen, None if deletes else SUSPEND))
            disk.left = left
            try:
                await carry_out_waiting(kube, requests)
            except Died:
                calls += 1
            disk.left = None
            await kube.close()
            kube = opened(directory)
            if not deletes and suspended(after := await kube.get(*R)):
                resume = {"spec": {"execution": {"suspend": False}, "priority": 3}}
                await kube.patch(*R, resume, after["metadata"]["resourceVersion"])
            await carry_out_waiting(kube, requests)
            after = await kube.get(*R)
            assert (after is None) is deletes, left
            assert deletes or suspended(after) is (after["spec"].get("priority") != 3), left
            assert list(requests.waiting()) == []
            await kube.close()
        assert calls == (9 if deletes else 7)


async def test_an_outdated_patch_is_a_conflict(run, client, requests):
    """A patch with an old resource version, as on the API server."""
    with pytest.raises(Conflict):
        await while_taken(run, requests, client.patch(*R, SUSPEND, "0"))
