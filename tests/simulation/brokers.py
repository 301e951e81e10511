"""Brokers that copy byte by byte, die and return: what the fake of the unit tests does at once, here takes its time.

Each rule is a row of docs/kafka-behaviour.md, and names the test of `tests/contract` that records it. ``newer``: the
behaviour of Kafka 4.3, otherwise that of 3.9.
"""

import asyncio
from collections import defaultdict
from dataclasses import replace

from tests.fakes.kafka_in_memory import KafkaInMemory

from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafka_rebalance.kafka.ports import AlterCode, Answers, ClusterInfo, ConfigSource, ConfigValue, LogDir, Reassignment
from kafka_rebalance.model.kafka_version import KafkaVersion
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition

MIB = 2**20
STEP_SECONDS = 0.5
STALE_SECONDS = 0.15
NETWORK = 100 * MIB
_LEVEL = {True: 30, False: 21}
MIN_INSYNC = "min.insync.replicas"


class History(dict):
    """Remembers of each key what it was before its last change, and when that was."""

    def __init__(self, loop):
        super().__init__()
        self._loop = loop
        self.before = {}

    def __setitem__(self, key, value):
        self.before[key] = (self._loop.now, self.get(key))
        super().__setitem__(key, value)

    def pop(self, key, *default):
        if key in self:
            self.before[key] = (self._loop.now, self[key])
        return super().pop(key, *default)

    def stale(self, key):
        """Whether another broker may still show what it was before."""
        changed_at, _ = self.before.get(key, (float("-inf"), None))
        return self._loop.now - changed_at < STALE_SECONDS


class SimulatedKafka(KafkaInMemory):
    """``bytes_of``: of each partition; ``held``: of each replica, as far as it is copied."""

    def __init__(self, world, brokers, *, newer, racks):
        super().__init__(brokers)
        self.world = world
        self.newer = newer
        self.brokers = {b: replace(broker, rack=racks.get(int(b))) for b, broker in self.brokers.items()}
        self.dead = {}
        self.states = History(world.loop)
        self.values = History(world.loop)
        self.bytes_of, self.held = {}, {}
        self.eligible = {}
        """The last replica that was in sync, for a partition without any replica in sync (KIP-966)."""
        self.slow = set()
        """Brokers that fetch a tenth as fast."""
        self.capacity = {}
        """The bytes of log dirs, by broker and path; absent: more than enough."""
        self.by = None
        """The client whose request is being carried out; None: somebody else's."""
        self._moves = asyncio.Event()
        self._topics = 0

    # What is read ----------------------------------------------------------------------------------------------------

    @property
    def info(self):
        level = _LEVEL[self.newer]
        return ClusterInfo("c", dict(self.brokers), KafkaVersion(level, level))

    def merged(self, state, row):
        return replace(state, replicas=row.replicas, adding=row.adding, removing=row.removing)

    async def metadata(self, topics=None):
        """A broker that may be behind (`test_reassignment.py::TestInSync`), also about a topic just created or deleted
        (`test_topics.py::TestJustMade`)."""
        found = {}
        for tp, state in self.states.items():
            if topics is not None and tp.topic not in topics:
                continue
            if self.states.stale(tp) and self.world.faults.stale():
                state = self.states.before[tp][1]
            if state is not None:
                found[tp] = replace(state, adding=(), removing=())
        return Answers(found)

    async def log_dirs(self, brokers):
        """Dead brokers are not described (`test_outage.py::TestAround`)."""
        found = {}
        for b in brokers:
            if b in self.brokers:
                sizes = {tp: int(self.held[tp, b]) for tp, state in self.states.items() if b in state.replicas}
                used = sum(sizes.values())
                found[b] = (LogDir("/data", sizes, {}, 2**40, 2**40 - used),)
        return Answers(found)

    def _read(self, key, own, unset):
        """A config read just after a write may be old (`test_configs.py::TestReadAfterWrite`)."""
        value = self.values.get(key)
        if self.values.stale(key) and self.world.faults.stale():
            value = self.values.before[key][1]
        if value is not None:
            return ConfigValue(value, own)
        if key[1] == MIN_INSYNC:
            return ConfigValue("1", ConfigSource.DEFAULT)
        if key in self.files:
            return ConfigValue(self.files[key], ConfigSource.STATIC_BROKER)
        if key[1] == "cordoned.log.dirs":
            return ConfigValue("" if self.newer else None, ConfigSource.DEFAULT)
        return ConfigValue(unset, ConfigSource.DEFAULT)

    async def topic_configs(self, topics, names):
        there = {tp.topic for tp in self.states}
        return await super().topic_configs([t for t in topics if t in there], names)

    # Topics ----------------------------------------------------------------------------------------------------------

    def make_topic(self, topic, rows, size, min_insync):
        """A new topic, with a new id."""
        self._topics += 1
        for number, row in enumerate(rows):
            self._make_partition(topic, number, row, size, f"{topic}-{self._topics}")
        self.values[topic, MIN_INSYNC] = str(min_insync)

    def _make_partition(self, topic, number, row, size, topic_id):
        tp, held = TopicPartition(topic, number), tuple(BrokerId(b) for b in row)
        isr = frozenset(b for b in held if b in self.brokers)
        leader = next((b for b in held if b in isr), None)
        self.states[tp] = PartitionState(tp, topic_id, held, isr, leader)
        self.bytes_of[tp] = size
        for b in held:
            self.held[tp, b] = size
        self._moves.set()

    def delete_topic(self, topic):
        """Its configs and reassignments go with it (`test_topics.py::TestDeleted`)."""
        for tp in [tp for tp in self.states if tp.topic == topic]:
            del self.states[tp]
            for key in [key for key in self.held if key[0] == tp]:
                del self.held[key]
        for key in [key for key in self.values if key[0] == topic]:
            self.values.pop(key)

    def add_partition(self, topic):
        """It has as many replicas as partition 0 at the moment (`test_topics.py::TestPartitionsAdded`)."""
        first = self.states[TopicPartition(topic, 0)]
        number = 1 + max(tp.partition for tp in self.states if tp.topic == topic)
        row = sorted(self.brokers, key=lambda b: (b * 7 + number * 3) % 11)[: len(first.replicas)]
        if len(row) == len(first.replicas):
            self._make_partition(topic, number, row, self.bytes_of[first.tp], first.topic_id)

    # Brokers ---------------------------------------------------------------------------------------------------------

    def die(self, broker):
        """It leaves every ISR; of the older Kafka the last member stays in it (`test_outage.py`)."""
        self.dead[broker] = self.brokers.pop(broker)
        self.silent.add(broker)
        for tp, state in list(self.states.items()):
            if broker not in state.isr:
                continue
            isr = state.isr - {broker}
            if not isr:
                self.eligible[tp] = broker
                isr = frozenset() if self.newer else state.isr
            self._set(tp, isr=isr)
        self._moves.set()

    def come_back(self, broker):
        """It has missed a little."""
        self.brokers[broker] = self.dead.pop(broker)
        self.silent.discard(broker)
        for tp, state in list(self.states.items()):
            if broker not in state.replicas or not self._serves(broker, tp):
                continue
            if self.eligible.get(tp) == broker and not state.isr - {broker}:
                del self.eligible[tp]
                self._set(tp, isr=frozenset({broker}))
            elif broker not in state.isr:
                self.held[tp, broker] = max(0, self.held[tp, broker] - self.bytes_of[tp] // 10)
            else:
                self._set(tp, isr=state.isr)
        self._moves.set()

    def _serves(self, broker, _tp):
        """Whether the broker can lead the partition, or catch up."""
        return broker in self.brokers

    def heal(self):
        """Nothing is slow any more."""
        self.slow = set()

    def _set(self, tp, **changes):
        """Change the partition; its leader is a live member of the ISR, the present one if possible."""
        state = replace(self.states[tp], **changes)
        able = [b for b in state.replicas if b in state.isr and self._serves(b, tp)]
        if state.leader not in able:
            state = replace(state, leader=able[0] if able else None)
        if state != self.states[tp]:
            self.states[tp] = state
            self.world.judge.changed(tp)
            self._moves.set()

    # Reassignments ---------------------------------------------------------------------------------------------------

    def _alter(self, tp, to):
        state = self.states.get(tp)
        code = self._accepts(tp, state, to)
        self.world.judge.ordered(self.by, tp, to, state, code)
        if code is not AlterCode.OK:
            return code
        if to is None:
            self._cancel(tp, state)
        else:
            self._begin(tp, state, tuple(BrokerId(b) for b in to))
        return code

    def _accepts(self, tp, state, to):
        """`test_reassignment.py::TestTargets`, `test_outage.py::TestOrders`; in flight only null is sent
        (`test_redirect.py::TestOurAdapter`)."""
        if state is None:
            return AlterCode.UNKNOWN_TOPIC_OR_PARTITION
        if to is None:
            if not state.in_flight:
                return AlterCode.NO_REASSIGNMENT_IN_PROGRESS
            left = set(state.replicas) - set(state.adding)
            return AlterCode.INVALID_REPLICA_ASSIGNMENT if self.newer and not left & state.isr else AlterCode.OK
        if state.in_flight:
            return AlterCode.IN_FLIGHT
        known = all(b in self.brokers or b in self.dead for b in to)
        return AlterCode.OK if known and len(set(to)) == len(to) > 0 else AlterCode.INVALID_REPLICA_ASSIGNMENT

    def _cancel(self, tp, state):
        """The target without the added replicas, then what it would have removed, by id (`test_cancel.py`)."""
        target = [b for b in state.replicas if b not in state.removing]
        left = (*(b for b in target if b not in state.adding), *sorted(state.removing))
        isr = state.isr & set(left) or (frozenset(left[:1]) if not self.newer else frozenset())
        self._drop(tp, state.adding)
        self._set(tp, replicas=left, isr=isr, adding=(), removing=())

    def _begin(self, tp, state, to):
        adding = tuple(b for b in to if b not in state.replicas)
        removing = tuple(b for b in state.replicas if b not in to)
        for b in adding:
            self.held[tp, b] = 0
        self._set(tp, replicas=(*to, *removing), adding=adding, removing=removing)
        self._complete_if_due(tp)

    def _complete_if_due(self, tp):
        """`test_outage.py::TestOrders`: the older Kafka waits for the whole target, the newer one for what is added,
        unless more is removed than added."""
        state = self.states[tp]
        target = [b for b in state.replicas if b not in state.removing]
        if state.in_flight:
            whole = not self.newer or len(state.removing) > len(state.adding)
            awaited = target if whole else state.adding
            if not set(awaited) <= state.isr or not state.isr & set(target):
                return
            self._drop(tp, state.removing)
            self._set(tp, replicas=tuple(target), isr=state.isr & set(target), adding=(), removing=())

    def _drop(self, tp, brokers):
        for b in brokers:
            self.held.pop((tp, b), None)

    def _elect(self, tp):
        state = self.states.get(tp)
        if state is None:
            return AlterCode.UNKNOWN_TOPIC_OR_PARTITION
        if state.leader == state.replicas[0]:
            return AlterCode.ELECTION_NOT_NEEDED
        if state.replicas[0] not in state.isr or not self._serves(state.replicas[0], tp):
            return AlterCode.PREFERRED_LEADER_NOT_AVAILABLE
        self.elected.append(str(tp))
        self._set(tp, leader=state.replicas[0])
        return AlterCode.OK

    async def list_reassignments(self):
        return {
            tp: Reassignment(state.replicas, state.adding, state.removing)
            for tp, state in self.states.items()
            if state.in_flight
        }

    # Configs ---------------------------------------------------------------------------------------------------------

    def _apply(self, where, operations):
        if isinstance(where, str) and not any(tp.topic == where for tp in self.states):
            return "UNKNOWN_TOPIC_OR_PART"
        before = dict(self.values)
        answer = super()._apply(where, operations)
        self.world.judge.configured(self.by, where, operations, before)
        self._moves.set()
        return answer

    # Copies ----------------------------------------------------------------------------------------------------------

    async def copy_on(self):
        """Replicas that are out of sync catch up, for as long as the world exists."""
        while True:
            if not self._copies():
                self._moves.clear()
                await self._moves.wait()
                continue
            await asyncio.sleep(STEP_SECONDS)
            self._copy(STEP_SECONDS)
            self.world.judge.look()

    def _copies(self):
        """Whether any copy is in flight."""
        return bool(self._behind())

    def _behind(self):
        return [
            (tp, state.leader, b)
            for tp, state in self.states.items()
            if state.leader is not None
            for b in state.replicas
            if b not in state.isr and self._serves(b, tp)
        ]

    def _copy(self, seconds):
        """Each side's rate is shared by its throttled replicas (`test_throttling.py::TestSides`).

        The sender throttles by its own entry of the leader's list, for every fetching broker. The fetching broker
        throttles by its entry of the follower's list.
        """
        behind = self._behind()
        shares = defaultdict(int)
        gates = {}
        for tp, leader, b in behind:
            here = [("out", leader, NETWORK), ("in", b, NETWORK / 10 if b in self.slow else NETWORK)]
            for side, broker, list_name, rate_name in (
                ("leader", leader, LEADER_LIST, LEADER_RATE),
                ("follower", b, FOLLOWER_LIST, FOLLOWER_RATE),
            ):
                rate = self.values.get((broker, rate_name), self.files.get((broker, rate_name)))
                entries = self.values.get((tp.topic, list_name), "").split(",")
                if rate is not None and (f"{tp.partition}:{broker}" in entries or "*" in entries):
                    here.append((side, broker, int(rate)))
            gates[tp, b] = here
            for side, broker, _ in here:
                shares[side, broker] += 1
        for (tp, b), here in gates.items():
            rate = min(limit / shares[side, broker] for side, broker, limit in here)
            self.held[tp, b] = min(self.bytes_of[tp], self.held[tp, b] + rate * seconds)
        for tp, _, b in behind:
            state = self.states.get(tp)
            if state is not None and (tp, b) in self.held and self.held[tp, b] >= self.bytes_of[tp]:
                self._set(tp, isr=state.isr | {b})
                self._complete_if_due(tp)
