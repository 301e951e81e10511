"""A run that began at a server which only claimed the id goes on with a KafkaConnection; then there is another one.

The second KafkaConnection does not permit the namespace, and leads to the same server as the first one. That proves
nothing about where the run began.
"""

import json

import pytest
from tests.fakes.shared_clusters import REF
from tests.unit.reconcile.test_supervisor_cordons import Cordoning

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.cordoning import CONFIG

ONE = BrokerId(1)
K2 = {"connectionRef": {"name": "k2", "namespace": "k2"}}
DRAIN = {"brokers": {"decommission": [1]}, "topics": {"include": ["own"]}, "throttle": {"unlimited": True}}


def run(world, name="r"):
    """The stored run of this resource of namespace evil."""
    records = [json.loads(b["data"]["run.json"]) for n, b in world.kube.config_maps.items() if n.startswith("run-")]
    of_it = (one for one in records if (one["namespace"], one["name"]) == ("evil", name))
    return next(of_it, {"outcome": "", "unproved": None, "successor": None})


def owners(world):
    """The KafkaConnections on record, by cluster."""
    bodies = [body for name, body in world.kube.config_maps.items() if name.startswith("binding-")]
    found = [json.loads(body["data"]["binding.json"]) for body in bodies]
    return {binding["cluster_id"]: binding["owner"]["connection"] for binding in found}


async def refused(*_changes):
    raise Transient("KafkaUnreachable", "no answer", 1.0)


@pytest.fixture
def claimed(world):
    """The cluster, in which others have cordoned broker 1, and a server of namespace evil with its topic ``own``."""
    world.servers["kafka"] = world.real = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 4, own=[[1, 2, 3]] * 2)
    world.servers["evil"] = Cordoning([1, 2, 3, 4], own=[[1, 2, 3]] * 2)
    world.real.values[ONE, CONFIG] = "*"
    return world


@pytest.fixture
def denied(claimed, monkeypatch):
    """The clients of the first KafkaConnection may only read, until this context is undone."""
    with monkeypatch.context() as patched:
        for name in ("alter_reassignments", "alter_broker_configs"):
            patched.setattr(claimed.real, name, refused)
        yield patched


async def another_owner(world, denied):
    """The other KafkaConnection gets the cluster; then the rebalance is deleted."""
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Conflicted")
    world.real.slow = set(map(BrokerId, range(1, 5)))
    await Cordoning.alter_reassignments(world.real, {TopicPartition("own", 0): replicas_of(4, 3, 2)})
    world.real.altered.clear()
    world.gone(CONNECTIONS, "k2", "k2")
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    denied.undo()
    body = world.kube.delete(REBALANCES, "evil", "r", world.clock.at.isoformat())
    world.supervisor.rebalance_seen(body, deleted=False)
    for name in ("one", "two"):
        world.create("a", name=name, kafka=REF, topics={"include": ["none"]})
        world.see("a")
        await world.until(lambda name=name: world.state("a", name) == "NothingToDo")
    assert (world.real.altered, world.real.flying) == ([], {"own-0"})
    assert world.real.values[ONE, CONFIG] == "*"


async def upgraded(world):
    """An earlier version, which did not store that runs in doubt are doubted again, is replaced by this one."""
    await world.supervisor.stop()
    for body in world.kube.config_maps.values():
        if "run.json" in body.get("data", {}):
            record = json.loads(body["data"]["run.json"])
            record.pop("was_unproved")
            body["data"]["run.json"] = json.dumps(record)
    world.begin()
    world.see()


@pytest.mark.parametrize("upgrade", [False, True])
async def test_a_run_that_a_resource_has_continued(claimed, denied, upgrade):
    fake = claimed.servers["evil"]
    fake.slow = {BrokerId(4)}
    claimed.create("evil", "evil", **DRAIN, execution={"parallelPartitionCount": 1})
    claimed.see("evil")
    await claimed.until(lambda: len(fake.flying) == 1)
    while 1 in fake.lists("own")[0] or fake.flying != {"own-1"}:
        fake.arrive()
        fake.slow = set(map(BrokerId, range(1, 5)))
        await claimed.until(lambda: fake.flying)
    claimed.connection("k2", name="k2", names=["evil"])
    await claimed.until(lambda: run(claimed)["unproved"])
    if upgrade:
        await upgraded(claimed)
    claimed.edit(REBALANCES, "evil", "r", kafka={"bootstrapServers": None, **K2})
    claimed.see("evil")
    await claimed.until(lambda: not run(claimed)["unproved"])
    await another_owner(claimed, denied)


def undone(world):
    body = world.kube.resources[REBALANCES, "evil", "r"]
    body["metadata"].setdefault("annotations", {})[UNDO_ANNOTATION] = run(world)["plan_hash"]
    world.see("evil")


def edited(world):
    """The next run of the resource has the cordons of the ended one."""
    world.edit(REBALANCES, "evil", "r", topics={"include": ["orders"]})
    world.see("evil")


async def repointed(world):
    world.edit(CONNECTIONS, "k2", "k2", bootstrapServers="x:9092")
    await world.until(lambda: "c" not in owners(world))
    world.edit(CONNECTIONS, "k2", "k2", bootstrapServers="kafka:9092")


async def created_again(world):
    """The resource and what is known of its run stay in memory meanwhile."""
    world.gone(CONNECTIONS, "k2", "k2")
    await world.until(lambda: "c" not in owners(world))
    world.connection("k2", name="k2", names=["evil"])


@pytest.mark.parametrize("opened", [edited, undone])
@pytest.mark.parametrize("moved", [repointed, created_again])
async def test_a_run_that_had_ended_at_another_server_of_the_connection(claimed, denied, moved, opened):
    """Its record had ended meanwhile, and is opened again in the same process."""
    claimed.servers["x"] = elsewhere = Cordoning([1, 2, 3, 4], own=[[1, 2, 3]])
    elsewhere.cluster_id = "x"
    claimed.connection("k2", server="evil", name="k2", names=["evil"])
    claimed.create("evil", kafka=K2, **DRAIN)
    claimed.see("evil")
    await claimed.until(lambda: run(claimed)["outcome"] == "Succeeded")
    await moved(claimed)
    await claimed.until(lambda: owners(claimed).get("c") == "k2" and claimed.state("evil") == "Succeeded")
    opened(claimed)
    await claimed.until(lambda: run(claimed)["outcome"] is None)
    assert (run(claimed)["cordoned"], run(claimed)["was_unproved"]) == ([1], True)
    await another_owner(claimed, denied)


async def test_a_run_that_goes_on_with_the_origins_of_one_in_doubt(claimed):
    """A resource that took it over is planned with the first KafkaConnection. The next one has to doubt its run too."""
    fake = claimed.servers["evil"]
    fake.slow = {BrokerId(4)}
    claimed.create("evil", "evil", **DRAIN, execution={"parallelPartitionCount": 1})
    no_plan = {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "none", "key": "k"}}}
    claimed.create("evil", "evil", name="heir", takesOver="r", topics={"include": ["own"]}, **no_plan)
    claimed.see("evil")
    await claimed.until(lambda: len(fake.flying) == 1 and claimed.state("evil", "heir") not in {"", "Planning"})
    await claimed.deleted("evil")
    assert run(claimed)["successor"]
    claimed.connection("k2", name="k2", names=["evil"])
    await claimed.until(lambda: run(claimed)["unproved"])
    for field in no_plan:
        claimed.kube.resources[REBALANCES, "evil", "heir"]["spec"].pop(field)
    kafka = {"bootstrapServers": None, **K2}
    claimed.edit(REBALANCES, "evil", "heir", kafka=kafka, brokers={"decommission": [2]}, approval={"policy": "Manual"})
    await claimed.until(lambda: claimed.state("evil", "heir") == "AwaitingApproval")
    heir = run(claimed, "heir")
    assert (heir["unproved"], heir["was_unproved"]) == (False, True)
