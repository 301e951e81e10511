from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest

from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka.ports import (
    Answers,
    ClusterInfo,
    ConfigSource,
    ConfigValue,
    KafkaReader,
    LogDir,
    OffsetRange,
)
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.pipeline import sampler
from kafka_rebalance.pipeline.commits_schema import CommitRow
from kafka_rebalance.pipeline.sampler import Sampler
from kafka_rebalance.pipeline.schema import SampleRow

NOW = datetime(2026, 3, 1, 1, 0, tzinfo=timezone(timedelta(hours=1)))
UTC_NOW = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Clocks:
    """A clock that can be set, and a monotonic one; both go on when the cluster answers."""

    def __init__(self) -> None:
        self.monotonic = 1000.0
        self.set_by = timedelta()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.monotonic - 1000.0) + self.set_by

    def read_monotonic(self) -> float:
        return self.monotonic


class Cluster:
    """The answers that make up a sample, for a cluster whose broker 3 is down. Each takes a second."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.configs_asked: list[list[str]] = []
        self.config_error: Permanent | None = None

    async def describe_cluster(self) -> ClusterInfo:
        return ClusterInfo("c1", {BrokerId(i): Broker(BrokerId(i)) for i in (1, 2)})

    async def describe_partitions(self, topics: Collection[str] | None = None) -> dict[TopicPartition, PartitionState]:
        def state(tp: TopicPartition, leader: int | None, *replicas: int) -> PartitionState:
            led_by = None if leader is None else BrokerId(leader)
            return PartitionState(tp, f"id-{tp.topic}", replicas_of(*replicas), frozenset({BrokerId(2)}), led_by)

        return {B0: state(B0, None, 3), A1: state(A1, 2, 3, 2), A0: state(A0, 1, 1, 2)}

    async def topic_configs(
        self, topics: Collection[str], names: Collection[str]
    ) -> Answers[str, dict[str, ConfigValue], str]:
        self.configs_asked.append(list(topics))
        if self.config_error:
            raise self.config_error
        values = {"a": ("delete", "false"), "b": ("compact", "false"), "c": ("delete", "true")}
        return Answers(
            {
                topic: {
                    name: ConfigValue(value, ConfigSource.DEFAULT)
                    for name, value in zip(names, values[topic], strict=True)
                }
                for topic in topics
            }
        )

    async def log_dirs(self, brokers: Collection[BrokerId]) -> dict[BrokerId, tuple[LogDir, ...]]:
        (broker,) = brokers
        self.clocks.monotonic += 1
        held = {
            1: (LogDir("/d1", {A0: 100}, {}, 1000, 800), LogDir("/d2", {}, future_bytes={A0: 7})),
            2: (LogDir("/d1", {A0: 90, A1: 50, TopicPartition("stray", 0): 1}),),
        }
        return {broker: held[broker]}

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        assert set(partitions) == {A0, A1}
        self.clocks.monotonic += 5
        return {A0: OffsetRange(10, 20, leader_epoch=4, read_at=self.clocks.monotonic - 4)}


def sampler_of(cluster: Cluster) -> Sampler:
    return Sampler(cast("KafkaReader", cluster), cluster.clocks.now, cluster.clocks.read_monotonic)


def after(seconds: float) -> datetime:
    return UTC_NOW + timedelta(seconds=seconds)


class TestSample:
    async def test_one_row_per_replica_and_log_dir(self) -> None:
        """Sizes and offsets each with the time of their own answer; nothing is guessed for a broker that is down."""
        batch = await sampler_of(Cluster(Clocks())).sample()
        row = SampleRow(UTC_NOW, batch.run_id, 0, "c1", "a", "id-a", 0, 1, leader=1, isr=(2,), whole_log=True)
        assert batch.rows == (
            replace(
                row,
                leader_epoch=4,
                log_dir="/d1",
                size_bytes=100,
                size_at=after(1),
                log_start_offset=10,
                log_end_offset=20,
                offsets_at=after(3),
            ),
            replace(row, broker=2, log_dir="/d1", size_bytes=90, size_at=after(2)),
            replace(row, partition=1, broker=3, leader=2),
            replace(row, partition=1, broker=2, leader=2, log_dir="/d1", size_bytes=50, size_at=after(2)),
            replace(row, topic="b", topic_id="id-b", broker=3, leader=None, whole_log=False),
            *(
                SampleRow(
                    *(UTC_NOW, batch.run_id, 0, "c1", None, None, None),
                    broker=broker,
                    log_dir=path,
                    size_at=after(broker),
                    total_bytes=total,
                    usable_bytes=usable,
                )
                for broker, path, total, usable in (
                    (1, "/d1", 1000, 800),
                    (1, "/d2", None, None),
                    (2, "/d1", None, None),
                )
            ),
        )

    async def test_brokers_that_should_have_answered_are_named(self) -> None:
        """Including brokers that hold replicas but are no longer registered."""
        batch = await sampler_of(Cluster(Clocks())).sample()
        assert batch.missing_brokers == (3,)
        assert (batch.cluster_id, batch.sampled_at) == ("c1", UTC_NOW)
        assert batch.sampled_at.tzinfo is UTC


class TestRun:
    async def test_setting_the_clock_does_not_change_the_time_between_samples(self) -> None:
        """Rates divide by it. The monotonic clock goes on when the other one jumps."""
        clocks = Clocks()
        sampler = sampler_of(Cluster(clocks))
        first = await sampler.sample()
        clocks.monotonic = 1010
        clocks.set_by = timedelta(seconds=-25)
        second = await sampler.sample()
        assert second.sampled_at - first.sampled_at == timedelta(seconds=10)
        assert (second.run_id, second.sequence) == (first.run_id, first.sequence + 1)

    async def test_setting_it_far_begins_a_new_run(self) -> None:
        """So that the times of a sampler that runs for months are true; two runs are not compared if they overlap."""
        clocks = Clocks()
        sampler = sampler_of(Cluster(clocks))
        first = await sampler.sample()
        clocks.set_by = timedelta(hours=1)
        second = await sampler.sample()
        assert second.run_id != first.run_id
        assert second.sequence == 0
        assert second.sampled_at == after(3607)

    async def test_each_sampler_is_a_run(self) -> None:
        """Two samplers at the same time can be distinguished."""
        runs = {(await sampler_of(Cluster(Clocks())).sample()).run_id for _ in range(2)}
        assert len(runs) == 2


class TestWholeLog:
    async def test_topics_are_asked_about_once_an_hour(self) -> None:
        """Configs of thousands of topics are large, and rarely change."""
        cluster = Cluster(Clocks())
        sampler = sampler_of(cluster)
        await sampler.sample()
        await sampler.sample()
        assert cluster.configs_asked == [["a", "b"]]
        cluster.clocks.monotonic += 3600
        await sampler.sample()
        assert cluster.configs_asked == [["a", "b"]] * 2

    async def test_without_permission_it_remains_unknown(self) -> None:
        """The sample is taken all the same."""
        cluster = Cluster(Clocks())
        cluster.config_error = Permanent("NotAuthorized", "no")
        batch = await sampler_of(cluster).sample()
        assert {row.whole_log for row in batch.rows} == {None}


class Consumed(Cluster):
    """With groups: g has read of a-0 and of the leaderless b-0, h has committed nothing."""

    answer: Answers[str, dict[TopicPartition, int], str] | Permanent = Answers({"h": {}, "g": {A0: 15, B0: 3}})

    most_asked: int | None = None

    async def committed_offsets(self, most: int) -> Answers[str, dict[TopicPartition, int], str]:
        self.most_asked = most
        self.clocks.monotonic += 2
        if isinstance(self.answer, Permanent):
            raise self.answer
        return self.answer


def sampler_of_groups(cluster: Cluster) -> Sampler:
    return Sampler(
        cast("KafkaReader", cluster), cluster.clocks.now, cluster.clocks.read_monotonic, consumer_groups=True
    )


async def test_the_event_loop_goes_on_while_rows_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large cluster that takes seconds, and the operator samples beside its rounds."""
    made_in, make = [], Sampler._replicas

    def replicas(self: Sampler, *found: Any) -> Iterator[SampleRow]:
        made_in.append(threading.current_thread())
        return make(self, *found)

    monkeypatch.setattr(Sampler, "_replicas", replicas)
    await sampler_of(Cluster(Clocks())).sample()
    assert made_in != [threading.current_thread()]


class TestCommits:
    async def test_one_row_per_partition_whose_log_is_known(self) -> None:
        """The sample has the offsets that all groups committed, and the time of the last answer."""
        batch = await sampler_of_groups(Consumed(Clocks())).sample()
        row = CommitRow(UTC_NOW, batch.run_id, 0, "c1", "a", "id-a", 0, 10, 20, after(9), ("g",), (15,))
        assert (batch.commits, batch.commits_missing) == ((row,), "")

    async def test_a_group_that_cannot_be_read_leaves_none(self) -> None:
        """What the others consumed would be taken for all; the reason names the group. The sample is taken."""
        cluster = Consumed(Clocks())
        cluster.answer = Answers({"g": {A0: 15}}, {"secret": Permanent("KafkaAuthorizationFailed", "no Describe")})
        batch = await sampler_of_groups(cluster).sample()
        assert (batch.commits, batch.commits_missing) == ((), "1 of 2, for example secret: no Describe")
        assert len(batch.rows) == 8

    async def test_without_any_answer_the_sample_is_taken_all_the_same(self) -> None:
        """Bytes in and sizes do not depend on groups."""
        cluster = Consumed(Clocks())
        cluster.answer = Permanent("KafkaAuthorizationFailed", "not allowed to list groups")
        batch = await sampler_of_groups(cluster).sample()
        assert (batch.commits, batch.commits_missing) == ((), "not allowed to list groups")
        assert len(batch.rows) == 8

    @pytest.mark.parametrize(
        ("commits", "names", "groups", "why"),
        [
            ({"g": (A0, A1), "h": (A0,)}, 3, 2, ""),
            ({"\U0001f600": (A0, A1)}, 8, 2, ""),
            (
                {"\U0001f600": (A0, A1), "h": (A0,)},
                8,
                2,
                "they have 3 committed offsets with 9 bytes of names, more than the limit of 8",
            ),
            ({"g": (A0, A1), "h": (A0,)}, 3, 1, "2 of them have committed offsets of a-0, more than the limit of 1"),
        ],
        ids=["within the limits", "names of several bytes", "too long names", "groups"],
    )
    async def test_too_many_are_not_sampled(
        self,
        monkeypatch: pytest.MonkeyPatch,
        commits: dict[str, tuple[TopicPartition, ...]],
        names: int,
        groups: int,
        why: str,
    ) -> None:
        """Spark computes with each of them, and the Job is for all clusters. The sample is taken, and says why."""
        monkeypatch.setattr(sampler, "MOST_NAMES", names)
        monkeypatch.setattr(sampler, "MOST_GROUPS", groups)
        cluster = Consumed(Clocks())
        cluster.answer = Answers({group: dict.fromkeys(of, 15) for group, of in commits.items()}, {})
        batch = await sampler_of_groups(cluster).sample()
        assert (batch.commits_missing, batch.commits == ()) == (why, why != "")
        assert len(batch.rows) == 8

    async def test_more_offsets_than_the_limit_are_not_read(self) -> None:
        """The client refuses them, so that they do not take the memory of the operator."""
        cluster = Consumed(Clocks())
        await sampler_of_groups(cluster).sample()
        assert cluster.most_asked == sampler.MOST_COMMITS

    async def test_long_names_of_many_groups_are_not_sampled(self) -> None:
        """Rows have the name for each offset: a thousand groups with the longest ones would fill the memory."""
        cluster = Consumed(Clocks())
        partitions = [TopicPartition("a", number) for number in range(34)]
        groups = {"\U0001f600" * 252 + f"{number:03}": dict.fromkeys(partitions, 15) for number in range(1000)}
        cluster.answer = Answers(groups, {})
        batch = await sampler_of_groups(cluster).sample()
        assert batch.commits == ()
        assert "34000 committed offsets with 34374000 bytes of names" in batch.commits_missing

    async def test_are_not_read_unless_asked_for(self) -> None:
        """It takes a permission that the rest does not take."""
        batch = await sampler_of(Consumed(Clocks())).sample()
        assert (batch.commits, batch.commits_missing) == ((), "")
