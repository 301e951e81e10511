"""How many rounds the calls of a step take."""

import copy
import threading

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution import schedule
from kafka_rebalance.kube.store import OriginStore
from kafka_rebalance.reconcile import sending
from kafka_rebalance.reconcile.decide import copy_pace


async def replaced(kafka):
    """A rebalance that moves all replicas of t-0 to brokers 4, 5 and 6, one at a time; the first copy is in sync."""
    operator = OperatorInMemory(kafka)
    kafka.slow = {4, 5, 6}
    operator.apply(brokers={"include": [4, 5, 6]}, throttle={"unlimited": True})
    await operator.until_true(lambda: bool(kafka.flying))
    kafka.arrive()
    kafka.altered.clear()
    return operator


class TestCallsOfARound:
    async def test_an_election_the_drop_after_it_and_the_next_copy(self):
        """Each call is based on a reading after the previous call."""
        kafka = KafkaInMemory((1, 2, 3, 4, 5, 6), t=[[1, 2, 3]])
        operator = await replaced(kafka)
        first = kafka.states[next(iter(kafka.states))].replicas[0]
        await operator.round()
        assert kafka.elected == ["t-0"]
        assert [len(to) for _, to in kafka.altered] == [3, 4]
        assert all(to[0] == first for _, to in kafka.altered)

    async def test_a_partition_without_an_effect_waits_for_the_next_round(self):
        """Metadata may be older than the call: the same call is not sent twice in a round, and nothing follows it."""
        kafka = Lagging((1, 2, 3, 4, 5, 6), t=[[1, 2, 3]])
        operator = await replaced(kafka)
        kafka.shown = copy.copy(kafka.states)
        await operator.round()
        assert (kafka.elected, kafka.altered) == (["t-0"], [])
        kafka.shown = None
        await operator.round()
        assert [len(to) for _, to in kafka.altered] == [3, 4]

    async def test_a_reading_after_a_call_uses_a_listing_after_that_call(self):
        """Readings of a round share a listing, which does not show the effects of calls that were sent after it."""
        kafka = Listening((1, 2, 3, 4, 5, 6), t=[[1, 2, 3]])
        operator = await replaced(kafka)
        kafka.heard.clear()
        await operator.round()
        assert [what for what in kafka.heard if what != "read"] == ["list", "call", "list", "call", "list", "call"]

    async def test_a_round_elects_no_more_leaders_than_l(self):
        """The calls that follow are only for the partitions of the first ones."""
        kafka = KafkaInMemory((1, 2, 3, 4, 5, 6), t=[[1, 2, 3]] * 5)
        operator = OperatorInMemory(kafka)
        kafka.slow = {4, 5, 6}
        operator.apply(
            brokers={"include": [4, 5, 6]}, throttle={"unlimited": True}, execution={"parallelLeaderMovements": 5}
        )
        await operator.until_true(lambda: len(kafka.flying) == 5)
        kafka.arrive()
        operator.edit(execution={"parallelLeaderMovements": 2})
        await operator.round()
        assert len(kafka.elected) == 2

    async def test_a_start_that_cannot_be_recorded_is_tried_once(self, monkeypatch):
        """Calls without a copy and copies are chosen one after the other; nothing is sent before the record."""
        kafka = KafkaInMemory((1, 2), t=[[1, 2], [2, 1]])
        kafka.lead("t", 0, 2)
        operator, tried = OperatorInMemory(kafka), []

        async def fails(_store, uid, *_):
            tried.append(uid)
            raise Transient("ApiServerUnreachable", "no answer")

        monkeypatch.setattr(OriginStore, "replace", fails)
        operator.apply(strategy="PreferredLeaders")
        await operator.until_true(lambda: bool(tried))
        assert (tried, kafka.elected) == (["u-1"], [])


class TestWhileVeryManyAreInFlight:
    """Most rounds send no copies then, so they need half the requests."""

    @staticmethod
    async def full(monkeypatch, to):
        """Of 80 partitions, 40 of topic t are in flight, from brokers 3, which leads, and 1 to these."""
        monkeypatch.setattr(copy_pace, "_MANY", 5)
        monkeypatch.setattr(copy_pace, "_MANY_PER_BROKER", 0)
        kafka = Listening((1, 2, 3), t=[[3, 1]] * 41, u=[[3, 1]] * 39)
        operator, kafka.slow = OperatorInMemory(kafka), {2}
        limits = {"parallelPartitionCount": 40, "parallelLeaderMovements": 40, "maxPerBroker": {"in": 99, "out": 99}}
        rows = [(tp.topic, tp.partition, to) for tp in kafka.states]
        operator.assign(*rows, throttle={"unlimited": True}, execution=limits)
        await operator.until_true(lambda: len(kafka.flying) == 40)
        kafka.heard.clear()
        return operator, kafka

    async def test_more_than_a_round_sends_follow_in_the_next_rounds(self, monkeypatch):
        """What is in flight grows to P without a pause."""
        monkeypatch.setattr(copy_pace, "_MANY", 5)
        monkeypatch.setattr(copy_pace, "_MANY_PER_BROKER", 0)
        monkeypatch.setattr(schedule, "MOST_CALLS", 10)
        kafka = KafkaInMemory(range(1, 7), t=[[1 + number % 3] for number in range(99)])
        operator, kafka.slow, in_flight = OperatorInMemory(kafka), {4, 5, 6}, []
        limits = {"parallelPartitionCount": 35, "parallelLeaderMovements": 40, "maxPerBroker": {"in": 99, "out": 99}}
        rows = [("t", number, [4 + number % 3]) for number in range(99)]
        operator.assign(*rows, throttle={"unlimited": True}, execution=limits)
        await operator.until_true(lambda: bool(kafka.flying))
        for _ in range(4):
            in_flight.append(len(kafka.flying))
            await operator.round()
        assert in_flight == [10, 20, 30, 35]

    @staticmethod
    def arrive(kafka, count):
        for tp in [tp for tp, state in kafka.states.items() if state.in_flight][:count]:
            kafka._complete(tp)
        kafka.altered.clear()

    async def test_arrived_copies_are_replaced_together(self, monkeypatch):
        """Once a tenth of them has arrived. The calls that end a step do not wait, and are not read again."""
        operator, kafka = await self.full(monkeypatch, [3, 2])
        self.arrive(kafka, 3)
        await operator.round()
        assert (len(kafka.altered), len(kafka.flying)) == (3, 37)
        assert kafka.heard == ["list", "read", "call"]
        self.arrive(kafka, 1)
        await operator.round()
        assert (len(kafka.altered), len(kafka.flying)) == (5, 40)

    async def test_none_waits_longer_than_three_seconds(self, monkeypatch):
        operator, kafka = await self.full(monkeypatch, [3, 2])
        self.arrive(kafka, 1)
        for in_flight in (39, 39, 40):
            await operator.round()
            assert len(kafka.flying) == in_flight

    async def test_the_drop_after_an_election_does_not_wait(self, monkeypatch):
        operator, kafka = await self.full(monkeypatch, [2, 3])
        self.arrive(kafka, 1)
        await operator.round()
        assert (kafka.elected, kafka.altered) == (["t-0"], [("t-0", [2, 3])])
        assert len(kafka.flying) == 39

    async def test_copies_that_could_not_be_sent_do_not_wait_for_others(self, monkeypatch):
        """The list of one of two topics could not be changed."""
        operator, kafka = await self.full(monkeypatch, [3, 2])
        operator.edit(throttle={"leaderRate": "1Mi", "followerRate": "1Mi"})
        self.arrive(kafka, 2)
        for _ in range(2):
            await operator.round()
        alter, choice_for, chosen = kafka.alter_topic_configs, sending.choice_for, []

        async def refuses(changes):
            return await alter({topic: of for topic, of in changes.items() if topic != "u"}) | {"u": "not now"}

        def noted(*arguments, copying):
            chosen.append(copying)
            return choice_for(*arguments, copying=copying)

        kafka.alter_topic_configs = refuses
        await operator.round()
        assert len(kafka.flying) == 39
        monkeypatch.setattr(sending, "choice_for", noted)
        await operator.round()
        assert chosen == [False, True]


class Listening(KafkaInMemory):
    """``heard``: the listings, readings of named topics, and calls, in order."""

    def __init__(self, *arguments, **topics):
        super().__init__(*arguments, **topics)
        self.heard = []

    async def list_reassignments(self):
        self.heard.append("list")
        return await super().list_reassignments()

    async def describe_partitions(self, topics=None, listed=None):
        if topics is not None:
            assert listed is not None
            self.heard.append("read")
        return await super().describe_partitions(topics, listed)

    async def alter_reassignments(self, orders):
        self.heard.append("call")
        return await super().alter_reassignments(orders)

    async def elect_preferred(self, partitions):
        self.heard.append("call")
        return await super().elect_preferred(partitions)


class Lagging(KafkaInMemory):
    """Describes partitions as they were ``shown`` before, if that is set."""

    shown = None

    async def describe_partitions(self, topics=None, listed=None):
        if self.shown is None:
            return await super().describe_partitions(topics, listed)
        now, self.states = self.states, self.shown
        try:
            return await super().describe_partitions(topics)
        finally:
            self.states = now


async def test_copies_are_chosen_off_the_event_loop(monkeypatch):
    """A server can claim disks for which the search for an order of the copies takes long, in each round."""
    threads = {True: set(), False: set()}
    choice_for = sending.choice_for

    def noted(*arguments, copying=True):
        choice = choice_for(*arguments, copying=copying)
        return lambda: threads[copying].add(threading.current_thread()) or choice()

    monkeypatch.setattr(sending, "choice_for", noted)
    operator = await replaced(KafkaInMemory((1, 2, 3, 4, 5, 6), t=[[1, 2, 3]]))
    await operator.round()
    assert threads[True]
    assert threading.main_thread() not in threads[True]
    assert threads[False] == {threading.main_thread()}
