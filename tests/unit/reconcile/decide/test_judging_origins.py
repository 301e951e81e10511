"""What counts as the run's own is judged by the origins that are on record now."""

from dataclasses import replace

import pytest
from tests.fakes.found_by_rounds import found, recorded
from tests.unit.reconcile.decide.test_judging import (
    ALIVE,
    ORIGINS,
    judged,
    judged_before,
    partition,
    phases,
    rebalance,
    seen,
    tp,
)

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.partition_status import Direction, MovePhase
from kafka_rebalance.model.topology import replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.assessment import StepBlock
from kafka_rebalance.reconcile.state.record import loaded_run_of


class TestOrigins:
    """They are recorded before the first call of a partition, after the run was loaded."""

    def test_a_partition_is_judged_with_the_origin_of_now(self):
        """A pause drops the replicas above the replication factor only where the run has sent something."""
        mine, now = judged_before(), seen(partition(0, 1, 2, 3), partition(1, 1, 2, 3))
        recorded(mine, origins={tp(0): ORIGINS[tp(0)]})
        found(mine, step_block=StepBlock(Reason.SUSPENDED, "suspended"))
        judged(mine, now, {tp(0), tp(1)})
        assert phases(mine) == [MovePhase.READY, MovePhase.SKIPPED]

    def test_one_that_was_given_up_counts_no_more(self):
        """Kafka has refused the call: what the list is now was made by others."""
        mine, now = rebalance(), seen(partition(0, 1, 2, 3), partition(1, 1, 2, 3))
        run = mine.record.loaded_run
        recorded(mine, loaded_run=loaded_run_of(run.run, run.plan, "ref", ORIGINS), origins={tp(1): ORIGINS[tp(1)]})
        found(mine, step_block=StepBlock(Reason.SUSPENDED, "suspended"))
        judged(mine, now, before=0)
        assert phases(mine) == [MovePhase.SKIPPED, MovePhase.READY]

    @pytest.mark.parametrize("direction", [Direction.FORWARD, Direction.ROLLBACK])
    def test_of_a_run_that_rests_none_counts(self, direction):
        """Neither a copy that others have in flight, nor replicas or an order that they have made."""
        mine = recorded(judged_before(), origins=ORIGINS)
        recorded(mine, run=replace(mine.record.run, rested=True))
        flying = replace(partition(0, 3, 1, 2), adding=replicas_of(3), isr=frozenset(replicas_of(1, 2)), leader=1)
        mine.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "not permitted")
        found(mine, step_block=StepBlock(Reason.CONNECTION_NOT_PERMITTED, "not permitted"))
        for theirs in (partition(1, 2, 1), partition(1, 3, 2, 1), partition(1, 3, 1, 2)):
            judged(mine, seen(flying, theirs), {tp(0), tp(1)}, direction=direction)
            assert phases(mine)[0] is MovePhase.WAITING
            assert phases(mine)[1] in {MovePhase.WAITING, MovePhase.SKIPPED}
        away = seen(flying, partition(1, 2, 1), alive={b: row for b, row in ALIVE.items() if b != 1})
        judged(mine, away, {tp(0), tp(1)}, direction=direction)
        assert phases(mine) == [MovePhase.WAITING, MovePhase.WAITING]
