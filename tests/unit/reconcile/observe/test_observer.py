"""How often cluster data is read, and which partitions have to be judged again."""

import pytest

from kafka_rebalance.kafka.ports import Answers, ClusterInfo, ConfigSource, ConfigValue, LogDir
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.observe.observer import (
    EVERYTHING_SECONDS,
    IDLE_LOG_DIR_SECONDS,
    LOG_DIR_SECONDS,
    Observer,
)


class SlowCluster:
    """An admin client whose answers take `seconds` on its own clock; `readings` are their start times."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.readings = []
        self.time = 1000.0

    def monotonic(self):
        return self.time

    async def describe_partitions(self):
        self.readings.append(self.time)
        self.time += self.seconds
        return Answers({})


class TestEverything:
    @pytest.mark.parametrize(
        ("took", "pause"), [(0.01, EVERYTHING_SECONDS), (0.2, EVERYTHING_SECONDS), (1, 20), (2, 30), (10, 30)]
    )
    async def test_a_slow_reading_is_repeated_less_often_but_within_half_a_minute(self, took, pause):
        """A reading that waited for a dying broker must not blind the health gate for minutes."""
        there = SlowCluster(took)
        observer = Observer(there, there)
        await observer.everything()
        there.time = 1000 + pause - 0.1
        await observer.everything()
        assert there.readings == [1000]
        there.time = 1000 + pause
        await observer.everything()
        assert there.readings == [1000, 1000 + pause]


TP, BESIDE = TopicPartition("t", 0), TopicPartition("t", 1)
INFO = ClusterInfo("c", {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2)})


def state(tp, *replicas):
    ids = replicas_of(*replicas)
    return PartitionState(tp, "", ids, frozenset(ids), ids[0])


class Cluster:
    """Returns fixed answers; its clock advances only when a test moves it."""

    def __init__(self, *states):
        self.states = {s.tp: s for s in states}
        self.time = 0.0
        self.asked, self.silent, self.grown = [], set(), 100

    def monotonic(self):
        return self.time

    async def describe_partitions(self, topics=None):
        return Answers({tp: s for tp, s in self.states.items() if topics is None or tp.topic in topics})

    async def topic_configs(self, topics, names):
        return Answers({t: {n: ConfigValue("1", ConfigSource.DEFAULT) for n in names} for t in topics})

    async def log_dirs(self, brokers):
        self.asked.append(sorted(brokers))
        dirs = {b: (LogDir("d", {TP: self.grown + b}, usable_bytes=self.grown),) for b in brokers}
        return Answers({b: found for b, found in dirs.items() if b not in self.silent})


class TestLook:
    async def test_at_first_everything_is_to_be_judged(self):
        """Nothing was read before."""
        there = Cluster(state(TP, 1), state(BESIDE, 1))
        look = await Observer(there, there).look({TP, BESIDE}, set(), INFO)
        assert look.changes.partitions == {TP, BESIDE}

    async def test_then_what_reads_otherwise(self):
        """What moves and reads as before is none; a partition that is not moving is, if its topic was read."""
        there = Cluster(state(TP, 1), state(BESIDE, 1))
        observer = Observer(there, there)
        await observer.look({TP, BESIDE}, set(), INFO)
        assert (await observer.look({TP, BESIDE}, set(), INFO)).changes.partitions == set()
        assert (await observer.look({TP, BESIDE}, {TP}, INFO)).changes.partitions == set()
        there.states[BESIDE] = state(BESIDE, 2)
        look = await observer.look({TP, BESIDE}, {TP}, INFO)
        assert (look.changes.partitions, look.fresh) == ({BESIDE}, {TP})
        there.states[TP] = state(TP, 2)
        assert (await observer.look({TP, BESIDE}, {TP}, INFO)).changes.partitions == {TP}
        del there.states[TP]
        assert (await observer.look({TP, BESIDE}, {TP}, INFO)).changes.partitions == {TP}

    async def test_what_does_not_move_is_read_every_few_seconds(self):
        """An unexpected change is detected with the next reading of everything."""
        there = Cluster(state(TP, 1), state(BESIDE, 1))
        observer = Observer(there, there)
        await observer.look({TP, BESIDE}, set(), INFO)
        there.states[BESIDE] = state(BESIDE, 2)
        assert (await observer.look({TP, BESIDE}, set(), INFO)).changes.partitions == set()
        there.time += EVERYTHING_SECONDS
        look = await observer.look({TP, BESIDE}, set(), INFO)
        assert look.changes.partitions == {BESIDE}
        assert look.observation.cluster.partitions[BESIDE].replicas == (2,)

    async def test_a_change_that_is_taken_back_is_two_changes(self):
        """The change was reported when the topic was read for another partition; its reversal is reported as well."""
        there = Cluster(state(TP, 1), state(BESIDE, 1))
        observer = Observer(there, there)
        await observer.look({TP, BESIDE}, set(), INFO)
        there.states[BESIDE] = state(BESIDE, 2)
        assert (await observer.look({TP, BESIDE}, {TP}, INFO)).changes.partitions == {BESIDE}
        there.states[BESIDE] = state(BESIDE, 1)
        there.time += EVERYTHING_SECONDS
        assert BESIDE in (await observer.look({TP, BESIDE}, set(), INFO)).changes.partitions

    async def test_a_change_beside_what_moves_is_seen_when_everything_is_read(self):
        """Both readings in one look: the second one must not hide what the first one has found."""
        there = Cluster(state(TP, 1), state(BESIDE, 1))
        observer = Observer(there, there)
        await observer.look({TP, BESIDE}, {TP}, INFO)
        there.states[BESIDE] = state(BESIDE, 2)
        there.time += EVERYTHING_SECONDS
        assert BESIDE in (await observer.look({TP, BESIDE}, {TP}, INFO)).changes.partitions

    async def test_each_reading_says_which_one_it_comes_after(self):
        """A judgement based on another reading has missed changes: those of a failed reading are lost."""
        there = Cluster(state(TP, 1))
        observer = Observer(there, there)
        first = (await observer.look({TP}, {TP}, INFO)).changes
        again = await observer.look_again({TP})
        assert (again.before, again.partitions) == (first.after, set())
        there.states = None
        with pytest.raises(AttributeError):
            await observer.look_again({TP})
        there.states = {TP: state(TP, 1)}
        assert (await observer.look_again({TP})).before != again.after

    async def test_a_partition_counts_as_deleted_after_five_readings_without_it(self):
        """One answer without the partition is no proof."""
        there = Cluster(state(TP, 1))
        observer = Observer(there, there)
        await observer.look({TP}, {TP}, INFO)
        del there.states[TP]
        for _ in range(4):
            assert not (await observer.look({TP}, {TP}, INFO)).observation.gone
        assert (await observer.look({TP}, {TP}, INFO)).observation.gone == {TP}


class TestSizes:
    COPY = PartitionState(TP, "", replicas_of(3, 1), frozenset(replicas_of(1)), BrokerId(1), replicas_of(3), ())
    INFO = ClusterInfo("c", {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3, 4)})

    @pytest.fixture
    def there(self):
        return Cluster()

    @pytest.fixture
    async def observer(self, there):
        """Every broker was asked once."""
        observer = Observer(there, there)
        await observer.read_sizes({TP: self.COPY}, self.INFO)
        assert there.asked == [[1, 2, 3, 4]]
        return observer

    async def test_only_brokers_that_copy_are_asked_every_few_seconds(self, there, observer):
        """Earlier answers of the other brokers stay; they are asked again every half minute."""
        there.time, there.grown = LOG_DIR_SECONDS - 0.1, 200
        await observer.read_sizes({TP: self.COPY}, self.INFO)
        assert len(there.asked) == 1
        there.time = LOG_DIR_SECONDS
        await observer.read_sizes({TP: self.COPY}, self.INFO)
        assert there.asked[1:] == [[1, 3]]
        assert {b: observer.replica_bytes[TP, b] for b in (1, 2, 3, 4)} == {1: 201, 2: 102, 3: 203, 4: 104}
        assert {b: disk.fullest for b, disk in observer.disks.items()} == {1: 200, 2: 100, 3: 200, 4: 100}
        there.time = IDLE_LOG_DIR_SECONDS
        await observer.read_sizes({TP: self.COPY}, self.INFO)
        assert there.asked[2:] == [[1, 2, 3, 4]]

    async def test_large_answers_are_asked_for_less_often(self, monkeypatch, there, observer):
        """By the number of replicas that the answers name, but every ten seconds."""
        monkeypatch.setattr("kafka_rebalance.reconcile.observe.observer._REPLICAS_PER_SECOND", 1)
        asked = []
        for there.time in (3.9, 4.0):
            await observer.read_sizes({TP: self.COPY}, self.INFO)
            asked.append(len(there.asked))
        monkeypatch.setattr("kafka_rebalance.reconcile.observe.observer._REPLICAS_PER_SECOND", 0.001)
        for there.time in (13.9, 14.0):
            await observer.read_sizes({TP: self.COPY}, self.INFO)
            asked.append(len(there.asked))
        assert asked == [1, 2, 2, 3]

    async def test_nobody_is_asked_where_nothing_is_copied(self, there, observer):
        """Until it is time to ask all brokers."""
        there.time = IDLE_LOG_DIR_SECONDS - 0.1
        await observer.read_sizes({TP: state(TP, 1)}, self.INFO)
        assert len(there.asked) == 1

    async def test_of_a_silent_broker_nothing_is_known(self, there, observer):
        """An old size would look like a stalled copy."""
        there.time, there.silent = LOG_DIR_SECONDS, {3}
        await observer.read_sizes({TP: self.COPY}, self.INFO)
        assert sorted(observer.replica_bytes) == [(TP, 1), (TP, 2), (TP, 4)]
        assert set(observer.disks) == {1, 2, 4}
