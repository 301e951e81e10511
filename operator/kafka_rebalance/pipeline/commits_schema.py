"""The schema of committed offsets: the contract between the sampler that writes them and the job that reads them.

One row per partition and sample, with the offsets of all groups. A sample in which one of the groups could not be read
has no rows: what all groups together consumed would be wrong. Nothing here reads or writes.
"""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

COMMITS_VERSION = 1


@dataclass(frozen=True, slots=True)
class CommitRow:
    """One partition in one sample: its log, and what consumer groups have committed.

    ``committed`` has the next offset that each of ``groups`` will read; both are empty if no group has one.
    ``committed_at`` is when the last group's answer was read, by the clock of the run (see `SampleRow`).
    """

    sampled_at: datetime
    run_id: str
    sequence: int
    cluster_id: str
    topic: str
    topic_id: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    committed_at: datetime
    groups: tuple[str, ...] = ()
    committed: tuple[int, ...] = ()


COMMITS_ARROW_SCHEMA = pa.schema(
    [
        pa.field("sampled_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("log_start_offset", pa.int64(), nullable=False),
        pa.field("log_end_offset", pa.int64(), nullable=False),
        pa.field("committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("groups", pa.list_(pa.field("element", pa.string())), nullable=False),
        pa.field("committed", pa.list_(pa.field("element", pa.int64())), nullable=False),
    ],
    metadata={"kafka_rebalance.offsets_version": str(COMMITS_VERSION)},
)

COMMITS_SPARK_SCHEMA = (
    "sampled_at timestamp, run_id string, topic string, topic_id string, partition int, log_start_offset bigint, "
    "log_end_offset bigint, committed_at timestamp, groups array<string>, committed array<bigint>"
)
"""What the job reads."""
