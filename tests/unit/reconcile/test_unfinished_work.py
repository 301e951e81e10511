"""After a restart the operator restores its throttles in a Kafka cluster, even if no resource names it any more."""

import asyncio
import logging

import pytest
from tests.fakes.shared_clusters import REF, Cluster

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile import unfinished_work

SASL = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "login"}}
SECRET = {"username": b"u", "password": b"p"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.02)


async def left_in(world, **spec):
    """Namespace a has abandoned copies in flight under a throttle, and the operator was killed before they ended."""
    await world.draining(deletionPolicy="Abandon", **spec)
    world.kube.delete(REBALANCES, "a", "r", "2026-03-04T12:00:00Z")
    world.see("a")
    await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)
    await world.supervisor.stop()
    assert any(world.real.values.values())


async def restarted(world, **options):
    world.begin(**options)
    await world.supervisor.start()
    await world.supervisor.know(())


def unthrottled(world):
    """Whether nothing of ours is left in Kafka. Wakes the engine, which otherwise looks every half minute."""
    running = world.supervisor._engines.get("c")
    if running is not None:
        running.engine.wake()
    return not any(world.real.values.values())


async def restored(world):
    await world.until(lambda: world.supervisor._engines.get("c"))
    world.real.arrive()
    await world.until(lambda: unthrottled(world) and world.owner is None and not list(world.supervisor._book))
    assert not world.supervisor._engines.get("c")


class TestInlineConnection:
    async def test_the_throttle_is_restored(self, world):
        """With the connection on record."""
        await left_in(world)
        await restarted(world)
        await restored(world)

    async def test_without_its_secret(self, world, caplog):
        """Its data is not on record. Until the Secret is there, the log says what is left and what can be done."""
        caplog.set_level(logging.WARNING)
        world.kube.secrets["a", "login"] = SECRET
        await left_in(world, kafka={"bootstrapServers": "kafka:9092", "sasl": SASL})
        assert "login" in world.binding["connection"]
        assert 'password\\":' not in world.binding["connection"]
        del world.kube.secrets["a", "login"]
        await restarted(world)
        await world.until(lambda: "Secret a/login does not exist" in caplog.text)
        assert "throttles or cordons are in place" in caplog.text
        assert next(name for name in world.kube.config_maps if name.startswith("ledger-")) in caplog.text
        assert not world.supervisor._engines.get("c")
        world.kube.secrets["a", "login"] = SECRET
        await restored(world)

    async def test_the_cluster_is_free_afterwards(self, world):
        """Another namespace may have it, which was refused while throttles of the former one were in place."""
        await left_in(world)
        world.create("b", execution={"suspend": True})
        await restarted(world)
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")
        world.real.arrive()
        await world.until(lambda: unthrottled(world) and world.owner and world.owner["namespace"] == "b")

    async def test_a_resource_that_names_it_again(self, world):
        """It gets the same engine."""
        await left_in(world)
        await restarted(world)
        await world.until(lambda: world.supervisor._engines.get("c"))
        engine = world.supervisor._engines.get("c")
        world.create("a", name="s", execution={"suspend": True})
        world.see()
        await world.until(lambda: world.state("a", "s") in {"Suspended", "NothingToDo"})
        assert world.supervisor._engines.get("c") is engine
        world.real.arrive()
        world.gone(REBALANCES, "a", "s")
        await restored(world)

    async def test_inline_connections_are_not_accepted_any_more(self, world, caplog):
        """Then nothing is connected to; a KafkaConnection may have the cluster, and restores it."""
        caplog.set_level(logging.WARNING)
        await left_in(world)
        await restarted(world, inline=False)
        await world.until(lambda: "--require-connections" in caplog.text)
        assert not world.supervisor._engines.get("c")
        world.connection()
        await world.until(lambda: world.owner == {"namespace": "k", "connection": "prod"})
        world.real.arrive()
        await world.until(lambda: unthrottled(world))

    async def test_a_server_with_another_id(self, world, caplog):
        """Nothing is begun there."""
        caplog.set_level(logging.WARNING)
        await left_in(world)
        world.servers["kafka"] = other = Cluster([1, 2])
        other.cluster_id = "d"
        await restarted(world)
        await world.until(lambda: "Kafka cluster d" in caplog.text)
        assert not world.supervisor._engines.get("d")
        assert world.owner["namespace"] == "a"
        world.servers["kafka"] = world.real
        await restored(world)

    async def test_the_record_was_deleted_by_hand(self, world):
        """As the log says: then there is nothing left to do, and no attempt to connect goes on."""
        world.kube.secrets["a", "login"] = SECRET
        await left_in(world, kafka={"bootstrapServers": "kafka:9092", "sasl": SASL})
        del world.kube.secrets["a", "login"]
        await restarted(world)
        await world.until(lambda: list(world.supervisor._book))
        del world.kube.config_maps[next(name for name in world.kube.config_maps if name.startswith("ledger-"))]
        await world.until(lambda: world.owner is None and list(world.supervisor._book) == [])


class TestKafkaConnection:
    """A KafkaConnection with abandoned copies was deleted, and the operator was restarted."""

    @pytest.fixture(autouse=True)
    async def deleted(self, world):
        world.connection()
        await left_in(world, kafka=REF)
        del world.kube.resources[CONNECTIONS, "k", "prod"]
        await restarted(world)
        await world.until(lambda: world.supervisor._engines.get("c"))

    async def test_its_last_spec_is_used(self, world):
        """The throttle is restored as without the restart."""
        await restored(world)

    async def test_gives_no_new_resource_access(self, world):
        """A resource that names it is refused, because it does not exist."""
        world.create("a", name="s", kafka=REF, brokers={"decommission": [2]})
        world.see()
        await world.until(lambda: world.state("a", "s") == "ConnectionNotFound")
        ordered = list(world.real.altered)
        world.real.arrive()
        await world.until(lambda: unthrottled(world) and not world.supervisor._engines.get("c"))
        looked = world.supervisor._book.of_owner(Owner("k", "prod")).changed
        for _ in range(3):  # the operator does not connect again
            looked.set()
            await world.until(lambda: not looked.is_set())
            assert not world.supervisor._engines.get("c")
        assert world.real.altered == ordered

    async def test_that_was_created_again(self, world):
        """The new one owns the cluster."""
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.real.arrive()
        await world.until(lambda: unthrottled(world))
        assert world.supervisor._engines.get("c")

    async def test_another_one_has_the_cluster_meanwhile(self, world, monkeypatch):
        """The deleted one does not take it back, even before the next look at the records."""

        async def not_yet(_):
            return None

        monkeypatch.setattr(unfinished_work.UnfinishedWork, "_look", not_yet)
        world.connection(name="new")
        await world.until(lambda: world.owner == {"namespace": "k", "connection": "new"})
        await world.until(lambda: [known.owner.connection for known in world.supervisor._book] == ["new"])
        assert world.state("k", "new", CONNECTIONS) == "Connected"
        world.real.arrive()
        await world.until(lambda: unthrottled(world))
        assert world.owner == {"namespace": "k", "connection": "new"}


class TestAnotherSecret:
    """The Secret of that name may belong to other users, or the namespace to others than before."""

    @pytest.fixture(params=["inline", "KafkaConnection"])
    async def left(self, world, request):
        """Copies in flight at the server of a connection with a Secret, which no resource names any more."""
        inline = request.param == "inline"
        namespace = "a" if inline else "k"
        self.secret = namespace, "login"
        world.kube.secrets[self.secret] = SECRET
        kafka = {"bootstrapServers": "kafka:9092", "sasl": SASL}
        if not inline:
            world.connection(see=False)
            world.edit(CONNECTIONS, "k", "prod", sasl=SASL)
        await left_in(world, kafka=kafka if inline else REF)
        world.kube.resources.pop((CONNECTIONS, "k", "prod"), None)
        self.used = []
        given = world.connect
        world.connect = lambda settings, owner: (self.used.append(settings.password), given(settings, owner))[1]

    async def test_that_was_updated(self, world, left):
        """It is the same Secret, with new credentials."""
        world.kube.secrets[self.secret] = {**SECRET, "password": b"rotated"}
        await restarted(world)
        await restored(world)
        assert self.used == ["rotated"]

    async def test_that_was_created_again(self, world, left, caplog):
        """Nothing is sent to the server. The log says what can be done, and so does the status of who waits."""
        caplog.set_level(logging.WARNING)
        world.kube.secrets[self.secret] = {**SECRET, "password": b"of others"}
        world.kube.secret_uids[self.secret] = "another"
        world.create("b", execution={"suspend": True})
        await restarted(world)
        said = f"Secret {self.secret[0]}/login was created again since this connection was made"
        await world.until(lambda: said in caplog.text and world.state("b") == "ClusterOwnedElsewhere")
        assert "the Secret is not used until one does" in caplog.text
        assert "and the same Secrets. If these cannot be used any more, restore" in world.ready("b")[1]
        assert "of others" not in self.used
        assert any(world.real.values.values())

    async def test_of_a_record_of_an_earlier_version(self, world, left, caplog):
        """It has no uid, so it is not known whose the Secret is."""
        caplog.set_level(logging.WARNING)
        name = next(name for name in world.kube.config_maps if name.startswith("binding-"))
        data = world.kube.config_maps[name]["data"]
        data["binding.json"] = data["binding.json"].replace('"secrets":', '"before":')
        await restarted(world)
        await world.until(lambda: f"Secret {self.secret[0]}/login has no uid on record" in caplog.text)
        assert self.used == []

    async def test_after_the_connection_was_used(self, world, left):
        """The engine that restores the throttle does not renew its credentials from it."""
        await restarted(world)
        await world.until(lambda: world.supervisor._engines.get("c"))
        connection = next(iter(world.supervisor._book))
        assert set(await world.supervisor._engines.clients._settings_now(connection.owner, "c")) == {connection.source}
        world.kube.secret_uids[self.secret] = "another"
        assert await world.supervisor._engines.clients._settings_now(connection.owner, "c") == {}

    async def test_that_a_resource_names_again(self, world, left, caplog):
        """Who may write the resource may have this Secret used. The next restart uses it too."""
        world.kube.secrets[self.secret] = {**SECRET, "password": b"new"}
        world.kube.secret_uids[self.secret] = "another"
        await restarted(world)
        await world.until(lambda: "was created again" in caplog.text)
        if self.secret[0] == "k":
            world.connection(see=False)
            world.edit(CONNECTIONS, "k", "prod", sasl=SASL)
        else:
            kafka = {"bootstrapServers": "kafka:9092", "sasl": SASL}
            world.create("a", name="s", kafka=kafka, execution={"suspend": True})
            world.see()
        await world.until(lambda: world.supervisor._engines.get("c"))
        assert set(self.used) == {"new"}
        assert world.binding["secrets"] == {"login": "another"}
        world.real.arrive()
        await world.until(lambda: unthrottled(world))


class TestOrphanRun:
    """The run of a resource whose finalizer somebody else has removed: nothing can end it any more."""

    async def orphaned(self, world, **throttle):
        """Namespace a has copies in flight, and its resource is gone. Namespace b wants the cluster."""
        world.real.slow = {BrokerId(4)}
        world.create("a", brokers={"decommission": [1]}, throttle=throttle or {"leaderRate": "1Mi"})
        world.see("a")
        await world.until(lambda: len(world.real.flying) == 4)
        world.create("b", execution={"suspend": True})

    async def test_while_the_operator_runs(self, world):
        """The copies in flight arrive under their throttle; then the cluster is free."""
        await self.orphaned(world)
        await world.supervisor.start()
        await world.supervisor.know(())
        world.gone(REBALANCES, "a", "r")
        world.see("b")
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")
        assert any(world.real.values.values())
        ordered = list(world.real.altered)
        world.real.arrive()
        await world.until(lambda: unthrottled(world) and world.owner and world.owner["namespace"] == "b")
        await world.until(lambda: world.state("b") in {"Suspended", "NothingToDo"})
        assert (world.runs["a"], world.real.altered) == ("Abandoned", ordered)

    @pytest.mark.parametrize("throttle", [{"unlimited": True}, {"leaderRate": "1Mi"}], ids=["unlimited", "throttled"])
    async def test_after_a_restart(self, world, throttle):
        """A throttle is restored first, with the connection on record. The origins stay on record."""
        await self.orphaned(world, **throttle)
        await world.supervisor.stop()
        del world.kube.resources[REBALANCES, "a", "r"]
        world.real.arrive()
        await restarted(world)
        await world.until(lambda: unthrottled(world) and world.owner and world.owner["namespace"] == "b")
        assert world.runs["a"] == "Abandoned"
        assert any(name.startswith("origins-") for name in world.kube.config_maps)

    async def test_a_namespace_that_may_not_be_read(self, world, monkeypatch):
        """The operator cannot know whether its resource is gone, so the run stays open.

        Other runs are still checked.
        """
        await self.orphaned(world, unlimited=True)
        await world.supervisor.stop()
        world.real.arrive()
        del world.kube.resources[REBALANCES, "a", "r"]
        get, asked = world.kube.get, []

        async def forbidden(plural, namespace, name):
            if namespace == "a":
                asked.append(name)
                raise Forbidden("not for you")
            return await get(plural, namespace, name)

        monkeypatch.setattr(world.kube, "get", forbidden)
        world.servers["other"] = other = Cluster([1, 2], t=[[1, 2]])
        other.cluster_id = "d"
        await BindingStore(world.kube).save(Binding("d", Owner("z")))
        await restarted(world)
        await world.until(lambda: len(asked) > 2)
        assert (world.runs["a"], world.owner["namespace"]) == (None, "a")
        assert await BindingStore(world.kube).load("d") is None
        await world.until(lambda: "runs are open (a/r)" in world.ready("b")[1])
        assert "may not read their namespace, delete their records: kubectl get configmaps" in world.ready("b")[1]

    async def test_what_is_waited_for(self, world):
        """The status of the waiting resource says which work is left and what an administrator can do."""
        world.kube.secrets["a", "login"] = SECRET
        await left_in(world, kafka={"bootstrapServers": "kafka:9092", "sasl": SASL})
        del world.kube.secrets["a", "login"]
        world.create("b", execution={"suspend": True})
        await restarted(world)
        await world.until(lambda: world.state("b") == "ClusterOwnedElsewhere")
        said = world.ready("b")[1]
        assert "no resource of namespace a names it any more" in said
        assert "throttles or cordons are in place" in said
        assert next(name for name in world.kube.config_maps if name.startswith("ledger-")) in said


class TestOfAnEarlierVersion:
    async def test_without_a_connection_on_record(self, world, caplog):
        """Nothing is guessed: the log says what can be done."""
        caplog.set_level(logging.WARNING)
        await left_in(world)
        name = next(name for name in world.kube.config_maps if name.startswith("binding-"))
        data = world.kube.config_maps[name]["data"]
        data["binding.json"] = data["binding.json"].replace('"connection":"{', '"before":"{')
        await restarted(world)
        await world.until(lambda: "how to connect is not on record" in caplog.text)
        assert list(world.supervisor._book) == []


class TestBeforeTheResourcesAreKnown:
    async def test_no_cluster_loses_its_owner(self, world, monkeypatch):
        """The first listing may take minutes. Until then nothing is known to name the cluster."""
        looks = []

        async def look(_self):
            looks.append(world.owner)
            await asyncio.Event().wait()

        monkeypatch.setattr(unfinished_work.UnfinishedWork, "_look", look)
        monkeypatch.setattr(unfinished_work, "_EVERY_SECONDS", 0.0)
        await world.supervisor.start()
        for _ in range(20):
            await asyncio.sleep(0)
        before = list(looks)
        await world.supervisor.know(())
        await world.until(lambda: looks)
        assert before == []
