"""Finds and reads load models: of a cluster in a directory or object store, or in one file of any version."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs

from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.load_artifact import invalid, parse_load_model
from kafka_rebalance.storage.load_model_parquet import read_parquet
from kafka_rebalance.storage.locations import Location, open_location, store_failed
from kafka_rebalance.units import format_bytes

FILE_NAMES = ("load-model.parquet", "load-model.json.gz")
"""Versions 2 and 1."""
MAX_FILE_BYTES = 2**30
_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A file with a load model. Equal values: the file has not changed."""

    path: str
    size_bytes: int
    written: Any


def find_model(location: Location, cluster_id: str) -> StoredModel | None:
    """The newest model of the cluster, ``<location>/<cluster id>/load-model.parquet`` or that of version 1.

    None if there is none; Transient (LakeUnusable) if the location does not answer.
    """
    paths = [f"{location.root}/{cluster_id}/{name}" for name in FILE_NAMES]
    try:
        infos = location.filesystem.get_file_info(paths)
    except OSError as error:
        raise store_failed(f"{location.name} cannot be read", error) from error
    files = [StoredModel(info.path, info.size, info.mtime_ns) for info in infos if info.is_file]
    return max(files, key=lambda file: file.written, default=None)


def read_model(location: Location, stored: StoredModel) -> LoadModel:
    """Raises Refused (LoadModelInvalid) with what is wrong, Transient (LakeUnusable) if it cannot be read."""
    name = f"{location.name}{stored.path.removeprefix(location.root)}"
    if stored.size_bytes > MAX_FILE_BYTES:
        size, most = format_bytes(stored.size_bytes), format_bytes(MAX_FILE_BYTES)
        raise invalid(f"{name} has {size}, at most {most} are read")
    try:
        with location.filesystem.open_input_file(stored.path) as source:
            return _read(source)
    except OSError as error:
        raise store_failed(f"{name} cannot be read", error) from error


def read_model_file(uri: str) -> LoadModel:
    """The model in one file of any version, anywhere. Raises as `read_model` does."""
    location = open_location(uri)
    try:
        info = location.filesystem.get_file_info(location.root)
    except OSError as error:
        raise store_failed(f"{location.name} cannot be read", error) from error
    if not info.is_file:
        raise invalid(f"there is no file {location.name}")
    return read_model(location, StoredModel(info.path, info.size, info.mtime_ns))


def parse_model(data: bytes) -> LoadModel:
    """The model in a file of any version. Raises Refused (LoadModelInvalid) with what is wrong."""
    with pa.BufferReader(data) as source:
        return _read(source)


def _read(source: Any) -> LoadModel:
    parquet = source.read(len(_MAGIC)) == _MAGIC
    source.seek(0)
    return read_parquet(source) if parquet else parse_load_model(source.read())
