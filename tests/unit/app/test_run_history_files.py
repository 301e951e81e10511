from __future__ import annotations

import asyncio
import gc
import logging
import random
import string
import threading
import weakref
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from kafka_rebalance.app import run_history_files
from kafka_rebalance.app.run_history_files import RunHistoryFiles
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.run_record import RunRecord, StepRecord
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.storage import run_history
from kafka_rebalance.storage.locations import open_location

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
STEP = StepRecord(
    tp=TopicPartition("t", 3),
    started_at=NOON,
    ended_at=NOON + timedelta(seconds=9),
    bytes_copied=2**30,
    source=BrokerId(1),
    destinations=replicas_of(2, 3),
    leader_rate=None,
    follower_rate=5 << 20,
    rate_changed=False,
    copies_in=2,
    copies_out=4,
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end waits for a disk that others use too."""
    monkeypatch.setattr(run_history_files, "_CLOSE_SECONDS", 240)


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and "written" not in path.parts]


def record(run_id: str = "run-1") -> RunRecord:
    return RunRecord(
        cluster_id="c/1",
        namespace="kafka",
        name="r",
        run_id=run_id,
        plan_hash="sha256:1",
        outcome="Succeeded",
        complete=True,
        started_at=NOON,
        ended_at=NOON + timedelta(seconds=10),
        active_seconds=9.5,
        parallel_replicas=1,
        parallel_partitions=100,
        parallel_leader_movements=20,
        limits_changed=False,
        steps=(STEP, STEP),
    )


class Referable(RunRecord):
    """Without slots, so that weak references to it can be made."""

    @classmethod
    def of(cls, namespace: str, run_id: str) -> Referable:
        made = replace(record(run_id), namespace=namespace)
        return cls(**{of.name: getattr(made, of.name) for of in fields(made)})


async def test_a_run_is_one_whole_file(tmp_path: Path) -> None:
    """A row per step, with the run in each; nothing half-written beside it."""
    files = RunHistoryFiles(str(tmp_path))
    files.keep(record())
    await files.close()
    (path,) = _files(tmp_path)
    assert path.relative_to(tmp_path).as_posix() == (
        "steps/cluster=c%2F1/date=2026-03-04/20260304T120010Z-run-1.parquet"
    )
    rows = pyarrow.parquet.ParquetFile(path).read().to_pylist()
    assert len(rows) == 2
    assert rows[0]["run_started_at"] == NOON
    assert rows[0]["ended_at"] == NOON + timedelta(seconds=9)
    assert (rows[0]["active_seconds"], rows[0]["complete"], rows[0]["outcome"]) == (9.5, True, "Succeeded")
    assert (rows[0]["topic"], rows[0]["partition"], rows[0]["destinations"]) == ("t", 3, [2, 3])
    assert (rows[0]["leader_rate"], rows[0]["follower_rate"]) == (None, 5 << 20)


async def test_a_store_that_fails_costs_the_record_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In one line; the engine goes on."""
    (tmp_path / "steps").write_text("in the way")
    files = RunHistoryFiles(str(tmp_path))
    with caplog.at_level(logging.WARNING):
        files.keep(record())
        await files.close()
    (said,) = caplog.messages
    assert said.startswith("kafka/r: its run is not in the history")


async def test_a_store_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """``keep`` does not wait for it, the end waits only briefly, and it does not fill the memory."""
    monkeypatch.setattr(run_history_files, "_CLOSE_SECONDS", 0.01)
    monkeypatch.setattr(run_history_files, "_MOST_WAITING_STEPS", 3 * run_history_files._LEAST_WEIGHT)
    answers = threading.Event()
    files = RunHistoryFiles(str(tmp_path))
    monkeypatch.setattr(files, "_write", lambda *_: answers.wait(60))
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            files.keep(record(f"run-{number}"))
    assert len(caplog.messages) == 2
    async with asyncio.timeout(60):
        await files.close()
    answers.set()


@pytest.mark.parametrize(
    ("most", "runs"),
    [(5, [{"steps": (STEP,) * steps} for steps in (7, 1, 1)]), (30, [{"weight": 20}] * 3)],
    ids=["many steps", "steps with many destinations, which need as much memory as twenty others"],
)
async def test_long_runs_that_wait_do_not_fill_the_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    most: int,
    runs: list[dict[str, Any]],
) -> None:
    """One of any length may wait, but not many of them."""
    monkeypatch.setattr(run_history_files, "_LEAST_WEIGHT", 1)
    monkeypatch.setattr(run_history_files, "_MOST_WAITING_STEPS", most)
    answers = threading.Event()
    files = RunHistoryFiles(str(tmp_path))
    monkeypatch.setattr(files, "_write", lambda *_: answers.wait(60))
    with caplog.at_level(logging.WARNING):
        for number, changes in enumerate(runs):
            files.keep(replace(record(f"run-{number}"), **changes))
    assert len(caplog.messages) == 2
    answers.set()
    await files.close()


async def test_the_namespace_with_most_that_waits_loses_its_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The runs of others are kept; with equal shares it is the next run that is not. What is lost frees its memory."""
    monkeypatch.setattr(run_history_files, "_LEAST_WEIGHT", 10)
    monkeypatch.setattr(run_history_files, "_MOST_WAITING_STEPS", 60)
    answers, written = threading.Event(), list[str]()
    in_memory = weakref.WeakValueDictionary[str, Referable]()
    files = RunHistoryFiles(str(tmp_path))

    def write(_place: str, record: RunRecord) -> None:
        answers.wait(60)
        written.append(record.run_id)

    monkeypatch.setattr(files, "_write", write)
    with caplog.at_level(logging.WARNING):
        for run in ("a1", "a2", "a3", "a4", "a5", "a6", "b1", "a7", "b2", "b3", "b4"):
            made = Referable.of(run[0], run)
            in_memory[run] = made
            files.keep(made)
            del made
    assert [message.split()[1] for message in caplog.messages] == ["a6", "a7", "a5", "a4", "b4"]
    gc.collect()
    assert set(in_memory) - {"a1"} == {"a2", "a3", "b1", "b2", "b3"}  # the first one is being written
    answers.set()
    await files.close()
    assert written == ["a1", "a2", "a3", "b1", "b2", "b3"]


async def test_a_long_run_is_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator serves other namespaces in the same memory."""
    monkeypatch.setattr(run_history, "_PIECE", 2)
    location = open_location(str(tmp_path))
    steps = tuple(replace(STEP, tp=TopicPartition("t", number)) for number in range(5))
    path = run_history.write_run(location, replace(record(), steps=steps))
    assert pyarrow.parquet.ParquetFile(tmp_path / path).num_row_groups == 3
    assert run_history.read_run(location, "c/1", "run-1") == replace(record(), steps=steps)


async def test_one_namespace_does_not_fill_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Servers of its own may let it end any number of runs. The others, and its runs of the next day, are kept."""
    monkeypatch.setattr(run_history_files, "_MOST_BYTES_A_DAY", 2 * run_history_files._FILE_BYTES)
    files = RunHistoryFiles(str(tmp_path))
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            files.keep(record(f"run-{number}"))
        files.keep(replace(record("of-others"), namespace="other"))
        files.keep(replace(record("tomorrow"), ended_at=NOON + timedelta(days=1)))
        await files.close()
    assert sorted(path.stem.partition("-")[2] for path in _files(tmp_path)) == [
        "of-others",
        "run-0",
        "run-1",
        "tomorrow",
    ]
    assert len(caplog.messages) == 3
    assert "namespace kafka" in caplog.messages[0]


async def test_a_restart_does_not_begin_the_day_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is counted in the lake."""
    monkeypatch.setattr(run_history_files, "_MOST_BYTES_A_DAY", 2 * run_history_files._FILE_BYTES)
    for process in range(3):
        files = RunHistoryFiles(str(tmp_path))
        files.keep(record(f"run-{process}"))
        await files.close()
    assert sorted(path.stem.partition("-")[2] for path in _files(tmp_path)) == ["run-0", "run-1"]


async def test_steps_that_take_much_count_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers may claim names of 249 characters and lists of 100 brokers, which no compression makes smaller."""
    monkeypatch.setattr(run_history_files, "_MOST_BYTES_A_DAY", 100_000)
    rng, files = random.Random(1), RunHistoryFiles(str(tmp_path))
    for number in range(3):
        tps = [TopicPartition("".join(rng.choices(string.ascii_letters, k=249)), 0) for _ in range(120)]
        steps = [replace(STEP, tp=tp, destinations=replicas_of(*rng.sample(range(2**31 - 1), 97))) for tp in tps]
        files.keep(replace(record(f"run-{number}"), steps=tuple(steps)))
    await files.close()
    (path,) = _files(tmp_path)
    assert path.stem.endswith("-run-0")
    assert 50_000 < path.stat().st_size < 100_000


async def test_without_a_place_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history is asked for with --history."""
    monkeypatch.chdir(tmp_path)
    files = RunHistoryFiles(None)
    files.keep(record())
    await files.close()
    assert _files(tmp_path) == []


class TestDurations:
    async def test_are_read_from_the_models(self, tmp_path: Path) -> None:
        """None while there are none."""
        model = DurationModel("c1", 40, NOON, 0.9, None, 2.0, 5.0)
        files = RunHistoryFiles(None, str(tmp_path))
        assert await files.durations("c1") is None
        place = tmp_path / "c1"
        place.mkdir()
        (place / "durations.json").write_bytes(model.to_json())
        assert await files.durations("c1") == model
        assert await RunHistoryFiles(None).durations("c1") is None
        assert await files.durations("../c1") is None

    async def test_a_damaged_file_is_said_and_not_used(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """The ETA is then the lower bound of the throttle."""
        (tmp_path / "c1").mkdir()
        (tmp_path / "c1" / "durations.json").write_text("{}")
        with caplog.at_level(logging.WARNING):
            assert await RunHistoryFiles(None, str(tmp_path)).durations("c1") is None
        assert "the durations of cluster c1 are not known: the duration model cannot be read" in caplog.text
