"""A KafkaConnection is deleted and created again: nothing is done with its former settings for the new one.

The former settings may be those of a user who may only edit it. An administrator has written those of the new one.
"""

import asyncio
import json

import pytest
from tests.fakes.shared_clusters import REF, Away, Cluster, listener_of
from tests.unit.reconcile.test_supervisor_two_connections import DRAIN, owner_of

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, ObjectMeta
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile import connection_retries, unfinished_work
from kafka_rebalance.reconcile.claim_checks import claimant
from kafka_rebalance.reconcile.connection_book import NamedConnection
from kafka_rebalance.reconcile.decide.cluster_ownership import LastUse, Standing


class Held(Cluster):
    """A server that answers when it is let go, with the ids of the cluster c."""

    def __init__(self, *arguments, **lists):
        super().__init__(*arguments, **lists)
        self.described, self.answers = asyncio.Event(), asyncio.Event()

    async def describe_cluster(self):
        self.described.set()
        await self.answers.wait()
        return await super().describe_cluster()


@pytest.fixture
async def held(world):
    """e/prod has its own cluster d, and was edited to lead to a server that answers late."""
    world.servers["own"] = own = Cluster([1, 2, 3, 4], mine=[[1, 2, 3]])
    own.cluster_id = "d"
    world.connection("e", "own")
    await world.until(lambda: world.state("e", "prod", CONNECTIONS) == "Connected")
    world.servers["fake"] = Held([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    return world


async def answered_after(world, *events):
    """e/prod is edited to lead to the fake server and to the cluster c. ``events`` come before the first answer."""
    fake = world.servers["fake"]
    world.edit(CONNECTIONS, "e", "prod", bootstrapServers="fake:9092,kafka:9092")
    await world.until(fake.described.is_set)
    for event in events:
        event()
    fake.answers.set()
    return fake


@pytest.mark.parametrize("server", ["own", "kafka"])
async def test_the_former_settings_take_nothing(held, server):
    """They are not judged as if an administrator had written them. Namespace a has a throttled run in cluster c."""
    await held.draining()
    fake = await answered_after(held, lambda: held.gone(CONNECTIONS, "e", "prod"), lambda: held.connection("e", server))
    await held.until(lambda: held.state("e", "prod", CONNECTIONS) in {"Connected", "ClusterChanged"})
    assert owner_of(held, "c") == ("a" if server == "own" else "e")
    assert "fake:9092" not in held.binding["servers"]
    held.real.arrive()
    await held.until(lambda: not any(held.real.values.values()))
    assert fake.altered == []


async def test_nor_while_it_does_not_exist(held):
    """Who has written the last settings of a KafkaConnection that is gone is not known: it takes nothing either."""
    await held.draining()
    fake = await answered_after(held, lambda: held.gone(CONNECTIONS, "e", "prod"))
    await held.until(lambda: not any(known.owner.connection for known in held.supervisor._book))
    assert owner_of(held, "c") == "a"
    held.real.arrive()
    await held.until(lambda: held.state("a") == "Succeeded")
    assert (any(held.real.values.values()), fake.altered) == (False, [])


async def test_the_former_client_is_used_no_more(held):
    """It works, but its server only shows the ids of the cluster. A client is kept after an edit only."""
    fake = held.servers["fake"]
    fake.answers.set()
    held.edit(CONNECTIONS, "e", "prod", bootstrapServers="fake:9092")
    await held.until(lambda: held.supervisor._engines.get("c"))
    held.gone(CONNECTIONS, "e", "prod")
    held.connection("e", "kafka")
    held.create("b", kafka={"connectionRef": {"name": "prod", "namespace": "e"}}, **DRAIN)
    held.see("b")
    await held.until(lambda: held.state("b") == "Succeeded")
    assert fake.altered == []
    assert not any(1 in replicas for replicas in held.real.lists("orders"))


async def test_the_new_settings_are_tried_at_once(held, monkeypatch):
    """The attempt before has failed with other ones, so its pause is not theirs."""
    monkeypatch.setattr(connection_retries, "FIRST_PAUSE_SECONDS", 3600.0)
    await answered_after(held, lambda: held.gone(CONNECTIONS, "e", "prod"), lambda: held.connection("e", "own"))
    await held.until(lambda: held.state("e", "prod", CONNECTIONS) == "Connected")


SASL = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "login"}}


@pytest.fixture
async def moved(world, monkeypatch):
    """k/prod has a throttled run; it leads to the cluster at a new address, and its server from before is another's."""
    monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.02)
    world.kube.secrets["k", "login"] = {"username": b"u", "password": b"p"}
    world.servers["new"] = listener_of(world.real, 9093)
    world.connection(see=False)
    world.edit(CONNECTIONS, "k", "prod", sasl=SASL)
    world.real.slow = {BrokerId(b) for b in (1, 2, 3, 4)}
    world.create("a", kafka=REF, brokers={"decommission": [1]}, throttle={"leaderRate": "1Mi", "followerRate": "1Mi"})
    world.see("a")
    await world.until(lambda: world.real.flying)
    await world.supervisor.stop()
    return world


def leads_to(world, server):
    return world.binding and json.loads(world.binding["connection"])["bootstrapServers"] == server


async def ends_with_the_settings_on_record(world):
    """k/prod is deleted in mid-run."""
    await world.until(lambda: leads_to(world, "new:9092") and world.state("a") == "Rebalancing")
    running = world.supervisor._engines.get("c").engine
    world.servers["kafka"] = fake = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
    used = []
    given = world.connect
    world.supervisor._engines.clients.connect = lambda settings, owner: (
        used.append(settings.bootstrap_servers),
        given(settings, owner),
    )[1]
    world.gone(CONNECTIONS, "k", "prod")
    await world.until(lambda: world.state("a") == "ConnectionNotFound")
    world.real.arrive()
    await world.until(lambda: not any(world.real.values.values()))
    assert set(used) <= {"new:9092"}
    assert world.supervisor._engines.get("c") is None or world.supervisor._engines.get("c").engine is running
    assert fake.altered == []


class TestDeletedAgain:
    """After a restart, its work was ended with the settings on record. Then it led to the cluster with its own."""

    async def test_after_it_was_created_with_another_address(self, moved):
        del moved.kube.resources[CONNECTIONS, "k", "prod"]
        moved.servers["kafka"] = Away()
        moved.begin()
        await moved.supervisor.start()
        await moved.supervisor.know(())
        await moved.until(lambda: any(known.unfinished for known in moved.supervisor._book))
        moved.connection(server="new", see=False)
        moved.edit(CONNECTIONS, "k", "prod", sasl=SASL)
        moved.see("a")
        await ends_with_the_settings_on_record(moved)

    async def test_after_it_could_not_be_read(self, moved):
        """It had a field of a later version."""
        moved.kube.edit(CONNECTIONS, "k", "prod", ofALaterVersion=True)
        moved.begin()
        await moved.supervisor.start()
        await moved.supervisor.know(())
        await moved.until(lambda: moved.supervisor._engines.get("c"))
        del moved.kube.resources[CONNECTIONS, "k", "prod"]["spec"]["ofALaterVersion"]
        moved.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "All"})
        await moved.until(lambda: moved.state("k", "prod", CONNECTIONS) == "Connected")
        moved.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9092")
        moved.see("a")
        await ends_with_the_settings_on_record(moved)


async def begun_again(world):
    """The operator is started again."""
    world.begin()
    await world.supervisor.start()
    await world.supervisor.know(())


def corrected(world):
    """The field of a later version is removed."""
    del world.kube.resources[CONNECTIONS, "k", "prod"]["spec"]["ofALaterVersion"]
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "All"})


class TestCreatedAgainUnreadable:
    """While the operator is down, k/prod is created again with the new address, and with a field of a later version.

    The server at the former address belongs to others by now, and shows the ids of the cluster.
    """

    @pytest.fixture
    async def unread(self, moved):
        moved.servers["kafka"] = Held([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        self.former = moved.binding["uid"]
        del moved.kube.resources[CONNECTIONS, "k", "prod"]
        moved.connection(server="new", see=False)
        moved.kube.edit(CONNECTIONS, "k", "prod", ofALaterVersion=True)
        return moved

    async def ends_with_its_own(self, world):
        """Its own settings lead to the cluster: nothing is sent to the other server any more."""
        fake = world.servers["kafka"]
        await world.until(lambda: leads_to(world, "new:9092") and world.state("k", "prod", CONNECTIONS) == "Connected")
        sent = list(fake.altered)
        world.see("a")
        world.real.slow = set()
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")
        assert fake.altered == sent
        assert not any(1 in replicas for replicas in world.real.lists("orders"))
        assert not any(world.real.values.values())

    @pytest.mark.parametrize("restarts", [1, 2])
    async def test_its_own_settings_replace_the_client(self, unread, restarts):
        """Until it can be read, work is ended with the settings on record, which stay those of the former one."""
        unread.servers["kafka"].answers.set()
        for _ in range(restarts):
            await unread.supervisor.stop()
            await begun_again(unread)
            await unread.until(lambda: unread.supervisor._engines.get("c"))
            assert (unread.binding["uid"], leads_to(unread, "kafka:9092")) == (self.former, True)
        corrected(unread)
        await self.ends_with_its_own(unread)

    async def test_it_can_be_read_while_the_other_server_is_asked(self, unread):
        """The answer counts for nothing: the binding never has the former address as one of the new object."""
        await begun_again(unread)
        fake, uid = unread.servers["kafka"], unread.kube.resources[CONNECTIONS, "k", "prod"]["metadata"]["uid"]
        await unread.until(fake.described.is_set)
        corrected(unread)
        fake.answers.set()
        await unread.until(lambda: unread.binding["uid"] == uid)
        assert leads_to(unread, "new:9092")
        await self.ends_with_its_own(unread)
        assert fake.altered == []

    def test_the_settings_on_record_take_nothing_for_it(self):
        """Who has written them is not known, and they stay those of the former one."""
        owner = Owner("k", "prod")
        connection = NamedConnection(owner, unread=ObjectMeta(name="prod", namespace="k", uid="new"))
        connection.last = LastUse(uid="former")
        found = claimant(connection, Standing(owner, named=True, uid="new"), ())
        assert (found.named, found.as_created, found.uid) == (False, False, "former")

    async def test_the_same_one_keeps_the_client(self, moved):
        """It was not created again: an edit does not replace a client that works."""
        moved.kube.edit(CONNECTIONS, "k", "prod", ofALaterVersion=True)
        await begun_again(moved)
        await moved.until(lambda: moved.supervisor._engines.get("c"))
        engine = moved.supervisor._engines.get("c").engine
        corrected(moved)
        await moved.until(lambda: moved.state("k", "prod", CONNECTIONS) == "Connected")
        assert moved.supervisor._engines.get("c").engine is engine
