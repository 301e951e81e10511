"""A stored spec that a later version of the operator refuses, of a resource whose run is open."""

import pytest

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.reconcile import unfinished_work

TOO_LONG = "a" * 513
"""An earlier version has accepted it, and an update of the CRD does not check what is stored."""


@pytest.fixture
async def valid(world, monkeypatch):
    """The topics of the spec before; the operator has been upgraded in the middle of a drain."""
    monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.02)
    await world.draining(topics={"include": ["orders"]})
    await world.supervisor.stop()
    world.kube.edit(REBALANCES, "a", "r", topics={"include": ["orders", TOO_LONG]})
    world.begin()
    await world.supervisor.start()
    await world.supervisor.know(())
    await world.until(lambda: world.state("a") == "InvalidSpec")
    return {"include": ["orders"]}


def wake(world):
    """Without this, the engine looks only every half minute."""
    running = world.supervisor._engines.get("c")
    if running is not None:
        running.engine.wake()


@pytest.mark.usefixtures("valid")
async def test_copies_in_flight_end(world):
    """Only replicas above the replication factor are dropped then, and the throttle is removed.

    The resource says what is wrong.
    """
    sent = len(world.real.altered)
    await world.until(lambda: world.supervisor._engines.get("c"))
    world.real.arrive()
    await world.until(lambda: wake(world) or len(world.real.altered) > sent)
    await world.until(lambda: wake(world) or not any(world.real.values.values()))
    assert sorted(sorted(replicas) for _, replicas in world.real.altered[sent:]) == [[2, 3, 4]] * 4
    assert world.state("a") == "InvalidSpec"


async def test_the_run_goes_on_with_a_valid_spec(world, valid):
    """It was open all the time, and ends with what it has moved."""
    world.edit(REBALANCES, "a", "r", topics=valid)
    await world.until(lambda: world.state("a") == "Rebalancing")
    world.real.arrive()
    await world.until(lambda: wake(world) or world.state("a") == "Succeeded")
    assert not any(world.real.values.values())


@pytest.mark.usefixtures("valid")
async def test_a_deletion_rolls_the_run_back(world):
    """The other fields of the spec are enough for that."""
    world.real.arrive()
    body = world.kube.delete(REBALANCES, "a", "r", world.clock.at.isoformat())
    world.supervisor.rebalance_seen(body, deleted=False)
    world.real.slow = set()
    await world.until(lambda: wake(world) or (REBALANCES, "a", "r") not in world.kube.resources)
    assert not any(world.real.values.values())
    assert all(1 in replicas for replicas in world.real.lists("orders"))


async def test_an_expression_that_only_a_plan_refuses(world):
    """Copies in flight finish, the throttle is removed, and the run goes on when the spec is edited back."""
    await world.draining(topics={"include": ["orders"]})
    world.edit(REBALANCES, "a", "r", topics={"include": ["orders", "(.{0,30}){30}"]})
    await world.until(lambda: wake(world) or world.state("a") == "InvalidSpec")
    assert world.ready("a")[1].startswith("spec.topics.include[1]: is not a valid RE2 regular expression: pattern too")
    world.real.arrive()
    await world.until(lambda: wake(world) or not any(world.real.values.values()))
    assert len(world.real.altered) == 4
    world.edit(REBALANCES, "a", "r", topics={"include": ["orders"]})
    await world.until(lambda: wake(world) or world.state("a") == "Rebalancing")
    await world.until(lambda: wake(world) or world.real.arrive() or world.state("a") == "Succeeded")
