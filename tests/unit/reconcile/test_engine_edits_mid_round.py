"""An edit in the middle of a round is evaluated completely before the operator acts on it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON
from tests.unit.reconcile.renamed_resources import FAST, Renamed

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle


class Interrupted(KafkaInMemory):
    """Calls ``meanwhile`` once, while a round reads partitions."""

    meanwhile: Callable[[], None] | None = None

    async def describe_partitions(self, topics=None, listed=None):
        found = await super().describe_partitions(topics, listed)
        if topics is not None and self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return found


class InterruptedBefore(Interrupted):
    """Calls ``meanwhile`` after the round has read the spec, whether or not it reads any partition."""

    async def describe_partitions(self, topics=None, listed=None):
        return await KafkaInMemory.describe_partitions(self, topics)

    async def describe_cluster(self):
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return await super().describe_cluster()


class InterruptedAfter(Interrupted):
    """Calls ``meanwhile`` after the round has sent its steps."""

    async def describe_partitions(self, topics=None, listed=None):
        return await KafkaInMemory.describe_partitions(self, topics)

    async def alter_reassignments(self, orders):
        answers = await super().alter_reassignments(orders)
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return answers


class InterruptedWhileThrottling(Interrupted):
    """Calls ``meanwhile`` while a round writes the throttle, after it has decided which steps to send."""

    async def describe_partitions(self, topics=None, listed=None):
        return await KafkaInMemory.describe_partitions(self, topics)

    async def alter_topic_configs(self, changes):
        answers = await super().alter_topic_configs(changes)
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return answers


async def test_a_deletion_that_overtakes_the_answer_about_the_finalizer_counts():
    """The watch may be faster than the answer to our own write, which is of before the deletion."""
    operator = OperatorInMemory(KafkaInMemory(range(1, 8), t=[[1, 2, 3]] * 4))
    patch = operator.kube.patch_finalizers

    async def overtaken(*finalizers):
        answer = await patch(*finalizers)
        operator.kube.patch_finalizers = patch
        operator.delete()
        return answer

    operator.kube.patch_finalizers = overtaken
    operator.apply(throttle={"unlimited": True}, brokers={"include": [4, 5, 6]})
    await operator.until_true(lambda: not operator.kube.resources)
    assert operator.kafka.altered == []


async def test_steps_that_were_chosen_before_a_deletion_are_not_sent():
    """A reassignment that would be cancelled at once is not started."""
    kafka = InterruptedWhileThrottling((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply()
    kafka.meanwhile = operator.delete
    await operator.until_true(lambda: not operator.kube.resources)
    assert kafka.meanwhile is None
    assert kafka.altered == []


async def test_a_namespace_is_deleted():
    """No replica moves back before the operator knows that the namespace is terminating, too."""
    kafka = Interrupted((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in kafka.lists("t"))
    arrived = [number for number, held in enumerate(kafka.lists("t")) if held == [2]]

    def goes():
        operator.kube.terminating_namespaces.add("kafka")
        operator.delete()

    ordered = len(kafka.altered)
    kafka.meanwhile = goes
    await operator.until_true(lambda: not operator.kube.resources)
    assert kafka.meanwhile is None
    assert not {f"t-{number}" for number in arrived} & {name for name, _ in kafka.altered[ordered:]}
    assert [kafka.lists("t")[number] for number in arrived] == [[2]] * len(arrived)


async def test_a_deletion_that_is_looked_at_is_not_put_off_by_an_edit():
    """Only the deletion itself delays it: a user may raise a bound again and again."""
    kafka = InterruptedBefore((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in kafka.lists("t"))
    operator.delete()
    for _ in range(10):
        if operator.kube.resources:
            kafka.meanwhile = lambda: operator.edit(priority=len(kafka.altered) % 7)
            await operator.round()
    assert kafka.lists("t") == [[1]] * 4
    assert not operator.kube.resources


async def test_edits_that_keep_coming_hold_nothing_up():
    """With an edit in each round the run still makes progress."""
    kafka = InterruptedBefore((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"suspend": True})
    await operator.until("Suspended")
    operator.edit(execution={"suspend": False})
    for priority in range(10):
        kafka.meanwhile = lambda priority=priority: operator.edit(priority=priority)
        await operator.round()
    assert sorted(kafka.lists("t")) == [[1], [1], [2], [2]]


async def test_what_an_edit_takes_out_is_not_begun():
    """One edit resumes and narrows the spec: the existing plan is no longer the requested one."""
    kafka = InterruptedBefore((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"suspend": True})
    await operator.until("Suspended")
    kafka.meanwhile = lambda: operator.edit(execution={"suspend": False}, topics={"exclude": ["t"]})
    await operator.until("Succeeded", "NothingToDo")
    assert kafka.meanwhile is None
    assert kafka.altered == []


async def test_a_rollback_is_abandoned():
    """Abandon leaves Kafka as it is: reassignments in flight are not cancelled."""
    kafka = Interrupted((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in kafka.lists("t"))
    kafka.slow = {1}
    operator.delete()
    await operator.until_true(lambda: kafka.flying)
    before = dict(kafka.states)
    kafka.meanwhile = lambda: operator.edit(deletionPolicy="Abandon")
    await operator.until_true(lambda: not operator.kube.resources)
    assert kafka.meanwhile is None
    assert kafka.states == before


class TestWhatIsSaid:
    """A round that is interrupted by an edit reports nothing new."""

    async def copying(self):
        """One partition is in flight, and the status shows it."""
        kafka = Interrupted((1, 2), t=[[1], [1], [1], [1]])
        kafka.slow = {2}
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1})
        await operator.until_true(lambda: operator.status.get("currentBatchSize") == 1)
        return kafka, operator

    async def test_of_what_is_in_flight(self):
        """It is in flight all the time."""
        kafka, operator = await self.copying()
        before = len(operator.kube.told)
        kafka.meanwhile = lambda: operator.edit(priority=5)
        for _ in range(4):
            await operator.round()
        assert kafka.meanwhile is None
        assert {told["currentBatchSize"] for told in operator.kube.told[before:]} == {1}

    async def test_of_one_that_is_being_deleted(self):
        """Nothing is reported before the deletion has been evaluated."""
        kafka, operator = await self.copying()
        before = len(operator.kube.told)
        kafka.meanwhile = operator.delete
        await operator.round()
        assert kafka.meanwhile is None
        assert operator.kube.told[before:] == []

    async def test_of_one_that_is_deleted_while_its_steps_are_sent(self):
        """It was judged before the deletion: that judgement no longer applies."""
        kafka = InterruptedAfter((1, 2), t=[[1], [1], [1], [1]])
        kafka.slow = {2}
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1})
        kafka.meanwhile = operator.delete
        await operator.until_true(lambda: kafka.meanwhile is None)
        assert "RollingBack" not in str(operator.kube.told)

    async def test_that_it_is_stalled(self):
        """No event is sent twice."""
        kafka = Interrupted((1, 2), t=[[1], [1], [1], [1]])
        kafka.slow = {2}
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1, "stallTimeout": "30s"})
        await operator.until("Stalled")
        before = list(operator.kube.events)
        kafka.meanwhile = lambda: operator.edit(priority=5)
        for _ in range(4):
            await operator.round()
        assert operator.kube.events == before

    @pytest.mark.parametrize("goes", [False, True])
    async def test_of_another_rebalance(self, goes):
        """Partitions that one rebalance moves never look unhealthy to another, not even in a postponed round."""
        kafka = Interrupted((1, 2, 3), t=[[1, 2]] * 2, u=[[1, 2]] * 4)
        kafka.slow = {3}
        operator = OperatorInMemory(kafka)
        operator.apply(topics={"include": ["t"]}, execution={"parallelPartitionCount": 1})
        created = (NOON + timedelta(seconds=1)).isoformat()
        metadata = {"name": "r2", "namespace": "kafka", "uid": "u-2", "creationTimestamp": created}
        spec = {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "topics": {"include": ["u"]},
            "execution": {"parallelPartitionCount": 1},
        }
        operator._see(operator.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))
        await operator.until_true(lambda: len(kafka.flying) == 2)
        mine = next(tp for tp, state in kafka.states.items() if state.in_flight and tp.topic == "t")
        kafka.states[mine] = replace(kafka.states[mine], isr=frozenset({kafka.states[mine].leader}))
        for _ in range(8):
            await operator.round()

        def others():
            return operator.engine.rebalances["u-2"].assessment.step_block

        before = others()
        kafka.meanwhile = operator.delete if goes else lambda: operator.edit(priority=5)
        await operator.round()
        assert kafka.meanwhile is None
        assert others() == before


async def test_a_deletion_while_kafka_refuses_the_first_call_of_a_partition(monkeypatch):
    """Its origin is given up, so it does not go back. The round goes on with the others."""
    kafka = InterruptedAfter((1, 2, 3), t=[[1, 2, 3], [1, 2]])
    operator = OperatorInMemory(kafka)
    operator.assign(("t", 0, [1, 2]), ("t", 1, [2, 1]), throttle={"unlimited": True}, replicationFactor=2)
    refused = TopicPartition("t", 0)
    alter = kafka.alter_reassignments

    async def refuse(orders):
        found = await alter({tp: to for tp, to in orders.items() if tp != refused})
        return found | {tp: AlterCode.INVALID_REPLICA_ASSIGNMENT for tp in orders if tp == refused}

    monkeypatch.setattr(kafka, "alter_reassignments", refuse)
    kafka.meanwhile = operator.delete
    await operator.until_true(lambda: kafka.meanwhile is None)
    assert operator.engine.figures.problem == ""
    await operator.until_true(lambda: not operator.kube.resources)
    assert kafka.lists("t") == [[1, 2, 3], [1, 2]]


async def test_an_ended_one_is_edited_while_handed_over_runs_are_counted(monkeypatch):
    """It wants a plan from then on. The round goes on."""
    kafka = KafkaInMemory(range(1, 7), t=[[1, 2, 3]] * 4)
    operator = Renamed(kafka)
    operator.apply(throttle=FAST)
    await operator.until_true(lambda: operator.state in {"NothingToDo", "Succeeded"})
    operator.apply_another("ended", topics={"include": ["none"]})
    await operator.until_true(lambda: operator.state_of("ended") in {"NothingToDo", "Succeeded"})
    operator.edit(brokers={"include": [4, 5, 6]})
    count, edited = Lifecycle.count_handed_over, []

    async def edit_and_count(lifecycle, rebalances):
        if not edited:
            operator._see(operator.kube.edit(REBALANCES, "kafka", "ended", brokers={"include": [6]}))
            edited.append(True)
        await count(lifecycle, rebalances)

    monkeypatch.setattr(Lifecycle, "count_handed_over", edit_and_count)
    await operator.round()
    assert edited
    assert not operator.engine._failed_for
