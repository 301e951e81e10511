"""A resource takes over a run that began at a server which only claimed the id of the cluster.

The resource names the true server of the cluster, and the namespace may log in there. When the KafkaConnection gets the
cluster, that run must not change it, whichever resource has its origins and cordons by then.
"""

from dataclasses import replace

import pytest
from tests.fakes.shared_clusters import Away
from tests.unit.reconcile.test_supervisor_cordons import Cordoning

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, LET_GO_ANNOTATION, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile.act.cordoning import CONFIG

ONE = BrokerId(1)
OWN = TopicPartition("own", 0)
NO_PLAN = {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "none", "key": "k"}}}


@pytest.fixture
async def claimed(world):
    """Namespace evil drains broker 1 of its server, which shows the topic ``own`` of the cluster."""
    world.servers["kafka"] = world.real = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 4, own=[[1, 2, 3]])
    world.servers["evil"] = fake = Cordoning([1, 2, 3, 4], own=[[1, 2, 3]])
    fake.slow = world.real.slow = {BrokerId(4)}
    world.create("evil", "evil", brokers={"decommission": [1]}, throttle={"unlimited": True})
    world.see("evil")
    await world.until(lambda: len(fake.flying) == 1)
    return world


async def unanswered(_changes):
    raise Transient("KafkaUnreachable", "no answer", 1.0)


async def handed_over(world, **spec):
    """The resource of the run is deleted, and another one takes the run over before it has a plan."""
    heir = {"takesOver": "r", "topics": {"include": ["own"]}, "throttle": {"unlimited": True}}
    world.create("evil", name="heir", **heir | spec)
    world.see("evil")
    await world.until(lambda: world.state("evil", "heir") not in {"", "Planning"})
    body = world.kube.delete(REBALANCES, "evil", "r", world.clock.at.isoformat())
    world.supervisor.rebalance_seen(body, deleted=False)


async def gone(world):
    """The run has ended, and with it the server that claimed the id."""
    await world.until(lambda: (REBALANCES, "evil", "r") not in world.kube.resources)
    world.servers["evil"] = Away()


async def connected(world):
    """The KafkaConnection of the cluster is created, which does not permit the namespace."""
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    await world.until(lambda: world.state("evil", "heir") == "ClusterOwnedElsewhere")


async def moved_by_others(world):
    """They have cordoned the same broker, and move the same partition."""
    await world.real.alter_reassignments({OWN: [BrokerId(4), BrokerId(2), BrokerId(3)]})
    world.real.values = {(ONE, CONFIG): "*"}
    world.real.altered.clear()


async def heir_deleted(world):
    """Nothing of the others has changed."""
    body = world.kube.delete(REBALANCES, "evil", "heir", world.clock.at.isoformat())
    world.supervisor.rebalance_seen(body, deleted=False)
    real = world.real
    await world.until(lambda: (REBALANCES, "evil", "heir") not in world.kube.resources or real.altered)
    assert (real.altered, real.flying, real.values) == ([], {"own-0"}, {(ONE, CONFIG): "*"})


async def test_the_server_is_not_forgotten_while_no_run_is_open(claimed):
    """After a restart, only the true server answers. The broker is still cordoned on record."""
    fake = claimed.servers["evil"]
    await handed_over(claimed, **NO_PLAN)
    state = fake.states[OWN]
    fake.states[OWN] = replace(state, isr=frozenset(state.adding), leader=state.adding[0])  # it is not cancelled
    fake.alter_broker_configs = unanswered
    body = claimed.kube.resources[REBALANCES, "evil", "r"]
    body["metadata"].setdefault("annotations", {})[LET_GO_ANNOTATION] = "true"
    claimed.supervisor.rebalance_seen(body, deleted=False)
    await gone(claimed)
    await claimed.restart("evil")
    await claimed.until(lambda: claimed.supervisor._engines.get("c"))
    assert set(claimed.binding["servers"]) == {"evil:9092", "kafka:9092"}
    await moved_by_others(claimed)
    await connected(claimed)
    await heir_deleted(claimed)


async def test_nor_if_the_resource_is_planned_there(claimed):
    """After a restart, with the origins that the run has stored."""
    await handed_over(claimed, brokers={"decommission": [2]}, approval={"policy": "Manual"})
    await gone(claimed)
    await claimed.restart("evil")
    await claimed.until(lambda: claimed.supervisor._engines.get("c"))
    await claimed.until(lambda: claimed.state("evil", "heir") == "AwaitingApproval")
    await connected(claimed)
    await moved_by_others(claimed)
    await heir_deleted(claimed)


async def test_it_stays_unproved_after_the_kafka_connection_was_gone(claimed):
    """Meanwhile the namespace has the cluster again, at addresses that the KafkaConnection has too."""
    await handed_over(claimed, brokers={"decommission": [2]}, approval={"policy": "Manual"})
    await gone(claimed)
    await connected(claimed)
    claimed.gone(CONNECTIONS, "k", "prod")
    claimed.supervisor._engines.get("c").engine.wake()
    await claimed.until(lambda: not claimed.owner)
    await claimed.restart("evil")
    await claimed.until(lambda: claimed.state("evil", "heir") == "AwaitingApproval")
    assert claimed.binding["servers"] == ["kafka:9092"]
    await connected(claimed)
    await moved_by_others(claimed)
    await heir_deleted(claimed)
