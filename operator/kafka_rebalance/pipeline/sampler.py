"""Reads a live cluster once: one row per replica.

It uses the Kafka port and stores nothing. Missing answers are reported, never guessed: a broker that is down has no
rows, a partition without a leader has no offsets.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime

from kafka_rebalance.kafka.ports import KafkaReader, LogDir, OffsetRange
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow


async def sample(kafka: KafkaReader, now: Callable[[], datetime]) -> SampleBatch:
    """Sizes and offsets of every partition, stamped with the (aware) time at which the offsets arrived.

    Rates follow from offsets and stamps, and a client that has just been made needs seconds for its first calls.
    Raises what the port raises.
    """
    cluster, partitions = await asyncio.gather(kafka.describe_cluster(), kafka.describe_partitions())
    led = [tp for tp, state in partitions.items() if state.leader is not None]
    # In parallel, so that sizes and offsets are of nearly the same moment.
    directories, (offsets, sampled_at) = await asyncio.gather(
        kafka.log_dirs(tuple(cluster.brokers)), _stamped_offsets(kafka, led, now)
    )
    rows = _rows(sampled_at, cluster.cluster_id, partitions, _sizes(directories), offsets)
    expected = {*cluster.brokers, *(broker for state in partitions.values() for broker in state.replicas)}
    return SampleBatch(
        sampled_at=sampled_at,
        cluster_id=cluster.cluster_id,
        rows=tuple(rows),
        missing_brokers=tuple(sorted(expected - directories.keys())),
    )


async def _stamped_offsets(
    kafka: KafkaReader, partitions: Collection[TopicPartition], now: Callable[[], datetime]
) -> tuple[dict[TopicPartition, OffsetRange], datetime]:
    offsets = await kafka.offsets(partitions)
    return offsets, now().astimezone(UTC)


def _sizes(directories: Mapping[BrokerId, tuple[LogDir, ...]]) -> dict[tuple[BrokerId, TopicPartition], int]:
    """Bytes of each replica; future replicas (a move between disks of one broker) are not counted."""
    return {
        (broker, tp): size
        for broker, dirs in directories.items()
        for directory in dirs
        for tp, size in directory.replica_bytes.items()
    }


def _rows(
    sampled_at: datetime,
    cluster_id: str,
    partitions: Mapping[TopicPartition, PartitionState],
    sizes: Mapping[tuple[BrokerId, TopicPartition], int],
    offsets: Mapping[TopicPartition, OffsetRange],
) -> Iterator[SampleRow]:
    for tp, state in sorted(partitions.items()):
        for broker in state.replicas:
            size = sizes.get((broker, tp))
            if size is None:
                continue  # the broker did not answer, or the disk is offline
            known = offsets.get(tp) if broker == state.leader else None
            yield SampleRow(
                sampled_at=sampled_at,
                cluster_id=cluster_id,
                topic=tp.topic,
                topic_id=state.topic_id,
                partition=tp.partition,
                broker=broker,
                is_leader=broker == state.leader,
                size_bytes=size,
                log_start_offset=known.start if known else None,
                log_end_offset=known.end if known else None,
            )
