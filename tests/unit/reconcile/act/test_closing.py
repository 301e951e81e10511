"""When a broker that is decommissioned counts as empty, and what is measured at the end."""

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.found_by_rounds import recorded
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome, ResourceBalance
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.closing import Closing
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.state import late_matches
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores, loaded_run_of


class Closed:
    """A run that has moved topic t away from broker 4, which may hold replicas of topic u."""

    def __init__(self):
        self.kafka, self.clock = KafkaInMemory((1, 4), t=[[1]], u=[[1]]), StoppedClock()
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "finalizers": [FINALIZER]}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "topics": {"include": ["t"]}}
        self.rebalance = Rebalance.of({"metadata": metadata, "spec": {**spec, "brokers": {"decommission": [4]}}})
        moved = PlannedPartition(TopicPartition("t", 0), replicas_of(4), replicas_of(1))
        plan = Plan((moved,), Certificate(1, optimal=True))
        run = Run("u-1", "kafka", "r", "c", "run", self.rebalance.desired.planning_hash, plan.hash, NOON)
        recorded(self.rebalance, run=run, was_read=True, loaded_run=loaded_run_of(run, plan, "ref", {}))
        self.closing = Closing(self.kafka, Lifecycle(None, None, self.clock), self.clock, None, lambda: None, None)

    async def empty(self, *, seconds=0):
        """Whether broker 4 is reported as empty this much later; None: it is not known yet."""
        self.clock.at += timedelta(seconds=seconds)
        self.closing.begin_round([self.rebalance])
        drain = (await self.closing.finish(self.rebalance, self.kafka.info)).drain
        return drain and drain.empty


async def test_everything_is_read_again_while_a_cordon_is_waited_for():
    """After a restart both waits end in the same round: a late call that was carried out meanwhile has to be seen."""
    closed, readings = Closed(), []
    run = replace(closed.rebalance.record.run, cordoned=(BrokerId(4),), started_at=NOON, undo=True)
    recorded(closed.rebalance, run=run)
    closed.rebalance.memory = replace(closed.rebalance.memory, unanswered_at=closed.clock.monotonic())
    closed.closing._read_again = lambda: readings.append(closed.clock.at)
    for _ in range(3):
        assert await closed.empty(seconds=3) is None
    assert len(readings) == 3
    assert closed.rebalance.record.run.open


class TestDrained:
    async def test_two_readings_some_time_apart(self):
        """One reading proves nothing: another tool may be about to place a replica there."""
        closed = Closed()
        assert [await closed.empty(), await closed.empty(seconds=1), await closed.empty(seconds=1)] == [
            None,
            None,
            True,
        ]

    async def test_the_two_readings_follow_each_other(self):
        """A reading that finds a replica in between starts the proof again."""
        closed = Closed()
        assert await closed.empty() is None
        closed.kafka.assign("u", 0, 4)
        assert await closed.empty(seconds=3) is False
        closed.kafka.assign("u", 0, 1)
        assert await closed.empty(seconds=3) is None
        assert await closed.empty(seconds=3) is True

    async def test_a_broker_that_is_not_empty_stays_cordoned(self):
        """Topics that are not selected are left there. The order to empty it stands, and the message says so."""
        closed = Closed()
        closed.kafka.assign("u", 0, 4)
        record = closed.rebalance.record
        recorded(closed.rebalance, run=replace(record.run, cordoned=(BrokerId(4),)), loaded_run=record.loaded_run)
        closed.closing.begin_round([closed.rebalance])
        drain = (await closed.closing.finish(closed.rebalance, closed.kafka.info)).drain
        assert drain.message == (
            "brokers 4 still hold replicas of 1 partitions: u-0; 4 stay cordoned, nothing new is placed there"
        )


@pytest.fixture
def busy(monkeypatch):
    """The threads that match topics are free when this is set. A round waits for a moment only."""
    monkeypatch.setattr(late_matches, "_ROUND_SECONDS", 0.01)
    free, match = threading.Event(), TopicFilter.select
    monkeypatch.setattr(TopicFilter, "select", lambda *arguments: (free.wait(60), match(*arguments))[1])
    yield free
    free.set()


async def ends(closing):
    """Wait until all matches have ended."""
    async with asyncio.timeout(60):
        await asyncio.wait([match.task for match in closing._matches._matches.values()])


class TestMatchedLate:
    """The threads are busy with the specs of other namespaces. No round waits for more than a moment."""

    async def test_a_later_round_closes(self, busy):
        closed = Closed()
        closed.kafka.assign("u", 0, 4)
        async with asyncio.timeout(60):
            assert [await closed.empty(), await closed.empty(seconds=3)] == [None, None]
        busy.set()
        await ends(closed.closing)
        assert await closed.empty() is False

    async def test_what_arrives_meanwhile_is_seen(self, busy):
        """The names of topics were matched earlier. A new replica of a selected topic still prevents the end."""
        closed = Closed()
        closed.kafka.assign("u", 0, 4)
        assert await closed.empty() is None
        new = TopicPartition("t", 1)
        closed.kafka.states[new] = replace(closed.kafka.states[TopicPartition("t", 0)], tp=new)
        closed.kafka.assign("t", 1, 4)
        busy.set()
        await ends(closed.closing)
        assert await closed.empty() is None
        await ends(closed.closing)
        closed.closing.begin_round([closed.rebalance])
        found = await closed.closing.finish(closed.rebalance, closed.kafka.info)
        assert (found.drain, found.replanning.reason) == (None, "NotDrained")

    async def test_the_disk_peak(self, busy):
        balanced = Balanced()
        async with asyncio.timeout(60):
            assert [await balanced.ended(), await balanced.ended()] == [None, None]
        busy.set()
        await ends(balanced.closing)
        assert (await balanced.ended()).disk_peak == 120

    async def test_one_that_is_closed_no_more(self, busy):
        """Its match is cancelled and forgotten."""
        closed = Closed()
        closed.kafka.assign("u", 0, 4)
        assert await closed.empty() is None
        (match,) = closed.closing._matches._matches.values()
        closed.closing.begin_round([])
        await asyncio.wait([match.task])
        assert (match.task.cancelled(), closed.closing._matches._matches) == (True, {})


class Balanced:
    """A run that has evened disks: brokers 1 and 2 hold three and two replicas of topic t, of 100 bytes each."""

    def __init__(self, turn=None, *, started=True):
        self.kafka, self.clock = KafkaInMemory((1, 2), t=[[1], [1], [1], [2], [2]]), StoppedClock()
        kube = KubeInMemory()
        self.stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "finalizers": [FINALIZER]}
        self.rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
        disk = ResourceBalance(LoadResource.DISK, 30, 160.0, 120.0, 1, 0, (250, 250), (400, 100), (300, 200))
        moved = PlannedPartition(TopicPartition("t", 4), replicas_of(1), replicas_of(2))
        load = LoadOutcome((disk,), 100, 100, replicas_of(1, 2))
        plan = Plan((moved,), Certificate(1, optimal=True), load=load)
        run = Run("u-1", "kafka", "r", "c", "run", self.rebalance.desired.planning_hash, plan.hash, NOON)
        run = replace(run, started_at=NOON if started else None)
        recorded(self.rebalance, run=run, was_read=True, loaded_run=loaded_run_of(run, plan, "ref", {}))
        lifecycle = Lifecycle(None, self.stores, self.clock)
        self.closing = Closing(self.kafka, lifecycle, self.clock, None, lambda: None, turn)

    async def ended(self):
        """The stored run, as a restarted operator reads it."""
        self.closing.begin_round([self.rebalance])
        await self.closing.finish(self.rebalance, self.kafka.info)
        return await self.stores.runs.load("u-1")


class TestMeasured:
    async def test_how_even_disks_are_is_stored_with_the_end_of_the_run(self):
        """300 of 500 bytes on one of two brokers are 120 % of its share."""
        ended = await Balanced().ended()
        assert (ended.outcome, ended.disk_peak) == (RunOutcome.SUCCEEDED, 120)

    async def test_topics_are_matched_in_the_turn_of_an_inline_connection(self):
        """Each match may take seconds in the thread of all inline connections."""
        turns = []

        @asynccontextmanager
        async def turn():
            turns.append("begins")
            yield
            turns.append("ends")

        assert (await Balanced(turn).ended()).disk_peak == 120
        assert turns == ["begins", "ends"]

    async def test_a_run_that_moved_nothing_reads_nothing(self):
        balanced = Balanced(started=False)
        balanced.kafka.log_dirs = None
        ended = await balanced.ended()
        assert (ended.outcome, ended.disk_peak) == (RunOutcome.SUCCEEDED, None)

    async def test_brokers_that_do_not_answer_hold_nothing_up(self):
        """The answer may be missing for one of them, or for the whole call."""
        balanced = Balanced()
        balanced.kafka.dirs_denied = Transient("KafkaUnreachable", "no answer", 1.0)
        assert (await balanced.ended()).disk_peak is None
        balanced = Balanced()

        async def fail(_brokers):
            raise Transient("KafkaUnreachable", "no answer", 1.0)

        balanced.kafka.log_dirs = fail
        ended = await balanced.ended()
        assert (ended.outcome, ended.disk_peak) == (RunOutcome.SUCCEEDED, None)
