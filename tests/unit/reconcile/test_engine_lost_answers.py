"""The record of a run is written without an answer: what is stored counts, not what is in memory."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.renamed_resources import BEFORE, SPEC, renamed_half_way

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import RunStore


def lose_one(monkeypatch, concerns, then):
    """The answer to the first write of a run that ``concerns``; ``then`` is called."""
    save, lost = RunStore.save, []

    async def saved(store, run):
        await save(store, run)
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
