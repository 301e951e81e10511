"""The end of a run says what has become of it."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient

WHERE = (REBALANCES, "kafka", "r")


def cluster():
    return KafkaInMemory((1, 2, 3), t=[[1], [1], [1], [1]])


async def test_deleted_between_the_last_look_and_the_end():
    """Everything had arrived, and nothing goes back: that is no rollback. The next round carries out the deletion."""
    operator = OperatorInMemory(cluster())
    operator.apply(throttle={"unlimited": True}, brokers={"include": [1, 2]})
    patch, deleted = operator.kube.patch_status, []

    async def then_deleted(*arguments):
        if operator.rebalance.assessment.statuses.by_partition and operator.rebalance.assessment.statuses.finished:
            operator.kube.patch_status = patch
            written = await patch(*arguments)
            deleted.append(operator.run.open)
            operator.delete()
            return written
        return await patch(*arguments)

    operator.kube.patch_status = then_deleted
    await operator.until_true(lambda: WHERE not in operator.kube.resources)
    assert deleted == [True]
    assert operator.kafka.lists("t") == [[1]] * 4


async def test_created_again_before_its_deletion_was_reported(monkeypatch):
    """The reply to the removal of the finalizer is lost. The new resource does not get the status of the old one."""
    operator = OperatorInMemory(cluster())
    operator.apply()
    await operator.until("Succeeded")
    patch = operator.kube.patch_finalizers

    async def without_answer(*arguments):
        monkeypatch.setattr(operator.kube, "patch_finalizers", patch)
        body = await patch(*arguments)
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-2"}
        operator.kube.create(REBALANCES, {"metadata": metadata, "spec": body["spec"]})
        raise Transient("ApiServerUnreachable", "no answer", 1.0)

    monkeypatch.setattr(operator.kube, "patch_finalizers", without_answer)
    operator.delete()
    await operator.until_true(lambda: not operator.engine.rebalances)
    assert operator.kube.resources[WHERE]["metadata"]["uid"] == "u-2"
    assert "status" not in operator.kube.resources[WHERE]


async def test_kept_by_the_finalizer_of_another():
    """Nothing more is said: it is not being planned."""
    operator = OperatorInMemory(cluster())
    operator.apply(approval={"policy": "Manual"})
    await operator.until("AwaitingApproval")
    operator.kube.resources[WHERE]["metadata"]["finalizers"].append("example.com/theirs")
    operator._see(operator.kube.resources[WHERE])
    operator.delete()
    for _ in range(5):
        await operator.round()
    assert operator.kube.resources[WHERE]["metadata"]["finalizers"] == ["example.com/theirs"]
    assert operator.state != "Planning"


async def test_a_broker_that_gets_its_replicas_back_is_not_drained():
    """The condition does not vanish when the undo begins: somebody may wait for it to shut the broker down."""
    operator = OperatorInMemory(KafkaInMemory((1, 2, 3), t=[[1], [2], [3], [1]]))
    operator.apply(throttle={"unlimited": True}, brokers={"decommission": [1]})
    await operator.until("Succeeded")
    assert operator.condition("Drained")["status"] == "True"
    operator.kafka.slow = {1}
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.until("Undoing")
    assert operator.condition("Drained")["status"] == "False"


@pytest.mark.parametrize("others", [0, 8])
async def test_a_topic_created_again_on_a_broker_that_is_emptied(others):
    """Its partitions are moved by a new plan. The old one was about another topic."""
    kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 2, u=[[1]] * others)
    kafka.slow = {2, 3}
    operator = OperatorInMemory(kafka)
    operator.apply(brokers={"decommission": [1]}, throttle={"unlimited": True}, execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: bool(kafka.flying))
    kafka.delete("t")
    kafka.create("t", [[1]] * 2, topic_id="id-2")
    kafka.arrive()
    await operator.until("Succeeded")
    assert operator.condition("Drained")["status"] == "True"
    assert not any(1 in replicas for replicas in kafka.lists("t"))
