"""Manifests: which files of samples (and of the other tables) the lake has, and which of them can be used.

A damaged file, or one of a newer version, costs its own samples and nothing else: it is skipped, and reported with the
reason. Nothing here deletes.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from kafka_rebalance.model.load_artifact import CLOCK_SKEW
from kafka_rebalance.pipeline.lake import STAMP, Lake
from kafka_rebalance.pipeline.lake_tables import OFFSETS, SAMPLES, LakeTable
from kafka_rebalance.pipeline.schema import SCHEMA_VERSION, SampleBatch, to_table
from kafka_rebalance.storage.locations import path_segment

_STAMP_LENGTH = len("20260131T235959.000000Z")
_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{32}\.json")
READERS = 16
"""Threads that read files of the lake."""
_MOST_NAMED = 20
"""How many missing brokers of a sample are named. Servers may claim replicas on any number of brokers."""
_MOST_BYTES = 32 << 20
"""Of a manifest that is read: that of a merged file has at most about 21 MB."""
_AHEAD = "it is from the future: set the clock of the sampler's machine"


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One sample in a file. Samples of version 1 are all of the run ""; the time is their sequence.

    ``missing_brokers`` did not answer, and ``missing_more`` beside these.
    """

    sampled_at: datetime
    run_id: str
    sequence: int
    rows: int
    missing_brokers: tuple[int, ...] = ()
    missing_more: int = 0

    def to_document(self) -> dict[str, Any]:
        """In a manifest."""
        document = {
            "sampledAt": self.sampled_at.isoformat(),
            "runId": self.run_id,
            "sequence": self.sequence,
            "rows": self.rows,
            "missingBrokers": self.missing_brokers,
        }
        return document | ({"missingMore": self.missing_more} if self.missing_more else {})

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> "StoredBatch":
        """The reverse. Raises KeyError, TypeError or ValueError."""
        return StoredBatch(
            sampled_at=parse_aware(document["sampledAt"]),
            run_id=document.get("runId", ""),
            sequence=document.get("sequence", round(parse_aware(document["sampledAt"]).timestamp() * 1e6)),
            rows=document["rows"],
            missing_brokers=tuple(document["missingBrokers"]),
            missing_more=document.get("missingMore", 0),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """One file as it was written; ``path`` is relative to the lake, ``name`` is the manifest's own.

    ``replaces`` names manifests whose batches are in this file too.
    """

    name: str
    path: str
    cluster_id: str
    size_bytes: int
    sha256: str
    batches: tuple[StoredBatch, ...]
    schema_version: int = SCHEMA_VERSION
    replaces: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """In all its batches."""
        return sum(batch.rows for batch in self.batches)

    def to_json(self) -> bytes:
        """The content of the manifest's file."""
        document = {
            "schemaVersion": self.schema_version,
            "path": self.path,
            "clusterId": self.cluster_id,
            "rows": self.rows,
            "sizeBytes": self.size_bytes,
            "sha256": self.sha256,
            "batches": [batch.to_document() for batch in self.batches],
            "replaces": self.replaces,
        }
        return json.dumps(document, indent=1).encode()

    @staticmethod
    def from_json(data: bytes, name: str, table: LakeTable = SAMPLES) -> "Manifest":
        """The reverse. Raises ValueError with the reason if this version cannot read it."""
        try:
            document = parse_manifest(data)
            version = document["schemaVersion"]
            if version not in table.readable:
                raise ValueError(
                    f"it is of schema {version!r}, this program reads {', '.join(map(str, table.readable))}"
                )
            return Manifest(
                name=name,
                path=document["path"],
                cluster_id=document["clusterId"],
                size_bytes=document["sizeBytes"],
                sha256=document["sha256"],
                batches=tuple(map(StoredBatch.from_document, document.get("batches", [document]))),
                schema_version=version,
                replaces=tuple(document.get("replaces", ())),
            )
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"it is not a manifest of samples: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not used, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """The files of a window that can be used, oldest first, and those that cannot.

    ``start``: batches from before that time are not part of the window.
    """

    manifests: tuple[Manifest, ...]
    skipped: tuple[Skipped, ...] = ()
    start: datetime = field(default=datetime.min.replace(tzinfo=UTC))

    def batches(self) -> list[StoredBatch]:
        """All batches in the window."""
        return [b for manifest in self.manifests for b in manifest.batches if b.sampled_at >= self.start]


def write_batch(lake_uri: str, batch: SampleBatch, permit: Callable[[int], None] | None = None) -> Manifest:
    """Store one batch: the rows first, then the manifest that publishes them. Returns that of the samples.

    ``permit`` is called before anything is written, with the bytes; what it raises is raised. A committed offset counts
    for a byte at least: Spark computes with each of them, however well equal ones are compressed.
    """
    lake = Lake.open(lake_uri)
    moment = batch.sampled_at.astimezone(UTC)
    missing = batch.missing_brokers
    more = max(0, len(missing) - _MOST_NAMED)
    stored = StoredBatch(moment, batch.run_id, batch.sequence, len(batch.rows), missing[:_MOST_NAMED], more)
    files = [_packed(batch.cluster_id, batch.rows, stored)]
    if batch.commits:
        files.append(_packed(batch.cluster_id, batch.commits, replace(stored, rows=len(batch.commits)), OFFSETS))
    if permit is not None:
        stored_bytes = sum(len(data) + len(manifest.to_json()) for manifest, data in files)
        permit(max(stored_bytes, sum(len(row.committed) for row in batch.commits)))
    for manifest, data in files:
        _store(lake, manifest, data)
    return files[0][0]


def write_rows(
    lake: Lake, cluster_id: str, rows: Sequence[object], stored: StoredBatch, table: LakeTable = SAMPLES
) -> None:
    """Store the rows of one batch."""
    _store(lake, *_packed(cluster_id, rows, stored, table))


def publish(
    lake: Lake,
    cluster_id: str,
    data: bytes,
    batches: tuple[StoredBatch, ...],
    replaces: tuple[str, ...] = (),
    table: LakeTable = SAMPLES,
) -> Manifest:
    """Write a file and then its manifest. The name has the time of the last batch."""
    manifest = _manifest_of(cluster_id, data, batches, replaces, table)
    _store(lake, manifest, data)
    return manifest


def _packed(
    cluster_id: str, rows: Sequence[object], stored: StoredBatch, table: LakeTable = SAMPLES
) -> tuple[Manifest, bytes]:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(to_table(rows, table.schema), sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    return _manifest_of(cluster_id, data, (stored,), (), table), data


def _manifest_of(
    cluster_id: str, data: bytes, batches: tuple[StoredBatch, ...], replaces: tuple[str, ...], table: LakeTable
) -> Manifest:
    moment = batches[-1].sampled_at
    day, file = moment.date().isoformat(), f"{moment.strftime(STAMP)}-{uuid.uuid4().hex}"
    place = f"cluster={path_segment(cluster_id)}/date={day}/{file}"
    name = f"{table.manifests}/{place}.json"
    return Manifest(
        name=name,
        path=table.file_of(name),
        cluster_id=cluster_id,
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        batches=batches,
        schema_version=table.version,
        replaces=replaces,
    )


def _store(lake: Lake, manifest: Manifest, data: bytes) -> None:
    lake.write(manifest.path, data)
    lake.write(manifest.name, manifest.to_json())


def inventory(lake: Lake, cluster_id: str, window: timedelta, now: datetime, table: LakeTable = SAMPLES) -> Inventory:
    """The `listed` files, each compared with the SHA-256 in its manifest."""
    found = listed(lake, cluster_id, window, now, table)
    intact, damaged = verified(lake, found.manifests)
    return Inventory(tuple(unmerged(intact)), (*found.skipped, *damaged), found.start)


def listed(lake: Lake, cluster_id: str, window: timedelta, now: datetime, table: LakeTable = SAMPLES) -> Inventory:
    """The manifests of the last ``window`` before the newest batch that is not from the future.

    Names begin with the time, so only manifests of the window are opened, however old the lake is. The files that
    they name are not opened.
    """
    latest = (now + CLOCK_SKEW).strftime(STAMP)
    wanted: list[str] = []
    skipped: list[Skipped] = []
    first = None
    for day in reversed(days(lake, cluster_id, table)):
        names = names_of(lake, cluster_id, day, table)
        past = [name for name in names if _stamp(name) <= latest]
        skipped += [Skipped(name, _AHEAD) for name in names if _stamp(name) > latest]
        if past and first is None:
            first = stamp_of(past[-1]) - window
        if first is None:
            continue
        inside = [name for name in past if _stamp(name) >= first.strftime(STAMP)]
        wanted += inside
        if len(inside) < len(past):
            break
    manifests, unread = read(lake, sorted(wanted), table)
    return Inventory(tuple(manifests), (*skipped, *unread), first or datetime.min.replace(tzinfo=UTC))


def unmerged(intact: Iterable[Manifest]) -> list[Manifest]:
    """Without those whose batches are in one of the others."""
    found = list(intact)
    merged = replaced_by(found)
    return [manifest for manifest in found if manifest.name not in merged]


def days(lake: Lake, cluster_id: str, table: LakeTable = SAMPLES) -> list[str]:
    """The dates of a cluster's manifests, oldest first."""
    names = lake.names(f"{table.manifests}/cluster={path_segment(cluster_id)}")
    return [name.removeprefix("date=") for name in names if re.fullmatch(r"date=\d{4}-\d\d-\d\d", name)]


def names_of(lake: Lake, cluster_id: str, day: str, table: LakeTable = SAMPLES) -> list[str]:
    """The manifests of a day, oldest first."""
    place = f"{table.manifests}/cluster={path_segment(cluster_id)}/date={day}"
    return [f"{place}/{name}" for name in lake.names(place) if _NAME.fullmatch(name)]


def read(lake: Lake, names: Iterable[str], table: LakeTable = SAMPLES) -> tuple[list[Manifest], list[Skipped]]:
    """The manifests of these names, and those that cannot be read."""

    def one(name: str) -> Manifest | Skipped:
        try:
            return Manifest.from_json(read_manifest(lake, name), name, table)
        except (ValueError, OSError) as error:
            return Skipped(name, str(error) or type(error).__name__)

    with ThreadPoolExecutor(READERS) as pool:
        found = list(pool.map(one, names))
    return [m for m in found if isinstance(m, Manifest)], [s for s in found if isinstance(s, Skipped)]


def read_manifest(lake: Lake, name: str) -> bytes:
    """The bytes of a manifest. Raises ValueError if it is too large."""
    data = lake.read(name, _MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"the manifest is larger than {_MOST_BYTES >> 20} MiB")
    return data


def parse_manifest(data: bytes) -> Any:
    """The content of a manifest. Of long lists of missing brokers, which were stored once, the beginning is kept."""
    return json.loads(data, object_hook=_shortened)


def _shortened(document: dict[str, Any]) -> dict[str, Any]:
    missing = document.get("missingBrokers", ())
    if len(missing) <= _MOST_NAMED:
        return document
    return document | {"missingBrokers": missing[:_MOST_NAMED], "missingMore": len(missing) - _MOST_NAMED}


def replaced_by(manifests: Iterable[Manifest]) -> set[str]:
    """The names of manifests whose batches are in one of these files."""
    return {name for manifest in manifests for name in manifest.replaces}


def verified(lake: Lake, manifests: Iterable[Manifest]) -> tuple[list[Manifest], list[Skipped]]:
    """The manifests whose file has the written bytes, and the others; a lifecycle rule may have deleted some files."""
    listed = list(manifests)
    with ThreadPoolExecutor(READERS) as pool:
        digests = pool.map(lake.sha256, (manifest.path for manifest in listed))
    intact: list[Manifest] = []
    damaged: list[Skipped] = []
    for manifest, digest in zip(listed, digests, strict=True):
        if digest == manifest.sha256:
            intact.append(manifest)
        else:
            why = "it is missing" if digest is None else "its SHA-256 is not that of its manifest: it was damaged"
            damaged.append(Skipped(manifest.path, why))
    return intact, damaged


def parse_aware(text: str) -> datetime:
    """A time of a manifest. Raises ValueError if it has no zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} is a time without a zone")
    return moment.astimezone(UTC)


def stamp_of(name: str) -> datetime:
    """The time of the last batch, from the name of the manifest."""
    return datetime.strptime(_stamp(name), STAMP).replace(tzinfo=UTC)


def _stamp(name: str) -> str:
    return name.rpartition("/")[2][:_STAMP_LENGTH]
