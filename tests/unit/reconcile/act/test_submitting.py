"""Which calls are sent at once, and which wait until their throttle is in place."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act import submitting
from kafka_rebalance.reconcile.act.submitting import at_once, copies

TPS = [TopicPartition("t", number) for number in range(3)]
ONE_AND_TWO = replicas_of(1, 2)
CLUSTER = ClusterState(
    "c", {}, {tp: PartitionState(tp, "id", ONE_AND_TWO, frozenset(ONE_AND_TWO), ONE_AND_TWO[0]) for tp in TPS}
)
TO_COPY = {tp: replicas_of(1, 2, 3) for tp in TPS[:2]}
TO_DROP = {TPS[2]: replicas_of(1)}
ORDERS = Orders(cancels=(TPS[2],), alters={**TO_COPY, **TO_DROP}, elections=(TPS[2],))


class TestCopies:
    def test_a_copy_waits_until_each_of_its_replicas_is_throttled(self):
        """The other partitions of its topic do not wait for it."""
        assert copies(ORDERS, CLUSTER, {("t", "0:3")}) == Orders(alters={TPS[1]: TO_COPY[TPS[1]]})

    def test_one_replica_of_another_topic_does_not_matter(self):
        """A topic and a partition belong together."""
        assert copies(ORDERS, CLUSTER, {("other", "0:3")}) == Orders(alters=TO_COPY)

    def test_without_a_throttle_none_starts(self):
        """It could not be set at all: nothing is copied at full speed."""
        assert copies(ORDERS, CLUSTER, None) == Orders()


class TestAtOnce:
    def test_what_copies_nothing_needs_no_throttle(self):
        """Cancels, elections and drops are sent before the throttle is looked at."""
        assert at_once(ORDERS, CLUSTER) == Orders(cancels=(TPS[2],), alters=TO_DROP, elections=(TPS[2],))


class TestTheLog:
    async def test_one_line_for_all_that_are_refused(self, caplog, monkeypatch):
        """A server may refuse 100,000 of them in each round. The audit log has each."""
        kafka = KafkaInMemory([1, 2, 3], t=[[1, 2]] * 20)

        async def refuse(orders):
            return dict.fromkeys(orders, AlterCode.INVALID_REPLICA_ASSIGNMENT)

        monkeypatch.setattr(kafka, "alter_reassignments", refuse)
        operator = OperatorInMemory(kafka)
        operator.assign(*(("t", n, [3, 2]) for n in range(20)))
        caplog.set_level("INFO", logger=submitting.__name__)
        await operator.until_true(lambda: bool(caplog.messages))
        text = "reassign of t-0, t-1, t-2 and 17 more answered InvalidReplicaAssignment; looking again"
        assert caplog.messages == [f"kafka/r: {text}"]


class TestARefusedOrder:
    async def test_no_leader_is_elected(self, monkeypatch):
        """The list is not in the order that the run wants: the election would move the leader elsewhere, or back."""
        kafka = KafkaInMemory([1, 2], t=[[1, 2]])
        kafka.lead("t", 0, 2)
        asked = []

        async def refuse(orders):
            asked.extend(orders.values())
            return dict.fromkeys(orders, AlterCode.INVALID_REPLICA_ASSIGNMENT)

        monkeypatch.setattr(kafka, "alter_reassignments", refuse)
        await submitting.submit(kafka, Orders(alters={TPS[0]: replicas_of(2, 1)}), await _cluster(kafka))
        await submitting.submit(kafka, Orders(alters={TPS[0]: replicas_of(1, 2)}), await _cluster(kafka))
        assert len(asked) == 2
        assert kafka.elected == []


async def _cluster(kafka):
    return ClusterState("c", {}, await kafka.describe_partitions())


class TestManyRefusals:
    @pytest.mark.parametrize("at_once", [0, 1])
    async def test_are_followed_by_pauses_that_grow(self, monkeypatch, at_once):
        """Before each attempt, the origins of all are recorded. When Kafka accepts the orders, all go on.

        The orders that copy nothing have a call of their own, before the copies of each round.
        """
        kafka = KafkaInMemory([1, 2, 3], t=[[1, 2]] * (20 + at_once))
        accept, attempts = kafka.alter_reassignments, []

        async def refuse(orders):
            attempts.append(len(orders))
            return dict.fromkeys(orders, AlterCode.INVALID_REPLICA_ASSIGNMENT)

        monkeypatch.setattr(kafka, "alter_reassignments", refuse)
        monkeypatch.setattr(submitting, "_MANY_REFUSED", 20, raising=False)
        operator = OperatorInMemory(kafka)
        operator.assign(*(("t", n, [3, 2] if n < 20 else [2, 1]) for n in range(20 + at_once)))
        await operator.until_true(lambda: 20 in attempts)
        for _ in range(13):  # seconds: attempts after 2 and 6 of them, the next one after 14
            await operator.round()
        assert attempts == [*[1] * at_once, 20] * 3
        why = f"OrderRefused ({20 + at_once}, e.g. t-{20 * at_once}: Kafka answered InvalidReplicaAssignment"
        assert why in operator.message
        monkeypatch.setattr(kafka, "alter_reassignments", accept)
        await operator.until_true(lambda: "OrderRefused" not in operator.message)
        await operator.until("Succeeded")
