"""A rebalance with a higher priority whose plan fails again and again, beside one whose plan takes long."""

import asyncio
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import Renamed

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.runs import plan_request

FAST = {"throttle": {"unlimited": True}}
HIGH = {"priority": 9, **FAST}


@pytest.fixture
async def operator(monkeypatch):
    """The plan of ``a`` takes 40 s; ``begun``: one more item for each. One is being made. Broker 7 is away."""
    operator, answers = Renamed(KafkaInMemory(range(1, 8), t=[[1, 2, 3]] * 6)), plan_request.run_planner
    operator.seventh = operator.kafka.brokers.pop(BrokerId(7))
    operator.begun, operator.slow_until = [], operator.clock.at

    async def slow(request, turns, memory):
        if memory.namespace == "a":
            operator.begun.append(operator.clock.at)
            operator.slow_until = operator.clock.at + timedelta(seconds=40)
            try:
                while operator.clock.at < operator.slow_until:  # noqa: ASYNC110 - the clock tells it
                    await asyncio.sleep(0)
            finally:
                operator.slow_until = operator.clock.at
        return await answers(request, turns, memory)

    monkeypatch.setattr(plan_request, "run_planner", slow)
    operator.apply_in("a", "a", brokers={"include": [4, 5, 6]}, **FAST)
    await pass_by(operator, 5)
    assert len(operator.begun) == 1
    return operator


async def pass_by(operator, seconds):
    """A round each second. All plans that are begun in it are made, except the slow one."""
    for _ in range(seconds):
        await operator.engine.tick()
        operator.clock.at += timedelta(seconds=1)
        async with asyncio.timeout(20):
            while any(being_made(operator)):  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.001)


def being_made(operator):
    for uid, rebalance in operator.engine.rebalances.items():
        task = rebalance.memory.planning
        is_slow = uid == "u-a" and operator.clock.at < operator.slow_until
        yield task is not None and not task.done() and not is_slow


async def failed(operator, times):
    """``b`` is tried again every 15 s."""
    for _ in range(60):
        if operator.engine.rebalances["u-b"].memory.failed_plans == times:
            return
        await pass_by(operator, 1)
    raise AssertionError(operator.engine.rebalances["u-b"].memory)


async def refused(operator):
    """The plan that is being made is given up for ``b``, whose plan fails three times. It is begun again each time."""
    operator.apply_in("b", "b", brokers={"include": [4, 5, 7]}, **HIGH)
    await pass_by(operator, 1)
    await failed(operator, 3)
    await pass_by(operator, 2)
    assert operator.state_of("b", "b") == "UnknownBroker"
    assert len(operator.begun) == 4


def comes_up(operator):
    operator.kafka.brokers[BrokerId(7)] = operator.seventh


async def test_a_plan_is_given_up_three_times(operator):
    """The plan would never be made."""
    await refused(operator)
    await pass_by(operator, 60)
    assert operator.state_of("a", "a") == "Succeeded"
    assert operator.state_of("b", "b") == "UnknownBroker"
    assert len(operator.begun) == 4


async def test_a_failure_that_passes(operator):
    """Such as metadata that is not up to date. The next attempt does not wait for another plan."""
    operator.apply_in("b", "b", brokers={"include": [4, 5, 7]}, **HIGH)
    await pass_by(operator, 1)
    await failed(operator, 1)
    comes_up(operator)
    await pass_by(operator, 25)
    assert operator.engine.rebalances["u-b"].record.loaded_run is not None
    assert operator.state_of("a", "a") == "Queued"


async def test_no_plan_is_given_up_for_one_that_may_not_start(operator, monkeypatch):
    """Its plan is not even begun."""
    runs, asking = operator.engine._rounds._runs, []
    start = runs.start_planning

    async def start_planning(rebalance, *arguments):
        asking.append(rebalance.uid)
        try:
            return await start(rebalance, *arguments)
        finally:
            asking.clear()

    def refuse_start():
        if asking == ["u-b"]:
            raise Refused(Reason.THROTTLE_LEDGER_DAMAGED, "cannot be read")

    monkeypatch.setattr(runs, "start_planning", start_planning)
    monkeypatch.setattr(runs, "_refuse_start", refuse_start)
    operator.apply_in("b", "b", brokers={"include": [4, 5, 6]}, **HIGH)
    await pass_by(operator, 1)
    await failed(operator, 3)
    await pass_by(operator, 60)
    assert operator.state_of("a", "a") == "Succeeded"
    assert operator.state_of("b", "b") == "ThrottleLedgerDamaged"
    assert len(operator.begun) == 4


async def test_it_goes_first_when_that_plan_is_made(operator):
    """Before the first step of it, if its own plan can be made by then."""
    await refused(operator)
    comes_up(operator)
    await pass_by(operator, 30)
    assert operator.state_of("b", "b") == "UnknownBroker"
    await pass_by(operator, 15)
    assert operator.engine.rebalances["u-b"].record.loaded_run is not None
    assert operator.kafka.lists("t") == [[1, 2, 3]] * 6
    assert operator.state_of("a", "a") == "Queued"
    assert len(operator.begun) == 4


async def test_an_edit_of_its_spec_is_planned_at_once(operator):
    await refused(operator)
    operator._see(operator.kube.edit(REBALANCES, "b", "b", brokers={"include": [4, 5, 6]}))
    await pass_by(operator, 10)
    assert operator.state_of("b", "b") == "Succeeded"
    assert len(operator.begun) == 5


async def test_its_deletion_is_carried_out_at_once(operator):
    await refused(operator)
    operator._see(operator.kube.delete(REBALANCES, "b", "b", operator.clock.at.isoformat()))
    await pass_by(operator, 2)
    assert (REBALANCES, "b", "b") not in operator.kube.resources


async def test_a_failure_of_before_does_not_count(operator):
    """A plan was made for the same spec since."""
    await refused(operator)
    assert operator.engine.rebalances["u-b"].memory.failed_spec
    comes_up(operator)
    await pass_by(operator, 60)
    assert not operator.engine.rebalances["u-b"].memory.failed_spec
