"""The start of the operator in a cluster that has many resources."""

import asyncio
import itertools

import pytest

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reconcile.supervisor import Supervisor


@pytest.fixture
def events(monkeypatch):
    """What the supervisor does, in order: "seen", "connects"; "other": the loop's other work had a turn."""
    found, seen, leads = [], Supervisor.seen, Supervisor._lead_to_engine

    def sees(self, *resource, deleted):
        found.append("seen")
        seen(self, *resource, deleted=deleted)

    async def connects(self, *asked):
        found.append("connects")
        return await leads(self, *asked)

    monkeypatch.setattr(Supervisor, "seen", sees)
    monkeypatch.setattr(Supervisor, "_lead_to_engine", connects)
    return found


async def test_other_work_goes_on(world, events):
    """The Lease is renewed and the probe is answered, however long it takes to read all resources."""

    async def other():
        while True:
            events.append("other")
            await asyncio.sleep(0)

    for namespace in "abcdef":
        world.create(namespace)
    beside = asyncio.create_task(other())
    await world.supervisor.know(())
    beside.cancel()
    shown = [event for event in events if event != "connects"]
    assert shown.count("seen") == 6
    assert ("seen", "seen") not in itertools.pairwise(shown)


async def test_nothing_is_connected_before_all_are_seen(world, events):
    """It is not known before whose cluster it is, nor what limits it."""
    for namespace in "abc":
        world.create(namespace)
    await world.supervisor.know(())
    await world.until(lambda: "connects" in events)
    assert events[:4] == ["seen", "seen", "seen", "connects"]


async def test_a_failure_holds_up_nothing(world, events, monkeypatch):
    """The next attempt finds the tasks of those that were seen in the first."""

    def fails(_body, *, deleted):
        raise asyncio.CancelledError

    world.create("a")
    await world.supervisor.know(())
    monkeypatch.setitem(world.supervisor._kinds, REBALANCES, fails)
    with pytest.raises(asyncio.CancelledError):
        await world.supervisor.know(())
    await world.until(lambda: "connects" in events)


async def test_expressions_are_not_compiled(world, monkeypatch):
    """Users may write some whose compilation takes half a second for each resource."""
    monkeypatch.setattr("kafka_rebalance.api.topic_patterns.compile_re2", lambda pattern: pytest.fail(pattern))
    world.create("a", kafka={"connectionRef": {"name": "none"}}, topics={"include": [".*"]})
    await world.supervisor.know(())
    await world.until(lambda: world.state("a") == "ConnectionNotFound")


async def test_an_invalid_expression_is_reported(world):
    """The API server accepts it. A plan finds it."""
    world.create("a", topics={"include": ["orders", "(.{0,30}){30}"]})
    await world.supervisor.know(())
    await world.until(lambda: world.state("a") == "InvalidSpec")
    assert world.ready("a")[1].startswith("spec.topics.include[1]: is not a valid RE2 regular expression: pattern too")


async def test_the_end_of_bindings_that_nothing_names_holds_up_nothing(world, monkeypatch):
    """Each takes a list of all runs, and nothing is seen before the start is over: no edit, no freeze, no deletion."""
    lists, answers = world.kube.list_config_maps, asyncio.Event()

    async def slow(labels):
        if "run" in labels.values():
            await answers.wait()
        return await lists(labels)

    await BindingStore(world.kube).save(Binding("gone", Owner("former")))
    monkeypatch.setattr(world.kube, "list_config_maps", slow)
    async with asyncio.timeout(10):
        await world.supervisor.know(())
    answers.set()
    await world.until(lambda: world.binding is None)
