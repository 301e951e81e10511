"""The record of a run is written without an answer: what is stored counts, not what is in memory."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.origin_runs import FAST
from tests.unit.reconcile.renamed_resources import BEFORE, SPEC, Renamed, renamed_half_way
from tests.unit.reconcile.test_engine_cordons import FOUR, Brokers

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import RunOutcome


def lose_one(monkeypatch, concerns, then):
    """The answer to the first write of a run that ``concerns``; ``then`` is called."""
    save, lost = RunStore.save, []

    async def saved(store, run, *check):
        await save(store, run, *check)
        if concerns(run) and not lost:
            lost.append(run)
            then()
            raise Transient("ApiServerUnreachable", "no answer")

    monkeypatch.setattr(RunStore, "save", saved)
    return lost


async def test_an_undo_that_is_not_asked_for_any_more_begins_at_once_or_never(monkeypatch):
    """A restart some day must not begin it."""
    kafka = KafkaInMemory((1, 2), t=[[1], [1], [1], [1]])
    operator = OperatorInMemory(kafka)
    operator.apply()
    await operator.until("Succeeded")
    lost = lose_one(monkeypatch, lambda run: run.undo, lambda: operator.order(UNDO_ANNOTATION, ""))
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.until_true(lambda: bool(lost))
    for _ in range(30):
        await operator.round()
    there, state = kafka.lists("t"), operator.state
    operator.restart()
    for _ in range(30):
        await operator.round()
    assert (kafka.lists("t"), operator.state) == (there, state)


@pytest.mark.parametrize("held", [True, False])
async def test_a_run_whose_start_is_stored_is_no_heir(monkeypatch, held):
    """It would inherit nothing, and the origins of the other one would be lost."""
    operator = await renamed_half_way()
    kafka = operator.kafka
    kafka.create("u", [[1, 2, 3]] * 2)

    def suspend():
        operator._see(operator.kube.edit(REBALANCES, "kafka", "new", execution={"suspend": True}))

    then = suspend if held else operator.delete
    lost = lose_one(monkeypatch, lambda run: run.uid == "u-new" and run.started_at is not None, then)
    operator.apply_another(**SPEC, topics={"include": ["u"]}, takesOver="r")
    await operator.until_true(lambda: bool(lost))
    if held:
        await operator.until_true(lambda: operator.state_of() == "Suspended")
        operator.delete()
    await operator.until_true(lambda: not operator.exists("r"))
    kafka.arrive()
    operator.delete_another()
    await operator.until_true(lambda: not operator.exists("new"))
    assert [sorted(held) for held in kafka.lists("t")] == BEFORE


async def test_a_success_that_is_stored_is_reported(monkeypatch):
    """The problem of its record is over once the record is read."""
    operator = OperatorInMemory(KafkaInMemory((1, 2), t=[[1], [1], [1], [1]]))
    lost = lose_one(monkeypatch, lambda run: run.outcome is RunOutcome.SUCCEEDED, lambda: None)
    operator.apply()
    await operator.until("Succeeded")
    assert lost


async def test_a_rollback_that_was_handed_over_moves_nothing_any_more(monkeypatch):
    """Its heir is deleted meanwhile: that one goes back, and the first one is let go (overlapping seed 1709)."""
    operator = await renamed_half_way()
    kafka = operator.kafka
    lost = lose_one(monkeypatch, lambda run: run.outcome is RunOutcome.TAKEN_OVER, operator.delete_another)
    operator.delete()
    operator.apply_another(**SPEC)
    kafka.arrive()
    await operator.until_true(lambda: bool(lost))
    there, orders = kafka.lists("t"), []
    monkeypatch.setattr(kafka, "alter_reassignments", lambda submitted: refused(orders, submitted))
    await operator.until_true(lambda: not operator.exists("r"))
    assert (kafka.lists("t"), orders) == (there, [])


async def refused(orders, submitted):
    orders.append(submitted)
    raise Transient("KafkaUnreachable", "no answer")


async def test_an_undo_that_was_withdrawn_is_not_recorded_later(monkeypatch):
    """The API server may carry out the request much later than the operator has read that it did not."""
    operator = OperatorInMemory(KafkaInMemory((1, 2), t=[[1], [1], [1], [1]]))
    operator.apply()
    await operator.until("Succeeded")
    kube, late = operator.kube, []
    replace_config_map = kube.replace_config_map

    async def replaced(name, body):
        if not late and '"undo": true' in body.get("data", {}).get("run.json", ""):
            late.append((name, body))
            operator.order(UNDO_ANNOTATION, "")
            raise Transient("ApiServerUnreachable", "no answer")
        return await replace_config_map(name, body)

    monkeypatch.setattr(kube, "replace_config_map", replaced)
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.until_true(lambda: bool(late))
    for _ in range(30):
        await operator.round()
    with pytest.raises(Conflict):
        await replace_config_map(*late[0])


async def test_the_end_of_a_run_that_leaves_a_cordon(monkeypatch):
    """The cordon of the dead broker stays in the ledger until the record of the run is read again."""
    kafka = Brokers(range(1, 8), t=[[1, 2, 4]] * 2, u=[[1, 2, 3]] * 2)
    kafka.slow = {3, 5, 6, 7}
    operator = Renamed(kafka)
    operator.apply(throttle=FAST, brokers={"decommission": [4]}, topics={"include": ["t"]})
    await operator.until_true(lambda: bool(kafka.flying))
    slow = {"leaderRate": 50, "followerRate": 50}
    operator.apply_another(throttle=slow, brokers={"include": [1, 6, 7]}, topics={"include": ["u"]})
    await operator.until_true(lambda: {tp[0] for tp in kafka.flying} >= {"t", "u"})
    kafka.die(FOUR)
    lost = lose_one(monkeypatch, lambda run: run.uid == "u-1" and not run.open, lambda: None)
    operator.delete()
    await operator.until_true(lambda: not operator.exists("r"))
    assert (len(lost), operator.records.kept["cordons"]) == (1, [FOUR])
    kafka.come_back()
    await operator.until_true(lambda: not kafka.cordoned)
