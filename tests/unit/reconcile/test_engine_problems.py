"""The error of a stage is reported until that stage has succeeded, or has nothing to do any more."""

import asyncio
import dataclasses
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.stopped_clock import NOON
from tests.fakes.walked_operator import NARROWER, applied, flying
from tests.unit.reconcile.renamed_resources import Renamed

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.reconcile.state.memory import Problem


async def unreachable(*_arguments):
    raise Transient("ApiServerUnreachable", "no answer")


@pytest.mark.parametrize("method", ["append", "replace"], ids=["origins of a call", "the start"])
async def test_a_record_that_is_no_longer_needed(method, monkeypatch):
    """The topic is deleted before the record is tried again, so nothing is sent."""
    operator = applied()
    await operator.until_open()
    with monkeypatch.context() as failing:
        failing.setattr(operator.engine._stores.origins, method, unreachable)
        await operator.until("ApiServerUnreachable")
    operator.kafka.delete("t")
    await operator.until("Succeeded")


async def test_a_start_that_waits():
    """Nothing can be sent for now. The state shows this reason, and not the former problem."""
    operator = applied(execution={"maxUnhealthy": 0})
    await operator.until_open()
    origins = operator.engine._stores.origins
    replace, origins.replace = origins.replace, unreachable
    await operator.until("ApiServerUnreachable")
    states = operator.kafka.states
    states |= {tp: dataclasses.replace(state, isr=frozenset(), leader=None) for tp, state in states.items()}
    for _ in range(5):
        await operator.round()
    origins.replace = replace
    await operator.until("ClusterUnhealthy")


async def test_a_start_that_is_on_record():
    """As after a run was taken over that had started."""
    operator = await flying()
    operator.rebalance.memory = operator.rebalance.memory.__class__(
        problem=Problem("record the start", Transient("ApiServerUnreachable", "no answer")),
        prepared=operator.rebalance.memory.prepared,
        retry_at=operator.clock.monotonic() + 5,
    )
    operator.clock.at = NOON + timedelta(minutes=1)
    operator.kafka.arrive()
    await operator.until("Succeeded")


@pytest.mark.parametrize(
    ("problem", "state"),
    [
        (Transient("ApiServerUnreachable", "no answer"), "Queued"),
        (Refused("InvalidSpec", "not possible"), "InvalidSpec"),
    ],
)
async def test_a_plan_that_has_to_wait(problem, state):
    """Another rebalance has got its place meanwhile and goes on for long. Only what a person must mend stays."""
    kafka = KafkaInMemory(range(1, 7), t=[[1], [1]])
    kafka.slow = {2}
    operator = Renamed(kafka)
    operator.apply(brokers={"include": [3]})
    save = operator.engine._stores.plans.save

    async def fails(uid, *arguments):
        if uid == "u-1":
            raise problem
        return await save(uid, *arguments)

    operator.engine._stores.plans.save = fails
    await operator.until(problem.reason)
    operator.apply_another(brokers={"include": [2]})
    await operator.until_true(lambda: bool(kafka.flying))
    for _ in range(30):
        await operator.round()
    assert operator.state == state


@pytest.mark.parametrize(
    ("edit", "state"), [({"topics": NARROWER}, "KafkaUnreachable"), ({"execution": {"maxUnhealthy": 9}}, "Succeeded")]
)
async def test_a_finished_one_that_is_edited_while_kafka_is_away(edit, state):
    """Only if the new spec asks for another plan does it concern the cluster."""
    operator = await flying()
    operator.kafka.arrive()
    await operator.until("Succeeded")

    async def away():
        raise Transient("KafkaUnreachable", "no answer")

    operator.kafka.describe_cluster = away
    operator.edit(**edit)
    for _ in range(5):
        await operator.round()
    assert operator.state == state


class TestCancelled:
    """Only the end of the engine's task ends the engine."""

    async def test_something_that_a_round_has_awaited(self):
        """A defect: the next round goes on."""
        operator, calls = applied(), []
        describe_cluster = operator.kafka.describe_cluster

        async def cancelled_once():
            calls.append(1)
            if len(calls) == 1:
                raise asyncio.CancelledError
            return await describe_cluster()

        operator.kafka.describe_cluster = cancelled_once
        await operator.engine.tick()
        assert operator.engine.figures.problem == "InternalError"
        await operator.until_open()

    async def test_the_task_of_the_engine(self):
        operator = applied()
        operator.kafka.describe_cluster = asyncio.Event().wait
        task = asyncio.create_task(operator.engine.run(lambda: True))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=10)
        assert task.cancelled()
