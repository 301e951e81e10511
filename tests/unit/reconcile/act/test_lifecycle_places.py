"""The record that a run lets others go first with its partitions: before they do, and until it goes on."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.found_by_rounds import found
from tests.fakes.stopped_clock import NOON
from tests.unit.reconcile.act.test_lifecycle import TP, World, deleted

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.progress import Progress
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.assessment import StepBlock

ARRIVED = Progress(1, 0, 0, 1, 0, 1, 0, 0, 0, 0)
SUSPENDED = StepBlock(Reason.SUSPENDED, "spec.suspend is set", gives_up_place=True)


async def loaded(world, **run):
    """It has sent something."""
    await world.stored("r", **run)
    rebalance = deleted()
    await world.prepared(rebalance)
    assert rebalance.record.loaded_run is not None
    return rebalance


@pytest.fixture
def world():
    return World()


async def at_rest(world, **run):
    """Long after the last call, and suspended."""
    rebalance = await loaded(world, **run)
    rebalance.memory = replace(rebalance.memory, unanswered_at=float("-inf"))
    return found(rebalance, step_block=SUSPENDED, progress=ARRIVED)


async def is_stored(world):
    return (await RunStore(world.kube).load("r")).place_given_up


async def test_a_place_that_is_given_up_is_recorded(world):
    """By a second reading. The first one may show what was before the last call."""
    rebalance = await at_rest(world)
    await world.lifecycle.record_place(rebalance)
    assert not rebalance.place_given_up
    world.clock.at += timedelta(seconds=2)
    await world.lifecycle.record_place(rebalance)
    assert rebalance.place_given_up
    assert await is_stored(world)


async def test_not_while_the_record_is_in_doubt(world):
    """Its end may have been recorded by a write without an answer."""
    rebalance = await at_rest(world)
    ended = replace(rebalance.record.run, closed_at=NOON, outcome=RunOutcome.TAKEN_OVER)
    await RunStore(world.kube).save(ended)
    rebalance.record = replace(rebalance.record, was_read=False)
    await world.lifecycle.record_place(rebalance)
    world.clock.at += timedelta(seconds=2)
    await world.lifecycle.record_place(rebalance)
    assert (await RunStore(world.kube).load("r")).outcome is RunOutcome.TAKEN_OVER


async def test_one_that_moves_again_meanwhile_keeps_its_place(world):
    rebalance = await at_rest(world)
    await world.lifecycle.record_place(rebalance)
    world.clock.at += timedelta(seconds=2)
    await world.lifecycle.record_place(found(rebalance, step_block=None))
    await world.lifecycle.record_place(found(rebalance, step_block=SUSPENDED))
    assert not rebalance.place_given_up


async def test_it_is_recorded_that_it_goes_on_before_its_next_call(world):
    rebalance = await at_rest(world, place_given_up=True)
    assert await world.lifecycle.record_start(rebalance, begins=True)
    assert not rebalance.place_given_up
    assert not await is_stored(world)


async def test_a_cancellation_does_not_end_it(world):
    """It ends what the run had begun. Others may still go first."""
    rebalance = await at_rest(world, place_given_up=True, unsettled=(TP.topic,))
    assert await world.lifecycle.record_start(rebalance, begins=False)
    assert rebalance.place_given_up
    assert await world.lifecycle.record_start(rebalance, begins=True)
    assert not rebalance.place_given_up
    assert not rebalance.unsettled


async def test_nothing_is_sent_if_that_is_not_recorded(world, monkeypatch):
    """The problem stays on the resource until it is."""
    rebalance = await at_rest(world, place_given_up=True)

    async def fails(self, run, *check):
        raise Transient(Reason.API_SERVER_UNREACHABLE, "no answer", 1.0)

    with monkeypatch.context() as broken:
        broken.setattr(RunStore, "save", fails)
        assert not await world.lifecycle.record_start(rebalance, begins=True)
    assert rebalance.memory.problem.error.reason == Reason.API_SERVER_UNREACHABLE
    assert await world.lifecycle.record_start(rebalance, begins=True)
    assert rebalance.memory.problem is None


async def test_after_a_rest_it_lets_others_go_first(world):
    """They may have begun meanwhile."""
    rebalance = await at_rest(world, rested=True)
    await world.lifecycle.end_rest(rebalance, {})
    assert not rebalance.rests
    assert await is_stored(world)
