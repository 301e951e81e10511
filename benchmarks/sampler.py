"""What a sample costs the sampler itself: its rows and the file, with what consumer groups have committed.

python -m benchmarks.sampler [--real] [--partitions 10000] [--groups 50] [--samples 5] [--latency 0.05]

With ``--real``, four brokers of the test bench run on this machine, with two replicas of each partition (three minutes
and 3 GB). Otherwise the cluster is in memory: six brokers, three replicas. Each call of the client is then answered
after ``--latency`` seconds, as Python objects, so the parsing of the answers of brokers is not measured. Each group has
committed offsets of one partition in five. CPU is that of this process.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Collection
from typing import Any, cast

from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.sampler_cluster import EACH, PER_TOPIC, RF, real_cluster
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import (
    Answers,
    ClusterInfo,
    ConfigSource,
    ConfigValue,
    KafkaReader,
    LogDir,
    OffsetRange,
)
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.sampler import Sampler

HEAD = ["partitions", "groups", "committed offsets", "sample", "seconds", "CPU seconds", "of it to store", "load"]
_BROKERS = tuple(map(BrokerId, range(6)))
_RF = 3


class _Cluster:
    """Answers what the sampler asks."""

    def __init__(self, partitions: int, groups: int, latency: float) -> None:
        tps = [TopicPartition(f"topic-{n // PER_TOPIC:04d}", n % PER_TOPIC) for n in range(partitions)]
        lists = [tuple(_BROKERS[(n + place) % len(_BROKERS)] for place in range(_RF)) for n in range(partitions)]
        self._latency = latency
        self._states = {
            tp: PartitionState(tp, f"id-of-{tp.topic}", row, frozenset(row), row[0])
            for tp, row in zip(tps, lists, strict=True)
        }
        self._dirs = {
            b: (
                LogDir(
                    "/data", {tp: 10**9 for tp, row in zip(tps, lists, strict=True) if b in row}, {}, 10**12, 10**11
                ),
            )
            for b in _BROKERS
        }
        self._committed = {f"group-{g:03d}": dict.fromkeys(tps[g % EACH :: EACH], 10**6) for g in range(groups)}

    async def _answer(self, found: Any) -> Any:
        await asyncio.sleep(self._latency)
        return found

    async def describe_cluster(self) -> ClusterInfo:
        brokers = {b: Broker(b, host=f"kafka-{b}", port=9092) for b in _BROKERS}
        return cast("ClusterInfo", await self._answer(ClusterInfo("bench", brokers)))

    async def describe_partitions(self) -> Any:
        return await self._answer(Answers(self._states))

    async def topic_configs(self, topics: Collection[str], names: Collection[str]) -> Any:
        value = ConfigValue("delete", ConfigSource.DEFAULT)
        return await self._answer(Answers({topic: dict.fromkeys(names, value) for topic in topics}))

    async def log_dirs(self, brokers: Collection[BrokerId]) -> Any:
        return await self._answer(Answers({b: self._dirs[b] for b in brokers}))

    async def offsets(self, partitions: Collection[TopicPartition]) -> Any:
        now = time.monotonic()
        return await self._answer({tp: OffsetRange(0, 10**6, 1, now) for tp in partitions})

    async def committed_offsets(self, _: int) -> Any:
        return await self._answer(Answers(self._committed))


async def measure(kafka: KafkaReader, partitions: int, replicas: int, groups: int, samples: int) -> None:
    """Print a row for each sample. ``replicas``: of each partition."""
    sampler = Sampler(kafka, consumer_groups=groups > 0)
    with tempfile.TemporaryDirectory() as lake:
        for number in range(samples):
            began, cpu = time.monotonic(), time.process_time()
            batch = await sampler.sample()
            taken = time.process_time()
            await asyncio.to_thread(write_batch, lake, batch)
            used = time.process_time()
            seconds = time.monotonic() - began
            committed = sum(len(row.groups) for row in batch.commits)
            known = sum(row.size_bytes is not None for row in batch.rows if (row.topic or "").startswith("topic-"))
            assert (known, committed) == (partitions * replicas, groups * (partitions // EACH))
            cells = [f"{partitions:,}", str(groups) if groups else "not read", f"{committed:,}", str(number + 1)]
            cells += [f"{seconds:.1f}", f"{used - cpu:.1f}", f"{used - taken:.1f}"]
            print(line([*cells, f"{os.getloadavg()[0]:.1f}"]), flush=True)


async def _real(bootstrap_servers: str, partitions: int, groups: int, samples: int) -> None:
    admin = connect(ConnectionSettings(bootstrap_servers))
    try:
        await measure(admin, partitions, RF, groups, samples)
    finally:
        await admin.close()


def _both(options: argparse.Namespace) -> None:
    """Without consumer groups, and with them."""
    asked = [(options.partitions, groups, options.samples) for groups in (0, options.groups)]
    if options.real:
        with real_cluster(options.partitions, options.groups) as bootstrap_servers:
            for partitions, groups, samples in asked:
                asyncio.run(_real(bootstrap_servers, partitions, groups, samples))
        return
    for partitions, groups, samples in asked:
        cluster = cast("KafkaReader", _Cluster(partitions, groups, options.latency))
        asyncio.run(measure(cluster, partitions, _RF, groups, samples))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="measure with real brokers")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.05)
    options = parser.parse_args()
    print(line(HEAD))
    print(line(["---"] * len(HEAD)))
    _both(options)
    print()
    print(measured_on(machine()))


if __name__ == "__main__":
    main()
