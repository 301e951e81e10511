"""Brokers whose clients produce, whose disks fill up or are replaced, and which refuse requests for missing ACLs."""

from dataclasses import replace

from tests.simulation.brokers import MIN_INSYNC, SimulatedKafka

from kafka_rebalance.kafka.ports import AlterCode, Answers, LogDir

_LARGE = 2**40


class TroubledKafka(SimulatedKafka):
    """``hidden`` topics may not be described, ``unalterable`` ones not be reassigned.

    ``forbidden``: topics and brokers whose configs may not be described. ``denied_for_good``: topics that stay so.
    """

    PATH = "/data"

    def __init__(self, world, brokers, *, line, racks):
        super().__init__(world, brokers, line=line, racks=racks)
        self.unalterable, self.denied_for_good = set(), set()
        self._produced = {}
        """By topic, bytes per second and the time until which they are produced."""

    def at_listener(self, host, info):
        """Two listeners of the cluster, whose addresses all differ."""
        port = 9093 if host == "kafka-b" or host.endswith("-other") else 9092
        return replace(info, brokers={b: replace(broker, port=port) for b, broker in info.brokers.items()})

    # Permissions -----------------------------------------------------------------------------------------------------

    async def metadata(self, topics=None):
        """A topic without Describe is an error if it is named, otherwise absent (`test_reading.py::TestRefusals`)."""
        found = await super().metadata(topics)
        hidden = self.hidden.intersection(topics or ())
        return Answers({tp: s for tp, s in found.items() if tp.topic not in self.hidden}, self._errors(hidden))

    async def list_reassignments(self):
        return {tp: row for tp, row in (await super().list_reassignments()).items() if tp.topic not in self.hidden}

    async def topic_configs(self, topics, names):
        found = await super().topic_configs([t for t in topics if t not in self.hidden], names)
        return Answers(found, {**found.errors, **self._errors(self.hidden.intersection(topics))})

    def _alter(self, tp, to, *, redirect=False):
        if self.by is not None and tp.topic in self.unalterable | self.hidden:
            return AlterCode.NOT_AUTHORIZED
        return super()._alter(tp, to, redirect=redirect)

    def _elect(self, tp):
        if self.by is not None and tp.topic in self.unalterable | self.hidden:
            return AlterCode.NOT_AUTHORIZED
        return super()._elect(tp)

    # Disks -----------------------------------------------------------------------------------------------------------

    async def log_dirs(self, brokers):
        """Everything in them, hidden topics too: that takes Describe on the cluster only."""
        found = {}
        for b, (only,) in (await super().log_dirs(brokers)).items():
            total = self.capacity.get((b, self.PATH), _LARGE)
            used = sum(only.replica_bytes.values())
            found[b] = (LogDir(self.PATH, only.replica_bytes, {}, total, max(0, total - used)),)
        return Answers(found)

    def fill(self, broker, free):
        """Leave so much room on the disk of the broker."""
        self.capacity[broker, self.PATH] = self.used(broker) + free

    def used(self, broker):
        return sum(count for (_, b), count in self.held.items() if b == broker)

    def come_back(self, broker, *, missed=True):
        super().come_back(broker, missed=missed)
        for tp, state in list(self.states.items()):
            if state.isr == {broker} and self.held[tp, broker] < self.bytes_of[tp]:
                self.bytes_of[tp] = self.held[tp, broker]

    # Producers -------------------------------------------------------------------------------------------------------

    def produce(self, topic, rate, seconds):
        self._produced[topic] = rate, self.world.loop.now + seconds
        self._moves.set()

    def _copies(self):
        return super()._copies() or any(until > self.world.loop.now for _, until in self._produced.values())

    def _copy(self, seconds):
        """Producers wait for min.insync.replicas, and all replicas in sync have what is acknowledged."""
        for tp, state in self.states.items():
            rate, until = self._produced.get(tp.topic, (0, 0))
            enough = len(state.isr) >= int(self.values.get((tp.topic, MIN_INSYNC), "1"))
            if until > self.world.loop.now and state.leader is not None and enough:
                self.write(*tp, rate * seconds)
        super()._copy(seconds)
        if any(self._needs_what_it_adds(state) for state in self.states.values() if state.in_flight):
            self.world.scenario.worst_moment()

    def _needs_what_it_adds(self, state):
        """Whether a null now leaves fewer replicas in sync than min.insync.replicas."""
        left = state.isr - set(state.adding)
        return 0 < len(left) < min(len(state.isr), int(self.values.get((state.tp.topic, MIN_INSYNC), "1")))

    def heal(self):
        super().heal()
        for denied in (self.hidden, self.forbidden, self.unalterable):
            denied.intersection_update(self.denied_for_good)
        self.capacity.clear()
        self._produced.clear()
