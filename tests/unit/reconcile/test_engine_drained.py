"""The condition Drained is never True while the operator knows of a replica on the brokers that are emptied."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import FAST, Renamed

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Transient

NEW = (REBALANCES, "kafka", "new")


def says_drained(status):
    return any((c["type"], c["status"]) == ("Drained", "True") for c in status.get("conditions", ()))


class Draining(Renamed):
    """``held``: each time that ``r`` begins to say that broker 3 is drained, whether a replica is there.

    ``lost``: how many such statuses do not reach the API server. ``deleted``: whether ``r`` is deleted just after one.
    """

    def __init__(self, kafka, *, lost=0, deleted=False):
        super().__init__(kafka)
        self.held, self.lost, patch = [], lost, self.kube.patch_status

        async def patch_status(plural, namespace, name, body):
            if name != "r" or not says_drained(body["status"]) or says_drained(self.status):
                return await patch(plural, namespace, name, body)
            if self.lost:
                self.lost -= 1
                raise Transient("ApiServerUnreachable", "no answer", 1.0)
            self.held.append(any(3 in held for held in kafka.lists("t")))
            written = await patch(plural, namespace, name, body)
            if deleted:
                self.delete()
            return written

        self.kube.patch_status = patch_status


@pytest.mark.parametrize("lost", [0, 1])
async def test_another_rebalance_moves_a_replica_there_after_the_proof(lost):
    """The proof of a round is older than the calls of the next one, so it is reported before these or not at all."""
    operator = Draining(KafkaInMemory((1, 2, 3), t=[[1], [2]]), lost=lost)
    operator.write(("t", 0, [3]))
    named = {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "lists", "key": "k"}}}
    operator.apply_another(**named, throttle=FAST, approval={"policy": "Manual"})
    await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")
    operator.apply(brokers={"decommission": [3]}, throttle=FAST)
    await operator.until_true(lambda: operator.rebalance.assessment.drain if not lost else not operator.lost)
    made = operator.kube.resources[NEW]["status"]["plan"]["hash"]
    operator.see(operator.kube.edit(*NEW, approval={"policy": "Manual", "planHash": made}))
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    await operator.until("Succeeded")
    assert True not in operator.held


async def test_deleted_before_the_run_is_closed():
    """The rollback moves replicas back to the broker, so it is not drained any more."""
    kafka = KafkaInMemory((1, 2, 3), t=[[1], [2], [3]])
    operator = Draining(kafka, deleted=True)
    operator.apply(brokers={"decommission": [3]}, throttle=FAST)
    await operator.until_true(lambda: operator.held)
    kafka.slow = {3}
    await operator.until_true(lambda: kafka.flying)
    assert operator.condition("Drained")["status"] == "False"


async def test_edited_while_it_is_proved():
    """The proof is about the brokers that the spec named before, so nothing is said of those that it names now."""
    kafka = KafkaInMemory((1, 2, 3, 4), t=[[1], [2], [3]])
    operator = Renamed(kafka)
    operator.apply(brokers={"decommission": [4]}, throttle=FAST)
    log_dirs, patch, held = kafka.log_dirs, operator.kube.patch_status, []

    async def edited_meanwhile(brokers):
        answers = await log_dirs(brokers)
        kafka.log_dirs, operator.kube.patch_status = log_dirs, patch_status
        operator.edit(brokers={"decommission": [3]})
        return answers

    async def patch_status(plural, namespace, name, body):
        if says_drained(body["status"]):
            held.append(any(3 in held for held in kafka.lists("t")))
        return await patch(plural, namespace, name, body)

    await operator.until_true(lambda: operator.rebalance.memory.empty_since is not None)
    kafka.log_dirs = edited_meanwhile
    await operator.until("Superseded")
    await operator.until("Succeeded")
    assert set(held) == {False}


async def test_edited_while_another_one_has_its_place():
    """It waits in the queue. What was said of the brokers that its spec named before is not said of the new ones."""
    kafka = KafkaInMemory((1, 2, 3, 4), t=[[1], [2], [3]])
    operator = Renamed(kafka)
    operator.apply(brokers={"decommission": [4]}, throttle=FAST)
    await operator.until("NothingToDo")
    assert operator.condition("Drained")["status"] == "True"
    kafka.slow = {4}
    operator.apply_another(brokers={"include": [4]}, throttle=FAST)
    await operator.until_true(lambda: kafka.flying)
    operator.edit(brokers={"decommission": [3]})
    await operator.until("Queued")
    assert operator.condition("Drained") is None
