"""The files of a run without Kubernetes: whole after a kill at any call, one writer, and nothing foreign among them."""

import errno
import os
import subprocess
import sys

import pytest
from tests.fakes.mortal_disk import Died, MortalDisk

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube import record_files
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.record_files import RecordFiles


@pytest.fixture
def disk(monkeypatch):
    found = MortalDisk()
    monkeypatch.setattr(record_files, "os", found)
    return found


@pytest.fixture
def files(tmp_path):
    opened = RecordFiles.to_write(tmp_path / "records")
    yield opened
    opened.close()


def body(name="a", **content):
    return {"metadata": {"name": name, "namespace": "n", "resourceVersion": "1"}, **content}


class TestWriting:
    def test_read_back(self, files):
        """Names may have dots; a namespace has none."""
        for name in ("a", "a.b"):
            files.write("configmaps", "n", body(name))
        assert files.read("configmaps", "n", "a.b") == body("a.b")
        assert sorted(found["metadata"]["name"] for _, found in files.read_all("configmaps")) == ["a", "a.b"]
        assert files.read("configmaps", "n", "b") is None
        assert list(files.read_all("kafkarebalances")) == []

    def test_removed(self, files):
        files.write("configmaps", "n", body())
        assert files.remove("configmaps", "n", "a")
        assert not files.remove("configmaps", "n", "a")
        assert files.read("configmaps", "n", "a") is None

    def test_order_of_calls(self, disk, files):
        """The content is on disk before the name leads to it, and the name before the write returns."""
        disk.calls.clear()
        files.write("configmaps", "n", body())
        assert disk.calls == ["create", "write", "fsync", "replace", "fsync"]

    @pytest.mark.parametrize("left", range(6))
    def test_killed_at_each_call(self, disk, tmp_path, left):
        """The next writer finds the old content or the new one, and nothing unfinished."""
        files = RecordFiles.to_write(tmp_path)
        files.write("configmaps", "n", body(value="old"))
        disk.left = left
        try:
            files.write("configmaps", "n", body(value="new"))
        except Died:
            assert left < 5
        else:
            assert left == 5
        disk.left = None
        files.close()
        after = RecordFiles.to_write(tmp_path)
        assert after.read("configmaps", "n", "a")["value"] == ("new" if left >= 4 else "old")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["configmaps.n.a.json", "lock"]
        after.close()

    def test_a_full_disk(self, monkeypatch, files):
        """The message names the file; the old content stays, and the write may be repeated."""
        files.write("configmaps", "n", body(value="old"))

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(record_files.os, "write", full)
            with pytest.raises(Transient, match=r"configmaps\.n\.a\.json: No space left on device") as failed:
                files.write("configmaps", "n", body(value="new"))
        assert failed.value.reason == "RecordsNotWritten"
        assert files.read("configmaps", "n", "a")["value"] == "old"
        files.write("configmaps", "n", body(value="new"))

    def test_a_name_that_no_file_can_have(self, files):
        with pytest.raises(Refused, match="use a shorter one"):
            files.write("kafkarebalances", "n", body("x" * 250))


class TestLock:
    def test_two_writers(self, files):
        """The second one is refused and told who has the directory."""
        with pytest.raises(Refused, match=f"process {os.getpid()}") as refused:
            RecordFiles.to_write(files.directory)
        assert refused.value.reason == "RecordsLocked"

    def test_beside_a_reader(self, files):
        files.write("configmaps", "n", body())
        reader = RecordFiles.to_read(files.directory)
        assert reader.read("configmaps", "n", "a") == body()
        with pytest.raises(Refused, match="open for reading only"):
            reader.write("configmaps", "n", body())

    def test_a_killed_writer(self, tmp_path):
        """The kernel releases its lock."""
        program = (
            "import os, signal, pathlib; from kafka_rebalance.kube.record_files import RecordFiles; "
            f"files = RecordFiles.to_write(pathlib.Path({str(tmp_path)!r})); os.kill(os.getpid(), signal.SIGKILL)"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
        RecordFiles.to_write(tmp_path).close()

    def test_nothing_to_read(self, tmp_path):
        with pytest.raises(Refused, match="has no records of kafka-rebalance run"):
            RecordFiles.to_read(tmp_path / "misspelt")
        assert not (tmp_path / "misspelt").exists()


class TestOtherFiles:
    @pytest.mark.parametrize("name", ["notes.txt", "cluster.json", "a.b.json", "configmaps.n.a.json.bak"])
    def test_foreign(self, tmp_path, name):
        """A directory that is used for something else is refused with the name of the file, and not changed."""
        (tmp_path / name).write_text("{}")
        with pytest.raises(Refused, match=f"{name} is not a record") as refused:
            RecordFiles.to_write(tmp_path)
        assert refused.value.reason == "RecordsInvalid"
        assert (tmp_path / name).read_text() == "{}"

    @pytest.mark.parametrize(
        "damage", ["", "{", "[" * 2000, "[]", "{}", '{"metadata": {"name": "b", "namespace": "n"}}']
    )
    def test_damaged(self, tmp_path, damage):
        """Cut off, empty or that of another object: refused by its name, never taken for nothing."""
        files = RecordFiles.to_write(tmp_path)
        files.write("configmaps", "n", body())
        files.close()
        (tmp_path / "configmaps.n.a.json").write_text(damage)
        with pytest.raises(Refused, match=r"configmaps\.n\.a\.json is damaged") as refused:
            RecordFiles.to_write(tmp_path)
        assert refused.value.reason == "RecordsInvalid"
        with pytest.raises(StoredStateCorrupt, match="is damaged"):
            RecordFiles.to_read(tmp_path).read("configmaps", "n", "a")
