"""What is missing, as the resources of a cluster say it."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reconcile.observe.permission_probe import (
    ASK_AGAIN_SECONDS,
    MAX_TOPICS,
    PermissionProbe,
    hidden_topics,
)


@pytest.fixture
def kafka():
    return KafkaInMemory([1, 2, 3, 4], orders=[[1, 2, 3]] * 4, payroll=[[1]] * 3)


@pytest.fixture
def operator(kafka):
    return OperatorInMemory(kafka)


def drain_broker_1(operator):
    operator.apply(brokers={"decommission": [1]}, throttle={"unlimited": True})


class TestHidden:
    """Kafka leaves a topic that we may not describe out of all topics."""

    async def test_a_broker_is_not_taken_for_empty(self, kafka, operator):
        kafka.hidden = {"payroll"}
        drain_broker_1(operator)
        await operator.until("Succeeded")
        drained = operator.condition("Drained")
        assert (drained["status"], drained["reason"]) == ("False", "NotDrained")
        assert "payroll-0, payroll-1, payroll-2" in drained["message"]

    async def test_it_is_said_while_the_rebalance_runs(self, kafka, operator):
        kafka.hidden, kafka.slow = {"payroll"}, {2, 3, 4}
        drain_broker_1(operator)
        await operator.until_true(lambda: operator.condition("Permitted"))
        permitted = operator.condition("Permitted")
        assert (permitted["status"], permitted["reason"]) == ("False", "PermissionsMissing")
        assert permitted["message"].startswith("Describe on topic payroll is not permitted (plans, the health gate")
        kafka.hidden = set()
        await operator.until_true(lambda: not operator.condition("Permitted"))

    async def test_a_topic_that_was_just_deleted_is_not_hidden(self, kafka):
        dirs = await kafka.log_dirs([1])
        kafka.delete("payroll")
        assert await hidden_topics(kafka, dirs, await kafka.describe_partitions()) == set()

    async def test_a_server_shows_very_many(self):
        """The probe asks for the first ``MAX_TOPICS`` of them, and keeps only those."""
        topics = [f"x{number:04}" for number in range(MAX_TOPICS + 5)]
        kafka = KafkaInMemory([1], orders=[[1]], **{topic: [[1]] for topic in topics})
        kafka.hidden = set(topics)
        probe = PermissionProbe(kafka, StoppedClock())
        await probe.compare(await kafka.log_dirs([1]), await kafka.describe_partitions())
        await probe.look({"orders"})
        (hidden,) = probe.missing
        assert hidden.operation == "Describe"
        assert sorted(hidden.topics) == topics[:MAX_TOPICS]

    async def test_log_dirs_that_may_not_be_read(self, kafka, operator):
        """Then it cannot be proved, and is said."""
        kafka.dirs_denied = Permanent("KafkaAuthorizationFailed", "Kafka does not allow us to describe the log dirs")
        drain_broker_1(operator)
        await operator.until("Succeeded")
        drained = operator.condition("Drained")
        assert (drained["status"], drained["reason"]) == ("Unknown", "DrainUnproved")
        assert "does not allow us to describe the log dirs" in drained["message"]


class TestCondition:
    async def test_comes_and_goes(self, kafka, operator):
        """A permission that is missing is named before anything fails for it."""
        kafka.may -= {"AlterConfigs"}
        kafka.slow = {2, 3, 4}
        drain_broker_1(operator)
        await operator.until_true(lambda: operator.condition("Permitted"))
        assert "AlterConfigs on the cluster is not permitted" in operator.condition("Permitted")["message"]
        kafka.may |= {"AlterConfigs"}
        for _ in range(int(ASK_AGAIN_SECONDS) + 2):
            await operator.round()
        assert operator.condition("Permitted") is None

    async def test_while_nothing_can_be_read(self, kafka, operator):
        async def refuse():
            raise Permanent("KafkaAuthorizationFailed", "CLUSTER_AUTHORIZATION_FAILED")

        kafka.list_reassignments = kafka.describe_partitions = lambda *_: refuse()
        kafka.may = frozenset()
        drain_broker_1(operator)
        await operator.until("KafkaAuthorizationFailed")
        assert operator.condition("Permitted")["message"].startswith("Alter on the cluster is not permitted")
