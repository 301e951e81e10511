"""A resource that leaves the engine while its plan is made: the plan is given up, and the engine goes on for others."""

import asyncio

import pytest
from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.reconcile.runs import plan_request

SUSPENDED = {"brokers": {"decommission": [2]}, "execution": {"suspend": True}}


def migrated(world):
    """To another KafkaConnection for the same cluster."""
    world.connection(name="other")
    world.edit(REBALANCES, "a", "r", kafka={"connectionRef": {"name": "other", "namespace": "k"}})


def deleted(world):
    """Without its finalizer, which somebody has removed."""
    world.gone(REBALANCES, "a", "r")


@pytest.fixture
async def task(world, monkeypatch):
    """The task that makes a plan for namespace a, and does not end. Namespace b has a rebalance of the cluster too."""
    begun, known = asyncio.Event(), lambda uid: world.supervisor.connection_of(uid).rebalances[uid]

    async def planned(_request, _turns, _memory):
        begun.set()
        await asyncio.Event().wait()

    world.connection()
    world.create("b", kafka=REF, **SUSPENDED)
    world.see("b")
    await world.until(lambda: known("u-2").record.loaded_run is not None)
    monkeypatch.setattr(plan_request, "run_planner", planned)
    world.create("a", kafka=REF, brokers={"decommission": [1]})
    world.see("a")
    await world.until(begun.is_set)
    return known("u-3").memory.planning


@pytest.mark.parametrize("leaves", [migrated, deleted])
async def test_in_the_middle_of_a_round(world, task, monkeypatch, leaves):
    """The round still has the resource, and finds the task cancelled."""
    waits, answers, read = asyncio.Event(), asyncio.Event(), world.real.describe_cluster

    async def describe_cluster():
        waits.set()
        await answers.wait()
        return await read()

    monkeypatch.setattr(world.real, "describe_cluster", describe_cluster)
    running = world.supervisor._engines.get("c")
    running.engine.wake()
    await world.until(waits.is_set)
    leaves(world)
    await asyncio.wait({task}, timeout=10)
    assert task.cancelled()
    before = running.engine.figures.rounds
    answers.set()
    await world.until(lambda: running.task.done() or running.engine.figures.rounds.succeeded > before.succeeded)
    assert not running.task.done()
    assert running.engine.figures.rounds.failed == before.failed
    assert world.supervisor.failed_tasks == ()


async def test_gone_before_it_is_known(world, task):
    """Its status cannot be written any more: the resource leaves the engine then."""
    body = world.kube.resources.pop((REBALANCES, "a", "r"))
    running = world.supervisor._engines.get("c")
    await world.until(lambda: running.engine.wake() or "u-3" not in running.engine.rebalances)
    world.supervisor.seen(REBALANCES, body, deleted=True)
    await asyncio.wait({task}, timeout=10)
    assert task.cancelled()
