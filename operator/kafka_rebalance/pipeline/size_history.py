"""Chooses the samples and stored windows for the history of sizes: one a day, at the newest sample's time of day.

So changes within a day are not taken for a trend, and few files of a large lake are read. Stored windows have the sizes
of the samples at the borders of each hour, and replace samples that have expired. Needs no Spark.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import Manifest, StoredBatch, days, names_of, read, stamp_of, verified
from kafka_rebalance.pipeline.stored_hours import HOUR, StoredHour, hour_names, intact_hours, read_hour, window_days

HORIZONS = (1, 7, 30)
"""Days ahead for which sizes are forecast."""
LONGEST = timedelta(days=90)
SIZE_COLUMNS = ("k", "w", "at", "size", "start")
"""Of stored windows: what a size is read from. Hours of other versions of the program will do if they have these."""
_OFF = timedelta(hours=3)
"""A sample further from the time of day of the newest one says more about the hour than about the day."""
_TRIES = 3
"""The maximum number of files to open per day: a day whose files are damaged is left out."""


def days_needed(ahead: int) -> int:
    """The required age of the oldest size for a forecast ``ahead`` days ahead, which is first tried on the past."""
    return 7 * math.ceil(ahead / 7) + max(2, math.ceil(ahead / 2))


@dataclass(frozen=True, slots=True)
class DailySample:
    """A batch and the file that has it."""

    manifest: Manifest
    batch: StoredBatch


@dataclass(frozen=True, slots=True)
class SizeHistory:
    """Oldest first: one sample for each day that has one, and one stored hour for each of the others that has one."""

    samples: tuple[DailySample, ...]
    hours: tuple[StoredHour, ...]

    @property
    def days(self) -> int:
        """On how many days sizes are known."""
        return len(self.samples) + len(self.hours)

    def reaches_back(self, newest: datetime) -> int:
        """How many days before ``newest`` the oldest size was read."""
        times = [sample.batch.sampled_at for sample in self.samples] + [hour.inputs.hour for hour in self.hours]
        return round((newest - min(times, default=newest)) / timedelta(days=1))


def size_history(lake: Lake, cluster_id: str, newest: datetime) -> SizeHistory:
    """At most ``LONGEST`` back from ``newest``, which is the time of the newest sample."""
    earliest, latest = (newest - LONGEST - timedelta(days=1)).date(), newest.date()
    kept = [day for day in days(lake, cluster_id) if earliest.isoformat() <= day <= latest.isoformat()]
    windowed = [day for day in window_days(lake, cluster_id) if earliest <= day <= latest]
    if len({*kept, *(day.isoformat() for day in windowed)}) < 2:
        return SizeHistory((), ())
    names = sorted((name for day in kept for name in names_of(lake, cluster_id, day)), key=stamp_of)
    stamps = [stamp_of(name) for name in names]
    hours = [name for day in windowed for name in hour_names(lake, cluster_id, day)]
    samples: list[DailySample] = []
    stored: list[StoredHour] = []
    for back in range(LONGEST.days, -1, -1):
        wanted = newest - timedelta(days=back)
        sample = _nearest(lake, names, stamps, wanted)
        hour = None if sample else _nearest_hour(lake, hours, wanted)
        samples += [sample] if sample else []
        stored += [hour] if hour else []
    return SizeHistory(tuple(samples), tuple(stored))


def _nearest(lake: Lake, names: list[str], stamps: list[datetime], wanted: datetime) -> DailySample | None:
    """The complete batch nearest to the time, else an incomplete one."""
    since, until = wanted - _OFF, wanted + _OFF
    after = bisect_left(stamps, wanted)
    before = bisect_left(stamps, since)
    # A file's stamp is that of its last batch: the one that ends next may have the time in it, or come right after it.
    near = [*range(before, after), *range(after, min(after + _TRIES, len(names)))]
    for place in sorted(near, key=lambda place: abs(stamps[place] - wanted))[:_TRIES]:
        manifests, _ = read(lake, [names[place]])
        batches = [b for m in manifests for b in m.batches if since <= b.sampled_at <= until and b.rows]
        if not batches or not verified(lake, manifests)[0]:
            continue
        return DailySample(
            manifests[0], min(batches, key=lambda b: (bool(b.missing_brokers), abs(b.sampled_at - wanted)))
        )
    return None


def _nearest_hour(lake: Lake, names: list[str], wanted: datetime) -> StoredHour | None:
    """The hour whose middle is nearest to the time, if it has samples and its file is not damaged."""

    def off(name: str) -> timedelta:
        return abs(stamp_of(name) + HOUR / 2 - wanted)

    near = sorted((name for name in names if off(name) <= _OFF - HOUR / 2), key=off)
    for name in near[:_TRIES]:
        hour = read_hour(lake, name)
        if hour and hour.inputs.batches and {*SIZE_COLUMNS} <= {*hour.inputs.columns} and intact_hours(lake, [hour]):
            return hour
    return None
