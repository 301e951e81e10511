"""Finds the hours of a load model's window that are already computed, and the samples needed for the other hours.

Stored windows are used only if they were computed from exactly the samples that are valid now: no sample came late, and
samplers that ran at the same time are distinguished in the same way. Their file must not be damaged. The other hours
are computed from samples. This module does not use Spark.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.run_chain import Chain, chain
from kafka_rebalance.pipeline.sample_manifests import (
    Inventory,
    Manifest,
    Skipped,
    StoredBatch,
    listed,
    unmerged,
    verified,
)
from kafka_rebalance.pipeline.stored_hours import StoredHour, hour_of, intact_hours, read_hours


@dataclass(frozen=True, slots=True)
class Coverage:
    """``found``: files of the samples that no stored hour has, ``stored``: the hours, ``linked``: the samples of both.

    ``listed``: all files of the window; those outside ``found`` have not been compared with their hash.
    """

    found: Inventory
    listed: Inventory
    linked: Chain
    stored: tuple[StoredHour, ...]

    @property
    def hours(self) -> set[datetime]:
        """Which are stored."""
        return {hour.inputs.hour for hour in self.stored}

    def open_batches(self) -> list[StoredBatch]:
        """The samples that are in no stored hour, in order."""
        hours = self.hours
        return [batch for batch in self.linked.batches if hour_of(batch.sampled_at) not in hours]

    def files(self, batches: Iterable[StoredBatch]) -> list[Manifest]:
        """The files in ``found`` with the batches, each batch from one file only."""
        return files_with(self.found.manifests, batches)


def files_with(manifests: Iterable[Manifest], batches: Iterable[StoredBatch]) -> list[Manifest]:
    """The files with the batches, each batch from one file only."""
    wanted = set(batches)
    files: list[Manifest] = []
    for manifest in manifests:
        if not wanted.isdisjoint(manifest.batches):
            files.append(manifest)
            wanted.difference_update(manifest.batches)
    return files


def coverage(
    lake: Lake, cluster_id: str, window: timedelta, now: datetime, columns: Sequence[str], *, use_stored: bool = True
) -> Coverage:
    """The coverage of the last ``window`` before the newest sample.

    ``columns``: the columns that stored windows must have.
    """
    there = listed(lake, cluster_id, window, now)
    newest = max((batch.sampled_at for batch in there.batches()), default=None)
    stored: dict[datetime, StoredHour] = {}
    if use_stored and newest:
        for hour in read_hours(lake, cluster_id, there.start, hour_of(newest)):
            known = stored.get(hour.inputs.hour)
            complete = hour.inputs.columns == tuple(columns) and _has_all(hour, there.manifests)
            if complete and (known is None or len(hour.inputs.batches) > len(known.inputs.batches)):
                stored[hour.inputs.hour] = hour
    stored = {hour.inputs.hour: hour for hour in intact_hours(lake, stored.values())}
    checked: dict[str, Skipped | None] = {}
    while True:
        needed = [m for m in there.manifests if any(_is_open(batch, there.start, stored) for batch in m.batches)]
        intact = unmerged(_intact(lake, needed, checked))
        damaged = [why for why in checked.values() if why]
        batches = [b for m in intact for b in m.batches if _is_open(b, there.start, stored)]
        for hour in stored.values():
            batches += [*hour.inputs.batches, *hour.inputs.dropped]
        linked = chain(batch for batch in batches if batch.rows)
        # The newest sample itself is needed, for what it lists: usually it is in an hour that has not ended.
        last = hour_of(linked.batches[-1].sampled_at) if linked.batches else None
        wrong = [at for at, hour in stored.items() if at == last or not hour.inputs.agrees(linked)]
        if not wrong:
            skipped = {s.name: s for hour in stored.values() for s in hour.inputs.skipped}
            skipped |= {s.name: s for s in (*there.skipped, *damaged)}
            found = Inventory(tuple(intact), tuple(skipped.values()), there.start)
            return Coverage(found, there, linked, tuple(stored[hour] for hour in sorted(stored)))
        for at in wrong:
            del stored[at]


def _is_open(batch: StoredBatch, start: datetime, stored: dict[datetime, StoredHour]) -> bool:
    return batch.sampled_at >= start and hour_of(batch.sampled_at) not in stored


def _has_all(hour: StoredHour, manifests: Iterable[Manifest]) -> bool:
    """Whether no sample of the hour is there that its windows do not have."""
    damaged = {skipped.name for skipped in hour.inputs.skipped}
    known = {*hour.inputs.batches, *hour.inputs.dropped}
    return all(
        batch in known or not batch.rows or hour_of(batch.sampled_at) != hour.inputs.hour
        for manifest in manifests
        if manifest.path not in damaged
        for batch in manifest.batches
    )


def _intact(lake: Lake, manifests: Iterable[Manifest], checked: dict[str, Skipped | None]) -> list[Manifest]:
    """The files with the right hash; no file is read twice."""
    wanted = list(manifests)
    new = [manifest for manifest in wanted if manifest.path not in checked]
    damaged = {skipped.name: skipped for skipped in verified(lake, new)[1]}
    checked.update({manifest.path: damaged.get(manifest.path) for manifest in new})
    return [manifest for manifest in wanted if checked[manifest.path] is None]
