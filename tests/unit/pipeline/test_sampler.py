from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta, timezone
from typing import cast

from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader, LogDir, OffsetRange
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.pipeline.sampler import sample
from kafka_rebalance.pipeline.schema import SampleRow

NOW = datetime(2026, 3, 1, 1, 0, tzinfo=timezone(timedelta(hours=1)))
UTC_NOW = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Answers:
    """The four answers that make up a sample, for a cluster whose broker 3 is down."""

    async def describe_cluster(self) -> ClusterInfo:
        return ClusterInfo("c1", {BrokerId(i): Broker(BrokerId(i)) for i in (1, 2)})

    async def describe_partitions(self, topics: Collection[str] | None = None) -> dict[TopicPartition, PartitionState]:
        def state(tp: TopicPartition, leader: int | None, *replicas: int) -> PartitionState:
            led_by = None if leader is None else BrokerId(leader)
            return PartitionState(tp, f"id-{tp.topic}", replicas_of(*replicas), frozenset(), led_by)

        return {B0: state(B0, None, 3), A1: state(A1, 2, 3, 2), A0: state(A0, 1, 1, 2)}

    async def log_dirs(self, brokers: Collection[BrokerId]) -> dict[BrokerId, tuple[LogDir, ...]]:
        assert set(brokers) == {1, 2}
        return {
            BrokerId(1): (LogDir("/d1", {A0: 100}), LogDir("/d2", {}, future_bytes={A0: 7})),
            BrokerId(2): (LogDir("/d1", {A0: 90, A1: 50, TopicPartition("stray", 0): 1}),),
        }

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        assert set(partitions) == {A0, A1}
        return {A0: OffsetRange(10, 20)}


class TestSample:
    async def test_one_row_per_replica_that_answered(self) -> None:
        """Offsets only in the leader's row, if known; nothing is guessed for a broker that is down."""
        batch = await sample(cast("KafkaReader", Answers()), lambda: NOW)
        assert batch.rows == (
            SampleRow(UTC_NOW, "c1", "a", "id-a", 0, 1, True, 100, 10, 20),
            SampleRow(UTC_NOW, "c1", "a", "id-a", 0, 2, False, 90, None, None),
            SampleRow(UTC_NOW, "c1", "a", "id-a", 1, 2, True, 50, None, None),
        )

    async def test_the_stamp_is_the_time_of_the_offsets(self) -> None:
        """The first calls of a client take seconds, in which the offsets grow: a rate must not count these."""
        asked: list[str] = []

        class Slow(Answers):
            async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
                asked.append("offsets")
                return await super().offsets(partitions)

        def now() -> datetime:
            asked.append("now")
            return NOW

        await sample(cast("KafkaReader", Slow()), now)
        assert asked == ["offsets", "now"]

    async def test_brokers_that_should_have_answered_are_named(self) -> None:
        """Including brokers that hold replicas but are no longer registered."""
        batch = await sample(cast("KafkaReader", Answers()), lambda: NOW)
        assert batch.missing_brokers == (3,)
        assert (batch.cluster_id, batch.sampled_at) == ("c1", UTC_NOW)
        assert batch.sampled_at.tzinfo is UTC
