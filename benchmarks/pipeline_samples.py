"""A lake of samples for the benchmark of the pipeline: Zipf rates, a daily wave, segments that retention deletes.

python -m benchmarks.pipeline_samples LAKE PARTITIONS SAMPLES

One sample a minute, three replicas a partition. Columns are made by numpy; no row is a Python object.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import StoredBatch, publish
from kafka_rebalance.pipeline.schema import ARROW_SCHEMA

START = datetime(2026, 3, 1, tzinfo=UTC)
CLUSTER = "bench"
_RF = 3
_BROKERS = 60
_PARTITIONS_PER_TOPIC = 20
_SECONDS = 60


def write_lake(place: Path, partitions: int, samples: int, seed: int = 1) -> None:
    """Write the samples of one run; rates and sizes are a function of the seed."""
    rng = np.random.default_rng(seed)
    topic = np.arange(partitions) // _PARTITIONS_PER_TOPIC
    rate = np.minimum(rng.zipf(1.6, partitions) * 50.0, 2e4)  # records per second
    record = rng.integers(100, 4000, partitions)
    first = rng.integers(0, _BROKERS, partitions)
    brokers = (first[:, None] + np.array([0, 7, 23])) % _BROKERS
    end = rng.integers(10**6, 10**8, partitions)
    start = end - rng.integers(10**5, 10**6, partitions)
    leads = np.tile([True, False, False], partitions)
    each = partitions * _RF

    def named(names: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(np.repeat(topic, _RF), pa.int32()), names).cast(pa.string())

    topics = partitions // _PARTITIONS_PER_TOPIC + 1
    fixed = {
        "run_id": pa.repeat("run", each),
        "cluster_id": pa.repeat(CLUSTER, each),
        "topic": named([f"service-{number:04d}.events.v1" for number in range(topics)]),
        "topic_id": named([f"topic-id-{number:013d}" for number in range(topics)]),
        "partition": pa.array(np.repeat(np.arange(partitions) % _PARTITIONS_PER_TOPIC, _RF), pa.int32()),
        "broker": pa.array(brokers.reshape(-1), pa.int32()),
        "leader": pa.array(np.repeat(first, _RF), pa.int32()),
        "leader_epoch": pa.array(np.full(each, 3), pa.int32(), mask=~leads),
        "log_dir": pa.repeat("/var/lib/kafka/data-0", each),
        "isr": pa.ListArray.from_arrays(
            np.arange(0, each * _RF + 1, _RF, dtype=np.int32),
            pa.array(np.repeat(brokers, _RF, axis=0).reshape(-1), pa.int32()),
        ).cast(ARROW_SCHEMA.field("isr").type),
        "whole_log": pa.array(np.ones(each, bool)),
        "total_bytes": pa.nulls(each, pa.int64()),
        "usable_bytes": pa.nulls(each, pa.int64()),
    }
    lake = Lake.open(str(place))
    for number in range(samples):
        moment = START + timedelta(seconds=_SECONDS * number)
        end = end + rng.poisson(rate * _SECONDS * (1 + 0.5 * np.sin(2 * np.pi * number / 1440)))
        deleted = rng.random(partitions) < 0.02
        start = np.where(deleted, np.minimum(end, start + (end - start) // 10), start)
        answered = moment + timedelta(seconds=1)
        read = pa.array([answered], pa.timestamp("us", tz="UTC"))[0]
        moving = {
            "sampled_at": pa.repeat(pa.array([moment], pa.timestamp("us", tz="UTC"))[0], each),
            "sequence": pa.repeat(pa.scalar(number, pa.int64()), each),
            "size_bytes": pa.array(np.repeat((end - start) * record, _RF)),
            "size_at": pa.repeat(read, each),
            "log_start_offset": pa.array(np.repeat(start, _RF), mask=~leads),
            "log_end_offset": pa.array(np.repeat(end, _RF), mask=~leads),
            "offsets_at": pa.repeat(read, each),
        }
        columns = fixed | moving
        sink = pa.BufferOutputStream()
        table = pa.table([columns[name] for name in ARROW_SCHEMA.names], schema=ARROW_SCHEMA)
        pyarrow.parquet.write_table(table, sink, compression="zstd")
        publish(lake, CLUSTER, sink.getvalue().to_pybytes(), (StoredBatch(moment, "run", number, each),))


if __name__ == "__main__":
    write_lake(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
