"""A run undoes only what it has sent: deleting a run that has sent nothing changes nothing in Kafka."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.walked_operator import TWO_BROKERS, SlowCluster, WalkedOperator

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import OriginStore

HELD = [({"approval": {"policy": "Manual"}}, "AwaitingApproval"), ({"execution": {"suspend": True}}, "Suspended")]


@pytest.fixture
def kafka():
    """Two of four partitions have to move to broker 2."""
    return KafkaInMemory((1, 2), t=[[1], [1], [1], [1]])


async def others_move(operator, *, all_of_them=False):
    """Another tool carries out the plan, or part of it."""
    planned = operator.rebalance.record.loaded_run.plan.partitions
    for p in planned if all_of_them else planned[:1]:
        await operator.kafka.alter_reassignments({p.tp: p.target})
    for _ in range(5):
        await operator.round()
    operator.kafka.altered.clear()


class TestDeletion:
    @pytest.mark.parametrize(("spec", "state"), HELD)
    @pytest.mark.parametrize("restart", [False, True])
    async def test_what_others_have_moved_stays(self, kafka, spec, state, restart):
        """Nothing was sent, so nothing moves back; the run ends although it may not start steps."""
        operator = OperatorInMemory(kafka)
        operator.apply(**spec)
        await operator.until(state)
        await others_move(operator)
        moved = kafka.lists("t")
        if restart:
            operator.restart()
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        assert (kafka.lists("t"), kafka.altered) == (moved, [])

    @pytest.mark.parametrize("lost", [False, True])
    async def test_what_may_have_been_sent_goes_back(self, kafka, lost):
        """The record precedes the call: if the operator is killed in between or gets no answer, it counts as sent."""
        operator = OperatorInMemory(kafka)
        operator.apply()
        alter = kafka.alter_reassignments

        async def dies(orders):
            if lost:
                await alter(orders)
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_reassignments = dies
        await operator.until_true(lambda: operator.run is not None and operator.run.started)
        kafka.alter_reassignments = alter
        operator.restart()
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        assert kafka.lists("t") == [[1]] * 4

    async def test_nothing_is_sent_that_is_not_on_record(self, kafka):
        """If the API server rejects the record, the operator waits."""
        operator = OperatorInMemory(kafka)
        operator.apply(approval={"policy": "Manual"})
        await operator.until("AwaitingApproval")
        put = operator.kube._put

        def refused(name, body):
            if name.startswith("run"):
                raise Transient("ApiServerUnreachable", "no answer")
            return put(name, body)

        operator.kube._put = refused
        operator.edit(approval={"policy": "Automatic"})
        await operator.until("ApiServerUnreachable")
        for _ in range(5):
            await operator.round()
        assert kafka.altered == []
        operator.kube._put = put
        await operator.until("Succeeded")

    async def test_nothing_is_sent_for_a_resource_that_is_gone_meanwhile(self, kafka):
        """Edited, deleted and gone within one round: nobody would undo what is sent."""
        operator = OperatorInMemory(kafka)
        operator.apply(approval={"policy": "Manual"})
        await operator.until("AwaitingApproval")
        operator.edit(approval={"policy": "Automatic"})
        describe = kafka.describe_partitions

        async def deleted_meanwhile(*arguments):
            operator.engine.rebalances.clear()
            return await describe(*arguments)

        kafka.describe_partitions = deleted_meanwhile
        await operator.round()
        assert operator.engine.rebalances == {}
        assert kafka.altered == []


class TestHeld:
    """A run that has sent nothing sends nothing before it may start steps."""

    @pytest.mark.parametrize(("spec", "state"), HELD)
    async def test_a_step_of_others_is_not_completed(self, kafka, spec, state):
        """It looks like a step of the plan, and the partition has one replica too many."""
        operator = OperatorInMemory(kafka)
        operator.apply(**{**spec, "approval": {**spec.get("approval", {}), "driftBudget": 100}})
        await operator.until(state)
        planned = operator.rebalance.record.loaded_run.plan.partitions[0]
        await kafka.alter_reassignments({planned.tp: (*planned.target, *planned.current)})
        kafka.altered.clear()
        for _ in range(5):
            await operator.round()
        assert (operator.state, operator.run.started_at, kafka.altered, kafka.elected) == (state, None, [], [])

    @pytest.mark.parametrize(("spec", "state"), HELD)
    async def test_no_leader_is_elected(self, spec, state):
        """A broker was restarted, and the plan elects it before it copies anything."""
        kafka = KafkaInMemory((1, 2, 3, 4, 5), t=[[1, 2, 3]])
        kafka.lead("t", 0, 2)
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [1, 4, 5]), **spec)
        await operator.until(state)
        for _ in range(5):
            await operator.round()
        assert (operator.state, operator.run.started_at, kafka.altered, kafka.elected) == (state, None, [], [])


class TestUndo:
    async def test_a_success_of_others_is_not_undone(self, kafka):
        """It succeeded before it was approved: an undo would revert the work of others."""
        operator = OperatorInMemory(kafka)
        operator.apply(approval={"policy": "Manual"})
        await operator.until("AwaitingApproval")
        await others_move(operator, all_of_them=True)
        await operator.until("Succeeded")
        moved = kafka.lists("t")
        operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
        await operator.until("NothingToUndo")
        assert (kafka.lists("t"), kafka.altered) == (moved, [])

    async def test_killed_between_the_start_and_the_first_origin(self, kafka, monkeypatch):
        """Others move everything then: the run has no origins because it has sent nothing, not because they expired."""
        operator = OperatorInMemory(kafka)

        async def killed(*_arguments):
            raise Transient("ApiServerUnreachable", "killed")

        with monkeypatch.context() as patched:
            patched.setattr(OriginStore, "append", killed)
            operator.apply()
            await operator.until_true(lambda: operator.run is not None and operator.run.started)
            await others_move(operator, all_of_them=True)
        operator.restart()
        await operator.until_closed()
        moved = kafka.lists("t")
        operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
        await operator.until("NothingToUndo")
        assert kafka.lists("t") == moved

    async def test_another_one_is_undone_while_the_success_is_proved(self):
        """Its calls of this round move what the reading of this round shows at the targets."""
        operator = WalkedOperator(SlowCluster(slow=False))
        operator.apply_other(approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.engine.rebalances["u-other"].record.open_run is not None)
        operator.apply(topics={"include": ["t"]}, **TWO_BROKERS)
        await operator.until("Succeeded")
        waiting, operator.kafka.slow = operator.engine.rebalances["u-other"], {1}
        assert waiting.record.open_run is not None
        operator.undo()
        operator.kafka.sent = lambda: setattr(operator.clock, "at", operator.clock.at + timedelta(seconds=5))
        await operator.until("Undoing")
        assert (len(operator.kafka.flying), waiting.assessment.finished) == (2, True)
        assert waiting.record.open_run is not None
        operator.kafka.arrive()
        await operator.until("Undone")
        assert (operator.kafka.lists("t"), waiting.record.open_run is not None) == ([[1]] * 4, True)
