"""`SHA256SUMS` of a release, which `sha256sum --check` reads. `python -m release.checksums DIR` writes it again."""

import hashlib
import sys
from pathlib import Path

SUMS = "SHA256SUMS"


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(directory: Path) -> None:
    """Write the hash of each file of a directory into the directory."""
    lines = [f"{sha256(path)}  {path.name}\n" for path in sorted(directory.iterdir()) if path.name != SUMS]
    (directory / SUMS).write_text("".join(lines), encoding="utf-8")


def different(one: Path, other: Path) -> list[str]:
    """The names of the files that only one directory has, or that differ."""
    names = {path.name for directory in (one, other) for path in directory.iterdir()}
    return sorted(name for name in names if _hash_if_there(one / name) != _hash_if_there(other / name))


def _hash_if_there(path: Path) -> str | None:
    return sha256(path) if path.exists() else None


if __name__ == "__main__":
    write_checksums(Path(sys.argv[1]))
