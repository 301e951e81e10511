"""A run whose connection is refused comes to rest; what moves after that was moved by others."""

import asyncio
import json

import pytest
from tests.fakes.shared_clusters import REF, Cluster
from tests.unit.reconcile.test_supervisor_undo_permission import refused, rounds_later

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, LET_GO_ANNOTATION, REBALANCES
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of

FIRST = TopicPartition("orders", 0)
LISTED = "replication.throttled"


def rested(world):
    """Whether that is on record of the run of namespace a."""
    records = [json.loads(b["data"]["run.json"]) for n, b in world.kube.config_maps.items() if n.startswith("run-")]
    return next(run["rested"] for run in records if (run["namespace"], run["name"]) == ("a", "r"))


def throttled(world):
    """The throttles that are set anywhere."""
    return {key: value for key, value in world.real.values.items() if value and LISTED in key[1]}


@pytest.fixture
async def resting(world):
    """A run has moved the first partition off broker 1, has lost its permission, and is at rest."""
    world.connection(names=["a", "k"])
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    await refused(world)
    assert not rested(world)
    world.real.arrive()
    await world.until(lambda: rested(world))
    assert not throttled(world)
    assert 1 not in world.real.lists("orders")[0]
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["k"]})
    return world


async def moved_back_by_others(world):
    """Another tool moves it back, which takes long."""
    world.real.slow = {BrokerId(1)}
    await world.real.alter_reassignments({FIRST: replicas_of(1, 2, 3)})


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_deletion_leaves_what_others_move_back(resting, restarted):
    await moved_back_by_others(resting)
    orders = list(resting.real.altered)
    if restarted:
        await resting.restart()
    await resting.deleted("a")
    assert resting.real.flying == {"orders-0"}
    assert resting.real.altered == orders


async def test_nothing_is_throttled_for_it(resting):
    await moved_back_by_others(resting)
    await rounds_later(resting)
    resting.gone(REBALANCES, "k", "r")
    await rounds_later(resting)
    assert not throttled(resting)


async def test_a_replication_factor_that_others_raise_stays(resting):
    """Also when everything is read again, and after the deletion."""
    more = [*resting.real.lists("orders")[0], 1]
    await resting.real.alter_reassignments({FIRST: replicas_of(*more)})
    await resting.restart()
    await rounds_later(resting)
    await resting.deleted("a")
    assert resting.real.lists("orders")[0] == more


async def test_with_permission_it_goes_on(resting):
    """It is recorded first that the run sends something again: a deletion has to roll that back."""
    resting.real.slow = {BrokerId(4)}
    resting.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a"]})
    await resting.until(lambda: resting.real.flying)
    assert not rested(resting)
    resting.real.slow = set()
    await resting.deleted("a")
    assert resting.real.lists("orders") == [[1, 2, 3]] * 4


async def test_not_while_it_is_not_known_what_moves(world):
    """After a restart the topic cannot be read for a while, and a copy of the run is in flight."""
    world.connection(names=["a", "k"])
    world.real.create("other", [[2, 3, 4]] * 2)
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    await refused(world)
    world.real.failing.add("orders")
    await world.restart()
    await rounds_later(world)
    world.gone(REBALANCES, "k", "r")
    await rounds_later(world)
    assert not rested(world)
    world.real.failing.clear()
    await world.deleted("a")
    assert world.real.altered[-1] == ("orders-0", None)
    assert world.real.lists("orders") == [[1, 2, 3]] * 4


async def test_also_if_its_plan_is_put_aside(world):
    """No other plan is made before it has permission again."""
    world.connection(names=["a", "k"])
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    await refused(world)
    world.edit(REBALANCES, "a", "r", brokers={"decommission": [2]})
    world.real.arrive()
    await world.until(lambda: rested(world))
    world.real.slow = set()
    more = [*world.real.lists("orders")[0], 1]
    await world.real.alter_reassignments({FIRST: replicas_of(*more)})
    await world.deleted("a")
    assert world.real.lists("orders")[0] == more


@pytest.mark.parametrize("permitted", [False, True])
async def test_also_if_a_new_plan_is_being_made(world, permitted):
    """The plan is given up, however long it takes: otherwise the rest would not be recorded before it is finished."""
    answers = asyncio.Event()
    answers.set()
    read = []

    async def loads(_cluster_id):
        read.append(answers.is_set())
        await answers.wait()

    world.loads = loads
    await world.restart()
    world.connection(names=["a", "k"])
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    world.real.arrive()
    world.real.slow = {BrokerId(4)}
    await world.until(lambda: world.real.flying == {"orders-1"})
    assert 1 not in world.real.lists("orders")[0]
    answers.clear()
    world.edit(REBALANCES, "a", "r", brokers={"decommission": [2]})
    await world.until(lambda: not read[-1])
    await refused(world)
    world.real.arrive()
    await world.until(lambda: rested(world))
    await moved_back_by_others(world)
    orders = list(world.real.altered)
    if permitted:
        permitted_again(world)
        await world.until(lambda: not rested(world))
        answers.set()
        await world.until(lambda: len(world.real.altered) > len(orders))
    await world.deleted("a")
    assert not [tp for tp, _ in world.real.altered[len(orders) :] if tp == "orders-0"]
    assert world.real.flying == {"orders-0"}


@pytest.mark.parametrize("why", ["next broker is dead", "another goes first"])
async def test_also_if_a_partition_waits_between_two_steps(world, why):
    """It may wait for ever. What others then move is neither throttled nor cancelled."""
    world.connection(names=["a", "k"])
    world.real = world.servers["kafka"] = Cluster([1, 2, 3, 4, 5], orders=[[1, 2, 3]] * 4)
    throttle = {"leaderRate": "1Mi", "followerRate": "1Mi"}
    spec = {"kafka": REF, "brokers": {"decommission": [1]}, "throttle": throttle}
    if why == "another goes first":
        world.create("k", name="other", execution={"suspend": True}, **spec)
        world.see("k")
        await world.until(lambda: world.state("k", "other") == "Suspended")
    world.real.slow = {BrokerId(4), BrokerId(5)}
    world.create("a", execution={"parallelPartitionCount": 1}, **spec)
    world.see("a")
    await world.until(lambda: world.real.flying)
    (name,) = world.real.flying
    moved = next(tp for tp in world.real.states if str(tp) == name)
    await refused(world)
    world.real.arrive()
    if why == "next broker is dead":
        held = world.real.lists("orders")[moved.partition]
        world.real.brokers.pop(BrokerId(4 if 4 not in held else 5))
    await world.until(lambda: rested(world))
    world.real.slow = {BrokerId(1)}
    await world.real.alter_reassignments({moved: replicas_of(1, 2, 3)})
    orders = list(world.real.altered)
    await rounds_later(world)
    assert not [key for key in throttled(world) if LISTED + ".replicas" in key[1]]
    await world.deleted("a")
    assert world.real.altered == orders
    assert world.real.flying == {name}


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_others_move_back_stays_theirs_with_permission(resting, restarted):
    """Neither a step of the run nor its deletion concerns it."""
    await moved_back_by_others(resting)
    orders = list(resting.real.altered)
    if restarted:
        await resting.restart()
    resting.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a"]})
    await resting.until(lambda: not rested(resting))
    await resting.until(lambda: len(resting.real.altered) > len(orders))
    assert "orders-0" in resting.real.flying
    await resting.deleted("a")
    assert not [tp for tp, _ in resting.real.altered[len(orders) :] if tp == "orders-0"]
    assert "orders-0" in resting.real.flying
    assert resting.real.lists("orders")[1:] == [[1, 2, 3]] * 3


async def test_with_permission_it_goes_on_with_what_others_have_moved(resting):
    await moved_back_by_others(resting)
    resting.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a"]})
    await resting.until(lambda: not rested(resting))
    resting.real.slow = set()
    resting.real.arrive()
    await resting.until(lambda: resting.state("a") == "Succeeded")
    assert not [row for row in resting.real.lists("orders") if 1 in row]


async def test_a_replication_factor_that_others_raise_stays_with_permission(resting):
    more = [*resting.real.lists("orders")[0], 1]
    await resting.real.alter_reassignments({FIRST: replicas_of(*more)})
    resting.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a"]})
    await resting.until(lambda: not rested(resting))
    await resting.deleted("a")
    assert resting.real.lists("orders")[0] == more
    assert resting.real.lists("orders")[1:] == [[1, 2, 3]] * 3


async def test_nothing_is_sent_before_its_end_is_on_record(resting):
    """A topic that cannot be read may be what others move."""
    await moved_back_by_others(resting)
    orders = list(resting.real.altered)
    resting.real.failing.add("orders")
    resting.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a", "k"]})
    await rounds_later(resting)
    assert rested(resting)
    assert "orders" in resting.condition("a", "Ready")["message"]
    resting.gone(REBALANCES, "k", "r")
    resting.real.failing.clear()
    await resting.until(lambda: not rested(resting))
    assert not [tp for tp, _ in resting.real.altered[len(orders) :] if tp == "orders-0"]


def permitted_again(world):
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a", "k"]})


async def test_a_topic_that_kafka_hides_keeps_it_at_rest(resting):
    """The topic may be what others move. The status says which topic may not be described."""
    await moved_back_by_others(resting)
    orders = list(resting.real.altered)
    resting.real.hidden.add("orders")
    permitted_again(resting)
    await rounds_later(resting)
    assert rested(resting)
    assert resting.state("a") == "TopicForbidden"
    assert "describe orders" in resting.condition("a", "Ready")["message"]
    resting.real.hidden.clear()
    await resting.until(lambda: not rested(resting))
    await resting.deleted("a")
    assert not [tp for tp, _ in resting.real.altered[len(orders) :] if tp == "orders-0"]
    assert "orders-0" in resting.real.flying


async def test_a_deletion_that_changes_nothing_does_not_wait_for_a_hidden_topic(resting):
    await moved_back_by_others(resting)
    orders = list(resting.real.altered)
    resting.real.hidden.add("orders")
    permitted_again(resting)
    await rounds_later(resting)
    resting.edit(REBALANCES, "a", "r", deletionPolicy="Abandon")
    await resting.deleted("a")
    assert resting.real.altered == orders
    assert resting.real.flying == {"orders-0"}


async def test_a_topic_that_one_reading_left_out_is_read_by_name(resting):
    await moved_back_by_others(resting)
    orders = list(resting.real.altered)
    resting.real.unseen.add("orders")
    permitted_again(resting)
    await resting.until(lambda: not rested(resting))
    resting.real.unseen.clear()
    await resting.deleted("a")
    assert not [tp for tp, _ in resting.real.altered[len(orders) :] if tp == "orders-0"]


async def test_a_topic_is_deleted_only_if_several_readings_lack_it(resting):
    """The broker that was asked may lag."""
    resting.real.states = {tp: state for tp, state in resting.real.states.items() if tp.topic != "orders"}
    permitted_again(resting)
    await rounds_later(resting)
    assert rested(resting)
    assert resting.state("a") == "MetadataMissing"
    await resting.until(lambda: not rested(resting))


@pytest.mark.parametrize("ends", ["without permission", "let go"])
async def test_it_is_not_taken_over(world, ends):
    """Another resource, which names it, does not cancel what others move when it begins."""
    world.connection(names=["a", "k"])
    world.real.create("other", [[2, 3, 4]] * 2)
    spec = {"kafka": REF, "brokers": {"decommission": [1]}, "throttle": {"unlimited": True}}
    world.create("a", name="heir", takesOver="r", execution={"suspend": True, "parallelPartitionCount": 1}, **spec)
    world.see("a")
    await world.until(lambda: world.state("a", "heir") == "Suspended")
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    await refused(world)
    world.real.arrive()
    await world.until(lambda: rested(world))
    if ends == "let go":
        world.real.hidden.add("orders")
        permitted_again(world)
        await rounds_later(world)
        world.gone(REBALANCES, "k", "r")
        world.kube.delete(REBALANCES, "a", "r", world.clock.at.isoformat())
        await rounds_later(world)
        assert rested(world)
        world.kube.resources[REBALANCES, "a", "r"]["metadata"]["annotations"] = {LET_GO_ANNOTATION: "true"}
        await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)
        world.real.hidden.clear()
    else:
        await world.deleted("a")
    await moved_back_by_others(world)
    orders = list(world.real.altered)
    permitted_again(world)
    world.edit(REBALANCES, "a", "heir", execution={"suspend": False, "parallelPartitionCount": 1})
    await world.until(lambda: not [row for row in world.real.lists("orders")[1:] if 1 in row])
    assert not [tp for tp, _ in world.real.altered[len(orders) :] if tp == "orders-0"]
    assert "orders-0" in world.real.flying
