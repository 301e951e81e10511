"""How often cluster data is read, and which partitions have to be judged again."""

import threading
from dataclasses import replace

import pytest

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import Answers, ClusterInfo, ConfigSource, ConfigValue, Reassignment
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.observe import cluster_readings
from kafka_rebalance.reconcile.observe import observer as observer_module
from kafka_rebalance.reconcile.observe.known_bound import KnownBound
from kafka_rebalance.reconcile.observe.min_insync_reader import MIN_INSYNC_SECONDS
from kafka_rebalance.reconcile.observe.observer import EVERYTHING_SECONDS, Observer


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


TP, BESIDE, ELSEWHERE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
INFO = ClusterInfo("c", {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2)})


def state(tp, *replicas):
    ids = replicas_of(*replicas)
    return PartitionState(tp, "", ids, frozenset(ids), ids[0])


class Cluster:
    """Returns fixed answers; its clock advances only when a test moves it."""

    def __init__(self, *states):
        self.states = {s.tp: s for s in states}
        self.time = 0.0
        self.described, self.denied, self.listings, self.configs = [], False, 0, []

    def monotonic(self):
        return self.time

    async def look(self, *moving, info=INFO):
        self.described.clear()
        return await self.observer.look({TP, ELSEWHERE}, set(moving or (TP, ELSEWHERE)), info)

    async def list_reassignments(self):
        self.listings += 1
        flying = [state for state in self.states.values() if state.in_flight]
        return {state.tp: Reassignment(state.replicas, state.adding, state.removing) for state in flying}

    async def describe_partitions(self, topics=None, listed=None):
        self.described.append((topics, listed))
        return Answers({tp: s for tp, s in self.states.items() if topics is None or tp.topic in topics})

    async def topic_configs(self, topics, names):
        if self.denied:
            raise Transient("KafkaUnreachable", "no answer")
        self.configs.append(set(topics))
        return Answers({t: {n: ConfigValue("1", ConfigSource.DEFAULT) for n in names} for t in topics})

    async def log_dirs(self, brokers):
        return Answers({})


def copying(tp, *replicas):
    return replace(state(tp, *replicas), adding=replicas_of(replicas[-1]), isr=frozenset(replicas_of(*replicas[:-1])))


class TestManyInFlight:
    """Metadata describes whole topics: for a thousand partitions in flight, a hundred times as many."""

    @pytest.fixture
    async def there(self, monkeypatch):
        monkeypatch.setattr(observer_module, "_MANY_DESCRIBED", 2)
        monkeypatch.setattr(observer_module, "_DESCRIBED_PER_SECOND", 1)
        there = Cluster(copying(TP, 1, 2), copying(ELSEWHERE, 1, 2))
        there.observer = Observer(there, there)
        await there.look()
        return there

    async def test_unchanged_reassignments_are_not_described(self, there):
        """Its lists are known from the listing, and its ISR makes no difference before the listing has changed."""
        look = await there.look()
        assert (there.described, look.fresh, look.changes.partitions) == ([], set(), set())

    async def test_completed_reassignments_are(self, there):
        """With the listing that said so: it is not listed twice."""
        there.states[TP] = state(TP, 2)
        look = await there.look()
        assert there.described == [({"t"}, {ELSEWHERE: Reassignment(*replicas_lists(there.states[ELSEWHERE]))})]
        assert (look.fresh, look.changes.partitions) == ({TP}, {TP})

    async def test_changed_reassignments_are(self, there):
        """Another tool has cancelled it and begun something else."""
        there.states[TP] = copying(TP, 1, 3)
        assert (await there.look()).fresh == {TP}

    async def test_partitions_that_are_not_in_flight_are(self, there):
        """It waits for its next step, or for an election."""
        there.states[BESIDE] = state(BESIDE, 1)
        there.states[TP] = state(TP, 2)
        await there.look()
        assert (await there.look(TP, ELSEWHERE)).fresh == {TP}

    async def test_everything_that_moves_every_few_seconds(self, there):
        """By then a replica may have left the ISR."""
        there.time += 3
        assert (await there.look()).fresh == {TP, ELSEWHERE}

    async def test_everything_that_moves_when_a_broker_has_gone(self, there):
        """It may have led some of it."""
        left = replace(INFO, brokers={BrokerId(1): Broker(BrokerId(1))})
        assert (await there.look(info=left)).fresh == {TP, ELSEWHERE}

    async def test_a_few_in_each_round(self, there, monkeypatch):
        """The cost is small, and progress is seen at once."""
        monkeypatch.setattr(observer_module, "_MANY_DESCRIBED", 3)
        assert (await there.look()).fresh == {TP, ELSEWHERE}


class TestManyDescribed:
    @pytest.mark.parametrize(("many", "in_threads"), [(2, True), (3, False)])
    async def test_a_thread_compares_them_and_takes_them_in(self, monkeypatch, many, in_threads):
        """A server may show all partitions otherwise in each reading, or none of those that it is asked for."""
        threads = set()
        for owner, name in (
            (cluster_readings, "changed_since"),
            (cluster_readings, "update_unhealthy"),
            (KnownBound, "is_exceeded_by"),
            (Observer, "_note_changed"),
        ):
            call = getattr(owner, name)
            monkeypatch.setattr(owner, name, noting(threads, call))
        monkeypatch.setattr(observer_module, "_MANY", many)
        there = Cluster(state(TP, 1, 2), state(BESIDE, 1, 2))
        there.observer = Observer(there, there)
        look = await there.look(TP, BESIDE)
        for changed in ({TP: state(TP, 2, 1), BESIDE: state(BESIDE, 2)}, {}):
            there.states = changed
            seen = await there.observer.look_again(look, {TP, BESIDE})
            assert (seen.changes.partitions, there.observer.known()) == ({TP, BESIDE}, changed)
        assert (threading.main_thread() not in threads) is in_threads


def noting(threads, call):
    def called(*args):
        threads.add(threading.current_thread())
        return call(*args)

    return called


def replicas_lists(state):
    return state.replicas, state.adding, state.removing


class TestRecentOnDisks:
    """The partitions whose sizes on disk may be outdated. Each round looks at all of them."""

    async def test_moved_partitions(self):
        """The copy has completed since the sizes were read."""
        there = Cluster(copying(TP, 1, 2))
        observer = Observer(there, there)
        await observer.look({TP}, {TP}, INFO)
        there.states[TP] = state(TP, 1, 2)
        await observer.look({TP}, {TP}, INFO)
        assert set(observer.on_disks.recent) == {TP}

    async def test_not_partitions_in_another_order(self):
        """A large run begins with thousands of calls that copy nothing."""
        there = Cluster(state(TP, 1, 2))
        observer = Observer(there, there)
        await observer.look({TP}, {TP}, INFO)
        there.states[TP] = state(TP, 2, 1)
        assert (await observer.look({TP}, {TP}, INFO)).changes.partitions == {TP}
        assert set(observer.on_disks.recent) == set()

    async def test_not_partitions_that_are_gone(self):
        """A server may show others all the time, and never answer for the log dirs."""
        there = Cluster(state(TP, 1))
        observer = Observer(there, there)
        await observer.everything()
        for number in range(5):
            there.states = {tp: state(tp, 1) for tp in (TP, TopicPartition(f"x{number}", 0))}
            there.time += EVERYTHING_SECONDS
            await observer.everything()
        assert set(observer.on_disks.recent) == {TopicPartition("x4", 0)}


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

    async def test_a_look_that_fails_loses_nothing(self):
        """What it had read is among the changes of the next one: otherwise every partition would be judged again."""
        there = Cluster(state(TP, 1), state(BESIDE, 1))
        observer = Observer(there, there)
        first = await observer.look({TP, BESIDE}, set(), INFO)
        there.states[BESIDE] = state(BESIDE, 2)
        there.time += MIN_INSYNC_SECONDS + 1
        there.denied = True
        with pytest.raises(Transient):
            await observer.look({TP, BESIDE}, {TP}, INFO)
        there.denied = False
        look = await observer.look({TP, BESIDE}, set(), INFO)
        assert (look.changes.partitions, look.changes.before) == ({BESIDE}, first.changes.after)

    async def test_looks_that_fail_for_long_keep_no_changes(self, monkeypatch):
        """A server may show other partitions all the time and never answer one kind of call. All is judged again."""
        monkeypatch.setattr(observer_module, "_MANY_DESCRIBED", 10)
        there = Cluster(state(TP, 1))
        observer = Observer(there, there)
        first = await observer.look({TP}, set(), INFO)
        there.denied = True
        for number in range(30):
            there.states = {tp: state(tp, 1) for tp in (TP, TopicPartition(f"x{number}", 0))}
            there.time += MIN_INSYNC_SECONDS + 1
            with pytest.raises(Transient):
                await observer.look({TP}, set(), INFO)
            assert len(observer._changed) <= 14
        there.denied = False
        look = await observer.look({TP}, set(), INFO)
        assert first.changes.after not in {look.changes.before, look.changes.after}

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
        """A judgement based on another reading has missed changes. A reading that fails is none."""
        there = Cluster(state(TP, 1))
        observer = Observer(there, there)
        first = await observer.look({TP}, {TP}, INFO)
        again = await observer.look_again(first, {TP})
        assert (again.changes.before, again.changes.partitions) == (first.changes.after, set())
        there.states = None
        with pytest.raises(AttributeError):
            await observer.look_again(again, {TP})
        there.states = {TP: state(TP, 1)}
        assert (await observer.look_again(again, {TP})).changes.before == again.changes.after

    async def test_readings_of_a_round_share_one_listing_until_a_call_is_sent(self):
        """Nothing else tells that a reassignment of ours has ended, or was cancelled."""
        there = Cluster(state(TP, 1), state(ELSEWHERE, 1))
        observer = Observer(there, there)
        look = await observer.look({TP, ELSEWHERE}, {TP}, INFO)
        again = await observer.look_again(look, {ELSEWHERE})
        assert there.listings == 1
        assert again.fresh == {TP, ELSEWHERE}
        there.states[TP] = copying(TP, 1, 2)
        after_a_call = await observer.look_again(replace(again, listed=None), {TP})
        assert there.listings == 2
        assert after_a_call.listed.keys() == {TP}
        await observer.look({TP, ELSEWHERE}, {TP}, INFO)
        assert there.listings == 3

    async def test_a_partition_counts_as_deleted_after_five_readings_without_it(self):
        """One answer without the partition is no proof."""
        there = Cluster(state(TP, 1))
        observer = Observer(there, there)
        await observer.look({TP}, {TP}, INFO)
        del there.states[TP]
        for _ in range(4):
            assert not (await observer.look({TP}, {TP}, INFO)).observation.gone
        assert (await observer.look({TP}, {TP}, INFO)).observation.gone == {TP}


class TestUnhealthy:
    """The health gate checks the last reading of a partition, not the last reading of everything."""

    async def test_partitions_that_were_read_again(self):
        """A broker with outdated metadata shows the new replica of an ended step as out of sync."""
        behind = replace(state(TP, 1, 2), isr=frozenset({BrokerId(1)}))
        there = Cluster(behind, state(ELSEWHERE, 1, 2))
        observer = Observer(there, there)
        vitals = await observer.vitals(INFO)
        assert vitals.partitions.keys() == {TP}
        there.states[TP] = state(TP, 1, 2)
        await observer.look({TP}, {TP}, INFO)
        assert not vitals.partitions
        assert not (await observer.vitals(INFO)).partitions

    async def test_planned_partitions_are_read_again(self):
        """Even if they do not move any more, in the same request as the partitions that move."""
        behind = replace(state(TP, 1, 2), isr=frozenset({BrokerId(1)}))
        there = Cluster(behind, state(BESIDE, 1, 2), state(ELSEWHERE, 1, 2))
        observer = Observer(there, there)
        vitals = await observer.vitals(INFO)
        there.states[TP], before = state(TP, 1, 2), len(there.described)
        look = await observer.look({TP, ELSEWHERE}, {ELSEWHERE}, INFO)
        assert TP in look.fresh
        assert not vitals.partitions
        assert len(there.described) == before + 1

    async def test_unplanned_partitions_and_many_at_once_are_not(self):
        """They are not the result of a step that has just ended; the next reading of everything comes soon."""
        lacking = [replace(state(TopicPartition("t", n), 1, 2), isr=frozenset({BrokerId(1)})) for n in range(200)]
        there = Cluster(*lacking, state(ELSEWHERE, 1, 2))
        observer = Observer(there, there)
        await observer.vitals(INFO)
        assert not (await observer.look({s.tp for s in lacking}, (), INFO)).fresh
        assert not (await observer.look({ELSEWHERE}, (), INFO)).fresh

    async def test_partitions_that_are_still_unhealthy(self):
        """The gate gets the last reading."""
        lacking = replace(state(TP, 1, 2), isr=frozenset({BrokerId(1)}))
        there = Cluster(lacking)
        observer = Observer(there, there)
        vitals = await observer.vitals(INFO)
        there.states[TP] = now = replace(lacking, isr=frozenset({BrokerId(2)}), leader=BrokerId(2))
        await observer.look({TP}, {TP}, INFO)
        assert vitals.partitions == {TP: now}

    async def test_their_configs_are_not_read_again_because_others_are_planned(self):
        """Of both, only the topics that were asked for last are remembered."""
        there = Cluster(state(TP, 1, 2), replace(state(ELSEWHERE, 1, 2), isr=frozenset()))
        observer = Observer(there, there)
        for _ in range(3):
            await observer.look({TP}, (), INFO)
            there.time += EVERYTHING_SECONDS
        assert there.configs == [{"u"}, {"t"}]
