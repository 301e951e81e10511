"""Which samples tell how sizes have changed: one a day, at the time of day of the newest one.

So nothing of what the day does to sizes is taken for a trend, and of a lake of months a few files are read.
"""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import Manifest, StoredBatch, days, names_of, read, stamp_of, verified

LONGEST = timedelta(days=90)
_OFF = timedelta(hours=3)
"""A sample further from the time of day of the newest one says more about the hour than about the day."""
_TRIES = 3
"""Of a day, at most so many files are opened: damaged ones cost the day."""


@dataclass(frozen=True, slots=True)
class DailySample:
    """A batch and the file that has it."""

    manifest: Manifest
    batch: StoredBatch


def daily_samples(lake: Lake, cluster_id: str, newest: datetime) -> tuple[DailySample, ...]:
    """Oldest first, at most ``LONGEST`` back from ``newest``, which is the time of the newest sample."""
    earliest = (newest - LONGEST - timedelta(days=1)).date().isoformat()
    kept = [day for day in days(lake, cluster_id) if earliest <= day <= newest.date().isoformat()]
    if len(kept) < 2:
        return ()
    names = sorted((name for day in kept for name in names_of(lake, cluster_id, day)), key=stamp_of)
    stamps = [stamp_of(name) for name in names]
    found: list[DailySample] = []
    for back in range(LONGEST.days, -1, -1):
        sample = _nearest(lake, names, stamps, newest - timedelta(days=back))
        if sample is not None:
            found.append(sample)
    return tuple(found)


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
