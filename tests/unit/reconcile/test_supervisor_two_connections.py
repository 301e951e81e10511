"""Two KafkaConnections lead to one cluster id. The older one owns the cluster, unless its spec was edited."""

import json

import pytest
from tests.fakes.shared_clusters import REF, Cluster, listener_of
from tests.unit.reconcile.test_supervisor_collisions import follow

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.reconcile.engines import Engines

DRAIN = {"brokers": {"decommission": [1]}, "throttle": {"leaderRate": "1Mi", "followerRate": "1Mi"}}


def owner_of(world, cluster_id):
    """The namespace on record."""
    found = [
        json.loads(b["data"]["binding.json"]) for n, b in world.kube.config_maps.items() if n.startswith("binding-")
    ]
    return next(binding["owner"]["namespace"] for binding in found if binding["cluster_id"] == cluster_id)


@pytest.fixture
async def two(world):
    """e/prod had its own cluster before k/prod was created. Namespace a uses k/prod."""
    world.servers["own"] = own = Cluster([1, 2, 3, 4], mine=[[1, 2, 3]])
    own.cluster_id = "d"
    world.connection("e", "own")
    await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Connected")
    world.connection(names=["a"])
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    return world


class TestEdited:
    """A user edits the older one: it names a server that claims the cluster id of the younger one."""

    async def edited(self, world, **lists):
        world.servers["fake"] = fake = Cluster([1, 2, 3, 4], **lists)
        world.edit(CONNECTIONS, "e", "prod", bootstrapServers="fake:9092")
        await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Conflicted")
        return fake

    async def test_takes_no_idle_cluster(self, two):
        """The message says why, and what to do."""
        await self.edited(two, bogus=[[1]])
        message = two.ready("e", "prod", CONNECTIONS)[1]
        assert "belongs to KafkaConnection k/prod. KafkaConnection e/prod is older, but its spec was edited" in message
        assert "Delete one of the two" in message
        assert owner_of(two, "c") == "k"
        two.create("a", kafka=REF, brokers={"decommission": [1]}, throttle={"unlimited": True})
        two.see("a")
        await two.until(lambda: two.state("a") == "Succeeded")

    async def test_takes_no_cluster_that_it_leads_to(self, two):
        """Also if both have the same bootstrap servers: a user who may edit one may not know the credentials."""
        two.edit(CONNECTIONS, "e", "prod", bootstrapServers="kafka:9092")
        await two.until(lambda: two.state("e", "prod", CONNECTIONS) == "Conflicted")
        assert "KafkaConnection e/prod is older, but its spec was edited" in two.ready("e", "prod", CONNECTIONS)[1]
        assert owner_of(two, "c") == "k"

    @pytest.mark.parametrize("restart", [False, True])
    async def test_takes_no_run(self, two, restart):
        """It takes no run even with the id of a topic, which every user of that cluster knows."""
        two.real.slow = {BrokerId(4)}
        two.create("a", kafka=REF, **DRAIN)
        two.see("a")
        await two.until(lambda: len(two.real.flying) == 4)
        fake = await self.edited(two, orders=[[1, 2, 3]])
        if restart:
            await two.restart()
        two.real.arrive()
        await two.until(lambda: two.state("a") == "Succeeded")
        assert (owner_of(two, "c"), fake.altered) == ("k", [])
        assert not any(two.real.values.values())

    async def test_keeps_what_it_has(self, two):
        """The record decides, so the owner also keeps its cluster after an edit."""
        two.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a", "b"]})
        two.connection("l")
        await two.until(lambda: two.state("l", "prod", CONNECTIONS) == "Conflicted")
        assert "belongs to the older KafkaConnection k/prod" in two.ready("l", "prod", CONNECTIONS)[1]
        assert owner_of(two, "c") == "k"

    async def test_while_the_owner_is_created_again(self, two):
        """With an open run, no unedited KafkaConnection takes the cluster, even if its server shows true ids."""
        two.create("a", kafka=REF, brokers={"decommission": [1]}, approval={"policy": "Manual"})
        two.see("a")
        await two.until(lambda: two.state("a") == "AwaitingApproval")
        two.servers["own"] = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        await two.restart()
        two.see()
        await two.until(lambda: two.state("e", "prod", CONNECTIONS) == "Conflicted")
        two.gone(CONNECTIONS, "k", "prod")
        await two.until(lambda: "k/prod does not exist any more" in two.ready("e", "prod", CONNECTIONS)[1])
        assert "If it leads there, run: " in two.ready("e", "prod", CONNECTIONS)[1]
        two.connection(names=["a"])
        await two.until(lambda: two.state("k", "prod", CONNECTIONS) == "Connected")
        assert owner_of(two, "c") == "k"
        await two.until(lambda: two.state("a") == "AwaitingApproval")


class TestEditedWhileTheOwnerDoesNotExist:
    """The older e/prod was edited to lead to the cluster c, in which k/prod has a run and a throttle."""

    @pytest.fixture
    async def left(self, two):
        two.real.slow = {BrokerId(4)}
        two.create("a", kafka=REF, **DRAIN)
        two.see("a")
        await two.until(lambda: len(two.real.flying) == 4)
        two.edit(CONNECTIONS, "e", "prod", bootstrapServers="kafka:9092")
        await two.until(lambda: two.state("e", "prod", CONNECTIONS) == "Conflicted")
        two.gone(CONNECTIONS, "k", "prod")
        await two.until(lambda: two.state("a") == "ConnectionNotFound")
        await two.until(lambda: owner_of(two, "c") == "e" or "does not exist any more" in self.message(two))
        return two

    def message(self, world):
        return world.ready("e", "prod", CONNECTIONS)[1]

    async def test_takes_no_work_of_it(self, left):
        """It may have the addresses of the cluster, and no credentials that permit to end a run there."""
        assert owner_of(left, "c") == "k"
        assert "KafkaConnection e/prod leads there, but its spec was edited" in self.message(left)
        assert "Create KafkaConnection k/prod again. If that is not" in self.message(left)
        left.connection(names=["a"])
        await left.until(lambda: left.state("k", "prod", CONNECTIONS) == "Connected")
        left.real.arrive()
        await left.until(lambda: left.state("a") == "Succeeded")
        assert (owner_of(left, "c"), any(left.real.values.values())) == ("k", False)

    async def ends(self, world):
        """The former owner never returns, and a resource of it is deleted."""
        await world.until(lambda: owner_of(world, "c") == "e")
        await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Connected")
        world.real.arrive()
        await world.deleted("a")
        await world.until(lambda: not any(world.real.values.values()))

    async def test_created_again_it_takes_the_work(self, left):
        """As its message tells: an administrator has written its bootstrap servers then."""
        left.gone(CONNECTIONS, "e", "prod")
        left.connection("e")
        await self.ends(left)

    async def test_confirmed_it_takes_the_work(self, left):
        """With the command of the message."""
        follow(left, self.message(left))
        await self.ends(left)


class TestNotEdited:
    @pytest.mark.parametrize("first", ["k", "l"])
    async def test_the_older_one_has_the_cluster(self, world, first):
        """This holds in both orders of connecting, and after a restart."""
        bodies = {"k": world.connection("k", see=False), "l": world.connection("l", see=False)}
        world.supervisor.connection_seen(bodies.pop(first), deleted=False)
        await world.until(lambda: world.state(first, "prod", CONNECTIONS) == "Connected")
        for body in bodies.values():
            world.supervisor.connection_seen(body, deleted=False)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.until(lambda: world.state("l", "prod", CONNECTIONS) == "Conflicted")
        await world.restart("l")
        world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert owner_of(world, "c") == "k"

    @pytest.fixture
    async def younger(self, world):
        """The younger k/prod has the cluster; the older one has not been seen."""
        world.older = world.connection("e", see=False)
        world.connection(names=["a"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        return world

    async def test_the_younger_one_ends_its_work_before(self, younger):
        """The cluster passes to the older one when nothing is left of it."""
        younger.real.slow = {BrokerId(4)}
        younger.create("a", kafka=REF, **DRAIN)
        younger.see("a")
        await younger.until(lambda: len(younger.real.flying) == 4)
        younger.supervisor.connection_seen(younger.older, deleted=False)
        await younger.until(lambda: younger.state("e", "prod", CONNECTIONS) == "Conflicted")
        assert "passes to the older KafkaConnection e/prod" in younger.ready("e", "prod", CONNECTIONS)[1]
        younger.real.arrive()
        await younger.until(lambda: younger.state("a") == "Succeeded")
        await younger.until(lambda: younger.state("e", "prod", CONNECTIONS) == "Connected")
        await younger.until(lambda: younger.state("k", "prod", CONNECTIONS) == "Conflicted")
        assert not any(younger.real.values.values())

    async def test_the_older_one_takes_no_cluster_by_its_id(self, world):
        """Its server was another cluster, and claims the id since the operator was restarted."""
        world.servers["own"] = own = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        own.cluster_id = "d"
        world.connection("e", "own")
        await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Connected")
        world.connection(names=["a"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        own.cluster_id = "c"
        await world.restart()
        await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Conflicted")
        assert "it has led to another cluster before" in world.ready("e", "prod", CONNECTIONS)[1]
        assert owner_of(world, "c") == "k"

    async def test_also_what_it_begins_while_it_is_ended(self, younger, monkeypatch):
        """Its engine opens a run in its last round."""
        younger.real.slow = {BrokerId(4)}
        evict, evicted = Engines._evict, []

        async def late(engines, running):
            if not evicted:
                evicted.append(running.owner)
                younger.create("a", kafka=REF, **DRAIN)
                younger.see("a")
                await younger.until(lambda: len(younger.real.flying) == 4)
            await evict(engines, running)

        monkeypatch.setattr(Engines, "_evict", late)
        younger.supervisor.connection_seen(younger.older, deleted=False)
        await younger.until(lambda: younger.state("e", "prod", CONNECTIONS) == "Conflicted")
        assert (owner_of(younger, "c"), len(evicted)) == ("k", 1)


@pytest.fixture
async def inline(world):
    """Namespace a has copies in flight in the cluster, under a throttle, with an inline connection."""
    world.servers["own"] = own = Cluster([1, 2, 3, 4], mine=[[1, 2, 3]])
    own.cluster_id = "d"
    world.connection("e", "own")
    await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Connected")
    await world.draining()
    return world


async def kept(world):
    """The cluster stays with namespace a, whose run ends there."""
    await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Conflicted")
    assert owner_of(world, "c") == "a"
    world.real.arrive()
    await world.until(lambda: world.state("a") == "Succeeded")
    assert not any(world.real.values.values())


class TestInlineOwners:
    """The server of a KafkaConnection shows the ids of brokers and topics of a cluster that a namespace works in."""

    @pytest.fixture
    def fake(self, inline):
        inline.servers["fake"] = fake = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        fake.brokers = {broker: Broker(broker, host="kafka", port=9092) for broker in fake.brokers}
        return fake

    @pytest.mark.parametrize("servers", ["fake:9092", "fake:9092,kafka:9092"])
    async def test_an_edit_does_not_take_it(self, inline, fake, servers):
        """Not even with addresses of the cluster, as bootstrap servers or as those that the brokers advertise."""
        inline.edit(CONNECTIONS, "e", "prod", bootstrapServers=servers)
        await kept(inline)
        message = inline.ready("e", "prod", CONNECTIONS)[1]
        assert (
            "belongs to the inline connections of namespace a. KafkaConnection e/prod leads there, but its" in message
        )
        assert fake.altered == []

    async def test_an_administrator_confirms_it(self, inline):
        """With the command of the message: another listener of the cluster."""
        inline.servers["new"] = listener_of(inline.real, 9094)
        inline.edit(CONNECTIONS, "e", "prod", bootstrapServers="new:9094")
        await inline.until(lambda: inline.state("e", "prod", CONNECTIONS) == "Conflicted")
        follow(inline, inline.ready("e", "prod", CONNECTIONS)[1])
        await inline.until(lambda: owner_of(inline, "c") == "e")
        inline.real.arrive()
        await inline.until(lambda: not any(inline.real.values.values()))

    @pytest.mark.parametrize("restart", [False, True])
    async def test_while_its_resource_names_a_connection_that_does_not_exist_yet(self, inline, fake, restart):
        """Nothing but its run and its throttles name the cluster. They go to the connection that is created."""
        inline.edit(CONNECTIONS, "e", "prod", bootstrapServers="fake:9092")
        await inline.until(lambda: inline.state("e", "prod", CONNECTIONS) == "Conflicted")
        inline.edit(REBALANCES, "a", "r", kafka=REF | {"bootstrapServers": None})
        if restart:
            await inline.restart()
            inline.see()
        unnamed = "no resource of namespace a names it any more"
        await inline.until(lambda: owner_of(inline, "c") == "e" or unnamed in inline.ready("e", "prod", CONNECTIONS)[1])
        assert owner_of(inline, "c") == "a"
        assert "If it leads there, run: " in inline.ready("e", "prod", CONNECTIONS)[1]
        inline.connection(names=["a"])
        await inline.until(lambda: owner_of(inline, "c") == "k")
        inline.real.arrive()
        await inline.until(lambda: inline.state("a") == "Succeeded")
        assert fake.altered == []

    async def test_nor_an_idle_one(self, inline, fake):
        inline.real.arrive()
        await inline.until(lambda: inline.state("a") == "Succeeded")
        inline.edit(CONNECTIONS, "e", "prod", bootstrapServers="fake:9092")
        await kept(inline)

    async def test_a_new_one_does_not_take_its_throttles(self, inline, fake):
        """Its administrator is trusted, but not its server."""
        inline.connection("l", "fake")
        await inline.until(lambda: inline.state("l", "prod", CONNECTIONS) == "ClusterIdCollision")
        assert owner_of(inline, "c") == "a"
        inline.real.arrive()
        await inline.until(lambda: not any(inline.real.values.values()))
        assert fake.altered == []

    async def test_an_edit_to_its_bootstrap_servers_takes_it(self, inline):
        inline.edit(CONNECTIONS, "e", "prod", bootstrapServers="kafka:9092")
        await inline.until(lambda: owner_of(inline, "c") == "e")
        inline.real.arrive()
        await inline.until(lambda: not any(inline.real.values.values()))
