"""The engine with its objects in a directory: killed at any write it ends as if it had not been, and loses nothing."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.mortal_disk import MortalDisk
from tests.fakes.operator_in_directory import OperatorInDirectory

from kafka_rebalance.kube import record_files

BEFORE = [[1, 2], [2, 1]]
SPEC = {"kafka": {"bootstrapServers": "kafka:9092"}, "execution": {"parallelPartitionCount": 1}}


async def story(directory, monkeypatch, left, deletes):
    """Killed after ``left`` calls of the disk; returns the replicas, the configs, what is stored, and the calls."""
    kafka, disk = KafkaInMemory((1, 2, 3, 4), t=BEFORE), MortalDisk(("replace", "fsync", "unlink"))
    monkeypatch.setattr(record_files, "os", disk)
    operator = OperatorInDirectory(kafka, disk, directory)
    assert await operator.carry_out(SPEC, deletes=deletes, left=left) is (left is not None)
    return kafka.lists("t"), kafka.values, await operator.stored(), len(disk.calls)


@pytest.mark.parametrize("deletes", [0, 1], ids=["to-the-end", "deleted-on-the-way"])
async def test_killed_at_each_call_of_the_disk(tmp_path, monkeypatch, deletes):
    """Before and after each change of a name in the directory: what is reached and recorded is the same.

    The tests of the files hold that the other calls change nothing.
    """
    *expected, calls = await story(tmp_path / "alone", monkeypatch, None, deletes)
    lists, configs, stored = expected
    assert configs == {}
    assert (lists == BEFORE) is bool(deletes)
    origins = {} if deletes else {f"t-{number}": row for number, row in enumerate(BEFORE)}
    assert stored == {
        "states": [] if deletes else ["Succeeded"],
        "runs": [] if deletes else ["Succeeded"],
        "origins": origins,
        "throttled": False,
    }
    assert calls >= 50
    for left in range(calls):
        *found, _ = await story(tmp_path / str(left), monkeypatch, left, deletes)
        assert found == expected, left
