"""The schema of metrics: the contract between the reader of Prometheus that writes them and the job that reads them.

One row per topic, broker and window of five minutes. Nothing here reads or writes.
"""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

METRICS_VERSION = 1
METRIC_WINDOW_SECONDS = 300
"""As in `rate_windows`; not imported from there, because that module needs Spark."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """What a broker reported of a topic that it leads, in bytes per second; None: nothing.

    ``bytes_out`` went to consumers, without replication. If it is None and ``bytes_in`` is not, nothing was consumed:
    brokers report what they send of a topic from the first byte on.
    """

    cluster_id: str
    topic: str
    broker: int
    window_start: datetime
    bytes_in: float | None
    bytes_out: float | None
    read_at: datetime


METRICS_ARROW_SCHEMA = pa.schema(
    [
        pa.field("cluster_id", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("broker", pa.int32(), nullable=False),
        pa.field("window_start", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("bytes_in", pa.float64()),
        pa.field("bytes_out", pa.float64()),
        pa.field("read_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ],
    metadata={"kafka_rebalance.metrics_version": str(METRICS_VERSION)},
)

METRICS_SPARK_SCHEMA = (
    "topic string, broker int, window_start timestamp, bytes_in double, bytes_out double, read_at timestamp"
)
"""What the job reads."""
