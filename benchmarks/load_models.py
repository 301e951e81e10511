"""Times the reader of load models at a million partitions, in CPU seconds, and the memory that a model takes.

python -m benchmarks.load_models
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.fakes.load_models import SCHEMA

from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.storage.load_model_parquet import METADATA_KEY, RATE_COLUMNS
from kafka_rebalance.storage.stored_models import read_model_file

PARTITIONS = 1_000_000
PER_TOPIC = 20
REPLICAS = 3
BROKERS = 1000
ROW_GROUP = 131_072
RUNS = 3
NEWEST = datetime(2026, 1, 1, tzinfo=UTC)


def write(path: Path, partitions: int) -> None:
    """Version 2, all figures different: a file that hardly compresses."""
    chance = np.random.default_rng(1)
    topics = partitions // PER_TOPIC
    codes = np.repeat(np.arange(topics, dtype=np.int32), PER_TOPIC)
    sizes = chance.lognormal(20, 1.5, partitions).astype(np.int64)
    starts = np.arange(0, REPLICAS * partitions + 1, REPLICAS, dtype=np.int32)
    brokers = chance.integers(0, BROKERS, REPLICAS * partitions).astype(np.int32)
    columns = {
        "topic": pa.DictionaryArray.from_arrays(
            codes, [f"team-{n % 37}.service-{n:05d}.events" for n in range(topics)]
        ),
        "partition": np.tile(np.arange(PER_TOPIC, dtype=np.int32), topics),
        "topic_id": pa.DictionaryArray.from_arrays(codes, [f"{n:022d}" for n in range(topics)]).cast(pa.string()),
        "size_bytes": sizes,
        "replica_brokers": pa.ListArray.from_arrays(starts, brokers),
        "replica_bytes": pa.ListArray.from_arrays(starts, np.repeat(sizes, REPLICAS)),
        **{name: np.round(chance.lognormal(10, 1.5, partitions), 3) for name in RATE_COLUMNS},
        "covered_seconds": np.full(partitions, 86_390.0),
        "windows": np.full(partitions, 288, np.int32),
        "method": pa.DictionaryArray.from_arrays(np.zeros(partitions, np.int32), ["Exact"]),
        "growth_bytes_per_second": chance.lognormal(3, 1, partitions),
    }
    start = NEWEST - timedelta(hours=24)
    described = {"version": 2, "clusterId": "c", "samples": 1440, "lineage": {}}
    described |= {"windowStart": start.isoformat(), "windowEnd": NEWEST.isoformat()}
    table = pa.table(columns, SCHEMA.with_metadata({METADATA_KEY: json.dumps(described)}))
    pq.write_table(table, path, ROW_GROUP, compression="zstd")


def write_version_1(path: Path, newer: Path) -> None:
    """The same model as JSON."""
    names = ["topic", "partition", "topic_id", "size_bytes", "bytes_in_mean", "bytes_in_p95", "bytes_in_max"]
    columns = pq.read_table(newer, columns=[*names, "covered_seconds"]).to_pydict()
    document = {"version": 1, "clusterId": "c", "windowStart": "2025-12-31T00:00:00Z", "samples": 1440}
    document |= {"windowEnd": "2026-01-01T00:00:00Z", "partitions": list(zip(*columns.values(), strict=True))}
    of_version_1 = ["bytesInPerSecond", "bytesInP95", "bytesInMax", "coveredSeconds"]
    document["columns"] = ["topic", "partition", "topicId", "sizeBytes", *of_version_1]
    path.write_bytes(gzip.compress(json.dumps(document).encode(), 5, mtime=0))


def kibibytes(field: str) -> int:
    """A field of Linux's description of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def read(small: Path, large: Path) -> None:
    """In a process of its own, because its peak of memory counts. What is imported at the first read does not."""
    read_model_file(small.as_uri())
    before, started = kibibytes("VmRSS"), time.process_time()
    model = read_model_file(large.as_uri())
    seconds, kept, peak = time.process_time() - started, kibibytes("VmRSS") - before, kibibytes("VmHWM") - before
    asked = [TopicPartition(tp.topic, tp.partition) for tp, _ in zip(model.partitions, range(100_000), strict=False)]
    started = time.process_time()
    for tp in asked:
        model.load_of(tp, "")
    micros = (time.process_time() - started) / len(asked) * 1e6
    print(f"{large.name:20} {seconds:6.2f} {kept / 1024:8.0f} {peak / 1024:8.0f} {micros:10.1f}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        small, large, old = (Path(place, name) for name in ("small.parquet", "version-2", "version-1"))
        write(small, 1000)
        write(large, PARTITIONS)
        write_version_1(old, large)
        print(f"{PARTITIONS} partitions, {REPLICAS} replicas; load average {os.getloadavg()[0]:.2f}")
        print(f"files: {large.stat().st_size / 2**20:.0f} MiB and, of version 1, {old.stat().st_size / 2**20:.0f} MiB")
        print(f"{'file':20} {'CPU s':>6} {'MiB kept':>8} {'MiB peak':>8} {'us/lookup':>10}", flush=True)
        for file in [large, old]:
            for _ in range(RUNS):
                subprocess.run([sys.executable, "-m", "benchmarks.load_models", str(small), str(file)], check=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        read(*map(Path, sys.argv[1:]))
    else:
        main()
