"""Counts what each namespace writes to a lake a day. All namespaces share it, and if it is full, it is full for all.

The count is in the lake itself, so a restart does not begin anew:

    written/<what>/namespace=<namespace>.json    the day (UTC) and its bytes, overwritten by each write

Bytes are counted before they are written. They count too if the store does not take them: it may have a part.
"""

import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

from kafka_rebalance.storage.locations import Location, path_segment, read_whole, write_whole

PLACE = "written"
_VOLUME_SHARE = 32
"""The samples of a day are a 36th of a lake of the recommended size (docs/pipeline.md)."""
_MOST_SHARE = 2 << 30
"""Also in an object store, or on a volume that shows the size of a larger one."""


def daily_share(location: Location) -> int:
    """The bytes that the samples of one namespace may have a day, by the size of the volume of the lake."""
    volume = volume_bytes(location.filesystem, location.root)
    return _MOST_SHARE if volume is None else min(_MOST_SHARE, volume // _VOLUME_SHARE)


def volume_bytes(filesystem: Any, root: str) -> int | None:
    """The size of the volume that this directory is or will be on; None of an object store."""
    if filesystem.type_name != "local":
        return None
    there = next(place for place in (Path(root), *Path(root).parents) if place.is_dir())
    return shutil.disk_usage(there).total


def written_bytes(location: Location, what: str, namespace: str, day: date) -> int:
    """The bytes of that day. Transient (LakeUnusable) if the store does not answer.

    ``what`` is written: each kind is counted by itself.
    """
    data = read_whole(location, _path(what, namespace))
    try:
        found = json.loads(data or b"{}")
        return int(found["bytes"]) if found.get("date") == day.isoformat() else 0
    except (ValueError, TypeError, KeyError, AttributeError):  # somebody edited it; the next write mends it
        return 0


def claim_bytes(location: Location, what: str, namespace: str, day: date, count: int, most: int) -> bool:
    """Count these bytes, unless that day would then have more than ``most``. Errors: as of `written_bytes`.

    OSError if the store does not take the count. Not to be called by two threads at a time.
    """
    total = written_bytes(location, what, namespace, day) + count
    if total > most:
        return False
    document = json.dumps({"date": day.isoformat(), "bytes": total}).encode()
    write_whole(location.filesystem, f"{location.root}/{_path(what, namespace)}", document)
    return True


def _path(what: str, namespace: str) -> str:
    return f"{PLACE}/{what}/namespace={path_segment(namespace)}.json"
