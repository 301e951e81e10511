"""A resource is carried out once: also after it was restored without its status and records; and it may be deleted."""

from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import COMPLETED_ANNOTATION, REBALANCES, UNDO_ANNOTATION

R = (REBALANCES, "kafka", "r")


def backup(op):
    """What a backup keeps of the resource: not its status, its uid and its generation."""
    body = op.kube.resources[R]
    metadata = {**body["metadata"], "uid": "u-1", "generation": 1, "finalizers": []}
    return {"metadata": metadata, "spec": body["spec"]}


def restore(saved, kafka):
    """In another Kubernetes cluster, without the operator's records; the Kafka cluster has drifted."""
    op = OperatorInMemory(kafka)
    op.see(op.kube.create(REBALANCES, saved))
    return op


@pytest.fixture
async def op():
    op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]]))
    op.apply()
    await op.until("Succeeded")
    await op.round()
    return op


class TestRestored:
    async def test_nothing_is_moved_again(self, op):
        """It says why, also after a restart."""
        op.kafka.assign("t", 0, 1, 2)
        calls = list(op.kafka.altered)
        again = restore(backup(op), op.kafka)
        for _ in range(3):
            await again.round()
        assert (again.state, op.kafka.altered) == ("Succeeded", calls)
        assert "carried out before the resource was restored" in again.message
        again.restart()
        await again.round()
        assert again.state == "Succeeded"
        assert "before the resource was restored" in again.message
        assert again.status["completedAt"] == op.status["completedAt"]

    async def test_without_the_annotation(self, op):
        """As from Git: it is planned anew."""
        saved = backup(op)
        del saved["metadata"]["annotations"]
        op.kafka.assign("t", 0, 1, 2)
        again = restore(saved, op.kafka)
        await again.until("Planning", "Rebalancing")

    async def test_edited_afterwards(self, op):
        again = restore(backup(op), op.kafka)
        await again.until("Succeeded")
        again.edit(brokers={"decommission": [3]})
        await again.until_true(lambda: all(3 not in row for row in op.kafka.lists("t")))
        await again.until("Succeeded")

    async def test_deleted_afterwards(self, op):
        lists = op.kafka.lists("t")
        again = restore(backup(op), op.kafka)
        await again.until("Succeeded")
        again.delete()
        await again.round()
        assert R not in again.kube.resources
        assert op.kafka.lists("t") == lists

    async def test_an_undo_is_not_possible(self, op):
        """The origins were among the records."""
        again = restore(backup(op), op.kafka)
        await again.until("Succeeded")
        again.order(UNDO_ANNOTATION, op.run.plan_hash)
        await again.until("OriginsExpired")

    async def test_undone_before(self, op):
        op.order(UNDO_ANNOTATION, op.run.plan_hash)
        await op.until("Undone")
        await op.round()
        calls = list(op.kafka.altered)
        again = restore(backup(op), op.kafka)
        await again.until("Undone")
        assert op.kafka.altered == calls


class TestAnnotation:
    async def test_after_a_kill_before_it_was_written(self, op):
        del op.kube.resources[R]["metadata"]["annotations"][COMPLETED_ANNOTATION]
        op.restart()
        await op.round()
        assert COMPLETED_ANNOTATION in op.kube.resources[R]["metadata"]["annotations"]

    async def test_it_is_written_once(self, op):
        writes = len(op.kube.writes)
        for _ in range(5):
            await op.round()
        assert len(op.kube.writes) == writes

    async def test_not_on_another_of_its_name(self, op):
        """The resource was deleted and created again, which the watch has not reported yet."""
        del op.kube.resources[R]["metadata"]["annotations"][COMPLETED_ANNOTATION]
        op.restart()
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-2"}
        op.kube.create(REBALANCES, {"metadata": metadata, "spec": op.kube.resources[R]["spec"]})
        await op.round()
        assert "annotations" not in op.kube.resources[R]["metadata"]


class TestTimeToLive:
    async def test_deleted_after_it(self):
        """Nothing is moved back, and the records stay for an undo by uid."""
        op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]]))
        op.apply(ttlSecondsAfterFinished=60)
        await op.until("Succeeded")
        lists = op.kafka.lists("t")
        op.clock.at += timedelta(seconds=50)
        await op.round()
        assert R in op.kube.resources
        op.clock.at += timedelta(seconds=10)
        op.see(op.kube.resources[R])
        await op.round()
        op.see(op.kube.resources[R]) if R in op.kube.resources else None
        await op.round()
        assert R not in op.kube.resources
        assert op.kafka.lists("t") == lists
        assert any("run" in name for name in op.kube.config_maps)

    async def test_an_edit_just_before(self):
        """The watch has not reported the edit yet. It requests a new run, which is executed."""
        op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]]))
        op.apply(ttlSecondsAfterFinished=60)
        await op.until("Succeeded")
        await op.round()
        op.clock.at += timedelta(seconds=60)
        edited = op.kube.edit(*R, brokers={"decommission": [3]})
        await op.round()
        assert "deletionTimestamp" not in op.kube.resources[R]["metadata"]
        op.see(edited)
        await op.until_true(lambda: all(3 not in row for row in op.kafka.lists("t")))

    async def test_a_version_that_was_not_seen(self):
        """Another writer has changed the status.

        The resource is deleted when this version is seen, without an error.
        """
        op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]]))
        op.apply(ttlSecondsAfterFinished=60)
        await op.until("Succeeded")
        await op.round()
        op.clock.at += timedelta(seconds=60)
        op.kube._touch(op.kube.resources[R])
        await op.round()
        assert op.state == "Succeeded"
        op.see(op.kube.resources[R])
        await op.round()
        assert "deletionTimestamp" in op.kube.resources[R]["metadata"]

    async def test_edited_to_what_cannot_be_read(self):
        """The user wants to change the resource."""
        op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2], [1, 2]]))
        op.apply(ttlSecondsAfterFinished=60)
        await op.until("Succeeded")
        await op.round()
        op.clock.at += timedelta(seconds=60)
        op.edit(strategy="Guess")
        await op.round()
        assert "deletionTimestamp" not in op.kube.resources[R]["metadata"]
