"""The lists of strategy Assignment, against what they were made for and what the run has done since."""

import json

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.partition_status import PartitionMove
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
            ((1, 2, 3), ()),  # just as the row says
            ((4, 5, 6), ()),  # there already, whoever did it
            ((4, 5, 6), (BEGUN,)),
            ((4, 2, 3), (BEGUN,)),  # a step of this run
            ((2, 3, 1), (BEGUN,)),  # a cancel of this run restores the set, not the order
            ((1, 2, 3), (BEGUN,)),
        ],
    )
    def test_what_the_row_was_made_for_and_what_this_run_made_of_it(self, present, earlier):
        """Neither is a reason to refuse."""
        assert lists_for([ROW], found(*present), earlier, {TP} if earlier else None).wanted == {TP: TARGET}

    def test_what_an_earlier_plan_left_half_way(self):
        """Lists that were made anew for the state between name that one as their original."""
        between = replicas_of(4, 2, 3)
        again = PartitionMove(TP, "id", ORIGINAL, between, replicas_of(4, 5, 3))
        assert lists_for([Reassigned(TP, TARGET, between)], found(4, 5, 3), [again]).wanted == {TP: TARGET}

    def test_a_row_that_does_not_say(self):
        """It is KIP-236's, and optional."""
        assert lists_for([Reassigned(TP, TARGET)], found(7, 8)).wanted == {TP: TARGET}

    def test_a_partition_that_somebody_else_is_moving(self):
        """It is left to them, so nothing is said of it."""
        assert lists_for([ROW], found(9, 1, 2, 3, adding=(9,))).wanted == {TP: TARGET}

    @pytest.mark.parametrize(
        ("present", "earlier"),
        [
            ((1, 3, 2), ()),  # another preferred order is another state
            ((4, 2, 3), ()),
            ((7, 2, 3), (PartitionMove(TP, "id", ORIGINAL, ORIGINAL, ORIGINAL),)),  # of a run that this one took over
        ],
    )
    def test_any_other_state_is_refused(self, present, earlier):
        """With the partition and both lists."""
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
        """No reason to stop the rest: it is left out, and named."""
        lists = lists_for([ROW], found(*present), [errand], {TP})
        assert lists.wanted == {}
        assert [(row.tp, row.reason) for row in lists.skipped] == [(TP, "Drifted")]


class TestTopicsThatAreGone:
    def test_at_the_first_plan_it_is_a_mistake(self):
        """Refused by name; that it is not selected would be a wrong clue."""
        with pytest.raises(Refused) as refused:
            lists_for([ROW], {})
        assert refused.value.reason == "UnknownPartition"
        assert "t-0, which the cluster does not have" in refused.value.message

    @pytest.mark.parametrize(("earlier", "planned_before"), [((BEGUN,), None), ((), {TP})])
    def test_later_it_is_left_out_and_named(self, earlier, planned_before):
        """Whether the run had anything to do with it, or it was at its target all along."""
        lists = lists_for([ROW], {}, earlier, planned_before)
        assert lists.wanted == {}
        assert [(row.tp, row.reason) for row in lists.skipped] == [(TP, "TopicDeleted")]

    def test_later_a_name_that_was_not_there_before_is_a_mistake_too(self):
        """A misspelt row in lists that were edited meanwhile; what to do about it is said."""
        misspelt = Reassigned(TopicPartition("tt", 0), TARGET)
        with pytest.raises(Refused) as refused:
            lists_for([ROW, misspelt], {}, [BEGUN], {TP})
        assert refused.value.reason == "UnknownPartition"
        assert "tt-0, which the cluster does not have, nor had when" in refused.value.message

    def test_created_anew(self):
        """The lists were made for the topic that was there before."""
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
        """All that can be moved is, and what goes to broker 4 is on its way."""
        kafka.slow = {4}
        operator = OperatorInMemory(kafka)
        operator.assign(*rows, approval={"driftBudget": 0})
        await operator.until_true(lambda: kafka.flying == {"b-0"} and kafka.lists("a") == [[3, 2]])
        kafka.slow = set()
        return operator

    async def settled(self, kafka, operator):
        """Somebody changes one of the partitions, and what is in flight is cancelled, to plan again."""
        kafka.assign("d", 0, 4, 1)
        await operator.until_true(lambda: getattr(operator.rebalance.assessment.replanning, "ready", False))

    async def test_lists_that_were_made_for_another_state(self, kafka):
        """Nothing is moved, and it is carried out as soon as the lists are put right."""
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
        """One has arrived, one has come half the way, one was there before: none of them stops the rest."""
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
        """One that was being moved, and one that had nothing to do with it: both are named, and the rest goes on."""
        operator = await self.begun(kafka, *self.ROWS, self.DRIFTING)
        kafka.delete("b")
        kafka.delete("c")
        await self.settled(kafka, operator)
        await operator.until("Succeeded")
        assert kafka.lists("d") == [[3, 2]]
        assert operator.skipped == {"b-0": "TopicDeleted", "c-0": "TopicDeleted"}

    async def test_a_topic_that_was_deleted_before_the_spec_was_edited(self, kafka):
        """It had been at its target all along: the new spec goes on with the rest, too."""
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
        """It stays theirs, whatever comes: planned again, planned once more, and rolled back."""
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
        """Then it is the user's word."""
        operator = await self.begun(kafka, *self.ROWS, ("d", 0, [3, 2], [1, 2]))
        await self.settled(kafka, operator)
        await operator.until_true(lambda: operator.skipped == {"d-0": "Drifted"})
        operator.write(*self.ROWS, ("d", 0, [3, 2], [4, 1]))
        operator.edit(topics={"exclude": ["z"]})
        await operator.until("Superseded")
        await operator.until("Succeeded")
        assert (kafka.lists("d"), operator.skipped) == ([[3, 2]], {})

    async def test_a_topic_that_was_created_anew(self, kafka):
        """The lists are not about that one."""
        operator = await self.begun(kafka, *self.ROWS, self.DRIFTING)
        kafka.create("b", [[2, 1]], topic_id="id-2")
        await self.settled(kafka, operator)
        await operator.until("Succeeded")
        assert (kafka.lists("b"), operator.skipped) == ([[2, 1]], {"b-0": "TopicRecreated"})

    @pytest.mark.parametrize("topic", ["b", "c"])
    async def test_a_topic_that_only_some_brokers_know(self, kafka, topic):
        """No proof of deletion, moved or at its target all along: it is looked at again, and nothing is left out."""
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
        """It is refused, and not taken for a topic that was deleted; that one is left out, twice over."""
        operator = await self.begun(kafka, *self.ROWS, self.DRIFTING)
        kafka.delete("c")
        operator.write(*self.ROWS, self.DRIFTING, (*misspelt, [3, 2]))
        if restart:
            operator.restart()
        operator.edit(topics={"exclude": ["y"]})
        message = await operator.until("UnknownPartition")
        assert f"topic-partition {misspelt[0]}-{misspelt[1]}, which the cluster does not have" in message
        assert kafka.flying == {"b-0"}  # what is in flight goes on until there is a plan that wants it otherwise
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
        """Just created, say: it is looked for again, and not called a mistake."""
        kafka.unseen = {"a"}
        operator = OperatorInMemory(kafka)
        operator.assign(*self.ROWS)
        await operator.until("MetadataStale")
        kafka.unseen = set()
        await operator.until("Succeeded")
        assert kafka.lists("a") == [[3, 2]]

    async def test_a_name_that_the_cluster_never_had(self, kafka):
        """At the first plan it is a mistake."""
        operator = OperatorInMemory(kafka)
        operator.assign(*self.ROWS, ("unknown", 0, [1, 2]))
        assert "unknown-0" in await operator.until("UnknownPartition")
        assert kafka.altered == []
