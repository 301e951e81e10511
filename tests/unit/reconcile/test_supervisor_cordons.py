"""A run that began at a server which only claims the id of a cluster removes no cordons there, and blocks nobody."""

import pytest
from tests.fakes.shared_clusters import REF, Cluster, placed
from tests.unit.reconcile.test_engine_cordons import Brokers

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.cordoning import CONFIG

ONE = BrokerId(1)
DRAIN = {"brokers": {"decommission": [1]}, "throttle": {"unlimited": True}}


class Cordoning(Brokers, Cluster):
    """A cluster that is connected to again, and offers cordons."""


@pytest.fixture
async def squatted(world, monkeypatch):
    """Another server claimed the id first, and drains its broker 1, with a topic that the cluster does not have.

    Then the KafkaConnection of the cluster's owner is created.
    """
    world.servers["kafka"] = world.real = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    fake = Cordoning([1, 2, 3, 4])
    await world.claimed_by(fake, "bogus", throttle={"unlimited": True})
    assert fake.cordoned == [1]
    world.served = placed(monkeypatch, ending=True)
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    return world


async def test_of_others(squatted):
    """An administrator has cordoned the same broker. The run ends without the engine of the cluster."""
    squatted.real.values[ONE, CONFIG] = "*"
    await squatted.deleted("evil")
    assert (squatted.runs["evil"], squatted.real.values) == ("Abandoned", {(ONE, CONFIG): "*"})
    assert "evil/r" not in squatted.served


async def test_of_a_drain_of_the_owner(squatted):
    """It is not held up either: the run is given up although its resource stays."""
    squatted.create("a", kafka=REF, **DRAIN)
    squatted.see("a")
    await squatted.until(lambda: squatted.state("a") == "Succeeded" and squatted.runs["evil"] == "Abandoned")
    await squatted.deleted("evil")
    assert squatted.real.cordoned == [1]


async def test_the_owner_does_not_wait_for_the_end_of_the_run(squatted):
    """The server that claimed the id may keep it open with a topic of the same name."""
    squatted.real.create("bogus", [[1, 2, 3]] * 4)
    squatted.create("a", kafka=REF, **DRAIN)
    squatted.see("a")
    await squatted.until(lambda: squatted.state("a") == "Succeeded")
    assert squatted.runs["evil"] is None


@pytest.mark.parametrize("unreadable", ["hidden", "failing"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_nor_where_its_topics_cannot_be_read(squatted, unreadable, restarted):
    """The server may show topics that the owner's user may not describe, or whose names Kafka does not accept."""
    setattr(squatted.real, unreadable, {"bogus"})
    if restarted:
        await squatted.restart()
    squatted.create("a", kafka=REF, **DRAIN)
    squatted.see()
    await squatted.until(lambda: squatted.state("a") in {"Succeeded", "KafkaAuthorizationFailed", "KafkaUnreachable"})
    assert squatted.ready("a") == ("Succeeded", "4 of 4 partitions are at their targets")
    assert squatted.runs["evil"] is None


async def test_of_a_later_run(squatted, caplog):
    """The later run must not treat these cordons as its own. So the record names no broker any more; the log does."""
    await squatted.until(lambda: squatted.runs["evil"] == "Abandoned")
    (run,) = (run for run in await RunStore(squatted.kube).list_all() if run.name == "r")
    assert run.cordoned == ()
    taken_over = [record.getMessage() for record in caplog.get_records("setup")]
    assert "evil/r: its cluster has another owner; brokers 1 stay cordoned" in taken_over


async def test_a_broker_that_does_not_know_a_topic_yet_proves_nothing(squatted):
    """The topics of the run have to be gone for a while."""
    squatted.real.create("bogus", [[1, 2, 3]] * 4, "evil")
    states, squatted.real.states = squatted.real.states, {}
    await squatted.until(lambda: squatted.supervisor._refused._gone_since)
    squatted.real.states = states
    await squatted.until(lambda: not squatted.supervisor._refused._gone_since)
    assert squatted.runs["evil"] is None
    assert "evil/r" not in squatted.served  # the ids of topics do not prove where it started
