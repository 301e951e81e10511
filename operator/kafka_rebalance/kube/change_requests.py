"""Changes that commands submit to the run that has the lock of the directory with the records.

A request is a file. The run applies it, and then removes it. If the run is killed in between, the next run tries it
again and finds another resource version, or no resource. There is no answer: the command reads the resource again.
"""

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from kafka_rebalance.api.v1alpha1 import KINDS
from kafka_rebalance.kube.record_files import REQUESTS, not_ours, remove_file, replace_file

_ENDING = ".json"
_OLD_SECONDS = 3600.0
"""An unfinished file that is older than this is from a killed command."""


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A merge patch onto a resource version (``seen``), or without ``patch`` the deletion of a uid (``seen``).

    ``version``: a deletion is only for this resource version; None: for any.
    """

    plural: str
    namespace: str
    name: str
    seen: str
    patch: dict[str, Any] | None = None
    version: str | None = None


class ChangeRequests:
    """The requests in the directory ``records``. All methods block, and raise Transient("RecordsNotWritten").

    Refused("RecordsInvalid") if the directory of the requests is a link: files of others would be deleted.
    """

    def __init__(self, records: Path) -> None:
        self._place = records / REQUESTS

    @property
    def _directory(self) -> Path:
        if self._place.is_symlink():
            raise not_ours(self._place, "a directory")
        return self._place

    def hand_in(self, request: ChangeRequest) -> str:
        """The id of the request, which counts from now on even if this process is killed."""
        name = str(uuid.uuid4())
        replace_file(self._directory / f"{name}{_ENDING}", json.dumps(asdict(request)).encode())
        return name

    def open(self) -> None:
        """For the run: create the directory, and remove the unfinished files of killed commands.

        New files stay, because a command may still be writing them.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        before = time.time() - _OLD_SECONDS
        for entry in os.scandir(self._directory):
            with contextlib.suppress(FileNotFoundError):  # finished meanwhile
                if not entry.name.endswith(_ENDING) and entry.stat().st_mtime < before:
                    os.unlink(entry)

    def waits(self, name: str) -> bool:
        """Whether the request has not been carried out."""
        return (self._directory / f"{name}{_ENDING}").exists()

    def waiting(self) -> Iterator[tuple[str, ChangeRequest | None]]:
        """The id of each request, and the request; None: the file is not one."""
        for path in sorted(self._directory.glob(f"*{_ENDING}")):
            yield path.name.removesuffix(_ENDING), self._read(path)

    def remove(self, name: str) -> bool:
        """False: it was carried out or withdrawn before."""
        return remove_file(self._directory / f"{name}{_ENDING}")

    def _read(self, path: Path) -> ChangeRequest | None:
        try:
            # Where the standard library raises RecursionError, this parser raises ValueError.
            request = ChangeRequest(**from_json(path.read_bytes()))
            texts = (request.plural, request.namespace, request.name, request.seen, request.version or "")
            valid = all(isinstance(text, str) for text in texts) and request.plural in KINDS
            return request if valid and isinstance(request.patch, dict | None) else None
        except (OSError, ValueError, TypeError):
            return None
