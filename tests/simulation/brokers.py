"""Brokers that copy byte by byte, die and return: what the fake of the unit tests does at once, here takes its time.

Each rule is a row of docs/kafka-behaviour.md, and names the test of `tests/contract` that records it. Most of these
tests run against these brokers as well (`test_recordings.py`).
"""

import asyncio
from collections import defaultdict
from dataclasses import replace

from tests.contract.differences import REFUSES_LONG_VALUES
from tests.fakes.configs_in_memory import TOO_LONG
from tests.simulation.config_rules import CORDONED, is_hidden, refusal
from tests.simulation.controller import SimulatedController

from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafka_rebalance.kafka.ports import Answers, ConfigSource, ConfigValue, LogDir, OffsetRange
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition

MIB = 2**20
STEP_SECONDS = 0.5
STALE_SECONDS = 0.15
NETWORK = 100 * MIB
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


class SimulatedKafka(SimulatedController):
    """``bytes_of``: of each partition."""

    def __init__(self, world, brokers, *, line, racks):
        super().__init__(world, brokers, line=line, racks=racks)
        self.states = History(world.loop)
        self.values = History(world.loop)
        self.bytes_of = {}
        self.eligible = {}
        """The last replica that was in sync, for a partition without any replica in sync (KIP-966)."""
        self.slow = set()
        """Brokers that fetch a tenth as fast."""
        self.configured_at = {}
        """When the configs of each broker and topic were last changed."""
        self.capacity = {}
        """The bytes of log dirs, by broker and path; absent: more than enough."""
        self.defaults = {}
        """Dynamic configs of all brokers, by name."""
        self.by = None
        """The client whose request is being carried out; None: somebody else's."""
        self._moves = asyncio.Event()
        self._topics = 0

    # What is read ----------------------------------------------------------------------------------------------------

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
            return ConfigValue(None if is_hidden(key[1], self.line) else value, own)
        if key[1] == MIN_INSYNC:
            return ConfigValue("1", ConfigSource.DEFAULT)
        if own is ConfigSource.DYNAMIC_BROKER and key[1] in self.defaults:
            return ConfigValue(self.defaults[key[1]], ConfigSource.DYNAMIC_DEFAULT_BROKER)
        if key in self.files:
            return ConfigValue(self.files[key], ConfigSource.STATIC_BROKER)
        if key[1] == CORDONED:
            return ConfigValue("" if self.has_cordons else None, ConfigSource.DEFAULT)
        return ConfigValue(unset, ConfigSource.DEFAULT)

    async def topic_configs(self, topics, names):
        there = {tp.topic for tp in self.states}
        return await super().topic_configs([t for t in topics if t in there], names)

    async def offsets(self, partitions):
        """Only those with a leader (`test_outage.py::TestAround`); a record is a byte."""
        led = [tp for tp in partitions if tp in self.states and self.states[tp].leader is not None]
        return {tp: OffsetRange(0, int(self.bytes_of[tp])) for tp in led}

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
        if self.world.loop.now > 0:
            self.world.judge.statuses.made[tp] = self.world.loop.now
        self.bytes_of[tp] = size
        for b in held:
            self.held[tp, b] = size
        self._moves.set()

    def delete_topic(self, topic):
        """Its configs and reassignments go with it (`test_topics.py::TestDeleted`)."""
        self.world.judge.statuses.topics_deleted = True
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
        row = self._placed(number, len(first.replicas))
        if len(row) == len(first.replicas):
            self._make_partition(topic, number, row, self.bytes_of[first.tp], first.topic_id)

    def _placed(self, number, factor):
        """Kafka places nothing new on a cordoned broker (`test_cordon.py::TestCordoned`)."""
        able = [b for b in self.brokers if not (self.has_cordons and self.values.get((b, CORDONED)))]
        return sorted(able, key=lambda b: (b * 7 + number * 3) % 11)[:factor]

    def placement(self, count, factor):
        """The replicas of a new topic; None if there are too few brokers for them."""
        rows = [self._placed(number, factor) for number in range(count)]
        return rows if all(len(row) == factor for row in rows) else None

    def write(self, topic, number, count):
        """A producer writes this many bytes, which all replicas in sync have."""
        tp = TopicPartition(topic, number)
        self.bytes_of[tp] += count
        for b in self.states[tp].isr:
            self.held[tp, b] += count

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
                isr = frozenset() if self.keeps_eligible_leaders else state.isr
            self._set(tp, isr=isr)
        self._moves.set()

    def come_back(self, broker, *, missed=True):
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
                self.held[tp, broker] = max(0, self.held[tp, broker] - (self.bytes_of[tp] // 10 if missed else 0))
            else:
                self._set(tp, isr=state.isr)
        self._moves.set()

    def wipe(self, broker):
        """A dead broker is replaced by one without data (`test_replaced_broker.py`)."""
        for tp, b in self.held:
            if b == broker:
                self.held[tp, b] = 0

    def _serves(self, broker, _tp):
        """Whether the broker can lead the partition, or catch up."""
        return broker in self.brokers

    def heal(self):
        """Nothing is slow any more."""
        self.slow = set()

    # Configs ---------------------------------------------------------------------------------------------------------

    def _apply(self, where, operations):
        if isinstance(where, str) and not any(tp.topic == where for tp in self.states):
            return "UNKNOWN_TOPIC_OR_PART"
        before = dict(self.values)
        self.configured_at[where] = self.world.loop.now
        paths = self.dirs.get(where, ())
        refused = next(filter(None, (refusal(change, self.line, paths) for change in operations)), None)
        answer = refused or super()._apply(where, operations)
        if answer is not None and TOO_LONG in answer and self.line < REFUSES_LONG_VALUES:
            answer = self._resign()
        self.world.judge.configured(self.by, where, operations, before)
        self._moves.set()
        return answer

    async def alter_topic_configs(self, changes):
        """The controller resigns if the lists are too long together (`test_long_values.py::TestManyValues`)."""
        answers = await super().alter_topic_configs(changes)
        if set(answers.values()) == {"UNKNOWN"}:
            self._resign()
        return answers

    def _resign(self):
        """Another controller, or the same, is elected with the next epoch."""
        self.controller_epoch += 1
        return "UNKNOWN"

    def _effective(self, broker, name):
        """The most specific value (`test_throttling.py::TestSources`)."""
        return self.values.get((broker, name), self.defaults.get(name, self.files.get((broker, name))))

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
                rate = self._effective(broker, rate_name)
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
