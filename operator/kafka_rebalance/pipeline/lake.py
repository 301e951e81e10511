"""The lake, which holds samples and models: any directory or bucket with a pyarrow filesystem URI.

    samples/cluster=<id>/date=YYYY-MM-DD/<time>-<uuid>.parquet     rows, immutable
    manifests/cluster=<id>/date=YYYY-MM-DD/<time>-<uuid>.json      names one such file; written last
    models/<id>/load-model.parquet                                 what Spark computed, for the planner
    models/<id>/broker-loads.parquet                               what it computed of each broker

Object stores have no atomic rename, so a reader uses only files that a manifest names and that have the size that it
names. Samples are never changed; `lake_retention` merges and deletes them.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow.fs

from kafka_rebalance.errors import Refused
from kafka_rebalance.reasons import Reason
from kafka_rebalance.storage.locations import open_location, path_segment, write_whole

STAMP = "%Y%m%dT%H%M%S.%fZ"
_SPARK_SCHEMES = {"s3": "s3a"}
_PIECE = 4 << 20


@dataclass(frozen=True, slots=True)
class Lake:
    """An open lake: a filesystem, the path in it, and the same location as a URI for Spark."""

    filesystem: Any
    root: str
    spark_root: str

    @staticmethod
    def open(uri: str) -> "Lake":
        """A local path or a pyarrow filesystem URI (s3, gs, hdfs, file). Raises Permanent if it cannot be opened."""
        location = open_location(uri)
        if location.filesystem.type_name == "local":
            return Lake(location.filesystem, location.root, f"file://{location.root}")  # Hadoop decodes no %-encoding
        scheme, _, place = location.name.partition("://")
        return Lake(location.filesystem, location.root, f"{_SPARK_SCHEMES.get(scheme, scheme)}://{place}")

    def write(self, path: str, data: bytes) -> None:
        """Atomic: by a rename on a local disk; an object store publishes the object when the stream is closed."""
        write_whole(self.filesystem, f"{self.root}/{path}", data)

    def read(self, path: str, limit: int | None = None) -> bytes:
        """The bytes of one file, or the first ``limit`` of them."""
        with self.filesystem.open_input_stream(f"{self.root}/{path}", compression=None) as stream:
            data: bytes = stream.read(limit)
        return data

    def names(self, path: str) -> list[str]:
        """What lies directly in a directory, sorted; nothing where it does not exist."""
        selector = pyarrow.fs.FileSelector(f"{self.root}/{path}", allow_not_found=True)
        return sorted(info.base_name for info in self.filesystem.get_file_info(selector))

    def files(self, path: str) -> list[tuple[str, datetime]]:
        """All files below a directory, in no order, with when they were written by the clock of the store."""
        selector = pyarrow.fs.FileSelector(f"{self.root}/{path}", allow_not_found=True, recursive=True)
        infos = (info for info in self.filesystem.get_file_info(selector) if info.is_file)
        return [(info.path.removeprefix(f"{self.root}/"), info.mtime) for info in infos]

    def sizes(self) -> list[tuple[str, int]]:
        """All files of the lake, in no order, with their bytes.

        Without directories in its root that may not be read, such as ``lost+found`` of a volume.
        """
        found = self.filesystem.get_file_info(pyarrow.fs.FileSelector(self.root, allow_not_found=True))
        infos = [info for info in found if info.is_file]
        for directory in found:
            if not directory.is_file:
                selector = pyarrow.fs.FileSelector(directory.path, allow_not_found=True, recursive=True)
                with contextlib.suppress(PermissionError):
                    infos += [info for info in self.filesystem.get_file_info(selector) if info.is_file]
        return [(info.path.removeprefix(f"{self.root}/"), info.size) for info in infos]

    def written_at(self, path: str) -> datetime | None:
        """By the clock of the store; None if there is no such file."""
        moment: datetime | None = self.filesystem.get_file_info(f"{self.root}/{path}").mtime
        return moment

    def sha256(self, path: str) -> str | None:
        """The hash of a file's bytes, read piece by piece; None if there is no such file or it cannot be read."""
        digest = hashlib.sha256()
        try:
            with self.filesystem.open_input_stream(f"{self.root}/{path}", compression=None) as stream:
                while piece := stream.read(_PIECE):
                    digest.update(piece)
        except OSError:
            return None
        return digest.hexdigest()

    def delete(self, path: str) -> None:
        """Delete a file; no error if it is gone."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(f"{self.root}/{path}")

    def delete_directory(self, path: str) -> None:
        """Delete a directory with what is in it; no error if it is gone."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_dir(f"{self.root}/{path}")


def clusters(lake: Lake) -> list[str]:
    """The ids of the clusters that have samples. Of one whose samples have all expired, the directory may be left."""
    return [
        cluster_id
        for cluster_id in named_in(lake, "manifests")
        if lake.names(f"manifests/cluster={path_segment(cluster_id)}")
    ]


def named_in(lake: Lake, place: str) -> list[str]:
    """The ids of the clusters with a directory in this place."""
    prefix = "cluster="
    return [unquote(name.removeprefix(prefix)) for name in lake.names(place) if name.startswith(prefix)]


def chosen_clusters(lake_uri: str, wanted: Sequence[str]) -> list[str]:
    """``wanted``, or all clusters of the lake. Raises Refused (NoSamples) with the clusters that have samples."""
    found = clusters(Lake.open(lake_uri))
    unknown = sorted(set(wanted) - set(found))
    if unknown or not found:
        there = ", ".join(found) or "none"
        asked = ", ".join(unknown) or "any cluster"
        raise Refused(Reason.NO_SAMPLES, f"the lake has no samples of {asked}; clusters with samples: {there}")
    return list(wanted) or found


def model_path(cluster_id: str) -> str:
    """The path of a cluster's compact load model in the lake."""
    return f"models/{path_segment(cluster_id)}/load-model.parquet"


def stamp(moment: datetime) -> str:
    """A time as it is written in file names."""
    return moment.astimezone(UTC).strftime(STAMP)
