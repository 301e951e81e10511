"""Reads a live cluster again and again: one row per replica and per log directory, and what consumers committed.

It uses the Kafka port and stores nothing. Missing answers are reported, never guessed: replicas of a broker that is
down have no sizes, a partition without a leader has no offsets.
"""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kafka.ports import KafkaReader, LogDir, OffsetRange
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.pipeline.commits_schema import CommitRow
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow

CLOCK_STEP = timedelta(minutes=5)
"""If the clock was set by more than this, a new run begins, so that times are true again."""
CONFIGS_SECONDS = 3600.0
"""How long it is believed which topics are compacted or tiered."""
MOST_COMMITS = 500_000
"""Committed offsets of all groups in a sample; the client refuses more. Two such samples at the same time need 255 MiB
of memory."""
MOST_NAMES = 32 << 20
"""Bytes of the names of groups in a sample. They count for each committed offset: rows have the name of each."""
MOST_GROUPS = 1_000
"""Groups that have committed offsets of one partition. Spark looks for each of them in the sample before by the hash of
its name, and names may be made up so that all have the same hash."""
_CLEANUP = "cleanup.policy"
_TIERED = "remote.storage.enable"


@dataclass(frozen=True, slots=True)
class _Run:
    """Its clock is the monotonic one: the time between two answers is right even if the clock is set meanwhile."""

    started_at: datetime
    started: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def at(self, monotonic: float) -> datetime:
        return self.started_at + timedelta(seconds=monotonic - self.started)


@dataclass(frozen=True, slots=True)
class _Sizes:
    directories: tuple[LogDir, ...]
    read_at: datetime


@dataclass(frozen=True, slots=True)
class _Commits:
    """By group; ``read_at`` is monotonic."""

    offsets: Mapping[str, Mapping[TopicPartition, int]]
    read_at: float


class Sampler:
    """Takes the samples of one run. ``now`` is aware; ``monotonic`` counts seconds from any start."""

    def __init__(
        self,
        kafka: KafkaReader,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        *,
        consumer_groups: bool = False,
    ) -> None:
        self._kafka = kafka
        self._consumer_groups = consumer_groups
        self._now = now
        self._monotonic = monotonic
        self._begin_run()
        self._whole: dict[str, bool] = {}
        self._asked: frozenset[str] = frozenset()
        self._asked_until = float("-inf")

    async def sample(self) -> SampleBatch:
        """Sizes and offsets of every partition. Raises what the port raises."""
        began = self._monotonic()
        if abs(self._now().astimezone(UTC) - self._run.at(began)) > CLOCK_STEP:
            self._begin_run()
        run, sequence = self._run, self._sequence
        self._sequence += 1
        cluster, partitions = await asyncio.gather(self._kafka.describe_cluster(), self._kafka.describe_partitions())
        await self._read_configs({tp.topic for tp in partitions})
        # Sizes before offsets: if segments are deleted in between, the start offset shows it now, the size next time.
        found = await asyncio.gather(*(self._sizes(run, broker) for broker in sorted(cluster.brokers)))
        sizes = {broker: answer for broker, answer in zip(sorted(cluster.brokers), found, strict=True) if answer}
        led = [tp for tp, state in partitions.items() if state.leader is not None]
        offsets, commits = await asyncio.gather(self._kafka.offsets(led), self._read_commits())
        answered = self._monotonic()
        common = (run.at(began), run.id, sequence, cluster.cluster_id)
        # Of a large cluster that takes seconds, in which the loop must go on.
        return await asyncio.to_thread(
            self._batch, common, run, cluster.brokers, partitions, sizes, offsets, commits, answered
        )

    def _batch(
        self,
        common: tuple[datetime, str, int, str],
        run: _Run,
        brokers: Collection[BrokerId],
        partitions: Mapping[TopicPartition, PartitionState],
        sizes: Mapping[BrokerId, _Sizes],
        offsets: Mapping[TopicPartition, OffsetRange],
        commits: _Commits | str,
        answered: float,
    ) -> SampleBatch:
        sampled_at, run_id, sequence, cluster_id = common
        if not isinstance(commits, str):
            commits = _too_many(commits) or commits
        expected = {*brokers, *(broker for state in partitions.values() for broker in state.replicas)}
        return SampleBatch(
            sampled_at=sampled_at,
            cluster_id=cluster_id,
            rows=(*self._replicas(common, run, partitions, sizes, offsets, answered), *_log_dirs(common, sizes)),
            missing_brokers=tuple(sorted(expected - sizes.keys())),
            run_id=run_id,
            sequence=sequence,
            commits=() if isinstance(commits, str) else tuple(_commits(common, run, partitions, offsets, commits)),
            commits_missing=commits if isinstance(commits, str) else "",
        )

    def _begin_run(self) -> None:
        self._run = _Run(self._now().astimezone(UTC), self._monotonic())
        self._sequence = 0

    async def _sizes(self, run: _Run, broker: BrokerId) -> _Sizes | None:
        """Of one broker, with the time of its own answer."""
        answers = await self._kafka.log_dirs((broker,))
        read_at = run.at(self._monotonic())
        return _Sizes(answers[broker], read_at) if broker in answers else None

    async def _read_commits(self) -> "_Commits | str":
        """The committed offsets of all groups, or why they are not known: sums without one group would be wrong."""
        if not self._consumer_groups:
            return ""
        try:
            found = await self._kafka.committed_offsets(MOST_COMMITS)
        except RebalanceError as error:
            return error.message
        if found.errors:
            group, why = min(found.errors.items())
            return f"{len(found.errors)} of {len(found) + len(found.errors)}, for example {group}: {why.message}"
        return _Commits(found, self._monotonic())

    async def _read_configs(self, topics: Collection[str]) -> None:
        """Which topics are neither compacted nor tiered; of topics without an answer that remains unknown."""
        if self._monotonic() >= self._asked_until:
            self._asked_until = self._monotonic() + CONFIGS_SECONDS
            self._asked = frozenset()
        new = frozenset(topics) - self._asked
        if not new:
            return
        try:
            configs = await self._kafka.topic_configs(sorted(new), (_CLEANUP, _TIERED))
        except RebalanceError:
            return
        self._asked |= new
        self._whole |= {
            topic: found[_CLEANUP].value == "delete" and found[_TIERED].value != "true"
            for topic, found in configs.items()
            if found[_CLEANUP].value is not None
        }

    def _replicas(
        self,
        common: tuple[datetime, str, int, str],
        run: _Run,
        partitions: Mapping[TopicPartition, PartitionState],
        sizes: Mapping[BrokerId, _Sizes],
        offsets: Mapping[TopicPartition, OffsetRange],
        answered: float,
    ) -> Iterator[SampleRow]:
        places = {
            (broker, tp): (directory.path, size)
            for broker, answer in sizes.items()
            for directory in answer.directories  # future replicas (a move between disks) are not counted
            for tp, size in directory.replica_bytes.items()
        }
        for tp, state in sorted(partitions.items()):
            for broker in state.replicas:
                log_dir, size = places.get((broker, tp), (None, None))
                known = offsets.get(tp) if broker == state.leader else None
                yield SampleRow(
                    *common,
                    topic=tp.topic,
                    topic_id=state.topic_id,
                    partition=tp.partition,
                    broker=broker,
                    leader=state.leader,
                    leader_epoch=known.leader_epoch if known else None,
                    log_dir=log_dir,
                    size_bytes=size,
                    size_at=None if size is None else sizes[broker].read_at,
                    log_start_offset=known.start if known else None,
                    log_end_offset=known.end if known else None,
                    offsets_at=run.at(answered if known.read_at is None else known.read_at) if known else None,
                    isr=tuple(sorted(state.isr)),
                    whole_log=self._whole.get(tp.topic),
                )


def _too_many(commits: _Commits) -> str:
    """Why these are not sampled; empty if they are. Anyone with a user of the cluster may make up groups."""
    total = sum(map(len, commits.offsets.values()))
    names = sum(len(group.encode()) * len(committed) for group, committed in commits.offsets.items())
    if names > MOST_NAMES:
        return f"they have {total} committed offsets with {names} bytes of names, more than the limit of {MOST_NAMES}"
    groups = Counter(tp for committed in commits.offsets.values() for tp in committed)
    for tp, number in groups.most_common(1):
        if number > MOST_GROUPS:
            return f"{number} of them have committed offsets of {tp}, more than the limit of {MOST_GROUPS}"
    return ""


def _commits(
    common: tuple[datetime, str, int, str],
    run: _Run,
    partitions: Mapping[TopicPartition, PartitionState],
    offsets: Mapping[TopicPartition, OffsetRange],
    commits: _Commits,
) -> Iterator[CommitRow]:
    """One row for each partition whose log is known, also if no group has committed."""
    known = sorted(offsets.keys() & partitions.keys())
    of_groups: dict[TopicPartition, tuple[list[str], list[int]]] = {tp: ([], []) for tp in known}
    for group, offsets_of_group in sorted(commits.offsets.items()):
        for tp, offset in offsets_of_group.items():
            if tp in of_groups:
                groups, committed = of_groups[tp]
                groups.append(group)
                committed.append(offset)
    committed_at = run.at(commits.read_at)
    for tp, (groups, committed) in of_groups.items():
        yield CommitRow(
            *common,
            topic=tp.topic,
            topic_id=partitions[tp].topic_id,
            partition=tp.partition,
            log_start_offset=offsets[tp].start,
            log_end_offset=offsets[tp].end,
            committed_at=committed_at,
            groups=tuple(groups),
            committed=tuple(committed),
        )


def _log_dirs(common: tuple[datetime, str, int, str], sizes: Mapping[BrokerId, _Sizes]) -> Iterator[SampleRow]:
    for broker, answer in sizes.items():
        for directory in answer.directories:
            yield SampleRow(
                *common,
                topic=None,
                topic_id=None,
                partition=None,
                broker=broker,
                log_dir=directory.path,
                size_at=answer.read_at,
                total_bytes=directory.total_bytes if directory.total_bytes >= 0 else None,
                usable_bytes=directory.usable_bytes if directory.usable_bytes >= 0 else None,
            )
