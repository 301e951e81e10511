"""Reads the partitions of a cluster in each round, and keeps what was read."""

import logging
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.health_gate import Vitals
from kafka_rebalance.execution.log_dir_moves import LogDirReading
from kafka_rebalance.execution.partition_status import Observation
from kafka_rebalance.kafka.ports import Answers, ClusterInfo, KafkaReader, Reassignment
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reconcile.observe import cluster_readings
from kafka_rebalance.reconcile.observe.broker_membership import BrokerMembership
from kafka_rebalance.reconcile.observe.cluster_readings import DiskReading, compared, held_by
from kafka_rebalance.reconcile.observe.known_bound import KnownBound
from kafka_rebalance.reconcile.observe.min_insync_reader import MinInsyncReader, denied_now
from kafka_rebalance.reconcile.observe.permission_probe import PermissionProbe
from kafka_rebalance.reconcile.observe.size_reader import SizeReader
from kafka_rebalance.reconcile.state.round_thread import computed

log = logging.getLogger(__name__)

EVERYTHING_SECONDS = 5.0
_SHARE = 20
"""Reading everything may take at most a twentieth of the time."""
_EVERYTHING_AT_LEAST_EVERY_SECONDS = 30.0
"""However long a reading took: it may have waited for a dying broker, which is when the gate matters most."""
_MANY = 2_000
"""From this number of partitions on, a thread looks through them: some milliseconds."""
_MANY_DESCRIBED = 2_000
"""If the topics that move have this many partitions, those in flight are not described in each round."""
_DESCRIBED_PER_SECOND = 10_000
_DESCRIBED_SECONDS_AT_MOST = 5.0
GONE_AFTER_READINGS = 5
"""A single "unknown topic" is no proof of deletion: a broker may lag."""


Listed = Mapping[TopicPartition, Reassignment]
"""Every reassignment in flight."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Partitions that may read differently in reading ``after`` than they did in reading ``before``.

    A value that is based on another reading than ``before`` has missed some changes, and must be computed from scratch.
    """

    partitions: Collection[TopicPartition]
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one round saw. ``fresh``: the partitions that were read in this round. ``log_dirs`` None: not read in it.

    ``listed``: the reassignments, if they were listed in this round and no call was sent since. The partitions and
    unread topics of ``observation`` are live: later readings of the observer update them. ``read_at``: the monotonic
    time at which the reading of the ``fresh`` ones began.
    """

    observation: Observation
    changes: Changes
    fresh: frozenset[TopicPartition]
    log_dirs: LogDirReading | None = None
    listed: Listed | None = None
    read_at: float = float("-inf")


class Observer:
    """Reads one cluster. It remembers times and counts; a restart forgets them."""

    def __init__(self, admin: KafkaReader, clock: Clock, permissions: PermissionProbe | None = None) -> None:
        self._admin = admin
        self._clock = clock
        self.sizes = SizeReader(admin, clock, permissions or PermissionProbe(admin, clock))
        self.members = BrokerMembership(clock)
        self._known: dict[TopicPartition, PartitionState] = {}
        """Every partition, as of the last reading that changed it."""
        self._changed: set[TopicPartition] = set()
        """The partitions that readings found changed since the last look that did not fail."""
        self.in_flight: set[TopicPartition] = set()
        """Every partition that is being reassigned, as last read."""
        self._found = 0
        """How many partitions the last answer had."""
        self._described = 0
        """How many partitions the topics have that move, when all of them were last described."""
        self._describe_all_at = float("-inf")
        self._described_with: frozenset[BrokerId] = frozenset()
        self._planned: Collection[TopicPartition] = ()
        self._planned_topics: frozenset[str] = frozenset()
        self._reading = 0
        self.full_readings = 0
        """How often everything has been read."""
        self._looked_at = 0
        self._everything_due_at = float("-inf")
        self._unhealthy: dict[TopicPartition, PartitionState] = {}
        self._unhealthy_min_insync: dict[str, int] = {}
        self._min_insync = MinInsyncReader(admin, clock)
        """Of the planned topics."""
        self._min_insync_of_unhealthy = MinInsyncReader(admin, clock)
        self._undescribed: dict[str, str] = {}
        """Topics that we may not describe, and how Kafka said so."""
        self._unread: set[str] = set()
        """Topics whose last reading failed. The previous reading of these topics is kept, within ``_bound``."""
        self._bound = KnownBound()
        self._absent: dict[TopicPartition, int] = {}

    def known(self) -> Mapping[TopicPartition, PartitionState]:
        """Every partition, as last read. Readings update it."""
        return self._known

    @property
    def unread(self) -> AbstractSet[str]:
        """Topics whose last reading failed."""
        return self._unread

    @property
    def undescribed(self) -> Mapping[str, str]:
        """Topics that we may not describe, and how Kafka said so. It says so of topics that are read by name."""
        return self._undescribed

    @property
    def on_disks(self) -> DiskReading:
        """The disks and replicas as last read, and what moves."""
        return self.sizes.reading(self.in_flight)

    async def everything(self) -> Mapping[TopicPartition, PartitionState]:
        """All partitions as last read: those that move in this round, the rest up to half a minute ago."""
        begun = self._clock.monotonic()
        if begun >= self._everything_due_at:
            found = await self._admin.describe_partitions()
            for topic in self._undescribed.keys() & {tp.topic for tp in found} if self._undescribed else ():
                del self._undescribed[topic]
            self._note_unread(found.errors, self._unread)
            # Nothing writes to what is compared here meanwhile: only this round does, and it waits.
            first = not self._known
            many = max(len(found), len(self._known)) >= _MANY
            kept = await computed(self._bound.kept, found, self._known, frozenset(self._unread), many=many)
            self._known, changed, self._unhealthy, self.in_flight = await computed(
                compared, found, self._known, kept, many=many
            )
            self._changed = self._changed | changed if self._changed else changed
            if len(self._changed) > 2 * len(self._known) + _MANY_DESCRIBED:  # no look succeeds
                self._changed = set()
                self._reading += 1
            self.sizes.note_changed(changed if not first else ())  # no sizes were read before
            self.sizes.drop_unknown(self._known)
            took = self._clock.monotonic() - begun
            pause = max(_SHARE * took, len(self._known) / _DESCRIBED_PER_SECOND)
            pause = max(EVERYTHING_SECONDS, min(pause, _EVERYTHING_AT_LEAST_EVERY_SECONDS))
            self._everything_due_at = begun + pause
            self.full_readings += 1
            try:
                # Without the permission to read others' topics the gate assumes 1 as their min.insync.replicas.
                self._unhealthy_min_insync = await self._min_insync_of_unhealthy.read(
                    {tp.topic for tp in self._unhealthy}
                )
            except RebalanceError as error:
                log.info("min.insync.replicas of unhealthy topics is not known: %s", error.message)
        return self._known

    def forget(self) -> None:
        """Free what was read. Nothing is read any more after this."""
        self.sizes.forget()
        self._known, self._unhealthy, self._absent = {}, {}, {}
        self._changed, self.in_flight = set(), set()
        self._planned, self._planned_topics = (), frozenset()
        self._min_insync = MinInsyncReader(self._admin, self._clock)
        self._min_insync_of_unhealthy = MinInsyncReader(self._admin, self._clock)

    def expire(self) -> None:
        """Read everything again at the next look.

        What was read before a run began says nothing about it. Only a reading of everything drops partitions.
        """
        self._everything_due_at = float("-inf")

    async def vitals(self, info: ClusterInfo) -> Vitals:
        """What the health gate looks at. The partitions are live: later readings of the observer update them."""
        await self.everything()
        return Vitals(
            partitions=self._unhealthy,
            min_insync=self._unhealthy_min_insync,
            membership_changed=self.members.change,
            live=frozenset(info.brokers),
        )

    async def look(
        self,
        planned: Collection[TopicPartition],
        moving: Collection[TopicPartition],
        info: ClusterInfo,
        others: Mapping[TopicPartition, PartitionState] | None = None,
    ) -> Look:
        """The planned partitions: those that move as they are now, the others as last read.

        ``others`` are being moved by other tools; their sizes are read too.
        """
        known = await self.everything()
        again = self.full_readings != self._looked_at
        self._looked_at = self.full_readings
        read_at = self._clock.monotonic()
        fresh, listed = await self._to_describe(moving, info)
        all_that_move = listed is None
        many = max(len(planned), len(self._unhealthy)) >= _MANY
        fresh |= await computed(cluster_readings.suspects, self._unhealthy, planned, many=many)
        read, listed = await self._read_topics_of(fresh, listed)
        self._changed |= read
        if all_that_move:
            self._described, self._described_with = self._found, frozenset(info.brokers)
            pause = min(self._described / _DESCRIBED_PER_SECOND, _DESCRIBED_SECONDS_AT_MOST)
            self._describe_all_at = self._clock.monotonic() + pause
        min_insync = await self._min_insync.read(await self._topics_of(planned))
        unknown = self._unread | self._undescribed.keys()
        absent = cluster_readings.absent_from
        unseen = await computed(absent, known, planned, many=many) if again else absent(known, fresh)
        missing = (tp for tp in unseen if tp.topic not in unknown)
        self._absent = {tp: self._absent.get(tp, 0) + 1 for tp in missing} | {
            tp: count for tp, count in self._absent.items() if not again and tp not in fresh
        }
        await self.read_sizes({**(others or {}), **{tp: known[tp] for tp in moving if tp in known}}, info)
        gone = frozenset(tp for tp, count in self._absent.items() if count >= GONE_AFTER_READINGS)
        observation = Observation(
            ClusterState(info.cluster_id, info.brokers, known, info.version),
            min_insync,
            gone,
            forbidden=self._min_insync.denied | self._undescribed,
            unread=self._unread,
        )
        changed, self._changed = self._changed | gone if gone else self._changed, set()
        return Look(observation, self._numbered(changed), frozenset(fresh), listed=listed, read_at=read_at)

    async def describe(self, tps: Collection[TopicPartition]) -> None:
        """Read the topics of these partitions by name: a reading of everything lacks those that Kafka hides."""
        read, _ = await self._read_topics_of(tps, None)
        self._changed |= read

    async def look_again(self, look: Look, tps: Collection[TopicPartition]) -> Look:
        """Read the topics of these partitions now. The partitions of the look are updated in place."""
        read, listed = await self._read_topics_of(tps, look.listed)
        return replace(look, changes=self._numbered(read), fresh=look.fresh.union(tps), listed=listed)

    async def read_min_insync(self, look: Look, topics: Collection[str]) -> Look:
        """The look with min.insync.replicas of these topics as it is now."""
        min_insync = await self._min_insync.read_again(topics)
        return replace(look, observation=replace(look.observation, min_insync=min_insync))

    def _numbered(self, changed: Collection[TopicPartition]) -> Changes:
        """The changes of one more reading. One that fails on the way has none; the next one reports what it found."""
        self._reading += 1
        return Changes(changed, self._reading - 1, self._reading)

    async def _to_describe(
        self, moving: Collection[TopicPartition], info: ClusterInfo
    ) -> tuple[set[TopicPartition], Listed | None]:
        """The partitions whose topics are described in this round, and the reassignments, if they were listed for that.

        Metadata has whole topics: for a thousand partitions in flight that may be a hundred times as many. So those
        that are still listed as they were are described every few seconds only, or when a broker comes or goes. What
        is not described in this round gets a second look before it is sent anything.
        """
        due = self._clock.monotonic() >= self._describe_all_at or self._described_with != info.brokers.keys()
        if due or self._described < _MANY_DESCRIBED:
            return set(moving), None
        listed = await self._admin.list_reassignments()
        return {tp for tp in moving if not self._is_listed(tp, listed)}, listed

    def _is_listed(self, tp: TopicPartition, listed: Listed) -> bool:
        """Whether the partition is in flight, and listed as it was read."""
        state, row = self._known.get(tp), listed.get(tp)
        if state is None or row is None or not state.in_flight:
            return False
        return (state.replicas, state.adding, state.removing) == (row.replicas, row.adding, row.removing)

    async def _read_topics_of(
        self, tps: Collection[TopicPartition], listed: Listed | None
    ) -> tuple[set[TopicPartition], Listed | None]:
        """Read the topics of the partitions; returns what reads differently now, and those that were not described.

        ``listed``: the reassignments, if no call was sent since they were listed. They are listed otherwise, and
        returned. An older listing is safe: it hides at most what another tool began since, and the adapter lists again
        before it sends, and sends nothing to what is in flight.
        """
        topics = {tp.topic for tp in tps}
        if not topics:
            return set(), listed
        listed = await self._admin.list_reassignments() if listed is None else listed
        found = await self._admin.describe_partitions(topics, listed)
        self._found = len(found)
        self._undescribed = denied_now(self._undescribed, topics, found.errors)
        self._note_unread(found.errors, topics)
        # In a thread as in ``everything``, where the partitions are many: topics are described as a whole. Nothing else
        # reads or writes what is known meanwhile: only this round does, and it waits.
        many = max(len(found), len(tps)) >= _MANY
        return await computed(self._take_in, found, tps, many=many), listed

    def _take_in(
        self, found: Answers[TopicPartition, PartitionState, str], tps: Collection[TopicPartition]
    ) -> set[TopicPartition]:
        """Update what is known by this reading of the topics of ``tps``; returns what reads differently now."""
        otherwise = cluster_readings.changed_since(found, self._known)
        if self._bound.is_exceeded_by([found[tp] for tp in otherwise], self._known):
            self.expire()  # partitions that are new, or were not asked for, are known from the next reading on
            otherwise = self._known.keys() & otherwise & set(tps)
            self._bound.check_growth([found[tp] for tp in otherwise], self._known)
        missing = set(tps) - found.keys()
        self.sizes.note_changed({tp for tp in otherwise if held_by(self._known.get(tp)) != held_by(found[tp])})
        for tp in missing:
            if tp.topic not in found.errors:
                self._known.pop(tp, None)
        self._known.update((tp, found[tp]) for tp in otherwise)
        self._note_changed(missing | otherwise)
        cluster_readings.update_unhealthy(self._unhealthy, missing | otherwise, self._known)
        return missing | otherwise

    def _note_changed(self, tps: Collection[TopicPartition]) -> None:
        known = self._known
        self.in_flight.difference_update(tps)
        self.in_flight.update(tp for tp in tps if tp in known and known[tp].in_flight)

    async def _topics_of(self, planned: Collection[TopicPartition]) -> frozenset[str]:
        """Found again only for other partitions: nobody writes to a collection of them."""
        if planned is not self._planned:
            many = len(planned) >= _MANY
            topics = await computed(lambda: frozenset([tp.topic for tp in planned]), many=many)
            self._planned, self._planned_topics = planned, topics
        return self._planned_topics

    def _note_unread(self, errors: Mapping[str, RebalanceError], asked: Collection[str]) -> None:
        self._unread.difference_update(tuple(asked))
        self._unread.update(errors)

    async def read_sizes(self, partitions: Mapping[TopicPartition, PartitionState], info: ClusterInfo) -> None:
        """Read the sizes of these partitions' replicas, if it is time (``SizeReader.read``)."""
        await self.sizes.read(partitions, info, self._known)
