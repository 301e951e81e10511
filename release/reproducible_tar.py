"""Archives that have the same bytes whenever and wherever they are made."""

import gzip
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

_LEVEL = 6
"""Of gzip. Level 9 makes the archive of an image 1 % smaller, and takes three times as long."""


def write_tar_gz(target: Path, files: Iterable[tuple[str, Path]]) -> None:
    """A gzipped tar of (name in the archive, file), ordered by name.

    Owner, group and time are fixed: the time is `SOURCE_DATE_EPOCH`, in seconds. Of the mode only the right to execute
    is kept.
    """
    with (
        target.open("wb") as written,
        gzip.GzipFile("", "wb", _LEVEL, written, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name, path in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = path.stat().st_size
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            entry.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
            with path.open("rb") as file:
                archive.addfile(entry, file)
