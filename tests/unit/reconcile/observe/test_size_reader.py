"""How often the log dirs of which brokers are read, and what is kept of the answers."""

import threading

import pytest

from kafka_rebalance.kafka.ports import Answers, ClusterInfo, LogDir
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.observe.permission_probe import PermissionProbe
from kafka_rebalance.reconcile.observe.size_reader import IDLE_LOG_DIR_SECONDS, LOG_DIR_SECONDS, SizeReader

TP = TopicPartition("t", 0)


class LogDirs:
    """Returns fixed answers; its clock advances only when a test moves it."""

    def __init__(self):
        self.time = 0.0
        self.asked, self.silent, self.grown = [], set(), 100

    def monotonic(self):
        return self.time

    async def describe_partitions(self, topics):
        return Answers({})

    async def log_dirs(self, brokers):
        self.asked.append(sorted(brokers))
        dirs = {b: (LogDir("d", {TP: self.grown + b}, usable_bytes=self.grown),) for b in brokers}
        return Answers({b: found for b, found in dirs.items() if b not in self.silent})


class TestRead:
    COPY = PartitionState(TP, "", replicas_of(3, 1), frozenset(replicas_of(1)), BrokerId(1), replicas_of(3), ())
    LED = PartitionState(TP, "", replicas_of(1), frozenset(replicas_of(1)), BrokerId(1))
    INFO = ClusterInfo("c", {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3, 4)})

    @pytest.fixture
    def there(self):
        return LogDirs()

    @pytest.fixture
    async def reader(self, there):
        """Every broker was asked once."""
        reader = SizeReader(there, there, PermissionProbe(there, there))
        await reader.read({TP: self.COPY}, self.INFO, {})
        assert there.asked == [[1, 2, 3, 4]]
        return reader

    async def test_only_brokers_that_copy_are_asked_every_few_seconds(self, there, reader):
        """Earlier answers of the other brokers stay; they are asked again every half minute."""
        there.time, there.grown = LOG_DIR_SECONDS - 0.1, 200
        await reader.read({TP: self.COPY}, self.INFO, {})
        assert len(there.asked) == 1
        there.time = LOG_DIR_SECONDS
        await reader.read({TP: self.COPY}, self.INFO, {})
        assert there.asked[1:] == [[1, 3]]
        assert {b: reader.replica_bytes[TP, b] for b in (1, 2, 3, 4)} == {1: 201, 2: 102, 3: 203, 4: 104}
        assert {b: disk.fullest for b, disk in reader.disks.items()} == {1: 200, 2: 100, 3: 200, 4: 100}
        there.time = IDLE_LOG_DIR_SECONDS
        await reader.read({TP: self.COPY}, self.INFO, {})
        assert there.asked[2:] == [[1, 2, 3, 4]]

    @pytest.mark.parametrize(("many", "in_threads"), [(2, True), (3, False)])
    async def test_rates_are_computed_in_a_thread(self, monkeypatch, there, reader, many, in_threads):
        """Of 100,000 copies, which a server may show, they take half a second. Of a few, a thread would take longer."""
        monkeypatch.setattr("kafka_rebalance.reconcile.observe.size_reader._MANY", many)
        threads, thread = [], threading.current_thread
        for name in ("_read_produce_rates", "_read_traffic"):
            monkeypatch.setattr(reader, name, lambda *_: threads.append(thread()))
        there.time = LOG_DIR_SECONDS
        await reader.read({TP: self.COPY}, self.INFO, {})
        assert [one is not threading.main_thread() for one in threads] == [in_threads, in_threads]

    async def test_large_answers_are_asked_for_less_often(self, monkeypatch, there, reader):
        """By the number of replicas that the answers name, but every ten seconds."""
        monkeypatch.setattr("kafka_rebalance.reconcile.observe.size_reader._REPLICAS_PER_SECOND", 1)
        asked = []
        for there.time in (3.9, 4.0):
            await reader.read({TP: self.COPY}, self.INFO, {})
            asked.append(len(there.asked))
        monkeypatch.setattr("kafka_rebalance.reconcile.observe.size_reader._REPLICAS_PER_SECOND", 0.001)
        for there.time in (13.9, 14.0):
            await reader.read({TP: self.COPY}, self.INFO, {})
            asked.append(len(there.asked))
        assert asked == [1, 2, 2, 3]

    async def test_nobody_is_asked_where_nothing_is_copied(self, there, reader):
        """Until it is time to ask all brokers."""
        there.time = IDLE_LOG_DIR_SECONDS - 0.1
        await reader.read({TP: self.LED}, self.INFO, {})
        assert len(there.asked) == 1

    async def test_of_a_silent_broker_nothing_is_known(self, there, reader):
        """An old size would look like a stalled copy."""
        there.time, there.silent = LOG_DIR_SECONDS, {3}
        await reader.read({TP: self.COPY}, self.INFO, {})
        assert sorted(reader.replica_bytes) == [(TP, 1), (TP, 2), (TP, 4)]
        assert set(reader.disks) == {1, 2, 4}

    async def test_brokers_that_are_gone(self, there, reader):
        """One that is away for a moment keeps its sizes. A server may show others all the time."""
        for number in range(1, 5):
            there.time = number * IDLE_LOG_DIR_SECONDS
            brokers = {BrokerId(b): Broker(BrokerId(b)) for b in (number * 10, number * 10 + 1)}
            await reader.read({TP: self.COPY}, ClusterInfo("c", brokers), {})
        assert reader.replica_bytes.brokers == set(reader.disks) == reader._incomplete.keys() == {30, 31, 40, 41}


class TestForget:
    """A collection that an ended engine keeps may have millions of entries."""

    async def test_nothing_read_is_kept(self):
        there = LogDirs()
        reader = SizeReader(there, there, PermissionProbe(there, there))
        await reader.read({TP: TestRead.COPY}, TestRead.INFO, {})
        reader.note_changed({TP})
        assert (len(reader.replica_bytes), len(reader.disks), reader.reading(()).recent) == (4, 4, {TP})
        reader.forget()
        assert (len(reader.replica_bytes), len(reader.disks), reader.reading(()).recent) == (0, 0, set())
