"""The schema of a sample row: the contract between the sampler that writes it and the job that reads it.

A change of columns or of their meaning raises ``SCHEMA_VERSION``; readers refuse unknown versions. Nothing here reads
or writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

import pyarrow as pa

from kafka_rebalance.model.topology import BrokerId

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One replica at one moment. ``sampled_at`` is aware, UTC.

    Only the leader's row has offsets, in records; ``log_end_offset`` is the next one to be written. ``topic_id``
    distinguishes a topic from an earlier one of the same name.
    """

    sampled_at: datetime
    cluster_id: str
    topic: str
    topic_id: str
    partition: int
    broker: int
    is_leader: bool
    size_bytes: int
    log_start_offset: int | None
    log_end_offset: int | None


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """All rows of one moment. ``missing_brokers`` did not answer and have no rows."""

    sampled_at: datetime
    cluster_id: str
    rows: tuple[SampleRow, ...]
    missing_brokers: tuple[BrokerId, ...] = ()


ARROW_SCHEMA = pa.schema(
    [
        pa.field("sampled_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("is_leader", pa.bool_(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("log_start_offset", pa.int64()),
        pa.field("log_end_offset", pa.int64()),
    ],
    metadata={"kafka_rebalance.schema_version": str(SCHEMA_VERSION)},
)

SPARK_SCHEMA = (
    "sampled_at timestamp, cluster_id string, topic string, topic_id string, partition int, broker int, "
    "is_leader boolean, size_bytes bigint, log_start_offset bigint, log_end_offset bigint"
)
"""The same columns for Spark, passed to the reader so that it infers nothing from paths or files."""


def to_table(rows: Sequence[SampleRow]) -> pa.Table:
    """The rows as one Arrow table of ``ARROW_SCHEMA``."""
    columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(SampleRow)}
    return pa.table(columns, schema=ARROW_SCHEMA)
