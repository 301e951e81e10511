"""Between the record of an origin and the first call, others may move the partition, and the operator may be killed."""

from dataclasses import replace

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.origin_runs import FAST, ONE, OTHERS, deleted, undone

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.model.topology import TopicPartition


@pytest.fixture
def kafka():
    return KafkaInMemory(range(1, 8), t=[[1, 2, 3]] * 4)


class TestFirstCall:
    """A record precedes the first call. It counts only while the partition is as recorded, or as that call makes it."""

    @staticmethod
    async def recorded_only(kafka, how):
        """The origins of all partitions are on record, and Kafka has carried out nothing."""
        operator = OperatorInMemory(kafka)
        alter, refused = kafka.alter_reassignments, []

        async def fails(orders):
            refused.extend(orders)
            if how == "refused":
                return dict.fromkeys(orders, AlterCode.INVALID_REPLICA_ASSIGNMENT)
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_reassignments = fails
        operator.apply(throttle=FAST, brokers=OTHERS)
        await operator.until_true(lambda: bool(refused))
        kafka.alter_reassignments = alter
        if how == "killed":
            operator.restart()
        return operator

    @pytest.mark.parametrize("how", ["killed", "no answer", "refused"])
    @pytest.mark.parametrize("end", [undone, deleted])
    async def test_what_others_moved_before_it_was_sent_is_theirs(self, kafka, how, end):
        """The same brokers in another order, or a list between origin and target: neither has drifted."""
        operator = await self.recorded_only(kafka, how)
        theirs = [[3, 2, 1], [1, 2, 4], [1, 2, 3], [5, 4, 6]]
        for number, replicas in enumerate(theirs):
            kafka.assign("t", number, *replicas)
        if end is undone:
            await operator.until("Succeeded")
            assert all(set(held) == {4, 5, 6} for held in kafka.lists("t"))
        await end(operator)
        assert kafka.lists("t") == theirs

    @pytest.mark.parametrize("how", ["killed", "no answer", "refused"])
    async def test_a_reassignment_of_others_is_not_cancelled(self, kafka, how):
        """It was begun after the record, and adds a broker that the plan names."""
        operator = await self.recorded_only(kafka, how)
        kafka.slow = {4, 5, 6}
        theirs = TopicPartition("t", 2)
        await kafka.alter_reassignments({theirs: (1, 2, 3, 5)})
        operator.delete()
        for _ in range(5):
            await operator.round()
        assert kafka.flying == {"t-2"}
        kafka.arrive()
        await operator.until_true(lambda: not operator.kube.resources)
        assert kafka.lists("t") == [[1, 2, 3], [1, 2, 3], [1, 2, 3, 5], [1, 2, 3]]

    @pytest.mark.parametrize("in_flight", [True, False])
    @pytest.mark.parametrize("end", ["deleted", "deleted after a restart", "goes on"])
    async def test_what_was_sent_goes_back_though_the_answer_was_lost(self, kafka, in_flight, end):
        """In flight, arrived, and after any later step."""
        operator = OperatorInMemory(kafka)
        alter, lost = kafka.alter_reassignments, []

        async def loses(orders):
            await alter(orders)
            lost.extend(orders)
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_reassignments = loses
        kafka.slow = {4, 5, 6}
        operator.apply(throttle=FAST, brokers=OTHERS, execution={"parallelPartitionCount": 4})
        await operator.until_true(lambda: bool(lost))
        kafka.alter_reassignments = alter
        if not in_flight:
            kafka.arrive()
        if end != "deleted":
            operator.restart()
        if end == "goes on":
            kafka.arrive()
            await operator.until_true(lambda: all(1 not in held for held in kafka.lists("t")))
            operator.restart()
        await deleted(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4

    @pytest.mark.parametrize("how", ["metadata lags", "carried out late"])
    async def test_what_does_not_show_yet_goes_back(self, kafka, how):
        """Deleted right after the first call: the broker that answers is behind, or the call is still on its way."""
        operator = OperatorInMemory(kafka)
        alter, describe, sent = kafka.alter_reassignments, kafka.describe_partitions, {}
        before = await describe()

        async def lags(topics=None):
            return before

        async def loses(orders):
            sent.update(orders)
            if how == "metadata lags":
                kafka.describe_partitions = lags
                return await alter(orders)
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_reassignments = loses
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        await operator.until_true(lambda: bool(sent))
        kafka.alter_reassignments = alter
        operator.delete()
        for _ in range(4):
            await operator.round()
        kafka.describe_partitions = describe
        if how == "carried out late":
            await alter(sent)
        await operator.until_true(lambda: not operator.kube.resources)
        assert kafka.lists("t") == [[1, 2, 3]] * 4

    async def test_an_election_is_no_first_call(self, kafka):
        """It precedes another plan, and changes no list. What others move after it is theirs."""
        operator = await self.recorded_only(kafka, "killed")
        tp, led = TopicPartition("t", 0), []
        kafka.states[tp] = replace(kafka.states[tp], leader=2)
        elect = kafka.elect_preferred

        async def and_then_others(orders):
            kafka.elect_preferred = elect
            led.extend(orders)
            answer = await elect(orders)
            kafka.assign("t", 0, 5, 4, 2)
            return answer

        kafka.elect_preferred = and_then_others
        operator.edit(brokers={"include": [4, 5, 7]})
        await operator.until_true(lambda: bool(led))
        await operator.until("Succeeded")
        assert led[0] == tp
        await undone(operator)
        assert kafka.lists("t") == [[5, 4, 2], *[[1, 2, 3]] * 3]

    @pytest.mark.parametrize("how", ["killed", "refused"])
    async def test_the_first_call_after_an_election(self, how):
        """The spec first asks for leaders only, then for other brokers. The record of the election stays."""
        before = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        kafka = KafkaInMemory(range(1, 8), t=before)
        kafka.lead("t", 0, 2)
        operator = OperatorInMemory(kafka)
        elect, alter, asked, refused = kafka.elect_preferred, kafka.alter_reassignments, [], []

        async def unanswered(orders):
            asked.extend(orders)
            raise Transient("KafkaUnreachable", "no answer")

        async def fails(orders):
            refused.extend(orders)
            if how == "refused":
                return dict.fromkeys(orders, AlterCode.INVALID_REPLICA_ASSIGNMENT)
            raise Transient("KafkaUnreachable", "no answer")

        kafka.elect_preferred, kafka.alter_reassignments = unanswered, fails
        operator.apply(throttle=FAST, strategy="PreferredLeaders")
        await operator.until_true(lambda: asked == [TopicPartition("t", 0)])
        kafka.elect_preferred = elect
        operator.edit(strategy="MinimalMovement", brokers=OTHERS)
        await operator.until_true(lambda: len(refused) > len(before))
        assert operator.rebalance.record.origins[TopicPartition("t", 0)].leader == 2
        kafka.alter_reassignments = alter
        if how == "killed":
            operator.restart()
        kafka.assign("t", 0, 5, 4, 2)
        await operator.until("Succeeded")
        await undone(operator)
        assert kafka.lists("t") == [[5, 4, 2], *before[1:]]

    async def test_another_first_call(self, kafka):
        """The answer was lost, and the limits are others now: whichever call Kafka has carried out goes back."""
        operator = OperatorInMemory(kafka)
        alter, held_back = kafka.alter_reassignments, []

        async def late(orders):
            held_back.append(dict(orders))
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_reassignments = late
        operator.apply(throttle=FAST, brokers=OTHERS)
        await operator.until_true(lambda: bool(held_back))
        operator.edit(execution={"parallelReplicaCount": 3})
        await operator.until_true(lambda: len(held_back[-1]) and held_back[-1] != held_back[0])
        kafka.alter_reassignments = alter
        kafka.slow = {4, 5, 6}
        await alter(held_back[0])
        await deleted(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4

    async def test_a_restart_forgets_nothing_of_what_was_confirmed(self, kafka):
        """After the second call of a partition the origin counts wherever the partition is."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {5}
        await operator.until_true(lambda: any(4 in held and 1 not in held for held in kafka.lists("t")))
        operator.restart()
        await deleted(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4
