"""Things that are expensive to make, kept outside the work tree so that a second clone starts in seconds.

An entry is complete or absent: it is made in a directory beside its place and renamed. A lock keeps two processes
from making the same entry twice.
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
    """The directory of `entry`; where it is missing, `make` fills a new one first."""
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
