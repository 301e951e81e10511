"""Kubernetes objects as the files of one directory: a JSON file for each, replaced as a whole by one writer.

A file is written under another name, synced and renamed, and then the directory is synced. So a process or a machine
that stops at any moment leaves the old content or the new one. The lock belongs to the process: the kernel releases it,
also after SIGKILL. Links are not followed, because the directory may belong to another user than the process, for
example if root runs a command. Nothing here knows what an object means.
"""

import errno
import fcntl
import json
import os
import time
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
REQUESTS = "requests"
"""The directory of `ChangeRequests`, which other processes write to."""
_COMMAND = "command"
_COMMAND_LOOKS = 200
"""How often a run looks again while a command has the directory: for the time of one change."""
_LOOK_SECONDS = 0.05
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class RecordFiles:
    """The files of one directory. All methods block. ``lock``: of the writer; None: for reading only."""

    def __init__(self, directory: Path, lock: int | None = None) -> None:
        self.directory = directory
        self._lock = lock

    @classmethod
    def to_write(cls, directory: Path, *, command: bool = False) -> Self:
        """As the only writer; creates the directory. ``command``: for a single change, which a run waits for.

        Refused("RecordsLocked") if another process has it, Refused("RecordsInvalid") names a file that is not of ours.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _opened_lock(directory / _LOCK)
        try:
            files = cls(directory, lock)
            files._take(lock, command=command)
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
            parts = path.name.removesuffix(_ENDING).split(".", 2)
            if len(parts) != 3:
                raise not_ours(path, "a record")
            _, namespace, name = parts
            body = self.read(kind, namespace, name)
            if body is not None:
                yield namespace, body

    def write(self, kind: str, namespace: str, body: Json) -> None:
        """Create or replace. Transient("RecordsNotWritten") if that fails; the old content is then still there."""
        path = self._path(kind, namespace, body["metadata"]["name"])
        self._check_writer()
        replace_file(path, json.dumps(body).encode())

    def remove(self, kind: str, namespace: str, name: str) -> bool:
        """False if there is none."""
        path = self._path(kind, namespace, name)
        self._check_writer()
        return remove_file(path)

    def _path(self, kind: str, namespace: str, name: str) -> Path:
        """No namespace has a dot, so each object has its own file."""
        file = f"{kind}.{namespace}.{name}{_ENDING}"
        if "/" in file or len(file.encode()) > _LONGEST_NAME:
            raise Refused(Reason.INVALID_SPEC, f"{name!r} is too long for the name of a file: use a shorter one")
        return self.directory / file

    def _take(self, lock: int, *, command: bool) -> None:
        for looks in range(_COMMAND_LOOKS + 1):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as held:
                pid, _, what = os.pread(lock, 40, 0).decode(errors="replace").strip().partition(" ")
                if what == _COMMAND and looks < _COMMAND_LOOKS:
                    time.sleep(_LOOK_SECONDS)
                    continue
                raise Refused(
                    Reason.RECORDS_LOCKED,
                    f"another kafka-rebalance run (process {pid or 'unknown'}) uses {self.directory}: wait for its "
                    "end, or use another directory",
                ) from held
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}{f' {_COMMAND}' if command else ''}\n".encode(), 0)

    def _check(self) -> None:
        """Every file is an object of ours. Removes what a killed writer left unfinished."""
        for path in sorted(self.directory.iterdir()):
            if path.name in {_LOCK, REQUESTS}:
                continue
            if path.name.endswith(_ENDING + _UNFINISHED):
                os.unlink(path)
                continue
            parts = path.name.removesuffix(_ENDING).split(".", 2)
            if path.suffix != _ENDING or len(parts) != 3 or not path.is_file():
                raise not_ours(path, "a record")
            try:
                _object_in(path, path.read_bytes())
            except StoredStateCorrupt as damaged:
                raise Refused(Reason.RECORDS_INVALID, damaged.message) from damaged

    def _check_writer(self) -> None:
        if self._lock is None:
            raise Refused(Reason.RECORDS_LOCKED, f"{self.directory} is open for reading only")


def replace_file(path: Path, data: bytes) -> None:
    """Create or replace a file as a whole. Transient("RecordsNotWritten"); the old content is then still there."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    try:
        try:
            file = os.open(unfinished, _NEW_FILE, 0o600)
        except FileExistsError:  # from a killed writer, or a link
            os.unlink(unfinished)
            file = os.open(unfinished, _NEW_FILE, 0o600)
        try:
            if os.geteuid() == 0:  # the user of the directory must be able to read it
                owner = os.stat(path.parent)
                os.fchown(file, owner.st_uid, owner.st_gid)
            _write_whole(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(unfinished, path)
        _sync(path.parent)
    except OSError as error:
        raise _failed(path, error) from error


def remove_file(path: Path) -> bool:
    """False if there is none. Transient("RecordsNotWritten")."""
    try:
        os.unlink(path)
        _sync(path.parent)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _failed(path, error) from error
    return True


def not_ours(path: Path, what: str) -> Refused:
    """The error for a path that is a link, for example: ``what``: a file, say."""
    message = f"{path} is not {what} of kafka-rebalance run: use a directory of its own for the records"
    return Refused(Reason.RECORDS_INVALID, message)


def _opened_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise not_ours(path, "a file") from error
        raise


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _object_in(path: Path, data: bytes) -> Json:
    """StoredStateCorrupt if the file has no object, or the one of another file."""
    kind, namespace, name = path.name.removesuffix(_ENDING).split(".", 2)
    try:
        body: Json = json.loads(data)
        metadata = body["metadata"]
        if (metadata["name"], metadata["namespace"]) == (name, namespace) and metadata["resourceVersion"].isdigit():
            return body
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
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
