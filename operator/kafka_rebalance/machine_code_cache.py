"""Where numba keeps the machine code of our functions; it imports the class by its name.

numba's own locators differ in two ways: they notice a change only in the file of a function, not in the functions that
it calls; and they do not read directories that they cannot write, such as one that was filled when an image was built.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Self

from numba.core import config as typed_config
from numba.core.caching import UserProvidedCacheLocator

config: Any = typed_config  # its values are set at run time


class MachineCodeCache(UserProvidedCacheLocator):
    """The first directory that has code of this version, or else that can be written: that of ``NUMBA_CACHE_DIR`` or,
    if it is not set, beside the files, or in the user's cache."""

    def __init__(self, function: Callable[..., Any], file: str, place: Path) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._place = place
        self._stamp = content_hash(Path(file).parent)

    def get_cache_path(self) -> str:
        """Of this version: several can share a directory."""
        return str(self._place)

    def get_source_stamp(self) -> str:
        """The same for all functions of a package."""
        return self._stamp

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Self | None:
        """None: no directory will do."""
        if not os.path.exists(file):
            return None
        places = (place / f"kafka-rebalance-{content_hash(Path(file).parent)}" for place in _places(file))
        found = next((place for place in places if _has_code(place) or _can_be_written(place)), None)
        return cls(function, file, found) if found is not None else None


@cache
def content_hash(package: Path) -> str:
    """Of all its files."""
    content = b"".join(path.read_bytes() for path in sorted(package.glob("*.py")))
    return hashlib.sha256(content).hexdigest()[:16]


def _places(file: str) -> list[Path]:
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR)]
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return [Path(file).parent / "__pycache__", Path(caches).expanduser() / "numba"]


def _has_code(place: Path) -> bool:
    return next(place.glob("*.nbc"), None) is not None


def _can_be_written(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError:
        return False
    return True
