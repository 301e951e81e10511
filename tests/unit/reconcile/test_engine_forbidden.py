"""What Kafka does not permit costs only what needs it: one topic, one broker or one call, and not the cluster."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka.ports import AlterCode

ONE_MEBIBYTE = {"leaderRate": "1Mi", "followerRate": "1Mi"}


class Kafka(KafkaInMemory):
    """With ``alter_denied`` we may not alter reassignments: said of each partition, or of the call."""

    alter_denied = None

    async def alter_reassignments(self, orders):
        if self.alter_denied and orders:
            if self.alter_denied == "call":
                raise Permanent("KafkaAuthorizationFailed", "CLUSTER_AUTHORIZATION_FAILED")
            return dict.fromkeys(orders, AlterCode.NOT_AUTHORIZED)
        return await super().alter_reassignments(orders)


@pytest.fixture
def kafka():
    return Kafka([1, 2, 3, 4, 5], mine=[[1, 2, 3]] * 4, theirs=[[1, 2, 3]] * 2)


@pytest.fixture
def operator(kafka):
    return OperatorInMemory(kafka)


def drain_broker_1(*topics, **spec):
    return {"brokers": {"decommission": [1]}, "topics": {"include": topics}, "throttle": ONE_MEBIBYTE, **spec}


def apply_another(operator, *topics):
    """A rebalance of another team."""
    metadata = {"name": "b", "namespace": "other", "uid": "u-2", "creationTimestamp": NOON.isoformat()}
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}, **drain_broker_1(*topics, throttle={"unlimited": True})}
    operator._see(operator.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))


def ready_of_another(operator):
    status = operator.kube.resources[REBALANCES, "other", "b"]["status"]
    return next((c["reason"], c["message"]) for c in status["conditions"] if c["type"] == "Ready")


async def rounds(operator, count):
    for _ in range(count):
        await operator.round()


class TestTopicConfigs:
    async def forbidden_for_another(self, kafka, operator):
        """A rebalance runs, and another one needs a topic that is forbidden."""
        operator.apply(**drain_broker_1("mine"))
        kafka.slow = {4}
        await operator.until_true(lambda: kafka.flying)
        kafka.forbidden = {"theirs"}
        apply_another(operator, "theirs")
        await rounds(operator, 5)

    async def test_only_that_topic_waits(self, kafka, operator):
        """And only its resource says so."""
        await self.forbidden_for_another(kafka, operator)
        kafka.arrive()
        assert "theirs" not in await operator.until("Succeeded")
        assert all(1 not in replicas for replicas in kafka.lists("mine"))
        reason, message = ready_of_another(operator)
        assert reason == "Rebalancing"
        assert message.startswith("TopicForbidden (2, e.g. theirs-0: Kafka does not allow us to describe theirs)")
        kafka.forbidden = set()
        await rounds(operator, 40)
        assert ready_of_another(operator)[0] == "Succeeded"

    async def test_a_rollback_beside_it(self, kafka, operator):
        await self.forbidden_for_another(kafka, operator)
        operator.delete()
        kafka.slow = set()
        await rounds(operator, 30)
        assert (REBALANCES, "kafka", "r") not in operator.kube.resources
        assert kafka.lists("mine") == [[1, 2, 3]] * 4
        assert kafka.values == {}

    async def test_a_throttle_that_cannot_be_read_stays_on_record(self, kafka, operator):
        """Until it can be read again; the others are restored meanwhile."""
        operator.apply(**drain_broker_1("mine", "theirs"))
        kafka.slow = {4, 5}
        await operator.until_true(lambda: kafka.flying)
        await rounds(operator, 5)
        listed = {topic for topic, name in kafka.values if name.endswith("replicas")}
        assert "theirs" in listed
        kafka.forbidden = {"theirs"}
        kafka.arrive()
        await rounds(operator, 90)
        assert operator.run.open
        assert {topic for topic, name in kafka.values if name.endswith("replicas")} == {"theirs"}
        assert "not allow us to describe theirs" in operator.message
        kafka.forbidden = set()
        await operator.until("Succeeded")
        assert kafka.values == {}


class TestTopics:
    async def test_a_topic_that_is_hidden_meanwhile_is_not_deleted(self, kafka, operator):
        """Kafka leaves it out of "all topics" without an error."""
        operator.apply(**drain_broker_1("mine", "theirs", execution={"parallelPartitionCount": 1}))
        await operator.until_true(lambda: kafka.altered)
        kafka.hidden = {"theirs"}
        await rounds(operator, 120)
        assert operator.run.open
        assert operator.skipped == {}
        assert all(1 not in replicas for replicas in kafka.lists("mine"))
        assert operator.message.startswith("TopicForbidden (2, e.g. theirs-0: Kafka does not allow us to describe")
        kafka.hidden = set()
        await operator.until("Succeeded")
        assert all(1 not in replicas for replicas in kafka.lists("theirs"))


class TestTopicsThatCannotBeRead:
    async def test_a_rollback_waits_for_the_topic(self, kafka, operator):
        """An error for the topic is no proof of its deletion: the origins stay until everything is back."""
        operator.apply(**drain_broker_1("mine", execution={"parallelPartitionCount": 2}))
        await operator.until_true(lambda: any(1 not in replicas for replicas in kafka.lists("mine")))
        kafka.slow = {1, 4, 5}
        await operator.until_true(lambda: kafka.flying)
        kafka.failing = {"mine"}
        operator.delete()
        kafka.altered = []
        await rounds(operator, 20)
        assert (REBALANCES, "kafka", "r") in operator.kube.resources
        assert operator.skipped == {}
        assert kafka.altered == []
        kafka.failing = set()
        kafka.arrive()
        await operator.until_true(lambda: (REBALANCES, "kafka", "r") not in operator.kube.resources)
        assert kafka.lists("mine") == [[1, 2, 3]] * 4

    async def test_a_run_goes_on_when_it_answers_again(self, kafka, operator):
        """Whether the reading of all topics failed, or the one by name."""
        operator.apply(**drain_broker_1("mine", "theirs", execution={"parallelPartitionCount": 1}))
        await operator.until_true(lambda: kafka.altered)
        kafka.failing = {"theirs"}
        await rounds(operator, 60)
        assert operator.run.open
        assert all(1 not in replicas for replicas in kafka.lists("mine"))
        assert operator.message.startswith("MetadataMissing (2, e.g. theirs-0: ")
        kafka.failing = set()
        await operator.until("Succeeded")
        assert all(1 not in replicas for replicas in kafka.lists("theirs"))


class TestBrokerConfigs:
    async def test_only_copies_that_need_a_rate_there_wait(self, kafka, operator):
        kafka.forbidden = {4}
        operator.assign(("mine", 0, [4, 2, 3]), ("mine", 1, [5, 2, 3]), throttle=ONE_MEBIBYTE)
        await rounds(operator, 30)
        assert kafka.lists("mine")[:2] == [[1, 2, 3], [5, 2, 3]]
        assert "not allow us to describe 4" in operator.message
        kafka.forbidden = set()
        await operator.until("Succeeded")
        assert kafka.values == {}


class TestReassignments:
    @pytest.mark.parametrize("said_of", ["call", "partitions"])
    async def test_throttles_are_restored_all_the_same(self, kafka, operator, said_of):
        """Without the permission to alter reassignments."""
        operator.apply(**drain_broker_1("mine"))
        kafka.slow = {4, 5}
        await operator.until_true(lambda: kafka.flying)
        await rounds(operator, 3)
        kafka.alter_denied = said_of
        kafka.arrive()
        await operator.until("KafkaAuthorizationFailed")
        await rounds(operator, 30)
        assert {name for _, name in kafka.values if name.endswith("replicas")} == set()
        kafka.alter_denied = None
        await operator.until("Succeeded")
        assert kafka.values == {}
