"""The load model as one Parquet file, version 2: its columns, and how it becomes arrays.

Columns are read one at a time and kept as arrays, so that a model of a million partitions takes little more memory than
the arrays. Rates are kept as float32, which is exact to seven digits.
"""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_rebalance.model.load import LoadColumns, LoadModel, PartitionLoads
from kafka_rebalance.model.load_artifact import SOURCE, invalid, parse_time
from kafka_rebalance.units import format_bytes

VERSION = 2
METADATA_KEY = b"kafka_rebalance.load_model"
MAX_PARTITIONS = 5_000_000
MAX_UNPACKED_BYTES = 4 * 2**30
"""More than the model of any cluster: a file that was not made by the pipeline."""

_STATISTICS = ("mean", "p50", "p95", "p99", "max")
RATE_COLUMNS = tuple(f"bytes_{way}_{statistic}" for way in ("in", "out") for statistic in _STATISTICS)
COVERED_OUT = "bytes_out_covered_seconds"
_NAMES = pa.dictionary(pa.int32(), pa.string())


def read_parquet(source: Any) -> LoadModel:
    """The model in a seekable file. Raises Refused (LoadModelInvalid), OSError if it cannot be read."""
    try:
        file = pq.ParquetFile(source, read_dictionary=["topic", "topic_id"], pre_buffer=False)
        described = _description(file)
        return LoadModel(
            source=SOURCE,
            measured_at=parse_time(described["windowEnd"]),
            partitions=PartitionLoads(_columns(file)),
            cluster_id=str(described["clusterId"]),
            window_start=parse_time(described["windowStart"]),
            samples=int(described["samples"]),
        )
    except KeyError as missing:
        raise invalid(f"{missing.args[0]} is missing") from missing
    except (pa.ArrowException, TypeError, ValueError) as wrong:
        raise invalid(str(wrong).partition("\n")[0]) from wrong


def _description(file: pq.ParquetFile) -> dict[str, Any]:
    text = (file.schema_arrow.metadata or {}).get(METADATA_KEY)
    if text is None:
        raise ValueError("it is a Parquet file, but not a load model")
    described: dict[str, Any] = json.loads(text)
    if described["version"] != VERSION:
        raise ValueError(f"it is of version {described['version']!r}, this program reads versions 1 and {VERSION}")
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    if file.metadata.num_rows > MAX_PARTITIONS or unpacked > MAX_UNPACKED_BYTES:
        raise ValueError(
            f"it has {file.metadata.num_rows} partitions and {format_bytes(unpacked)}; at most {MAX_PARTITIONS} "
            f"partitions and {format_bytes(MAX_UNPACKED_BYTES)} are read"
        )
    return described


def _columns(file: pq.ParquetFile) -> LoadColumns:
    topic, topics = _names(file, "topic")
    partition = _numbers(file, "partition", pa.int32())
    starts = np.flatnonzero(np.diff(topic, prepend=-1, append=-1)) if len(topic) else np.zeros(1, np.int64)
    sorted_topics = [topics[code] for code in topic[starts[:-1]].tolist()]
    ascends = np.diff(partition) > 0
    ascends[starts[1:-1] - 1] = True  # from one topic to the next
    if len(set(sorted_topics)) < len(sorted_topics) or not ascends.all():
        raise ValueError("its rows are not sorted by topic and partition, or a partition has two")
    topic_id, topic_ids = _names(file, "topic_id")
    rates = np.empty((len(partition), len(RATE_COLUMNS)), np.float32)
    for place, name in enumerate(RATE_COLUMNS):
        rates[:, place] = _rates(file, name)
    replica_starts, brokers = _lists(file, "replica_brokers", pa.int32())
    size_starts, replica_bytes = _lists(file, "replica_bytes", pa.int64())
    if not np.array_equal(replica_starts, size_starts):
        raise ValueError("replica_brokers and replica_bytes differ in length")
    return LoadColumns(
        topics=sorted_topics,
        starts=starts,
        partition=partition,
        topic_id=topic_id,
        topic_ids=topic_ids,
        size_bytes=_numbers(file, "size_bytes", pa.int64()),
        rates=rates,
        covered_seconds=_rates(file, "covered_seconds"),
        covered_out_seconds=_optional_rates(file, COVERED_OUT, len(partition)),
        replica_starts=replica_starts,
        replica_brokers=brokers,
        replica_bytes=replica_bytes,
    )


def _column(file: pq.ParquetFile, name: str) -> pa.ChunkedArray:
    if name not in file.schema_arrow.names:
        raise KeyError(f"column {name}")
    column = file.read(columns=[name], use_threads=False).column(name)
    pa.default_memory_pool().release_unused()
    return column


def _numbers(file: pq.ParquetFile, name: str, kind: pa.DataType) -> npt.NDArray[Any]:
    return _counts(_column(file, name).cast(kind), name)


def _counts(column: Any, name: str) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = column.to_numpy()
    if column.null_count or (len(found) and found.min() < 0):
        raise ValueError(f"{name} has negative or missing values")
    return found


def _rates(file: pq.ParquetFile, name: str) -> npt.NDArray[np.float32]:
    found = pc.cast(_column(file, name), pa.float32(), safe=False).to_numpy()
    if (found < 0).any() or np.isinf(found).any():
        raise ValueError(f"{name} has negative or infinite values")
    return np.asarray(found, np.float32)


def _optional_rates(file: pq.ParquetFile, name: str, rows: int) -> npt.NDArray[np.float32]:
    """0 where it is not known, also in files of before this column."""
    return np.nan_to_num(_rates(file, name)) if name in file.schema_arrow.names else np.zeros(rows, np.float32)


def _names(file: pq.ParquetFile, name: str) -> tuple[npt.NDArray[np.int32], list[str]]:
    column = _column(file, name)
    if column.null_count:
        raise ValueError(f"{name} is missing in some rows")
    if not len(column):
        return np.empty(0, np.int32), []
    whole = column.cast(_NAMES).unify_dictionaries().combine_chunks()
    codes: npt.NDArray[np.int32] = whole.indices.to_numpy()
    return codes, whole.dictionary.to_pylist()


def _lists(file: pq.ParquetFile, name: str, kind: pa.DataType) -> tuple[npt.NDArray[np.integer], npt.NDArray[Any]]:
    column = _column(file, name)
    if column.type.value_type != kind:
        column = column.cast(pa.list_(kind))
    if not len(column):
        return np.zeros(1, np.int32), np.empty(0, np.int64)
    whole = column.combine_chunks()
    starts: npt.NDArray[np.integer] = whole.offsets.to_numpy()
    return starts, _counts(whole.values, name)
