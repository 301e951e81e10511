"""A plan waits for open runs that are not loaded; nothing else does."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import Run


@pytest.fixture
async def waiting():
    """A rebalance that has moved partitions and wants a new plan; another run of the cluster is not loaded."""
    kafka = KafkaInMemory((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply(execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in kafka.lists("t"))
    metadata = {"name": "r2", "namespace": "kafka", "uid": "u-2", "creationTimestamp": NOON.isoformat()}
    operator.kube.create(REBALANCES, {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    await RunStore(operator.kube).save(Run("u-2", "kafka", "r2", "c", "run-2", "other", "plan-2", NOON - timedelta(1)))
    operator.edit(topics={"exclude": ["u"]})
    await operator.until_true(lambda: "whose open run is not loaded here" in (operator.message or ""))
    return kafka, operator


async def test_a_deletion_does_not_wait_for_a_run_that_is_not_loaded(waiting):
    """Its rollback makes no plan."""
    kafka, operator = waiting
    operator.delete()
    await operator.until_true(lambda: "u-1" not in operator.engine.rebalances)
    assert kafka.lists("t") == [[1]] * 4


async def test_a_spec_that_is_edited_back_does_not_wait_for_a_run_that_is_not_loaded(waiting):
    """The plan that is resumed was made before."""
    kafka, operator = waiting
    operator.edit(topics={})
    await operator.until("Succeeded")
    assert sorted(kafka.lists("t")) == [[1], [1], [2], [2]]


async def test_a_run_that_may_not_be_read_is_named(waiting, monkeypatch):
    """The message says whose it is, and what to do."""
    _, operator = waiting
    get = operator.kube.get

    async def forbidden(plural, namespace, name):
        if name == "r2":
            raise Forbidden("no role there any more")
        return await get(plural, namespace, name)

    monkeypatch.setattr(operator.kube, "get", forbidden)
    await operator.until_true(lambda: "no role there" in (operator.message or ""))
    assert "KafkaRebalance kafka/r2" in operator.message
    assert "uid=u-2" in operator.message
