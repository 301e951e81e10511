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
from kafka_rebalance.kube.change_requests import ChangeRequest, ChangeRequests
from kafka_rebalance.kube.record_files import RecordFiles

REQUEST = ChangeRequest("kafkarebalances", "n", "a", "1")


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


class TestLinks:
    """The owner of a directory may be another user than the one who runs a command, for example root."""

    def test_the_lock(self, tmp_path):
        """The target of a link is not changed."""
        (tmp_path / "other").write_text("kept")
        (tmp_path / "records").mkdir()
        (tmp_path / "records" / "lock").symlink_to(tmp_path / "other")
        with pytest.raises(Refused, match="lock is not a file of kafka-rebalance run") as refused:
            RecordFiles.to_write(tmp_path / "records")
        assert refused.value.reason == "RecordsInvalid"
        assert (tmp_path / "other").read_text() == "kept"

    def test_an_unfinished_file(self, tmp_path, files):
        """Replaced, not followed."""
        (tmp_path / "other").write_text("kept")
        (files.directory / "configmaps.n.a.json.unfinished").symlink_to(tmp_path / "other")
        files.write("configmaps", "n", body())
        assert (tmp_path / "other").read_text() == "kept"
        assert files.read("configmaps", "n", "a") == body()
        assert not (files.directory / "configmaps.n.a.json").is_symlink()

    def test_requests(self, tmp_path, files):
        """Nothing is written to another directory, and no old file of it is deleted."""
        other = tmp_path / "other"
        other.mkdir()
        (other / "old").write_text("kept")
        os.utime(other / "old", (0, 0))
        (files.directory / "requests").symlink_to(other)
        requests = ChangeRequests(files.directory)
        for use in (requests.open, lambda: requests.hand_in(REQUEST), lambda: list(requests.waiting())):
            with pytest.raises(Refused, match="requests is not a directory of kafka-rebalance run"):
                use()
        assert [path.name for path in other.iterdir()] == ["old"]


class TestOtherFiles:
    @pytest.mark.parametrize("name", ["notes.txt", "cluster.json", "a.b.json", "configmaps.n.a.json.bak"])
    def test_foreign(self, tmp_path, name):
        """A directory that is used for something else is refused with the name of the file, and not changed."""
        (tmp_path / name).write_text("{}")
        with pytest.raises(Refused, match=f"{name} is not a record") as refused:
            RecordFiles.to_write(tmp_path)
        assert refused.value.reason == "RecordsInvalid"
        assert (tmp_path / name).read_text() == "{}"

    def test_foreign_beside_a_reader(self, tmp_path):
        RecordFiles.to_write(tmp_path).close()
        (tmp_path / "configmaps.a.json").write_text("{}")
        with pytest.raises(Refused, match=r"configmaps\.a\.json is not a record"):
            list(RecordFiles.to_read(tmp_path).read_all("configmaps"))

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
