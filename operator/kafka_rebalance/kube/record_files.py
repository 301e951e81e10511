"""Kubernetes objects as the files of one directory: a JSON file for each, replaced as a whole by one writer.

A file is written under another name, synced and renamed, and then the directory is synced. So a process or a machine
that stops at any moment leaves the old content or the new one. The lock belongs to the process: the kernel releases it,
also after SIGKILL. Nothing here knows what an object means.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.reasons import Reason

_LOCK = "lock"
_ENDING = ".json"
_UNFINISHED = ".unfinished"
_RETRY_SECONDS = 5.0
_LONGEST_NAME = 255 - len(_UNFINISHED)


class RecordFiles:
    """The files of one directory. All methods block. ``lock``: of the writer; None: for reading only."""

    def __init__(self, directory: Path, lock: int | None = None) -> None:
        self.directory = directory
        self._lock = lock

    @classmethod
    def to_write(cls, directory: Path) -> Self:
        """As the only writer; creates the directory.

        Refused("RecordsLocked") if another process has it, Refused("RecordsInvalid") names a file that is not of ours.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            files = cls(directory, lock)
            files._take(lock)
            files._check()
        except BaseException:
            os.close(lock)
            raise
        return files

    @classmethod
    def to_read(cls, directory: Path) -> Self:
        """Beside the writer, if there is one. Refused("RecordsInvalid") if the directory has no records."""
        if not (directory / _LOCK).is_file():
            raise Refused(Reason.RECORDS_INVALID, f"{directory} has no records of kafka-rebalance run")
        return cls(directory)

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def read(self, kind: str, namespace: str, name: str) -> Json | None:
        """One object; None if there is none."""
        path = self._path(kind, namespace, name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(path, error) from error
        return _object_in(path, data)

    def read_all(self, kind: str) -> Iterator[tuple[str, Json]]:
        """The namespace of each object of a kind, and the object."""
        for path in sorted(self.directory.glob(f"{kind}.*{_ENDING}")):
            _, namespace, name = path.name.removesuffix(_ENDING).split(".", 2)
            body = self.read(kind, namespace, name)
            if body is not None:
                yield namespace, body

    def write(self, kind: str, namespace: str, body: Json) -> None:
        """Create or replace. Transient("RecordsNotWritten") if that fails; the old content is then still there."""
        path = self._path(kind, namespace, body["metadata"]["name"])
        unfinished = path.with_name(path.name + _UNFINISHED)
        try:
            self._check_writer()
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _write_whole(file, json.dumps(body).encode())
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(unfinished, path)
            self._sync()
        except OSError as error:
            raise _failed(path, error) from error

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """False if there is none."""
        path = self._path(kind, namespace, name)
        try:
            self._check_writer()
            os.unlink(path)
            self._sync()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _failed(path, error) from error
        return True

    def _path(self, kind: str, namespace: str, name: str) -> Path:
        """No namespace has a dot, so each object has its own file."""
        file = f"{kind}.{namespace}.{name}{_ENDING}"
        if "/" in file or len(file.encode()) > _LONGEST_NAME:
            raise Refused(Reason.INVALID_SPEC, f"{name!r} is too long for the name of a file: use a shorter one")
        return self.directory / file

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
            raise Refused(
                Reason.RECORDS_LOCKED,
                f"another kafka-rebalance run (process {holder or 'unknown'}) uses {self.directory}: wait for its end, "
                "or use another directory",
            ) from held
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)

    def _check(self) -> None:
        """Every file is an object of ours. Removes what a killed writer left unfinished."""
        for path in sorted(self.directory.iterdir()):
            if path.name == _LOCK:
                continue
            if path.name.endswith(_ENDING + _UNFINISHED):
                os.unlink(path)
                continue
            parts = path.name.removesuffix(_ENDING).split(".", 2)
            if path.suffix != _ENDING or len(parts) != 3 or not path.is_file():
                raise Refused(
                    Reason.RECORDS_INVALID,
                    f"{path} is not a record of kafka-rebalance run: use a directory of its own for the records",
                )
            try:
                _object_in(path, path.read_bytes())
            except StoredStateCorrupt as damaged:
                raise Refused(Reason.RECORDS_INVALID, damaged.message) from damaged

    def _check_writer(self) -> None:
        if self._lock is None:
            raise Refused(Reason.RECORDS_LOCKED, f"{self.directory} is open for reading only")

    def _sync(self) -> None:
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _object_in(path: Path, data: bytes) -> Json:
    """StoredStateCorrupt if the file has no object, or the one of another file."""
    kind, namespace, name = path.name.removesuffix(_ENDING).split(".", 2)
    try:
        body: Json = json.loads(data)
        metadata = body["metadata"]
        if (metadata["name"], metadata["namespace"]) == (name, namespace) and metadata["resourceVersion"].isdigit():
            return body
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise StoredStateCorrupt(
        f"{path} is damaged: restore it from a backup. Without it, what the run has recorded in it ({kind} {name}) is "
        "lost"
    )


def _write_whole(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _failed(path: Path, error: OSError) -> Transient:
    message = f"{path}: {error.strerror or error}"
    return Transient(Reason.RECORDS_NOT_WRITTEN, message, retry_after=_RETRY_SECONDS)
