"""While a slow API server, or a broker that hangs, holds up a call, the partition of the call changes."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import BrokerId, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FAST = {"unlimited": True}
RATES = {"leaderRate": "10Mi", "followerRate": "10Mi"}
EXECUTION = {"parallelPartitionCount": 2, "brokerSettleTime": "1s", "maxUnhealthy": 100}
MOVED = [7, 8, 9]


class WithDescriptions(KafkaInMemory):
    """Counts its descriptions. ``described``: what happens in each of the next ones, before it is answered.

    ``sent``: each order with the state of its partition just before.
    """

    def __init__(self, *args, **topics):
        super().__init__(*args, **topics)
        self.descriptions, self.described, self.sent = 0, [], []

    async def describe_partitions(self, topics=None, listed=None):
        self.descriptions += 1
        if self.described:
            self.described.pop(0)()
        return await super().describe_partitions(topics, listed)

    async def alter_reassignments(self, orders):
        self.sent += [(tp, to, self.states[tp]) for tp, to in orders.items()]
        return await super().alter_reassignments(orders)

    def nulls(self):
        return [(tp, state) for tp, to, state in self.sent if to is None]

    def first_of(self, tp):
        """The partition before its first order."""
        return next((state for name, _, state in self.sent if name == tp), None)


def while_recorded(operator, event, seconds=14):
    """``event`` happens while the next record of origins is written, which takes so long."""
    replace_map, create_map, left = operator.kube.replace_config_map, operator.kube.create_config_map, [event]

    async def write(name, real, *args):
        if left and name.startswith("origins-"):
            operator.clock.at += timedelta(seconds=seconds)
            left.pop()()
        return await real(*args)

    operator.kube.replace_config_map = lambda name, body: write(name, replace_map, name, body)
    operator.kube.create_config_map = lambda body: write(body["metadata"]["name"], create_map, body)


def set_up(throttle=FAST):
    kafka = WithDescriptions(range(1, 10), t=[[1, 2, 3]] * 2)
    operator = OperatorInMemory(kafka)
    operator.apply(throttle=throttle, brokers={"include": [4, 5, 6]}, execution=EXECUTION)
    return kafka, operator


async def rounds(operator, number):
    for _ in range(number):
        await operator.round()


class TestCancellations:
    async def in_sync(self):
        """Two copies are in sync, and their reassignments are about to end."""
        kafka, operator = set_up()
        kafka.values["t", "min.insync.replicas"] = "2"
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: len(kafka.flying) == 2)
        await rounds(operator, 2)
        for tp, state in kafka.states.items():
            kafka.states[tp] = replace(state, isr=state.isr.union(state.adding))
        kafka.sent.clear()
        return kafka, operator

    @staticmethod
    def die(kafka, tps=(T0, T1)):
        for tp in tps:
            kafka.states[tp] = replace(kafka.states[tp], isr=kafka.states[tp].isr - {2, 3})

    async def test_the_last_copies_in_sync_are_not_given_up(self):
        """Two of the original replicas leave the ISR in the meantime. The null is sent when they are back."""
        kafka, operator = await self.in_sync()
        while_recorded(operator, lambda: self.die(kafka))
        operator.delete()
        await rounds(operator, 5)
        assert not kafka.nulls()
        assert "CancelBelowMinInsyncReplicas" in operator.message
        for tp, state in kafka.states.items():
            kafka.states[tp] = replace(state, isr=frozenset(state.replicas))
        await operator.until_true(lambda: len(kafka.nulls()) == 2)
        assert all(len(state.isr - set(state.adding)) == 3 for _, state in kafka.nulls())

    async def test_other_partitions_do_not_wait(self):
        """That of which nothing has changed is cancelled in this round."""
        kafka, operator = await self.in_sync()
        while_recorded(operator, lambda: self.die(kafka, [T0]))
        operator.delete()
        await rounds(operator, 2)
        assert [tp for tp, _ in kafka.nulls()] == [T1]


class TestFirstCalls:
    async def undone(self, kafka, operator):
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
        await operator.until("Undone")
        return kafka.lists("t")

    async def test_a_move_of_others_that_is_complete_is_the_origin(self):
        """An undo leads back to what they have made of the partition."""
        kafka, operator = set_up()
        while_recorded(operator, lambda: kafka.assign("t", 0, *MOVED))
        await operator.until_true(lambda: kafka.first_of(T1))
        assert not kafka.first_of(T0)
        assert T0 not in operator.rebalance.record.origins
        assert await self.undone(kafka, operator) == [MOVED, [1, 2, 3]]

    async def test_the_same_if_a_broker_hangs_while_its_rate_is_set(self):
        """Then the API server is fast."""
        kafka, operator = set_up(RATES)
        alter, left = kafka.alter_broker_configs, [True]

        async def hang(changes):
            if left:
                left.clear()
                operator.clock.at += timedelta(seconds=10)
                kafka.assign("t", 0, *MOVED)
            return await alter(changes)

        kafka.alter_broker_configs = hang
        assert await self.undone(kafka, operator) == [MOVED, [1, 2, 3]]

    async def test_a_partition_that_cannot_be_described(self):
        """Nothing is sent for it in this round, and the record says so."""
        kafka, operator = set_up()
        while_recorded(operator, lambda: kafka.failing.add("t"))
        for _ in range(10):
            await operator.round()
        assert kafka.failing
        assert not kafka.sent
        assert not operator.rebalance.record.origins
        kafka.failing.clear()
        await operator.until("Succeeded")

    async def test_no_answer(self):
        """The round ends, and the next one sends the calls."""
        kafka, operator = set_up()

        def fail():
            raise Transient("KafkaUnreachable", "no answer")

        before = []
        while_recorded(operator, lambda: (kafka.described.append(fail), before.append(kafka.descriptions)))
        while not before:
            await operator.round()
        assert kafka.descriptions == before[0] + 1
        assert not kafka.sent
        await operator.until("Succeeded")

    async def test_the_others_do_not_wait_until_the_record_is_struck_off(self):
        """That takes as long again: another tool may change these then."""
        kafka, operator = set_up()
        replace_map, sent = operator.kube.replace_config_map, []

        async def strike(name, body):
            if name.startswith("origins-") and kafka.states[T0].replicas == tuple(MOVED):
                sent.append([tp for tp, _, _ in kafka.sent])
            return await replace_map(name, body)

        operator.kube.replace_config_map = strike
        while_recorded(operator, lambda: kafka.assign("t", 0, *MOVED))
        await operator.until_true(lambda: len(sent) == 2)
        assert sent == [[], [T1]]

    @pytest.mark.parametrize(("seconds", "more"), [(1, 0), (3, 1)])
    async def test_a_quick_round_reads_nothing_more(self, seconds, more):
        """Only one in which records or throttles have taken their time."""
        kafka, operator = set_up()
        kafka.slow = {4, 5, 6}
        at = []
        while_recorded(operator, lambda: at.append(kafka.descriptions), seconds)
        alter = kafka.alter_reassignments

        async def note(orders):
            at.append(kafka.descriptions)
            return await alter(orders)

        kafka.alter_reassignments = note
        await operator.until_true(lambda: len(at) > 1)
        assert at[1] - at[0] == more


class TestDrops:
    async def test_replicas_out_of_sync_since_are_not_the_last_ones(self):
        """A list that leaves out a replica waits, if others of the ISR have left it in the meantime."""
        kafka = WithDescriptions(range(1, 4), t=[[1, 2, 3]])
        kafka.values["t", "min.insync.replicas"] = "2"
        operator = OperatorInMemory(kafka)
        operator.apply(strategy="ForcedMovesOnly", replicationFactor=2, throttle=FAST, execution=EXECUTION)

        def leave():
            kafka.states[T0] = replace(kafka.states[T0], isr=frozenset({BrokerId(1), BrokerId(3)}))

        while_recorded(operator, leave)
        await rounds(operator, 10)
        assert all(len(state.isr.intersection(to)) >= 2 for _, to, state in kafka.sent)

    async def test_a_broker_that_hangs_while_log_dirs_are_read(self):
        """The list that has waited for a replica in sync was chosen by what was read before that."""
        kafka = WithDescriptions(range(1, 5), t=[[1, 2, 3]])
        kafka.values["t", "min.insync.replicas"] = "2"
        operator = OperatorInMemory(kafka)
        spec = {"throttle": FAST, "execution": EXECUTION}
        operator.apply(strategy="ForcedMovesOnly", brokers={"decommission": [3]}, **spec)
        kafka.slow = {4}
        await operator.until_true(lambda: kafka.flying)

        def in_sync(*brokers):
            kafka.states[T0] = replace(kafka.states[T0], isr=frozenset(map(BrokerId, brokers)))

        kafka.arrive()
        in_sync(1, 3)
        await rounds(operator, 5)
        assert [to for _, to, _ in kafka.sent] == [(1, 2, 3, 4), (1, 2, 4, 3)]
        in_sync(1, 2, 3, 4)
        read, left = operator.engine._rounds._log_dirs.read, [True]

        async def hang(running):
            if left:
                left.clear()
                operator.clock.at += timedelta(seconds=10)
                in_sync(1, 3)
            return await read(running)

        operator.engine._rounds._log_dirs.read = hang
        await rounds(operator, 5)
        assert not left
        assert len(kafka.sent) == 2
        in_sync(1, 2, 3, 4)
        await operator.until("Succeeded")
        assert kafka.lists("t") == [[1, 2, 4]]
