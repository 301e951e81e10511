"""A namespace claims a cluster id with a server of its own, which shows a topic of the cluster with its true id.

Every user of a topic knows its id. When the KafkaConnection of the cluster takes the cluster id over, work that started
at that server must not change the brokers of the cluster.
"""

from dataclasses import replace

import pytest
from tests.fakes.shared_clusters import REF, Away, Cluster, listener_of
from tests.fakes.stopped_clock import NOON
from tests.unit.reconcile.test_supervisor_collisions import follow
from tests.unit.reconcile.test_supervisor_cordons import Cordoning

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, FINALIZER, REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.ledger import Ledger
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, REPLICATION_RATES
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition
from kafka_rebalance.reconcile.act.cordoning import CONFIG
from kafka_rebalance.reconcile.engines import Engines

ONE = BrokerId(1)
THROTTLE = {"leaderRate": "1Ki", "followerRate": "1Ki"}
RATES = [(BrokerId(broker), name) for broker in (1, 2, 3, 4) for name in REPLICATION_RATES]
SET = Ledger(entries={"own": {LIST_NAMES[0]: frozenset({"0:1"})}})
OWN = TopicPartition("own", 0)
EVIL = {"namespace": "evil", "connection": ""}


@pytest.fixture
def fake(world):
    """The server shows the topic ``own`` of the cluster, and advertises its bootstrap servers."""
    world.servers["kafka"] = world.real = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 4, own=[[1, 2, 3]])
    world.servers["evil"] = fake = Cordoning([1, 2, 3, 4], own=[[1, 2, 3]])
    fake.brokers = {broker: Broker(broker, host="kafka", port=9092) for broker in fake.brokers}
    fake.slow = {BrokerId(4)}
    return fake


async def claimed(world, throttle):
    """Namespace evil drains broker 1 of its server."""
    world.create("evil", "evil", brokers={"decommission": [1]}, throttle=throttle)
    world.see("evil")
    await world.until(lambda: len(world.servers["evil"].flying) == 1)
    assert world.servers["evil"].cordoned == [1]


async def refused(world):
    """The KafkaConnection of the cluster is created; returns what it says."""
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
    assert world.owner == EVIL
    return world.ready("k", "prod", CONNECTIONS)[1]


@pytest.mark.usefixtures("fake")
class TestThrottles:
    @pytest.mark.parametrize("rate", ["1024", "2048"])
    async def test_are_not_taken_over(self, world, rate):
        """Restoring them would change rates and lists that others have set, and remove their cordons."""
        world.servers["evil"].values = dict.fromkeys(RATES, "1024")
        await claimed(world, THROTTLE)
        values = world.real.values = dict.fromkeys(RATES, rate)
        values |= {("own", name): "0:1,0:2,0:3,0:4" for name in LIST_NAMES} | {(ONE, CONFIG): "*"}
        before = dict(values)
        message = await refused(world)
        assert "reached it at evil:9092: it is not known that kafka:9092 leads to the same cluster" in message
        assert "delete the resources of the inline connections of namespace evil" in message
        await world.deleted("evil")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert (world.real.values, world.real.altered) == (before, [])

    async def test_nor_those_of_its_last_round(self, world, monkeypatch):
        """It has an open run without a throttle when the KafkaConnection is created."""
        await claimed(world, {"unlimited": True})
        evict = Engines._evict

        async def late(engines, running):
            await evict(engines, running)
            await LedgerStore(world.kube).save("c", ledger_to_json(SET))

        monkeypatch.setattr(Engines, "_evict", late)
        await refused(world)
        assert world.real.altered == []

    async def test_nor_where_addresses_of_the_cluster_were_added(self, world):
        """The namespace may have set them at any of its addresses."""
        await claimed(world, THROTTLE)
        world.create("evil", "kafka", "more", execution={"suspend": True})
        world.see("evil")
        await world.until(lambda: set(world.binding["servers"]) == {"evil:9092", "kafka:9092"})
        await refused(world)

    async def test_nor_where_very_many_were_added(self, world):
        """The earliest of them are not on record any more."""
        await claimed(world, THROTTLE)
        ports = range(9000, 9100)
        for number in (0, 1, 3, 4, 2):  # the last ones have port 9092
            many = ",".join(f"kafka:{port}" for port in ports[number::5])
            world.create("evil", name=f"s{number}", kafka={"bootstrapServers": many}, execution={"suspend": True})
        world.see("evil")
        await world.until(lambda: "evil:9092" not in world.binding["servers"])
        others = set(world.binding["servers"]) - {"kafka:9092"}
        world.connection(server=",".join([*others, "kafka"]))
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterIdCollision")
        assert world.owner == EVIL

    async def test_are_taken_over_where_an_administrator_confirms(self, world):
        """With the command of the message."""
        await claimed(world, THROTTLE)
        follow(world, await refused(world))
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.binding["recognised"] == [EVIL]


@pytest.mark.usefixtures("fake")
class TestReassignments:
    """The run of the namespace is open, and Kafka executes the same call in the cluster, which others have sent."""

    @pytest.fixture
    async def taken_over(self, world, request):
        await claimed(world, {"unlimited": True})
        state = (await world.servers["evil"].describe_partitions())[OWN]
        world.real.slow = {BrokerId(4)}
        await world.real.alter_reassignments({OWN: [b for b in state.replicas if b not in state.removing]})
        world.connection(names=["a"])
        if request.param:
            await world.restart()
            world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.until(lambda: world.state("evil") == "ClusterOwnedElsewhere")

    @pytest.mark.parametrize("taken_over", [False, True], indirect=True, ids=["running", "restarted"])
    async def test_of_others_are_not_cancelled(self, world, taken_over):
        """The resource is deleted. Ids of topics do not prove that its run started in the cluster."""
        await world.deleted("evil")
        assert world.real.flying == {"own-0"}
        assert world.runs == {"evil": "Abandoned"}

    @pytest.mark.parametrize("taken_over", [False], indirect=True)
    async def test_nor_if_the_resource_names_the_kafka_connection(self, world, taken_over):
        """Without permission, its run does not become one of the owner."""
        world.edit(REBALANCES, "evil", "r", kafka=REF)
        await world.until(lambda: world.state("evil") == "ConnectionNotPermitted")
        await world.deleted("evil")
        assert world.real.flying == {"own-0"}

    async def test_nor_by_a_resource_that_takes_its_run_over(self, world):
        """It had no run of its own yet when the KafkaConnection was created, for instance because its plan failed."""
        await claimed(world, {"unlimited": True})
        state = (await world.servers["evil"].describe_partitions())[OWN]
        world.real.slow = {BrokerId(4)}
        await world.real.alter_reassignments({OWN: [b for b in state.replicas if b not in state.removing]})
        await world.supervisor.stop()
        heir = world.create("evil", "evil", "heir", topics={"include": ["no-such-topic"]})
        world.kube.resources[REBALANCES, "evil", "heir"]["metadata"]["finalizers"] = [FINALIZER]
        (run,) = await RunStore(world.kube).list_all()
        handed_over = replace(run, closed_at=NOON, outcome=RunOutcome.ABANDONED, successor=heir["metadata"]["uid"])
        await RunStore(world.kube).save(handed_over)
        del world.kube.resources[REBALANCES, "evil", "r"]
        world.begin()
        world.connection(names=["a"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.see("evil")
        await world.until(lambda: world.state("evil", "heir") == "ClusterOwnedElsewhere")
        body = world.kube.delete(REBALANCES, "evil", "heir", world.clock.at.isoformat())
        world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: (REBALANCES, "evil", "heir") not in world.kube.resources)
        assert world.real.flying == {"own-0"}

    @pytest.mark.parametrize("taken_over", [False], indirect=True)
    async def test_are_continued_with_permission(self, world, taken_over):
        """From then on, the run is one of the cluster: if the permission is lost, it ends as any other."""
        world.edit(REBALANCES, "evil", "r", kafka=REF)
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["evil"]})
        await world.until(lambda: world.state("evil") == "Rebalancing")
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        await world.until(lambda: world.state("evil") == "ConnectionNotPermitted")
        await world.restart()
        world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.deleted("evil")
        assert world.real.flying == set()


class TestRunsThatHaveEnded:
    """At the other server, before the KafkaConnection was created. Their resource may use the cluster since."""

    @pytest.fixture
    async def succeeded(self, world, fake):
        fake.slow = set()
        world.real.values = {(ONE, CONFIG): "*"}
        world.create("evil", "evil", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("evil")
        await world.until(lambda: world.state("evil") == "Succeeded")
        world.connection(names=["evil"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.edit(REBALANCES, "evil", "r", kafka=REF | {"bootstrapServers": None})
        return world

    async def test_are_not_undone(self, succeeded):
        """The lists from before were those of the other cluster."""
        world, lists = succeeded, succeeded.real.lists("own")
        (run,) = await RunStore(world.kube).list_all()
        body = world.kube.resources[REBALANCES, "evil", "r"]
        body["metadata"].setdefault("annotations", {})[UNDO_ANNOTATION] = run.plan_hash
        world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: "another cluster with the same id" in world.ready("evil")[1])
        assert (world.real.lists("own"), world.real.values) == (lists, {(ONE, CONFIG): "*"})

    async def test_leave_the_cordons_of_the_cluster(self, succeeded):
        """The next plan has other brokers."""
        world = succeeded
        world.edit(REBALANCES, "evil", "r", brokers={"include": [1, 2, 3, 4]}, topics={"include": ["own"]})
        await world.until(lambda: world.state("evil") == "NothingToDo")
        assert world.real.values == {(ONE, CONFIG): "*"}


class TestThrottlesOfTheCluster:
    @pytest.mark.parametrize(("server", "of_connection"), [("kafka", "kafka"), ("kafka-2", "kafka-3")])
    async def test_are_taken_over(self, world, server, of_connection):
        """Namespace a has worked there by a bootstrap server of the KafkaConnection, or both know all brokers."""
        world.servers |= {"kafka-2": world.real, "kafka-3": world.real}
        world.real.slow = {BrokerId(4)}
        world.create("a", server, brokers={"decommission": [1]}, throttle=THROTTLE)
        world.see("a")
        await world.until(lambda: len(world.real.flying) == 4)
        world.connection(server=of_connection)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))


@pytest.mark.usefixtures("fake")
class TestCordons:
    async def test_of_others_stay(self, world):
        """Its run is abandoned, and has lost its cordons on record."""
        await claimed(world, {"unlimited": True})
        world.real.values = {(ONE, CONFIG): "*"}
        world.connection(names=["a"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.deleted("evil")
        assert world.real.values == {(ONE, CONFIG): "*"}
        assert world.binding["recognised"] == []

    @pytest.mark.parametrize("restart", [False, True])
    async def test_also_if_the_new_owner_is_not_put_on_record_at_once(self, world, monkeypatch, restart):
        """Evil has the cluster once more in between, and cordons its broker again."""
        await claimed(world, {"unlimited": True})
        world.real.values = {(ONE, CONFIG): "*"}
        replaces, lost = BindingStore.replaces, []

        async def fails(store, before, binding, **limit):
            if binding.owner == Owner("k", "prod") and not lost:
                lost.append(binding)
                raise Transient("ApiServerUnavailable", "no answer", retry_after=0.01)
            return await replaces(store, before, binding, **limit)

        monkeypatch.setattr(BindingStore, "replaces", fails)
        world.connection(names=["a"])
        await world.until(lambda: lost)
        if restart:
            await world.restart("evil")
            await world.until(lambda: world.supervisor._engines.get("c"))
            world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.deleted("evil")
        assert world.real.values == {(ONE, CONFIG): "*"}


NONE = {"include": ["no-such-topic"]}


@pytest.mark.usefixtures("fake")
async def test_a_run_that_was_handed_over_is_not_continued(world):
    """The namespace names the true server itself when no engine runs, before the KafkaConnection is created."""
    await claimed(world, {"unlimited": True})
    lists = {"configMapRef": {"name": "none", "key": "k"}}
    world.create("evil", "evil", "heir", strategy="Assignment", assignment=lists, takesOver="r")
    world.servers["dead"] = Away()
    world.create("evil", "dead", "x", topics=NONE)
    world.see("evil")
    await world.until(lambda: world.state("evil", "heir") not in {"", "Planning"} and world.state("evil", "x"))
    await world.deleted("evil")
    world.edit(REBALANCES, "evil", "heir", kafka=REF | {"bootstrapServers": None})
    world.supervisor._engines.get("c").engine.wake()
    await world.until(lambda: world.supervisor._engines.get("c") is None)
    world.create("evil", topics=NONE, name="y")
    world.see("evil")
    await world.until(lambda: "kafka:9092" in world.binding["servers"])
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    world.real.values = {(ONE, CONFIG): "*"}
    world.real.slow = {BrokerId(4)}
    await world.real.alter_reassignments({OWN: (BrokerId(2), BrokerId(3), BrokerId(4))})
    body = world.kube.delete(REBALANCES, "evil", "heir", world.clock.at.isoformat())
    world.supervisor.rebalance_seen(body, deleted=False)
    await world.until(lambda: (REBALANCES, "evil", "heir") not in world.kube.resources)
    assert (world.real.flying, world.real.values) == ({"own-0"}, {(ONE, CONFIG): "*"})


@pytest.mark.usefixtures("fake")
class TestRunsThatAreNotProved:
    """Open runs that began at another server do not bind the KafkaConnection to the cluster."""

    @pytest.fixture
    async def connected(self, world):
        """The KafkaConnection has the cluster, and leads to another one now."""
        await claimed(world, {"unlimited": True})
        world.connection(names=["a"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.servers["new"] = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        world.servers["new"].cluster_id = "d"
        return world

    async def test_not_in_its_former_cluster(self, connected):
        world = connected
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9092")
        world.create("a", kafka=REF, brokers={"decommission": [1]})
        world.see("a")
        await world.until(lambda: world.state("a") == "Succeeded")
        assert not [held for held in world.servers["new"].lists("orders") if 1 in held]

    async def test_not_from_a_cluster_whose_connection_was_deleted(self, connected):
        world = connected
        world.gone(CONNECTIONS, "k", "prod")
        world.servers["other"] = listener_of(world.real, 9093)
        world.connection("other", "other")
        await world.until(lambda: world.state("other", "prod", CONNECTIONS) == "Connected")
        assert world.owner == {"namespace": "other", "connection": "prod"}


@pytest.mark.usefixtures("fake")
async def test_a_repointed_connection_leaves_the_cluster_to_another(world):
    """The run of the namespace that claimed it stays open: it does not keep the cluster."""
    await claimed(world, {"unlimited": True})
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    world.servers["new"] = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    world.servers["new"].cluster_id = "another"
    world.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9092")
    await world.until(lambda: world.supervisor._engines.get("another") is not None)
    world.servers["other"] = listener_of(world.real, 9093)
    world.connection("other", "other")
    await world.until(lambda: world.state("other", "prod", CONNECTIONS) == "Connected")
    assert world.state("k", "prod", CONNECTIONS) == "Connected"
