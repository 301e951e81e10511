"""What a run finds in motion that began after it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.found_by_rounds import found, recorded

from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.judging import judge_inputs
from kafka_rebalance.reconcile.decide.later_runs import moved_by_later_runs
from kafka_rebalance.reconcile.state.judgement import Judgement
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
TP = TopicPartition("t", 0)
LIVE = {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3, 4)}


def rebalance(name, frm, to, started, **run):
    """Its run leads the partition from one list to the other, and has its origin on record."""
    mine = Rebalance.of(
        {
            "metadata": {"name": name, "namespace": "kafka", "uid": name},
            "spec": {"kafka": {"bootstrapServers": "kafka:9092"}},
        }
    )
    plan = Plan((PlannedPartition(TP, replicas_of(*frm), replicas_of(*to)),), Certificate(1, optimal=True))
    origins = {TP: Origin(TP, "", replicas_of(*frm), BrokerId(frm[0]))}
    begun = NOON + timedelta(minutes=started) if started is not None else None
    record = replace(Run(name, "kafka", name, "c", "run", "h", plan.hash, NOON, started_at=begun), **run)
    return recorded(mine, run=record, loaded_run=loaded_run_of(record, plan, "ref", origins), origins=origins)


def seen(*replicas, adding=(), removing=(), alive=LIVE):
    ids = replicas_of(*replicas)
    held = frozenset(ids) - frozenset(replicas_of(*adding))
    state = PartitionState(TP, "", ids, held, ids[0], replicas_of(*adding), replicas_of(*removing))
    return Observation(ClusterState("c", alive, {TP: state}), {"t": 1})


COPYING = seen(2, 3, 4, adding=(4,))


def later(others, now=COPYING, before=None, started=0, **assessment):
    """``before``: what was found when the run was last judged."""
    mine = rebalance("mine", (1, 2), (2, 3), started)
    run = mine.record.loaded_run
    if before is not None:
        inputs = replace(judge_inputs(mine, run, Direction.FORWARD, now, frozenset()), later_runs=before)
        found(mine, judgement=Judgement(inputs=inputs))
    return dict(moved_by_later_runs(found(mine, **assessment), run, others, now))


def judged():
    mine = rebalance("mine", (1, 2), (2, 3), 0)
    return Judgement(inputs=judge_inputs(mine, mine.record.loaded_run, Direction.FORWARD, COPYING, frozenset()))


def other(started=5, **run):
    return rebalance("other", (2, 3), (3, 4), started, **run)


class TestWhatIsFound:
    def test_a_copy(self):
        assert later([other()]) == {TP: "other"}

    def test_a_replica_above_the_replication_factor(self):
        assert later([other()], seen(2, 3, 4)) == {TP: "other"}

    @pytest.mark.parametrize("started", [None, -5, 0])
    def test_not_of_one_that_did_not_begin_later(self, started):
        assert later([other(started)]) == {}

    def test_not_if_this_run_has_sent_nothing(self):
        assert later([other()], started=None) == {}

    def test_not_at_rest(self):
        assert later([other()], seen(3, 4)) == {}

    def test_not_a_copy_to_a_broker_that_is_gone(self):
        """It never ends."""
        assert later([other()], seen(2, 3, 4, adding=(4,), alive={b: LIVE[b] for b in (1, 2, 3)})) == {}

    def test_not_what_the_other_run_cannot_have_sent(self):
        assert later([other()], seen(2, 3, 1, adding=(1,))) == {}

    def test_not_what_the_other_run_has_skipped(self):
        assert later([found(other(), statuses={TP: PartitionStatus(MovePhase.SKIPPED, "Drifted")})]) == {}

    def test_not_without_an_origin_on_record(self):
        """Nothing was sent for the partition."""
        assert later([recorded(other(), origins={})]) == {}

    def test_not_while_the_other_run_rests(self):
        assert later([other(rested=True)]) == {}


class TestLater:
    """The next judgements."""

    def test_it_stays_until_the_partition_is_at_rest(self):
        assert later([other()], before={TP: "other"}) == {TP: "other"}

    @pytest.mark.parametrize("before", [{}, {TP: "another"}])
    def test_nothing_is_added(self, before):
        """From then on the queue keeps the two apart."""
        assert later([other()], before=before) == {}

    def test_nothing_is_found_for_a_new_plan(self):
        """What is in motion then may be a copy that it keeps."""
        mine = found(rebalance("mine", (1, 2), (2, 3), 0), judgement=judged())
        assert mine.assessment.about(rebalance("mine", (1, 2), (2, 4), 0).record.loaded_run).judged_before
        assert later([other()], judged_before=True) == {}
