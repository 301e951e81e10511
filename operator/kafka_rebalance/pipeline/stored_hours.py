"""The windows of whole hours in the lake, so that they are computed once.

    windows/cluster=<id>/date=YYYY-MM-DD/<hour>-<hash>.parquet         rows of `rate_windows.hours`, immutable
    window-manifests/cluster=<id>/date=YYYY-MM-DD/<hour>-<hash>.json   names such a file and its samples; written last

The hash is that of the samples. So the same samples give the same name, and a job that was killed is run again.
Other samples, for example of a late sampler, give another file. The manifest of a file shows whether it can be used.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from kafka_rebalance.pipeline.lake import Lake, stamp
from kafka_rebalance.pipeline.run_chain import Chain
from kafka_rebalance.pipeline.sample_manifests import (
    READERS,
    Skipped,
    StoredBatch,
    parse_aware,
    parse_manifest,
    read_manifest,
    stamp_of,
)
from kafka_rebalance.storage.locations import path_segment

HOUR = timedelta(hours=1)
VERSION = 1
PLACES = ("window-manifests", "windows")
"""In the order in which they are deleted."""
_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{32}\.json")


def hour_of(moment: datetime) -> datetime:
    """When its hour begins, UTC."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True)
class HourInputs:
    """What the windows of an hour are made of: the samples that count, and what was known of the others.

    ``columns``: those of the file, so that a program with other columns computes them again.
    """

    cluster_id: str
    hour: datetime
    batches: tuple[StoredBatch, ...]
    dropped: tuple[StoredBatch, ...]
    breaks: tuple[datetime, ...]
    skipped: tuple[Skipped, ...]
    columns: tuple[str, ...]

    @staticmethod
    def of(
        cluster_id: str, hour: datetime, linked: Chain, skipped: Iterable[Skipped], columns: Iterable[str]
    ) -> "HourInputs":
        """Of one hour of a chain. ``skipped``: files of any time."""

        def within(batches: Iterable[StoredBatch]) -> tuple[StoredBatch, ...]:
            return tuple(batch for batch in batches if hour_of(batch.sampled_at) == hour)

        return HourInputs(
            cluster_id=cluster_id,
            hour=hour,
            batches=within(linked.batches),
            dropped=tuple(sorted(within(linked.dropped), key=lambda batch: (batch.sampled_at, batch.run_id))),
            breaks=tuple(moment for moment in linked.breaks if hour_of(moment) == hour),
            skipped=tuple(sorted((s for s in skipped if hour_of(stamp_of(s.name)) == hour), key=lambda s: s.name)),
            columns=tuple(columns),
        )

    def document(self) -> dict[str, Any]:
        """In a manifest."""
        return {
            "version": VERSION,
            "clusterId": self.cluster_id,
            "hour": self.hour.isoformat(),
            "batches": [batch.to_document() for batch in self.batches],
            "dropped": [batch.to_document() for batch in self.dropped],
            "breaks": [moment.isoformat() for moment in self.breaks],
            "skipped": [[skipped.name, skipped.why] for skipped in self.skipped],
            "columns": self.columns,
        }

    def path(self, kind: str) -> str:
        """The path of the manifest or the file in the lake; it depends only on the values here."""
        digest = hashlib.sha256(json.dumps(self.document()).encode()).hexdigest()[:32]
        ending = "json" if kind == PLACES[0] else "parquet"
        place = f"{kind}/cluster={path_segment(self.cluster_id)}/date={self.hour.date().isoformat()}"
        return f"{place}/{stamp(self.hour)}-{digest}.{ending}"

    def agrees(self, linked: Chain) -> bool:
        """Whether these are the samples of its hour that count in a longer time."""
        now = HourInputs.of(self.cluster_id, self.hour, linked, (), ())
        return set(now.batches) == set(self.batches) and now.breaks == self.breaks


@dataclass(frozen=True, slots=True)
class StoredHour:
    """The windows of one hour in the lake. ``files``: the SHA-256 of the files of samples they were computed from."""

    inputs: HourInputs
    size_bytes: int
    sha256: str
    files: tuple[str, ...]

    def to_json(self) -> bytes:
        """The content of the manifest's file."""
        own = {"path": self.inputs.path(PLACES[1]), "sizeBytes": self.size_bytes, "sha256": self.sha256}
        return json.dumps(self.inputs.document() | own | {"files": self.files}, indent=1).encode()

    @staticmethod
    def from_json(data: bytes) -> "StoredHour":
        """The reverse. Raises ValueError if this version cannot read it."""
        try:
            found = parse_manifest(data)
            if found["version"] != VERSION:
                raise ValueError(f"it is of version {found['version']!r}, this program reads {VERSION}")
            inputs = HourInputs(
                cluster_id=found["clusterId"],
                hour=parse_aware(found["hour"]),
                batches=tuple(map(StoredBatch.from_document, found["batches"])),
                dropped=tuple(map(StoredBatch.from_document, found["dropped"])),
                breaks=tuple(map(parse_aware, found["breaks"])),
                skipped=tuple(Skipped(name, why) for name, why in found["skipped"]),
                columns=tuple(found["columns"]),
            )
            return StoredHour(inputs, found["sizeBytes"], found["sha256"], tuple(found["files"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"it is not a manifest of windows: {error!r}") from error


def publish_hour(lake: Lake, inputs: HourInputs, data: bytes, files: Iterable[str]) -> StoredHour:
    """Write the windows of an hour and then their manifest. Again with the same inputs: the same files again."""
    hour = StoredHour(inputs, len(data), hashlib.sha256(data).hexdigest(), tuple(sorted(files)))
    lake.write(inputs.path(PLACES[1]), data)
    lake.write(inputs.path(PLACES[0]), hour.to_json())
    return hour


def read_hours(lake: Lake, cluster_id: str, start: datetime, end: datetime) -> list[StoredHour]:
    """The hours that begin at ``start`` or later and end at ``end`` or earlier; an hour may have several files.

    Unreadable files are left out, because the samples have the same content.
    """
    found: list[StoredHour] = []
    for day in window_days(lake, cluster_id):
        if not start.date() <= day <= end.date():
            continue
        for name in hour_names(lake, cluster_id, day):
            if start <= stamp_of(name) and stamp_of(name) + HOUR <= end:
                hour = read_hour(lake, name)
                found += [hour] if hour else []
    return found


def read_hour(lake: Lake, name: str) -> StoredHour | None:
    """What a manifest names; None if it is gone, or this version cannot read it."""
    try:
        return StoredHour.from_json(read_manifest(lake, name))
    except (ValueError, FileNotFoundError):
        return None


def intact_hours(lake: Lake, hours: Iterable[StoredHour]) -> list[StoredHour]:
    """Those whose file has the bytes that were written."""
    listed = list(hours)
    with ThreadPoolExecutor(READERS) as pool:
        digests = pool.map(lake.sha256, (hour.inputs.path(PLACES[1]) for hour in listed))
    return [hour for hour, digest in zip(listed, digests, strict=True) if digest == hour.sha256]


def window_days(lake: Lake, cluster_id: str) -> list[date]:
    """The dates of a cluster's manifests of windows, oldest first."""
    names = lake.names(f"{PLACES[0]}/cluster={path_segment(cluster_id)}")
    return [date.fromisoformat(name.removeprefix("date=")) for name in names if name.startswith("date=")]


def hour_names(lake: Lake, cluster_id: str, day: date) -> list[str]:
    """The manifests of a day, oldest hour first."""
    place = f"{PLACES[0]}/cluster={path_segment(cluster_id)}/date={day.isoformat()}"
    return [f"{place}/{name}" for name in lake.names(place) if _NAME.fullmatch(name)]
