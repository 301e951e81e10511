"""Samples while their store is full, gone, or does not answer."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_rebalance.app import sample_files
from kafka_rebalance.app.sample_files import SampleFiles
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.pipeline.lake import Lake, clusters
from kafka_rebalance.pipeline.sample_manifests import listed
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


class Taker:
    """Takes samples of one row. ``of``: what else is known of them."""

    def __init__(self, **of: Any) -> None:
        self.taken = 0
        self._of = of

    async def sample(self) -> SampleBatch:
        self.taken += 1
        row = SampleRow(NOON, "run", self.taken, "c", "t", "id", 0, 1, size_bytes=5, size_at=NOON)
        return SampleBatch(NOON, "c", (row,), run_id="run", sequence=self.taken, **self._of)


class Now:
    """The clock, which a test sets."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[SampleFiles]:
    found = SampleFiles(str(tmp_path / "lake"), lambda: None, Now())
    yield found
    await found.close()


def stored(directory: Path) -> int:
    """The number of samples that a reader finds."""
    lake = Lake.open(str(directory / "lake"))
    return len(listed(lake, "c", timedelta(days=1), NOON + timedelta(hours=1)).batches()) if clusters(lake) else 0


def size_of(directory: Path) -> int:
    """The bytes of all samples and their manifests."""
    return sum(path.stat().st_size for path in directory.rglob("*c/*/*"))


async def test_a_sample_is_stored_as_the_command_does(files: SampleFiles, tmp_path: Path) -> None:
    """With a manifest, so that Spark finds it."""
    for _ in range(2):
        found = await files.taken(Taker(), lambda: True, "k")
        assert found is not None
        assert (found.taken_at, found.rows, found.missing) == (NOON, 1, "")
    assert stored(tmp_path) == 2


async def test_what_it_lacks_is_said(files: SampleFiles) -> None:
    brokers = tuple(BrokerId(number) for number in range(1, 8))
    found = await files.taken(Taker(missing_brokers=brokers, commits_missing="GroupForbidden"), lambda: True, "k")
    assert found is not None
    assert found.missing == (
        "no answer from brokers 1, 2, 3, 4, 5 and 2 more; bytes out are not measured, because consumer groups cannot "
        "be read (GroupForbidden): permit Describe on all groups, or set consumerGroups: false"
    )


async def test_one_that_is_not_wanted_any_more_is_not_stored(files: SampleFiles, tmp_path: Path) -> None:
    assert await files.taken(Taker(), lambda: False, "k") is None
    assert stored(tmp_path) == 0


async def test_a_store_that_fails_costs_the_samples_of_that_time(files: SampleFiles, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("in the way")
    for _ in range(sample_files._AT_ONCE + 1):
        with pytest.raises(Transient, match=r"the sample was not stored in .*/lake \(") as failed:
            await files.taken(Taker(), lambda: True, "k")
        assert failed.value.reason == "LakeUnusable"
    (tmp_path / "lake").unlink()
    assert await files.taken(Taker(), lambda: True, "k")
    assert stored(tmp_path) == 1


async def test_a_store_that_hangs_does_not_fill_the_memory(
    files: SampleFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No further cluster is read while two samples wait for it. When it answers, samples go on."""
    monkeypatch.setattr(sample_files, "_WRITE_SECONDS", 0.01)
    monkeypatch.setattr(sample_files, "_TURN_SECONDS", 0.01)
    answers, write, taker = threading.Event(), files._write, Taker()
    monkeypatch.setattr(files, "_write", lambda *given: (answers.wait(60), write(*given))[1])
    for _ in range(5):
        with pytest.raises(Transient, match=r"^the lake .*(did not take the sample|is busy).* within 0 s$") as failed:
            await files.taken(taker, lambda: True, "k")
        assert failed.value.reason == "LakeUnusable"
    assert taker.taken == sample_files._AT_ONCE
    monkeypatch.setattr(sample_files, "_WRITE_SECONDS", 60.0)
    monkeypatch.setattr(sample_files, "_TURN_SECONDS", 60.0)
    answers.set()
    assert await files.taken(taker, lambda: True, "k")
    await files.close()
    assert stored(tmp_path) == sample_files._AT_ONCE + 1


async def test_a_cancelled_sample_keeps_its_turn_until_it_is_written(
    files: SampleFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each edit would begin another one beside it."""
    answers, begun, write = threading.Event(), asyncio.Event(), files._write
    loop = asyncio.get_running_loop()

    def slow(*given: Any) -> int:
        loop.call_soon_threadsafe(begun.set)
        answers.wait(60)
        return write(*given)

    monkeypatch.setattr(files, "_write", slow)
    task = asyncio.create_task(files.taken(Taker(), lambda: True, "k"))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert files._turns.free == sample_files._AT_ONCE - 1
    answers.set()
    await files.close()
    assert files._turns.free == sample_files._AT_ONCE


async def test_who_does_not_lead_stores_nothing(tmp_path: Path) -> None:
    """Two operators at a time would be two samplers of one cluster."""

    def check() -> None:
        raise Transient("NotLeading", "this operator does not hold the lease")

    files = SampleFiles(str(tmp_path / "lake"), check, Now())
    with pytest.raises(Transient, match="lease"):
        await files.taken(Taker(), lambda: True, "k")
    await files.close()
    assert stored(tmp_path) == 0


class Late(Taker):
    """Brokers that answer late, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def sample(self) -> SampleBatch:
        self.asked.set()
        await self.answers.wait()
        return await super().sample()


async def test_a_cluster_that_answers_too_late_costs_only_its_own_sample(
    files: SampleFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn would be held as long as its brokers want."""
    monkeypatch.setattr(sample_files, "_READ_SECONDS", 0.01)
    for _ in range(sample_files._AT_ONCE + 1):
        with pytest.raises(Transient, match="the cluster was not read within 0 s") as failed:
            async with asyncio.timeout(60):  # else the test does not end if the sample has no limit
                await files.taken(Late(), lambda: True, "k")
        assert failed.value.reason == "KafkaUnreachable"
    monkeypatch.setattr(sample_files, "_READ_SECONDS", 60.0)
    assert await files.taken(Taker(), lambda: True, "k")


async def test_the_next_turn_is_for_the_namespace_with_the_fewest(files: SampleFiles) -> None:
    """One namespace may have any number of KafkaConnections with brokers that answer late."""
    late = [Late() for _ in range(5)]
    evil = [asyncio.create_task(files.taken(taker, lambda: True, "evil")) for taker in late]
    await asyncio.gather(*(taker.asked.wait() for taker in late[: sample_files._AT_ONCE]))
    other = asyncio.create_task(files.taken(Taker(), lambda: True, "other"))
    await asyncio.sleep(0)
    late[0].answers.set()
    assert await other
    assert not any(taker.taken for taker in late[1:])
    for taker in late:
        taker.answers.set()
    assert all(await asyncio.gather(*evil))


async def test_one_that_does_not_wait_any_more_keeps_no_turn(files: SampleFiles) -> None:
    """Also if it was given the turn just before."""
    late = Late()
    holding = [asyncio.create_task(files.taken(late, lambda: True, "k")) for _ in range(sample_files._AT_ONCE)]
    await late.asked.wait()
    waiting = [asyncio.create_task(files.taken(Taker(), lambda: True, "k")) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait({waiting[0]})
    files._turns.release("k")
    waiting[1].cancel()
    await asyncio.wait({waiting[1]})
    assert files._turns.free == 1
    await files._turns.take("k")
    late.answers.set()
    assert all(await asyncio.gather(*holding))
    assert files._turns.free == sample_files._AT_ONCE


class TestDailyLimit:
    """A namespace may write a 32nd of the lake a day. All share the lake: if it is full, no sample is stored."""

    @pytest.fixture(autouse=True)
    def volume(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A sample and its manifest take 7 KiB; a namespace may have 50 KiB a day."""
        usage = shutil.disk_usage("/")._replace(total=32 * 50 * 1024)
        monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)

    @staticmethod
    async def fill(files: SampleFiles, namespace: str) -> Permanent:
        """Store samples until one is refused."""
        for _ in range(20):
            try:
                await files.taken(Taker(), lambda: True, namespace)
            except Permanent as refused:
                return refused
        pytest.fail("20 samples were stored")

    async def test_one_namespace_does_not_fill_the_lake(self, files: SampleFiles, tmp_path: Path) -> None:
        """The condition says what to change. The samples of others are stored, and the cluster is read no more."""
        refused = await self.fill(files, "k")
        assert refused.reason == "DailyLimit"
        assert refused.message == (
            "the samples of namespace k have reached the limit of 0 MiB a day: set a longer spec.sampling.interval, or "
            "sample fewer clusters. Sampling continues after midnight UTC"
        )
        assert stored(tmp_path) > 3
        assert 40_000 < size_of(tmp_path) <= 50 * 1024
        taker = Taker()
        with pytest.raises(Permanent, match="limit"):
            await files.taken(taker, lambda: True, "k")
        assert taker.taken == 0
        assert await files.taken(taker, lambda: True, "other")

    async def test_begins_anew_with_the_day(self, tmp_path: Path) -> None:
        now = Now()
        files = SampleFiles(str(tmp_path / "lake"), lambda: None, now)
        await self.fill(files, "k")
        now.time += timedelta(hours=11, minutes=59)
        assert (await self.fill(files, "k")).reason == "DailyLimit"
        now.time += timedelta(minutes=1)
        assert await files.taken(Taker(), lambda: True, "k")
        await files.close()

    async def test_does_not_begin_anew_with_the_process(self, files: SampleFiles, tmp_path: Path) -> None:
        """What was written is counted in the lake. A damaged count costs that, and no sample."""
        await self.fill(files, "k")
        before, again = stored(tmp_path), SampleFiles(str(tmp_path / "lake"), lambda: None, Now())
        await self.fill(again, "k")
        assert stored(tmp_path) == before
        (tmp_path / "lake/written/samples/namespace=k.json").write_text("[]")
        after = SampleFiles(str(tmp_path / "lake"), lambda: None, Now())
        assert await after.taken(Taker(), lambda: True, "k")
        for opened in (again, after):
            await opened.close()
