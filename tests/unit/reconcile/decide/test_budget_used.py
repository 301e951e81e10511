"""A movement budget limits a whole run, however often it is planned and by whichever operator."""

from dataclasses import replace

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.model.run import Run, Spent
from kafka_rebalance.model.topology import PartitionState, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals
from kafka_rebalance.reconcile.decide.budget_used import spent_by, what_is_left

TP = TopicPartition("t", 0)
RUN = Run("u", "n", "r", "c", "run-1", "sha256:a", "sha256:b", NOON, spent=Spent(3, 300))
ERRAND = PartitionMove(TP, "id", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(4, 5, 3), size_bytes=100)


def present(*ids, adding=(), topic_id="id"):
    held = replicas_of(*ids)
    return {TP: PartitionState(TP, topic_id, held, frozenset(held), held[0], adding=replicas_of(*adding))}


class TestSpent:
    @pytest.mark.parametrize(
        ("partitions", "moves"),
        [
            (present(1, 2, 3), 0),
            (present(4, 2, 3), 1),
            (present(4, 1, 2, 3), 1),  # a completed copy, before the replica that it replaces is dropped
            (present(4, 2, 3, 5, adding=(5,)), 1),  # not complete yet
            (present(4, 5, 3), 2),
            (present(7, 2, 3), 0),  # placed by another tool
            (present(4, 5, 3, topic_id="another"), 0),
            ({}, 0),
        ],
    )
    def test_what_has_arrived(self, partitions, moves):
        """In addition to the moves of earlier plans."""
        assert spent_by(RUN, [ERRAND], partitions) == Spent(3 + moves, 300 + 100 * moves)

    def test_a_partition_that_an_earlier_plan_moved_counts_once(self):
        """It was counted when the later plan was made."""
        moved = replace(ERRAND, planned_from=replicas_of(4, 5, 3))
        assert spent_by(RUN, [moved], present(4, 5, 3)) == RUN.spent

    @pytest.mark.parametrize(
        ("present", "moves"), [(present(4, 5, 3), 2), (present(1, 5, 3), 1), (present(1, 2, 3), 0)]
    )
    def test_what_an_undo_has_not_brought_back(self, present, moves):
        """The moves of earlier plans are undone with it."""
        moved = replace(ERRAND, planned_from=replicas_of(4, 2, 3))
        assert spent_by(replace(RUN, undo=True), [moved], present) == Spent(moves, 100 * moves)

    def test_nothing_without_a_run(self):
        """The first plan has the whole budget."""
        assert spent_by(None, [], {}) == Spent()


class TestWhatIsLeft:
    def test_never_less_than_nothing(self):
        """A budget that was lowered meanwhile may be below what is already used."""
        goals = Goals(max_replica_moves=5, max_data_to_move=250)
        assert what_is_left(goals, Spent(3, 300)) == Goals(max_replica_moves=2, max_data_to_move=0)

    def test_no_budget(self):
        """Without a budget nothing is subtracted."""
        assert what_is_left(Goals(), Spent(3, 300)) == Goals()


def moved(kafka):
    return sum(1 not in row for row in kafka.lists("t"))


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("budget", [{"maxReplicaMoves": 3}, {"maxDataToMove": 350}])
class TestRuns:
    async def test_a_run_that_is_planned_again_and_again(self, budget, restart):
        """Four moves would balance it. Each plan is superseded after one move."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 6)
        operator = OperatorInMemory(kafka)
        operator.apply(goals=budget, execution={"parallelPartitionCount": 1})
        for made in range(1, 4):
            await operator.until_true(lambda made=made: moved(kafka) == made)
            if restart:
                operator.restart()
            operator.edit(topics={"exclude": [f"no-{made}"]})
            await operator.until("Superseded")
        await operator.until("NothingToDo", "Succeeded")
        assert moved(kafka) == 3

    async def test_the_next_run_has_the_whole_budget(self, budget, restart):
        """Moves of an earlier run do not count."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 9)
        operator = OperatorInMemory(kafka)
        operator.apply(goals=budget, execution={"parallelPartitionCount": 1})
        await operator.until_true(lambda: moved(kafka) == 1)
        operator.edit(topics={"exclude": ["no-1"]})
        await operator.until("Superseded")
        await operator.until("Succeeded")
        assert moved(kafka) == 3
        if restart:
            operator.restart()
        operator.edit(topics={"exclude": ["no-2"]})
        await operator.until_true(lambda: moved(kafka) == 6)

    async def test_a_spec_that_supersedes_an_undo_has_what_is_back(self, budget, restart):
        """Everything is back, so no budget is used."""
        kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 9)
        operator = OperatorInMemory(kafka)
        operator.apply(goals=budget, execution={"parallelPartitionCount": 1})
        await operator.until_true(lambda: moved(kafka) == 2)
        operator.edit(topics={"exclude": ["no-1"]})
        await operator.until("Superseded")
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until_true(lambda: moved(kafka) == 0)
        if restart:
            operator.restart()
        operator.edit(topics={"exclude": ["no-2"]})
        await operator.until("Superseded")
        await operator.until("Succeeded", "NothingToDo")
        assert moved(kafka) == 3
