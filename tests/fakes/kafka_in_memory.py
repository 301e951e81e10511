"""Brokers in memory: the part of `KafkaAdmin` that the engine uses, with the recorded behaviour of real brokers."""

from dataclasses import replace

from tests.fakes.configs_in_memory import Configs

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import (
    AlterCode,
    Answers,
    AuthorizedOperations,
    ClusterInfo,
    LogDir,
    LogDirCode,
    Reassignment,
)
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of


class KafkaInMemory(Configs):
    """Partition i of a topic is on ``lists[topic][i]``, led by the first; each has ``size`` bytes.

    A copy is in sync at once, except on ``slow`` brokers: there it stays in flight. ``altered`` and ``elected`` are the
    executed requests, in order, as text and list. ``unseen`` topics are missing in a description of all topics, but not
    if they are requested by name; ``hidden`` ones we may not describe; ``failing`` ones cannot be described just now.
    ``may``: what we say is permitted.

    ``dirs``: the log dirs of each broker; ``where``: of replicas that are not in the first. A move between them is done
    at once, except while the broker is in ``crawling``: then its copy is in ``future``. ``dir_calls``: the executed
    requests. ``usable``: the free bytes of log dirs, as far as told; ``offline`` ones are not described.
    """

    def __init__(self, brokers, size=100, **lists):
        super().__init__()
        self.brokers = {BrokerId(b): Broker(BrokerId(b), host=f"kafka-{b}", port=9092) for b in brokers}
        self.size = size
        self.states = {}
        self.slow, self.unseen, self.hidden, self.failing = set(), set(), set(), set()
        self.altered, self.elected = [], []
        self.dirs_denied = None
        self.dirs = dict.fromkeys(self.brokers, ("/data",))
        self.where, self.future, self.kept, self.sizes = {}, {}, {}, {}
        self.crawling, self.usable, self.offline, self.dir_calls = set(), {}, set(), []
        self.may = frozenset({"Describe", "Alter", "DescribeConfigs", "AlterConfigs"})
        self.may_on_topics = self.may - {"Alter"}
        for topic, rows in lists.items():
            self.create(topic, rows)

    def create(self, topic, rows, topic_id="id-1"):
        for number, row in enumerate(rows):
            tp, held = TopicPartition(topic, number), replicas_of(*row)
            self.states[tp] = PartitionState(tp, f"{topic}-{topic_id}", held, frozenset(held), held[0])

    def delete(self, topic):
        self.states = {tp: state for tp, state in self.states.items() if tp.topic != topic}

    def lead(self, topic, number, leader):
        """Change the leader, as after a restart of the preferred leader."""
        tp = TopicPartition(topic, number)
        self.states[tp] = replace(self.states[tp], leader=None if leader is None else BrokerId(leader))

    def assign(self, topic, number, *held):
        """Change the replicas, as after a reassignment by another tool."""
        tp, held = TopicPartition(topic, number), replicas_of(*held)
        self.states[tp] = replace(self.states[tp], replicas=held, isr=frozenset(held), leader=held[0])

    def lists(self, topic):
        return [list(state.replicas) for tp, state in sorted(self.states.items()) if tp.topic == topic]

    def leaders(self, topic):
        return [state.leader for tp, state in sorted(self.states.items()) if tp.topic == topic]

    @property
    def flying(self):
        return {str(tp) for tp, state in self.states.items() if state.in_flight}

    @property
    def info(self):
        return ClusterInfo("c", dict(self.brokers))

    async def describe_cluster(self):
        return self.info

    async def describe_partitions(self, topics=None, listed=None):
        asked = {tp.topic for tp in self.states} - self.unseen - self.hidden if topics is None else set(topics)
        found = {tp: state for tp, state in self.states.items() if tp.topic in asked - self.hidden - self.failing}
        found = found if listed is None else {tp: _as_listed(state, listed.get(tp)) for tp, state in found.items()}
        failed = {topic: Transient("KafkaUnreachable", f"describe topic {topic}") for topic in asked & self.failing}
        return Answers(found, self._errors(asked & self.hidden) | failed)

    async def topic_ids(self, topics=None):
        found = await KafkaInMemory.describe_partitions(self, topics)
        return Answers({tp.topic: state.topic_id for tp, state in found.items()}, found.errors)

    async def list_reassignments(self):
        return {
            tp: Reassignment(state.replicas, state.adding, state.removing)
            for tp, state in self.states.items()
            if state.in_flight
        }

    async def alter_reassignments(self, orders):
        return {tp: self._alter(tp, to) for tp, to in orders.items()}

    async def elect_preferred(self, partitions):
        return {tp: self._elect(tp) for tp in partitions}

    async def authorized_operations(self, topics):
        there = {tp.topic for tp in self.states}.intersection(topics)
        of_topics = dict.fromkeys(there - self.hidden, self.may_on_topics)
        return AuthorizedOperations(self.may, of_topics, frozenset(there & self.hidden))

    async def log_dirs(self, brokers):
        if self.dirs_denied:
            return Answers({}, dict.fromkeys(brokers, self.dirs_denied))
        return Answers({b: tuple(self._log_dirs_of(b)) for b in brokers if b in self.brokers})

    async def alter_log_dirs(self, orders):
        return {key: self._alter_log_dir(key, path) for key, path in orders.items()}

    def dir_of(self, name, broker):
        """The log dir of the replica, by partition as text."""
        tp = next(tp for tp in self.states if str(tp) == name)
        return self.where.get((tp, BrokerId(broker)), self.dirs[broker][0])

    def bytes_in(self, broker):
        """The bytes in each log dir of the broker."""
        return {d.path: sum(d.replica_bytes.values()) for d in self._log_dirs_of(BrokerId(broker))}

    def copied(self):
        """All copies between log dirs have arrived, and no broker crawls any more."""
        self.crawling = set()
        self.where |= self.future
        self.future = {}

    def arrive(self):
        """All copies are in sync now, and no broker is slow any more."""
        self.slow = set()
        for tp in [tp for tp, state in self.states.items() if state.in_flight]:
            self._complete(tp)

    def _log_dirs_of(self, broker):
        mine = [tp for tp, state in self.states.items() if broker in state.replicas]
        size = {tp: self.sizes.get(tp, self.size) for tp in mine}
        for path in self.dirs[broker]:
            if (broker, path) in self.offline:
                continue
            held = {tp: size[tp] for tp in mine if self.where.get((tp, broker), self.dirs[broker][0]) == path}
            future = {tp: size[tp] // 2 for tp in mine if self.future.get((tp, broker)) == path}
            yield LogDir(path, held, future, usable_bytes=self.usable.get((broker, path), -1))

    def _unknown(self, key, path):
        """The error if the log dir or the partition does not exist."""
        tp, broker = key
        if path not in self.dirs[broker]:
            return LogDirCode.LOG_DIR_NOT_FOUND
        return None if tp in self.states else LogDirCode.UNKNOWN_TOPIC_OR_PARTITION

    def _alter_log_dir(self, key, path):
        if (error := self._unknown(key, path)) is not None:
            return error
        tp, broker = key
        if broker not in self.states[tp].replicas:
            self.kept[key] = path
            return LogDirCode.NOT_THERE
        self.dir_calls.append((str(tp), int(broker), path))
        self.future.pop(key, None)
        if path != self.where.get(key, self.dirs[broker][0]):
            (self.future if broker in self.crawling else self.where)[key] = path
        return LogDirCode.OK

    def _alter(self, tp, to):
        state = self.states.get(tp)
        if state is None:
            return AlterCode.UNKNOWN_TOPIC_OR_PARTITION
        if to is None and not state.in_flight:
            return AlterCode.NO_REASSIGNMENT_IN_PROGRESS
        if to is not None and state.in_flight:
            return AlterCode.IN_FLIGHT
        self.altered.append((str(tp), None if to is None else list(to)))
        if to is None:
            left = tuple(b for b in state.replicas if b not in state.adding)
            self.states[tp] = replace(state, replicas=left, isr=state.isr & set(left), adding=(), removing=())
            return AlterCode.OK
        adding = tuple(b for b in to if b not in state.replicas)
        removing = tuple(b for b in state.replicas if b not in to)
        self.states[tp] = replace(state, replicas=(*to, *removing), adding=adding, removing=removing)
        self.where |= {(tp, b): self.kept.pop((tp, b)) for b in adding if (tp, b) in self.kept}
        if not self.slow & set(adding):
            self._complete(tp)
        return AlterCode.OK

    def _complete(self, tp):
        state = self.states[tp]
        left = tuple(b for b in state.replicas if b not in state.removing)
        in_sync = (state.isr | set(state.adding)) & set(left)
        leader = state.leader if state.leader in left else next((b for b in left if b in in_sync), None)
        self.states[tp] = replace(state, replicas=left, isr=in_sync, leader=leader, adding=(), removing=())
        for b in state.removing:
            self.where.pop((tp, b), None)
            self.future.pop((tp, b), None)

    def _elect(self, tp):
        state = self.states[tp]
        if state.leader == state.replicas[0]:
            return AlterCode.ELECTION_NOT_NEEDED
        if state.replicas[0] not in state.isr:
            return AlterCode.PREFERRED_LEADER_NOT_AVAILABLE
        self.elected.append(str(tp))
        self.states[tp] = replace(state, leader=state.replicas[0])
        return AlterCode.OK


def _as_listed(state, row):
    """The listing says what is in flight, even if the metadata is newer."""
    if row is None:
        return replace(state, adding=(), removing=())
    return replace(state, replicas=row.replicas, adding=row.adding, removing=row.removing)
