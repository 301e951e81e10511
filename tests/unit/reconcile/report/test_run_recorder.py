"""What the history says of a run, with an operator whose brokers are dictionaries."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import ClassVar

import pytest
from tests.fakes.shared_clusters import REF
from tests.fakes.stopped_clock import NOON, StoppedClock
from tests.fakes.walked_operator import ONE_AT_A_TIME, SUSPENDED, SlowCluster, WalkedOperator, applied, flying

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.steps import Alter
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.report.run_recorder import (
    INLINE_STEPS,
    MAX_STEPS,
    NO_HISTORY,
    RunRecorder,
    _OpenStep,
    _Trace,
)


async def ended(operator: WalkedOperator):
    """The record of the run, whose copies arrive now."""
    operator.kafka.arrive()
    await operator.until_closed()
    (record,) = operator.history
    return record


class TestRecord:
    async def test_of_a_run_that_was_seen_from_start_to_end(self):
        """Each copy with its bytes, brokers, rates and times; the run with its limits."""
        record = await ended(await flying(throttle={"leaderRate": "5Mi", "followerRate": "3Mi"}))
        assert (record.namespace, record.name, record.outcome) == ("kafka", "r", "Succeeded")
        assert record.complete
        assert (record.parallel_replicas, record.parallel_partitions, record.parallel_leader_movements) == (1, 1, 20)
        assert record.started_at > NOON
        first, second = record.steps
        assert {first.tp, second.tp} < {TopicPartition("t", p) for p in range(4)}
        for step in record.steps:
            assert (step.source, step.destinations, step.bytes_copied) == (1, (2,), 100)
            assert (step.leader_rate, step.follower_rate, step.rate_changed) == (5 << 20, 3 << 20, False)
            assert (step.copies_in, step.copies_out) == (1, 1)
        assert record.started_at <= first.started_at < first.ended_at <= second.started_at < second.ended_at
        assert record.active_seconds >= (second.ended_at - first.started_at).total_seconds()

    async def test_copies_at_the_same_time_are_counted(self):
        """The busiest broker of a step counts."""
        operator = applied(execution={"parallelPartitionCount": 10})
        await operator.until_true(lambda: len(operator.kafka.flying) == 2)
        record = await ended(operator)
        assert [(step.copies_in, step.copies_out) for step in record.steps] == [(2, 2)] * 2

    async def test_a_run_that_moves_nothing_leaves_none(self):
        """There is nothing to learn from it."""
        operator = applied(SlowCluster(rows=((1,), (2,))))
        await operator.until("NothingToDo")
        assert operator.history == []


class Replicas(tuple):
    """Notes each search for a broker."""

    __slots__ = ()
    searched: ClassVar[list[int]] = []

    def __contains__(self, broker):
        self.searched.append(broker)
        return super().__contains__(broker)


class TestLongLists:
    def test_are_not_searched_for_each_replica(self):
        """A server may claim 100 replicas of each of 15,000 partitions: that took three seconds in a round."""
        tp = TopicPartition("t", 0)
        state = PartitionState(tp, "id", Replicas(range(100)), frozenset(), BrokerId(1))
        status = PartitionStatus(MovePhase.READY, call=Alter(replicas_of(*range(50, 150))))
        found = SimpleNamespace(
            statuses=SimpleNamespace(by_partition={tp: status}), throttle=SimpleNamespace(rates=None)
        )
        trace = SimpleNamespace(rebalance=SimpleNamespace(assessment=found), open={})
        recorder = RunRecorder("c", StoppedClock(), NO_HISTORY)
        assert recorder._begin(trace, tp, ClusterState("c", {}, {tp: state}), NOON)
        assert trace.open[tp].destinations == replicas_of(*range(100, 150))
        assert Replicas.searched == []


class TestNotAll:
    async def test_after_a_restart_the_record_is_not_complete(self):
        """This operator has not seen the earlier copies."""
        operator = await flying()
        operator.clock.at += timedelta(seconds=5)
        operator.restart()
        await operator.round()
        record = await ended(operator)
        assert not record.complete
        assert len(record.steps) == 2

    async def test_time_at_rest_does_not_count(self):
        """A run that somebody suspends for an hour is no slower."""
        operator = await flying()
        operator.edit(execution=SUSPENDED)
        operator.kafka.arrive()
        for _ in range(5):
            await operator.round()
        operator.clock.at += timedelta(hours=1)
        await operator.round()
        operator.edit(execution=ONE_AT_A_TIME)
        record = await ended(operator)
        assert (record.ended_at - record.started_at) > timedelta(hours=1)
        assert record.active_seconds < 60

    async def test_changed_rates_and_limits_are_named(self):
        """Such a run says little about either."""
        operator = await flying(throttle={"leaderRate": "5Mi", "followerRate": "5Mi"})
        operator.edit(throttle={"leaderRate": "9Mi", "followerRate": "9Mi"}, execution={"parallelPartitionCount": 2})
        await operator.round()
        await operator.round()
        record = await ended(operator)
        assert record.limits_changed
        assert record.parallel_partitions == 2
        assert min(record.steps, key=lambda step: step.started_at).rate_changed

    async def test_of_very_many_steps_some_are_missing(self):
        """All open runs of a cluster share the limit: its servers can show copies that begin and end without end."""
        operator = await flying()
        recorder = operator.engine._rounds._recorder
        recorder.most = 1
        record = await ended(operator)
        assert (len(record.steps), record.complete) == (1, False)
        assert recorder._kept_weight == 0

    def test_long_steps_count_for_more(self):
        """A server may show copies to 100 brokers, and topics with long names: 4 KB each."""
        tps = [TopicPartition("t" * 249, number) for number in range(5)]
        unknown = SimpleNamespace(on=lambda broker: SimpleNamespace(leader=None, follower=None))
        step = _OpenStep(NOON, BrokerId(1), replicas_of(*range(97)), unknown, was_seen=True)
        record = SimpleNamespace(loaded_run=None)
        trace = _Trace(SimpleNamespace(record=record), None, True, 0.0, (1, 1, 1), open=dict.fromkeys(tps, step))
        recorder = RunRecorder("c", StoppedClock(), NO_HISTORY, most=40)
        for tp in tps:
            recorder._end(trace, tp, ClusterState("c", {}, {}), {}, NOON)
        assert (len(trace.steps), trace.complete) == (2, False)
        assert trace.weight == sum(step.weight for step in trace.steps) <= 40

    async def test_the_servers_of_an_inline_connection_have_a_lower_limit(self, world):
        """A namespace may have 20 such clusters."""
        for namespace, kafka in (("a", None), ("b", REF)):
            world.servers[namespace] = world.real
            if kafka:
                world.real.cluster_id = "other"
                world.connection()
            world.create(namespace, **({"kafka": kafka} if kafka else {}), execution={"suspend": True})
            world.see(namespace)
            await world.until(lambda namespace=namespace: world.state(namespace) == "Suspended")
        engines = world.supervisor._engines
        limits = [engines.get(cluster).engine._rounds._recorder.most for cluster in ("c", "other")]
        assert limits == [INLINE_STEPS, MAX_STEPS]


class TestEnds:
    async def test_of_a_rollback(self):
        """The copies of both ways are steps of one run."""
        operator = await flying()
        operator.delete()
        operator.kafka.slow = set()
        await operator.until_gone()
        (record,) = operator.history
        assert record.outcome == "RolledBack"


class TestDefects:
    @pytest.mark.parametrize("broken", ["_begin", "_end", "_record"])
    async def test_hold_up_nothing(self, broken, monkeypatch, caplog):
        """The run goes on to its end; it is said once that it is not in the history."""

        def fails(*_):
            raise RuntimeError("a defect")

        monkeypatch.setattr(RunRecorder, broken, fails)
        operator = await flying()
        operator.kafka.arrive()
        await operator.until("Succeeded")
        assert operator.history == []
        assert sum("in the history" in message for message in caplog.messages) == 1


class TestDurations:
    MODEL = DurationModel("c", 40, NOON, 0.5, None, 60.0, 0.0, 0.5, 1.0, 2.0)

    async def shown(self, durations, **spec):
        """The plan in the status of a rebalance that waits for approval."""
        operator = applied(SlowCluster(size=50 << 30), approval={"policy": "Manual"}, **spec)
        operator.durations = durations
        await operator.until("AwaitingApproval")
        for _ in range(15):
            await asyncio.sleep(0)  # what is read beside the rounds goes on
            await operator.round()
        return operator.status["plan"]

    async def test_the_eta_is_an_interval_before_approval(self):
        """Two copies of 50 GiB, one after the other, at half of 50 MiB a second and a minute each: 34 and 1 minutes."""
        plan = await self.shown(self.MODEL)
        assert (plan["eta"], plan["etaSource"]) == ("35m-2h20m", "History")

    async def test_without_a_history_it_is_the_lower_bound_of_the_throttle(self):
        """As before; and where the history has no such runs."""
        plan = await self.shown(None)
        assert (plan["eta"], plan["etaSource"]) == ("34m8s", "Throttle")
        plan = await self.shown(self.MODEL, throttle={"unlimited": True})
        assert plan.get("etaSource") is None
