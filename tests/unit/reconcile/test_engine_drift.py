"""Partitions that other tools have changed: they leave the run, and if there are too many, its plan is abandoned."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.renamed_resources import FAST, Renamed

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION


async def test_the_round_that_abandons_a_plan_starts_no_copy_of_it():
    """The remaining partitions are not moved. Completed moves are rolled back."""
    kafka = KafkaInMemory((1, 2, 3), t=[[1]] * 12)
    operator = OperatorInMemory(kafka)
    operator.apply(brokers={"include": [1, 2]}, approval={"driftBudget": 0}, execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: [2] in kafka.lists("t"))
    for number in (n for n, held in enumerate(kafka.lists("t")) if held == [1] and n % 2):
        kafka.assign("t", number, 3)
    ordered = kafka.altered
    for _ in range(20):
        if operator.state != "Drifted":
            ordered = list(kafka.altered)
            await operator.round()
    assert operator.state == "Drifted"
    assert [to for _, to in kafka.altered[len(ordered) :] if len(to) > 1] == []


async def undone_except_one():
    """The cluster and an operator that undoes a run, except for u-0, from which another tool has removed a replica."""
    kafka = KafkaInMemory((1, 2, 3, 4), t=[[1, 2]], u=[[1, 2]])
    operator = Renamed(kafka)
    operator.assign(("t", 0, [2, 4]), ("u", 0, [2, 3]), throttle=FAST)
    await operator.until("Succeeded")
    kafka.slow = {1, 3}
    kafka.assign("u", 0, 2)
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.until_true(lambda: operator.skipped == {"u-0": "Drifted"})
    return kafka, operator


async def test_a_rollback_leaves_what_another_rebalance_moves():
    """Another tool has removed a replica, so the rollback left the partition alone. The copy goes to its broker."""
    kafka, operator = await undone_except_one()
    operator.apply_another(throttle=FAST, topics={"include": ["u"]}, replicationFactor=2, brokers={"include": [2, 3]})
    await operator.until_true(lambda: "u-0" in kafka.flying)
    sent = len(kafka.altered)
    for _ in range(5):
        await operator.round()
    assert kafka.altered[sent:] == []
    kafka.arrive()
    await operator.until_true(lambda: operator.state_of() == "Succeeded")


async def test_a_rollback_leaves_a_copy_that_was_planned_again():
    """The other one continues the copy with its new plan, whose partitions are judged after those of the rollback."""
    kafka, operator = await undone_except_one()
    spec = {"topics": {"include": ["u"]}, "replicationFactor": 2}
    operator.apply_another(throttle=FAST, brokers={"include": [2, 3]}, **spec)
    await operator.until_true(lambda: "u-0" in kafka.flying)
    sent, new = len(kafka.altered), operator.engine.rebalances["u-new"]
    opened = new.record.run.planning_hash
    operator.see(operator.kube.edit(REBALANCES, "kafka", "new", brokers={"include": [2, 3], "decommission": [4]}))
    for _ in range(10):
        await operator.round()
    assert new.record.run.planning_hash != opened
    assert kafka.altered[sent:] == []


async def test_a_deletion_says_that_it_left_what_another_rebalance_moves():
    """An edit without a plan left a completed move in place, and another rebalance has begun to move it further."""
    kafka = KafkaInMemory((1, 2, 3), t=[[1]], u=[[1]])
    operator = Renamed(kafka)
    operator.apply(throttle=FAST, brokers={"include": [2]}, execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: kafka.lists("t") == [[2]])
    kafka.slow = {2, 3}
    operator.edit(topics={"include": ["u"]}, brokers={"include": [99]})
    await operator.until_true(lambda: operator.skipped == {"t-0": "LeftInPlace"})
    operator.apply_another(throttle=FAST, topics={"include": ["t"]}, brokers={"include": [3]})
    await operator.until_true(lambda: "t-0" in kafka.flying)
    operator.delete()
    await operator.until_true(lambda: not operator.exists("r"))
    reason, message = operator.kube.events[-1]
    assert (reason, message.endswith("; left as they are: t-0 (LeftInPlace)")) == ("RolledBackPartially", True)
    assert kafka.flying == {"t-0"}


@pytest.mark.parametrize("way", ["edit", "deletion"])
async def test_what_another_rebalance_has_left_alone_is_cancelled(way):
    """The other one runs, and its plan names the partition. But it does not move it, so it does not go first."""
    kafka = KafkaInMemory((1, 2, 3, 4), t=[[1]], u=[[1]])
    kafka.slow = {2}
    operator = Renamed(kafka)
    budget = {"driftBudget": 100}
    operator.assign(
        ("t", 0, [2]), ("u", 0, [2]), throttle=FAST, execution={"parallelPartitionCount": 1}, approval=budget
    )
    await operator.until_true(lambda: bool(kafka.flying))
    moving = "t" if kafka.flying == {"t-0"} else "u"
    other = ({"t", "u"} - {moving}).pop()
    kafka.assign(other, 0, 3)
    await operator.until_true(lambda: operator.skipped == {f"{other}-0": "Drifted"})
    kafka.slow = {2, 4}
    spec = {"topics": {"include": [other]}, "throttle": FAST, "deletionPolicy": "Revert"}
    operator.apply_another(brokers={"include": [4]}, **spec)
    await operator.until_true(lambda: f"{other}-0" in kafka.flying)
    if way == "edit":
        operator.see(operator.kube.edit(REBALANCES, "kafka", "new", brokers={"include": [1]}))
    else:
        operator.delete_another()
    await operator.until_true(lambda: kafka.altered[-1] == (f"{other}-0", None))
