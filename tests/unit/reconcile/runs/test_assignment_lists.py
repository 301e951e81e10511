"""The lists of strategy Assignment, compared with their original replicas and with the progress of the run."""

import json

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.model.reassignment_file import Reassigned
from kafka_rebalance.model.topology import PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.runs.assignment_lists import lists_for, read_assignment

TP = TopicPartition("t", 0)
ORIGINAL, TARGET = replicas_of(1, 2, 3), replicas_of(4, 5, 6)
ROW = Reassigned(TP, TARGET, ORIGINAL)
BEGUN = PartitionMove(TP, "id", ORIGINAL, ORIGINAL, TARGET)


def found(*ids, topic_id="id", adding=()):
    held = replicas_of(*ids)
    return {TP: PartitionState(TP, topic_id, held, frozenset(held), held[0], adding=replicas_of(*adding))}


class TestOriginalReplicas:
    @pytest.mark.parametrize(
        ("present", "earlier"),
        [
            ((1, 2, 3), ()),  # as in the row
            ((4, 5, 6), ()),  # already at its target
            ((4, 5, 6), (BEGUN,)),
            ((4, 2, 3), (BEGUN,)),  # after a step of this run
            ((2, 3, 1), (BEGUN,)),  # a cancel by this run restores the set, not the order
            ((1, 2, 3), (BEGUN,)),
        ],
    )
    def test_what_the_row_was_made_for_and_what_this_run_made_of_it(self, present, earlier):
        """Both are accepted."""
        assert lists_for([ROW], found(*present), earlier, {TP} if earlier else None).wanted == {TP: TARGET}

    def test_what_an_earlier_plan_left_half_way(self):
        """Lists that were regenerated half way have that state as their original."""
        between = replicas_of(4, 2, 3)
        again = PartitionMove(TP, "id", ORIGINAL, between, replicas_of(4, 5, 3))
        assert lists_for([Reassigned(TP, TARGET, between)], found(4, 5, 3), [again]).wanted == {TP: TARGET}

    def test_a_row_that_does_not_say(self):
        """The field is from KIP-236 and optional."""
        assert lists_for([Reassigned(TP, TARGET)], found(7, 8)).wanted == {TP: TARGET}

    def test_a_partition_that_somebody_else_is_moving(self):
        """It is left to the other tool, so no error is reported."""
        assert lists_for([ROW], found(9, 1, 2, 3, adding=(9,))).wanted == {TP: TARGET}

    @pytest.mark.parametrize(
        ("present", "earlier"),
        [
            ((1, 3, 2), ()),  # another preferred order is a different state
            ((4, 2, 3), ()),
            ((7, 2, 3), (PartitionMove(TP, "id", ORIGINAL, ORIGINAL, ORIGINAL),)),  # of a run taken over
        ],
    )
    def test_any_other_state_is_refused(self, present, earlier):
        """The message has the partition and both lists."""
        with pytest.raises(Refused) as refused:
            lists_for([ROW], found(*present), earlier)
        assert refused.value.reason == "OriginalReplicasDiffer"
        for named in ("t-0", str(list(present)), "[1, 2, 3]"):
            assert named in refused.value.message

    @pytest.mark.parametrize(
        ("present", "errand"),
        [
            ((1, 2, 7), BEGUN),
            ((4, 2, 3), PartitionMove(TP, "id", replicas_of(4, 2, 1), replicas_of(4, 2, 1), TARGET)),
        ],
    )
    def test_what_somebody_else_made_of_a_partition_of_the_run(self, present, errand):
        """The rest continues: the partition is skipped and named."""
        lists = lists_for([ROW], found(*present), [errand], {TP})
        assert lists.wanted == {}
        assert [(row.tp, row.reason) for row in lists.skipped] == [(TP, "Drifted")]


class TestTopicsThatAreGone:
    def test_at_the_first_plan_it_is_a_mistake(self):
        """The message names it; that it is not selected would be misleading."""
        with pytest.raises(Refused) as refused:
            lists_for([ROW], {})
        assert refused.value.reason == "UnknownPartition"
        assert "t-0, which the cluster does not have" in refused.value.message

    @pytest.mark.parametrize(("earlier", "planned_before"), [((BEGUN,), None), ((), {TP})])
    def test_later_it_is_left_out_and_named(self, earlier, planned_before):
        """Whether the run had moved it, or it was at its target from the start."""
        lists = lists_for([ROW], {}, earlier, planned_before)
        assert lists.wanted == {}
        assert [(row.tp, row.reason) for row in lists.skipped] == [(TP, "TopicDeleted")]

    def test_later_a_name_that_was_not_there_before_is_a_mistake_too(self):
        """A misspelt row in lists that were edited meanwhile; the message says what to do."""
        misspelt = Reassigned(TopicPartition("tt", 0), TARGET)
        with pytest.raises(Refused) as refused:
            lists_for([ROW, misspelt], {}, [BEGUN], {TP})
        assert refused.value.reason == "UnknownPartition"
        assert "tt-0, which the cluster does not have, nor had when" in refused.value.message

    def test_created_anew(self):
        """The lists were made for the earlier topic of that name."""
        lists = lists_for([ROW], found(7, 8, 9, topic_id="another"), [BEGUN], {TP})
        assert lists.wanted == {}
        assert [(row.tp, row.reason) for row in lists.skipped] == [(TP, "TopicRecreated")]


class TestAssignmentText:
    def test_kafkas_json(self):
        rows = [{"topic": "t", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "any"]}]
        text = json.dumps({"version": 1, "partitions": rows})
        assert read_assignment(text, "it") == (Reassigned(TopicPartition("t", 0), replicas_of(2, 1)),)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("{", "key 'k' of ConfigMap n/a: not JSON"),
            ('{"version": 2, "partitions": []}', "version: 2 is not 1"),
            ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "partitions[0].replicas"),
            ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "names a broker twice"),
        ],
    )
    def test_what_is_wrong_is_named(self, text, says):
        with pytest.raises(Refused) as refused:
            read_assignment(text, "key 'k' of ConfigMap n/a")
        assert refused.value.reason == "AssignmentInvalid"
        assert says in refused.value.message


class TestRuns:
    @pytest.fixture
    def kafka(self):
        return KafkaInMemory((1, 2, 3, 4), a=[[1, 2]], b=[[1, 2]], c=[[1, 2]], d=[[1, 2]])

    ROWS = (("a", 0, [3, 2], [1, 2]), ("b", 0, [3, 4], [1, 2]), ("c", 0, [1, 2], [1, 2]))
    DRIFTING = ("d", 0, [3, 2])

    async def begun(self, kafka, *rows):
        """Every possible move is done, and the copy to broker 4 is in flight."""
        kafka.slow = {4}
        operator = OperatorInMemory(kafka)
        operator.assign(*rows, approval={"driftBudget": 0})
        await operator.until_true(lambda: kafka.flying == {"b-0"} and kafka.lists("a") == [[3, 2]])
        kafka.slow = set()
        return operator

    async def settled(self, kafka, operator):
        """Another tool changes a partition, and the copy in flight is cancelled for the next plan."""
        kafka.assign("d", 0, 4, 1)
        await operator.until_true(lambda: getattr(operator.rebalance.assessment.replanning, "ready", False))

    async def test_lists_that_were_made_for_another_state(self, kafka):
        """Nothing moves; the run starts as soon as the lists are corrected."""
        kafka.assign("a", 0, 2, 1)
        operator = OperatorInMemory(kafka)
        operator.assign(*self.ROWS)
        message = await operator.until("OriginalReplicasDiffer")
        assert "topic-partition a-0 has replicas [2, 1], its original_replicas in the assignment are [1, 2]" in message
        assert kafka.altered == []
        operator.write(("a", 0, [3, 2], [2, 1]))
        await operator.until("Succeeded")
        assert kafka.lists("a") == [[3, 2]]

    @pytest.mark.parametrize("restart", [False, True])
    async def test_planned_again_half_way(self, kafka, restart):
        """One has completed, one is half way, one was there before: none of them stops the rest."""
        operator = await self.begun(kafka, *self.ROWS)
        if restart:
            operator.restart()
        operator.edit(topics={"exclude": ["z"]})
        await operator.until("Superseded")
        kafka.arrive()
        await operator.until("Succeeded")
        assert kafka.altered.count(("b-0", None)) == 0
        assert [kafka.lists(topic) for topic in "abc"] == [[[3, 2]], [[3, 4]], [[1, 2]]]

    async def test_topics_that_were_deleted_meanwhile(self, kafka):
        """One was being moved, one was not part of the moves: both are named, and the rest continues."""
        operator = await self.begun(kafka, *self.ROWS, self.DRIFTING)
        kafka.delete("b")
        kafka.delete("c")
        await self.settled(kafka, operator)
        await operator.until("Succeeded")
        assert kafka.lists("d") == [[3, 2]]
        assert operator.skipped == {"b-0": "TopicDeleted", "c-0": "TopicDeleted"}

    async def test_a_topic_that_was_deleted_before_the_spec_was_edited(self, kafka):
        """It was at its target from the start: the new spec continues with the rest, too."""
        operator = await self.begun(kafka, *self.ROWS)
        kafka.delete("c")
        operator.edit(goals={"followerOrder": False})
        await operator.until("Superseded")
        kafka.arrive()
        await operator.until("Succeeded")
        assert kafka.lists("b") == [[3, 4]]
        assert operator.skipped == {"c-0": "TopicDeleted"}

    @pytest.mark.parametrize("restart", [False, True])
    async def test_a_partition_that_somebody_else_moved(self, kafka, restart):
        """It stays as the other tool left it: planned again, planned once more, and rolled back."""
        operator = await self.begun(kafka, *self.ROWS, ("d", 0, [3, 2], [1, 2]))
        kafka.slow = {4}
        await self.settled(kafka, operator)
        for number in (1, 2):
            await operator.until_true(lambda: kafka.flying == {"b-0"} and operator.state == "Rebalancing")
            assert operator.skipped == {"d-0": "Drifted"}
            if restart:
                operator.restart()
            operator.edit(topics={"exclude": [f"no-{number}"]})
            await operator.until("Superseded")
        kafka.slow = set()
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        assert [kafka.lists(topic) for topic in "abcd"] == [[[1, 2]], [[1, 2]], [[1, 2]], [[4, 1]]]

    async def test_lists_that_are_made_anew_for_what_somebody_else_made_of_it(self, kafka):
        """Then it is the user's request."""
        operator = await self.begun(kafka, *self.ROWS, ("d", 0, [3, 2], [1, 2]))
        await self.settled(kafka, operator)
        await operator.until_true(lambda: operator.skipped == {"d-0": "Drifted"})
        operator.write(*self.ROWS, ("d", 0, [3, 2], [4, 1]))
        operator.edit(topics={"exclude": ["z"]})
        await operator.until("Superseded")
        await operator.until("Succeeded")
        assert (kafka.lists("d"), operator.skipped) == ([[3, 2]], {})

    async def test_a_topic_that_was_created_anew(self, kafka):
        """The lists do not apply to the new topic."""
        operator = await self.begun(kafka, *self.ROWS, self.DRIFTING)
        kafka.create("b", [[2, 1]], topic_id="id-2")
        await self.settled(kafka, operator)
        await operator.until("Succeeded")
        assert (kafka.lists("b"), operator.skipped) == ([[2, 1]], {"b-0": "TopicRecreated"})

    @pytest.mark.parametrize("topic", ["b", "c"])
    async def test_a_topic_that_only_some_brokers_know(self, kafka, topic):
        """No proof of deletion, neither for moved nor for unmoved partitions: the plan is retried, none is skipped."""
        operator = await self.begun(kafka, *self.ROWS, self.DRIFTING)
        await self.settled(kafka, operator)
        kafka.unseen = {topic}
        await operator.until("MetadataStale")
        kafka.unseen = set()
        await operator.until("Succeeded")
        assert (kafka.lists("b"), operator.skipped) == ([[3, 4]], {})

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("misspelt", [("aa", 0), ("a", 7)])
    async def test_a_name_that_is_misspelt_while_the_run_goes_on(self, kafka, restart, misspelt):
        """It is refused and not mistaken for a deleted topic; the deleted one is skipped in both later plans."""
        operator = await self.begun(kafka, *self.ROWS, self.DRIFTING)
        kafka.delete("c")
        operator.write(*self.ROWS, self.DRIFTING, (*misspelt, [3, 2]))
        if restart:
            operator.restart()
        operator.edit(topics={"exclude": ["y"]})
        message = await operator.until("UnknownPartition")
        assert f"topic-partition {misspelt[0]}-{misspelt[1]}, which the cluster does not have" in message
        assert kafka.flying == {"b-0"}  # the copy in flight continues until a plan requires otherwise
        kafka.slow = {4}
        operator.write(*self.ROWS, self.DRIFTING)
        for number in (1, 2):
            await operator.until_true(lambda: kafka.flying == {"b-0"} and operator.state == "Rebalancing")
            assert operator.skipped == {"c-0": "TopicDeleted"}
            if restart:
                operator.restart()
            operator.edit(topics={"exclude": [f"no-{number}"]})
            await operator.until("Superseded")
        kafka.arrive()
        await operator.until("Succeeded")
        assert (kafka.lists("b"), operator.skipped) == ([[3, 4]], {"c-0": "TopicDeleted"})

    async def test_a_topic_that_not_every_broker_knows_yet(self, kafka):
        """Just created, for example: the plan is retried, and it is not an error."""
        kafka.unseen = {"a"}
        operator = OperatorInMemory(kafka)
        operator.assign(*self.ROWS)
        await operator.until("MetadataStale")
        kafka.unseen = set()
        await operator.until("Succeeded")
        assert kafka.lists("a") == [[3, 2]]

    async def test_a_name_that_the_cluster_never_had(self, kafka):
        """In the first plan it is an error."""
        operator = OperatorInMemory(kafka)
        operator.assign(*self.ROWS, ("unknown", 0, [1, 2]))
        assert "unknown-0" in await operator.until("UnknownPartition")
        assert kafka.altered == []
