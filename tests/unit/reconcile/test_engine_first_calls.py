"""Between the record of an origin and the first call, others may move the partition, and the operator may be killed."""

import copy
from dataclasses import replace

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.mortal_disk import Died
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.origin_runs import FAST, ONE, OTHERS, deleted, undone

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.store import OriginStore
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
        """The spec first asks for leaders only, then for other brokers. The election was not carried out.

        The record of it stays until Kafka has refused the first call too.
        """
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
        left = operator.rebalance.record.origins.get(TopicPartition("t", 0))
        assert (left.leader if left is not None else None) == (2 if how == "killed" else None)
        kafka.alter_reassignments = alter
        if how == "killed":
            operator.restart()
        kafka.assign("t", 0, 5, 4, 2)
        await operator.until("Succeeded")
        await undone(operator)
        assert kafka.lists("t") == [[5, 4, 2], *before[1:]]

    async def test_a_restart_forgets_nothing_of_what_was_confirmed(self, kafka):
        """After the second call of a partition the origin counts wherever the partition is."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {5}
        await operator.until_true(lambda: any(4 in held and 1 not in held for held in kafka.lists("t")))
        operator.restart()
        await deleted(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4


class TestRefusedFirstCall:
    """Kafka has certainly not carried it out. What others change later is theirs, also after a restart."""

    @pytest.fixture
    def kafka(self):
        return KafkaInMemory((1, 2, 3), t=[[1, 2]])

    @staticmethod
    def refuse(kafka, answers, code=AlterCode.NOT_AUTHORIZED):
        """Answer so, in turn and from then on with a refusal; returns what answers again."""
        alter = kafka.alter_reassignments

        async def refused(orders):
            if answers and answers.pop(0) == "lost":
                raise Transient("KafkaUnreachable", "no answer")
            return dict.fromkeys(orders, code)

        def permit():
            kafka.alter_reassignments = alter

        kafka.alter_reassignments = refused
        return permit

    @pytest.mark.parametrize("code", [AlterCode.NOT_AUTHORIZED, AlterCode.INVALID_REPLICA_ASSIGNMENT])
    @pytest.mark.parametrize(
        ("answers", "restarts", "rounds"),
        [([], "after it", 8), (["lost"], "after it", 40), (["lost"] * 4, "before it", 4)],
        ids=["at once", "after a lost answer", "after a restart"],
    )
    async def test_what_others_change_is_theirs(self, kafka, answers, restarts, rounds, code):
        permit = self.refuse(kafka, answers, code)
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2, 1]), throttle=FAST)
        for _ in range(rounds):
            await operator.round()
        operator.restart()
        for _ in range(40 if restarts == "before it" else 1):
            await operator.round()
        kafka.assign("t", 0, 2, 1)
        permit()
        await deleted(operator)
        assert kafka.lists("t") == [[2, 1]]
        assert kafka.altered == []

    @pytest.mark.parametrize(("was", "target", "slow"), [([1, 2], [2, 1], set()), ([1], [2], {2})])
    async def test_a_late_write_of_a_killed_operator_strikes_nothing_off(self, was, target, slow):
        """Its successor has sent the call, and Kafka has carried it out: the rollback leads back."""
        kafka = KafkaInMemory((1, 2, 3), t=[was])
        answers, asked = ["refused"], []
        permit = self.refuse(kafka, answers)
        operator = OperatorInMemory(kafka)
        replace_config_map = operator.kube.replace_config_map

        async def killed(name, body):
            if name.startswith("origins") and not answers:
                asked.append((name, copy.deepcopy(body)))
                raise Died
            return await replace_config_map(name, body)

        operator.kube.replace_config_map = killed
        operator.assign(("t", 0, target), throttle=FAST)
        with pytest.raises(Died):
            await operator.until_true(lambda: False)
        operator.kube.replace_config_map = replace_config_map
        permit()
        kafka.slow = slow
        operator.restart()
        await operator.until_true(lambda: bool(kafka.altered))
        with pytest.raises(Conflict):
            await replace_config_map(*asked[0])
        operator.restart()
        kafka.slow = set()
        await deleted(operator)
        assert kafka.lists("t") == [was]

    async def test_the_last_success_can_be_undone(self, kafka):
        """The edit after it has changed nothing, though the answer to its first call was lost."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers={"include": [2, 3]})
        await operator.until("Succeeded")
        permit = self.refuse(kafka, ["lost"])
        operator.edit(brokers={"include": [1, 3]})
        for _ in range(40):
            await operator.round()
        assert operator.state == "KafkaAuthorizationFailed"
        operator.edit(brokers={"include": [2, 3]})
        await operator.until("Succeeded", "NothingToDo")
        permit()
        await undone(operator)
        assert kafka.lists("t") == [[1, 2]]

    async def test_it_cannot_be_struck_off(self, kafka, monkeypatch):
        """The refusal is reported all the same, and the origin does not count any more."""
        permit = self.refuse(kafka, [])
        operator = OperatorInMemory(kafka)
        replace_config_map, failures = operator.kube.replace_config_map, []

        async def fails(name, body):
            if name.startswith("origins-") and operator.rebalance.record.run.started_at and kafka_has_refused():
                failures.append(name)
                raise Transient("KubernetesUnavailable", "no answer")
            return await replace_config_map(name, body)

        def kafka_has_refused():
            return not operator.rebalance.record.origins and len(failures) < 1

        monkeypatch.setattr(operator.kube, "replace_config_map", fails)
        operator.assign(("t", 0, [2, 1]), throttle=FAST)
        await operator.until("KafkaAuthorizationFailed")
        assert len(failures) == 1
        assert operator.rebalance.record.origins == {}
        kafka.assign("t", 0, 2, 1)
        permit()
        await deleted(operator)
        assert kafka.lists("t") == [[2, 1]]

    @pytest.mark.parametrize("restarted", [False, True])
    async def test_a_leader_that_was_elected_before_stays_on_record(self, kafka, restarted):
        """Only the list is as it was: an undo must still know which broker led the partition."""
        kafka.lead("t", 0, 2)
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, strategy="PreferredLeaders")
        elect, held = kafka.elect_preferred, []

        async def and_then_edited(orders):
            kafka.elect_preferred = elect
            held.extend(await elect(orders))
            operator.edit(strategy="MinimalMovement", brokers={"include": [2, 3]})
            raise Transient("KafkaUnreachable", "no answer")

        kafka.elect_preferred = and_then_edited
        self.refuse(kafka, [])
        await operator.until_true(lambda: bool(held))
        await operator.until("KafkaAuthorizationFailed")
        if restarted:
            operator.restart()
            for _ in range(40):
                await operator.round()
        (origin,) = (await OriginStore(operator.kube).load("u-1", operator.run.run_id)).values()
        assert (origin.leader, origin.first_call) == (2, origin.replicas)
