"""Keeps stored windows from filling the volume of a lake, whatever samples they are made of.

Windows may take many times the space of their samples, which alone are counted when they are written, and are kept
longer. So the Job stores windows only while all files of the lake leave a sixteenth of its volume. `trim` deletes
windows until they leave a twelfth: of each cluster what exceeds its share, which is by the size of its samples.

An object store has no volume, and no such limit.
"""

from collections import defaultdict
from collections.abc import Mapping

from kafka_rebalance.errors import Permanent
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_tables import TABLES
from kafka_rebalance.pipeline.stored_hours import PLACES
from kafka_rebalance.reasons import Reason
from kafka_rebalance.storage.daily_bytes import volume_bytes

_LEFT = 16
_LEFT_BY_TRIM = 12
"""More, so that windows can be stored until the next run. A lake of the recommended size leaves about as much."""


class WindowsRoom:
    """The bytes that windows may still take in one run of the Job. Written by that run only."""

    def __init__(self, lake: Lake) -> None:
        volume = volume_bytes(lake.filesystem, lake.root)
        self._free = None if volume is None else volume - volume // _LEFT - sum(size for _, size in lake.sizes())

    def take(self, count: int) -> None:
        """Reserve this number of bytes; call it before they are stored.

        Permanent (LakeUnusable) if there is less room. Then nothing is reserved, and fewer bytes can still be stored.
        """
        if self._free is None:
            return
        if count > self._free:
            raise Permanent(
                Reason.LAKE_UNUSABLE,
                f"windows are stored only while the lake leaves a {_LEFT}th of its volume: run `kafka-rebalance "
                "pipeline compact` with --windows-retention, or enlarge the volume. Load models compute hours that are "
                "not stored from samples",
            )
        self._free -= count


def trim(lake: Lake) -> int:
    """Delete windows if the files of the lake leave too little of its volume. Returns the number of hours."""
    volume = volume_bytes(lake.filesystem, lake.root)
    if volume is None:
        return 0
    sizes = lake.sizes()
    excess = sum(size for _, size in sizes) - (volume - volume // _LEFT_BY_TRIM)
    if excess <= 0:
        return 0
    windows: dict[str, list[tuple[str, int]]] = defaultdict(list)
    samples: dict[str, int] = defaultdict(int)
    for name, size in sorted(sizes):  # the oldest first
        place, cluster, *_ = (*name.split("/"), "")  # a file in the root is of no cluster
        if place == PLACES[1]:
            windows[cluster].append((name, size))
        elif place in {table.files for table in TABLES}:
            samples[cluster] += size
    stored = {cluster: sum(size for _, size in files) for cluster, files in windows.items()}
    allowed = shares(stored, samples, max(0, sum(stored.values()) - excess))
    deleted = 0
    for cluster, files in windows.items():
        for name, size in files:
            if stored[cluster] <= allowed[cluster]:
                break
            lake.delete(name.replace(PLACES[1], PLACES[0], 1).removesuffix(".parquet") + ".json")
            lake.delete(name)
            stored[cluster] -= size
            deleted += 1
    return deleted


def shares(stored: Mapping[str, int], samples: Mapping[str, int], most: int) -> dict[str, int]:
    """The bytes that each cluster may keep of those that are ``stored``, together ``most``.

    In proportion to its samples, and what it does not need is for the others. So cluster ids that servers make up get
    no share beyond that of the samples that were counted.
    """
    left, weight = most, sum(samples.get(cluster, 0) for cluster in stored)
    found: dict[str, int] = {}
    for cluster in sorted(stored, key=lambda cluster: stored[cluster] / max(samples.get(cluster, 0), 1e-9)):
        own = samples.get(cluster, 0)
        found[cluster] = min(stored[cluster], left * own // weight if weight else left)
        left, weight = left - found[cluster], weight - own
    return found
