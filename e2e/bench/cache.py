"""A cache for artifacts that are expensive to build, outside the work tree, so that a second clone starts in seconds.

An entry is complete or absent: it is built in a temporary directory and renamed. A lock prevents two processes from
building the same entry.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_root() -> Path:
    """`KRO_CACHE`, else `kafka-rebalance-operator` in the user's cache directory."""
    given = os.environ.get("KRO_CACHE")
    if given:
        return Path(given).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "kafka-rebalance-operator"


def cached(entry: str, make: Callable[[Path], None]) -> Path:
    """The directory of `entry`; if it does not exist, `make` fills a new one."""
    place = cache_root() / entry
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            return place
        building = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        try:
            make(building)
            building.rename(place)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
    return place
