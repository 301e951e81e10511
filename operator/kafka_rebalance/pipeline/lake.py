"""The lake, which holds samples and models: any directory or bucket with a pyarrow filesystem URI.

    samples/cluster=<id>/date=YYYY-MM-DD/<time>-<uuid>.parquet     rows, immutable
    manifests/cluster=<id>/date=YYYY-MM-DD/<time>-<uuid>.json      names one such file; written last
    load-model/cluster=<id>/<window>/                              what Spark computed, as Parquet
    models/<id>/load-model.json.gz                                 the same, compact, for the planner

Object stores have no atomic rename, so a reader uses only files that a manifest names and that have the size that it
names. Raw samples are never changed or deleted here.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.pipeline.schema import SCHEMA_VERSION, SampleBatch, to_table
from kafka_rebalance.reasons import Reason

_STAMP = "%Y%m%dT%H%M%S.%fZ"
_STAMP_LENGTH = len("20260131T235959.000000Z")
_SPARK_SCHEMES = {"s3": "s3a"}
_READERS = 16


@dataclass(frozen=True, slots=True)
class Manifest:
    """One batch as it was written. ``path`` is relative to the lake."""

    path: str
    sampled_at: datetime
    cluster_id: str
    rows: int
    size_bytes: int
    sha256: str
    schema_version: int = SCHEMA_VERSION
    missing_brokers: tuple[int, ...] = ()

    def to_json(self) -> bytes:
        """The content of the manifest's file."""
        return json.dumps(
            {
                "schemaVersion": self.schema_version,
                "path": self.path,
                "sampledAt": self.sampled_at.isoformat(),
                "clusterId": self.cluster_id,
                "rows": self.rows,
                "sizeBytes": self.size_bytes,
                "sha256": self.sha256,
                "missingBrokers": self.missing_brokers,
            },
            indent=1,
        ).encode()

    @staticmethod
    def from_json(data: bytes, name: str) -> "Manifest":
        """The reverse. Raises Refused with the file name if this version cannot read it."""
        try:
            document = json.loads(data)
            manifest = Manifest(
                path=document["path"],
                sampled_at=datetime.fromisoformat(document["sampledAt"]),
                cluster_id=document["clusterId"],
                rows=document["rows"],
                size_bytes=document["sizeBytes"],
                sha256=document["sha256"],
                schema_version=document["schemaVersion"],
                missing_brokers=tuple(document["missingBrokers"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise Refused(Reason.MANIFEST_INVALID, f"{name} is not a manifest of samples: {error!r}") from error
        if manifest.schema_version != SCHEMA_VERSION:
            found = manifest.schema_version
            raise Refused(Reason.SCHEMA_UNKNOWN, f"{name} is of schema {found}, this program reads {SCHEMA_VERSION}")
        return manifest


@dataclass(frozen=True, slots=True)
class Lake:
    """An open lake: a filesystem, the path in it, and the same location as a URI for Spark."""

    filesystem: Any
    root: str
    spark_root: str

    @staticmethod
    def open(uri: str) -> "Lake":
        """A local path or a pyarrow filesystem URI (s3, gs, hdfs, file). Raises Permanent if it cannot be opened."""
        if "://" not in uri:
            uri = Path(uri).expanduser().resolve().as_uri()
        parts = urlsplit(uri)
        place = f"{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")  # without credentials in the URI
        try:
            filesystem, root = pyarrow.fs.FileSystem.from_uri(uri)
        except (pa.ArrowException, OSError, ValueError) as error:
            why = type(error).__name__  # its text contains the URI
            raise Permanent(
                Reason.LAKE_UNUSABLE, f"the lake {parts.scheme}://{place} cannot be opened ({why})"
            ) from error
        if filesystem.type_name == "local":
            place = root  # Hadoop does not decode percent-encoding
        return Lake(filesystem, root.rstrip("/"), f"{_SPARK_SCHEMES.get(parts.scheme, parts.scheme)}://{place}")

    def write(self, path: str, data: bytes) -> None:
        """Atomic: by a rename on a local disk; an object store publishes the object when the stream is closed."""
        final = f"{self.root}/{path}"
        if self.filesystem.type_name != "local":
            self._put(final, data)
            return
        self.filesystem.create_dir(final.rpartition("/")[0], recursive=True)
        unfinished = f"{final}.{uuid.uuid4().hex}.part"
        self._put(unfinished, data)
        self.filesystem.move(unfinished, final)

    def read(self, path: str) -> bytes:
        """The bytes of one file."""
        with self.filesystem.open_input_stream(f"{self.root}/{path}", compression=None) as stream:
            data: bytes = stream.read()
        return data

    def names(self, path: str) -> list[str]:
        """What lies directly in a directory, sorted; nothing where it does not exist."""
        selector = pyarrow.fs.FileSelector(f"{self.root}/{path}", allow_not_found=True)
        return sorted(info.base_name for info in self.filesystem.get_file_info(selector))

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """The size of each file, None where there is none."""
        infos = self.filesystem.get_file_info([f"{self.root}/{path}" for path in paths])
        return [info.size if info.is_file else None for info in infos]

    def _put(self, path: str, data: bytes) -> None:
        # Otherwise Arrow would compress a file that ends in .gz a second time.
        with self.filesystem.open_output_stream(path, compression=None) as stream:
            stream.write(data)


def write_batch(lake_uri: str, batch: SampleBatch) -> Manifest:
    """Store one batch: the rows first, then the manifest that publishes them."""
    lake = Lake.open(lake_uri)
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(to_table(batch.rows), sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    moment = batch.sampled_at.astimezone(UTC)
    name = f"{moment.strftime(_STAMP)}-{uuid.uuid4().hex}"
    place = f"cluster={safe(batch.cluster_id)}/date={moment.date().isoformat()}/{name}"
    manifest = Manifest(
        path=f"samples/{place}.parquet",
        sampled_at=moment,
        cluster_id=batch.cluster_id,
        rows=len(batch.rows),
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        missing_brokers=batch.missing_brokers,
    )
    lake.write(manifest.path, data)
    lake.write(f"manifests/{place}.json", manifest.to_json())
    return manifest


def clusters(lake: Lake) -> list[str]:
    """The ids of the clusters that have samples."""
    prefix = "cluster="
    return [unquote(name.removeprefix(prefix)) for name in lake.names("manifests") if name.startswith(prefix)]


def manifests(lake: Lake, cluster_id: str, window: timedelta) -> list[Manifest]:
    """The batches of the last ``window`` before the newest one, oldest first.

    File names begin with the time, so only the manifests of the window are opened, whatever the age of the lake.
    """
    base = f"manifests/cluster={safe(cluster_id)}"
    paths: list[str] = []
    start = None
    for day in reversed([name for name in lake.names(base) if re.fullmatch(r"date=\d{4}-\d\d-\d\d", name)]):
        names = [name for name in lake.names(f"{base}/{day}") if _is_manifest(name)]
        if names and start is None:
            start = (datetime.strptime(names[-1][:_STAMP_LENGTH], _STAMP) - window).strftime(_STAMP)  # noqa: DTZ007
        if start is None:
            continue
        inside = [f"{base}/{day}/{name}" for name in names if name[:_STAMP_LENGTH] >= start]
        paths += inside
        if len(inside) < len(names):
            break
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(lambda path: Manifest.from_json(lake.read(path), path), sorted(paths)))


def intact(lake: Lake, batches: Iterable[Manifest]) -> list[Manifest]:
    """Those whose file exists with the size that was written; a lifecycle rule may have expired old samples."""
    listed = list(batches)
    sizes = lake.sizes([manifest.path for manifest in listed])
    return [manifest for manifest, size in zip(listed, sizes, strict=True) if size == manifest.size_bytes]


def model_path(cluster_id: str) -> str:
    """The path of a cluster's compact load model in the lake."""
    return f"models/{safe(cluster_id)}/load-model.json.gz"


def safe(cluster_id: str) -> str:
    """A cluster id as one path segment."""
    return quote(cluster_id, safe="")


def stamp(moment: datetime) -> str:
    """A time as it is written in file names."""
    return moment.astimezone(UTC).strftime(_STAMP)


def _is_manifest(name: str) -> bool:
    return re.fullmatch(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{32}\.json", name) is not None
