"""The first call of a partition got no answer, or the operator was killed before it; then another call is chosen."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.mortal_disk import Died
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.origin_runs import FAST, deleted, undone

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import CALL_SECONDS, AlterCode
from kafka_rebalance.kube.store import OriginStore
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.arrival_proof import HUNG_SECONDS

TP = TopicPartition("t", 0)
FIRST, OTHER = replicas_of(1, 2), replicas_of(1, 3)


class Answering(KafkaInMemory):
    """``answers``: what Kafka answers to calls with this list instead of carrying them out; None: nothing, it fails.

    Each is in ``called``, in order.
    """

    def __init__(self, *held):
        super().__init__((1, 2, 3, 4, 5), t=[held])
        self.answers, self.called = {}, []

    async def alter_reassignments(self, orders):
        self.called += orders.values()
        if None in [self.answers.get(to, AlterCode.OK) for to in orders.values()]:
            raise Transient("KafkaUnreachable", "no answer")
        done = {tp: to for tp, to in orders.items() if to not in self.answers}
        refused = {tp: self.answers[to] for tp, to in orders.items() if to in self.answers}
        return {**await super().alter_reassignments(done), **refused}

    async def executed(self, *calls):
        """The calls that were held up in a broker are executed."""
        for call in calls:
            await KafkaInMemory.alter_reassignments(self, {TP: call})


@pytest.fixture
def kafka():
    return Answering(1)


@pytest.fixture(params=["killed", "unknown"])
def how(request):
    return request.param


async def edited(kafka, how):
    """A run whose first call was for broker 2, was not carried out, and whose plan leads to broker 3 now."""
    operator = OperatorInMemory(kafka)
    kafka.answers = {FIRST: AlterCode.UNKNOWN if how == "unknown" else None}
    operator.assign(("t", 0, [2]), throttle=FAST)
    await operator.until_true(lambda: kafka.called == [FIRST])
    if how == "killed":
        operator.restart()
    operator.write(("t", 0, [3]))
    operator.edit(topics={"include": ["t"]})
    return operator


async def on_record(operator):
    """What is stored, read by a store that remembers nothing."""
    return await OriginStore(operator.kube).load("u-1", operator.run.run_id) or {}


class TestRefused:
    """Kafka has carried out neither of the two calls: whatever others do is theirs."""

    @pytest.fixture(params=[AlterCode.NOT_AUTHORIZED, AlterCode.INVALID_REPLICA_ASSIGNMENT])
    async def operator(self, kafka, how, request):
        operator = await edited(kafka, how)
        kafka.answers[OTHER] = request.param
        await operator.until_true(lambda: OTHER in kafka.called)
        return operator

    async def test_nothing_is_on_record(self, operator):
        assert operator.rebalance.record.origins == await on_record(operator) == {}

    @pytest.mark.parametrize("theirs", [[1, 2], [1, 3], [3]])
    async def test_what_others_move_is_theirs(self, operator, kafka, theirs):
        """To brokers of the plans, so that nothing but the record shows who has moved it."""
        kafka.assign("t", 0, *theirs)
        kafka.answers = {}
        operator.restart()
        await deleted(operator)
        assert (kafka.lists("t"), kafka.altered) == ([theirs], [])

    async def test_a_reassignment_of_others_is_not_cancelled(self, operator, kafka):
        kafka.slow = {3}
        await kafka.executed(replicas_of(3))
        kafka.altered.clear()
        kafka.answers = {}
        operator.delete()
        for _ in range(int(CALL_SECONDS) + 5):
            await operator.round()
        assert (kafka.flying, kafka.altered) == ({"t-0"}, [])

    async def test_what_is_moved_later_goes_back(self, operator, kafka):
        """The right is granted."""
        kafka.answers = {}
        await operator.until("Succeeded")
        await undone(operator)
        assert kafka.lists("t") == [[1]]


class TestHeldBack:
    """The plan is the same, but its limits are edited. As long as Kafka may execute the first call, the other waits.

    A new plan waits anyway.
    """

    FIRST, OTHER = replicas_of(3, 1, 2), replicas_of(1, 2, 3, 4)

    @pytest.fixture
    def kafka(self):
        return Answering(1, 2)

    @pytest.fixture
    async def operator(self, kafka, how):
        """The first call was not carried out, and the next one adds two brokers at once."""
        operator = OperatorInMemory(kafka)
        kafka.answers = {self.FIRST: AlterCode.UNKNOWN if how == "unknown" else None}
        operator.assign(("t", 0, [3, 4]), throttle=FAST)
        await operator.until_true(lambda: kafka.called == [self.FIRST])
        if how == "killed":
            operator.restart(on_record=[1, 2, 3, 4, 5])
        operator.edit(execution={"parallelReplicaCount": 2})
        return operator

    @pytest.mark.parametrize("in_flight", [True, False])
    async def test_the_first_one_is_executed_late(self, operator, kafka, in_flight):
        for _ in range(int(CALL_SECONDS) - 3):
            await operator.round()
        assert self.OTHER not in kafka.called
        kafka.slow = {3} if in_flight else set()
        await kafka.executed(self.FIRST)
        await deleted(operator)
        assert kafka.lists("t") == [[1, 2]]

    async def test_it_is_in_a_broker_that_hangs(self, operator, kafka):
        """This broker passes the call on when it continues, up to a minute after the call."""
        hung = kafka.brokers.pop(BrokerId(5))
        for _ in range(int(HUNG_SECONDS) - 10):
            await operator.round()
        assert self.OTHER not in kafka.called
        kafka.brokers[hung.id] = hung
        await kafka.executed(self.FIRST)
        await deleted(operator)
        assert kafka.lists("t") == [[1, 2]]

    async def test_the_broker_is_dead(self, operator, kafka):
        del kafka.brokers[BrokerId(5)]
        await operator.until("Succeeded")
        assert (kafka.lists("t"), kafka.called[:2]) == ([[3, 4]], [self.FIRST, self.OTHER])

    async def test_the_status_says_so(self, operator, kafka):
        waiting = "MetadataStale (1, e.g. t-0: metadata does not show its last call yet"
        await operator.until_true(lambda: operator.state == "Rebalancing" and waiting in operator.message)
        assert self.OTHER not in kafka.called
        await operator.until("Succeeded")
        await undone(operator)
        assert kafka.lists("t") == [[1, 2]]


class TestSecondRecord:
    """The other call takes the place of the first one on record."""

    @pytest.mark.parametrize("in_flight", [True, False])
    @pytest.mark.parametrize("restarted", [True, False])
    async def test_its_answer_is_lost(self, kafka, how, in_flight, restarted):
        operator = await edited(kafka, how)
        kafka.answers[OTHER] = None
        await operator.until_true(lambda: OTHER in kafka.called)
        kafka.slow = {3} if in_flight else set()
        await kafka.executed(OTHER)
        kafka.answers = {}
        if restarted:
            operator.restart()
        await deleted(operator)
        assert kafka.lists("t") == [[1]]

    async def test_killed_before_it_is_sent(self, kafka, how, monkeypatch):
        """Lists of others are theirs."""
        operator = await edited(kafka, how)

        async def dies(orders):
            raise Died

        with monkeypatch.context() as patched:
            patched.setattr(kafka, "alter_reassignments", dies)
            with pytest.raises(Died):
                await operator.until_true(lambda: False)
        (origin,) = (await on_record(operator)).values()
        assert (origin.replicas, origin.first_call) == (replicas_of(1), OTHER)
        operator.restart()
        kafka.assign("t", 0, 3, 2)
        await deleted(operator)
        assert kafka.lists("t") == [[3, 2]]

    async def test_back_and_forth(self, kafka, how):
        """The first call is asked for again: what is on record is what was sent last."""
        operator = await edited(kafka, how)
        kafka.answers[OTHER] = AlterCode.UNKNOWN
        await operator.until_true(lambda: OTHER in kafka.called)
        kafka.answers = {FIRST: AlterCode.NOT_AUTHORIZED}
        operator.write(("t", 0, [2]))
        operator.edit(topics={"exclude": ["other"]})
        await operator.until("KafkaAuthorizationFailed")
        assert await on_record(operator) == {}
