"""The schema of a sample: the contract between the sampler that writes it and the job that reads it.

A change of columns or of their meaning raises ``SCHEMA_VERSION``; readers skip files of unknown versions. Version 1 is
still read: its columns that version 2 has not are last in ``SPARK_SCHEMA``. Nothing here reads or writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.pipeline.commits_schema import CommitRow

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One replica, or (without a topic) one log directory, in one sample.

    All times are aware, UTC, by the clock of the run: the time at which the run began plus what its monotonic clock
    counted since. ``size_at`` and ``offsets_at`` are the times at which the broker's and the leader's answers were
    read. ``size_bytes`` is None if the broker did not answer. Only the leader's row has offsets, in records;
    ``log_end_offset`` is the next one to be written. ``whole_log``: the size is that of all records between the
    offsets, because the topic is neither compacted nor tiered; None where that is not known.
    """

    sampled_at: datetime
    run_id: str
    sequence: int
    cluster_id: str
    topic: str | None
    topic_id: str | None
    partition: int | None
    broker: int
    leader: int | None = None
    leader_epoch: int | None = None
    log_dir: str | None = None
    size_bytes: int | None = None
    size_at: datetime | None = None
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    offsets_at: datetime | None = None
    isr: tuple[int, ...] | None = None
    whole_log: bool | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """All rows of one sample. ``sequence`` alone orders the batches of a run, not their times.

    ``missing_brokers`` did not answer; their replicas have no sizes. ``commits`` are empty unless the offsets of all
    consumer groups were read; ``commits_missing`` says why they were not.
    """

    sampled_at: datetime
    cluster_id: str
    rows: tuple[SampleRow, ...]
    missing_brokers: tuple[BrokerId, ...] = ()
    run_id: str = ""
    sequence: int = 0
    commits: tuple[CommitRow, ...] = ()
    commits_missing: str = ""


ARROW_SCHEMA = pa.schema(
    [
        pa.field("sampled_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("leader", pa.int32()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("log_dir", pa.string()),
        pa.field("size_bytes", pa.int64()),
        pa.field("size_at", pa.timestamp("us", tz="UTC")),
        pa.field("log_start_offset", pa.int64()),
        pa.field("log_end_offset", pa.int64()),
        pa.field("offsets_at", pa.timestamp("us", tz="UTC")),
        pa.field("isr", pa.list_(pa.field("element", pa.int32()))),
        pa.field("whole_log", pa.bool_()),
        pa.field("total_bytes", pa.int64()),
        pa.field("usable_bytes", pa.int64()),
    ],
    metadata={"kafka_rebalance.schema_version": str(SCHEMA_VERSION)},
)

SPARK_SCHEMA = (
    "sampled_at timestamp, run_id string, topic string, topic_id string, partition int, broker int, "
    "leader int, leader_epoch int, log_dir string, size_bytes bigint, size_at timestamp, log_start_offset bigint, "
    "log_end_offset bigint, offsets_at timestamp, "
    "isr array<int>, whole_log boolean, is_leader boolean"
)
"""What the job reads, of all versions: columns that a file has not are null. Passed so that Spark infers nothing."""


def to_table(rows: Sequence[object], schema: pa.Schema = ARROW_SCHEMA) -> pa.Table:
    """The rows as one Arrow table; their attributes are called like the columns."""
    return pa.table({name: [getattr(row, name) for row in rows] for name in schema.names}, schema=schema)
