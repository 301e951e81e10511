"""The credentials of an engine that restores throttles which no resource names any more are renewed while it runs."""

import logging

import pytest
from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.errors import Permanent
from kafka_rebalance.reconcile.act import cluster_owners

SASL = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "login"}}
SECRET = {"username": b"u", "password": b"old"}
INLINE = {"bootstrapServers": "kafka:9092", "sasl": SASL}


class Login:
    """A client of the cluster, which the brokers accept while its password is the present one."""

    def __init__(self, brokers, password):
        self._brokers, self._password = brokers, password

    async def close(self):
        pass

    def __getattr__(self, name):
        async def call(*arguments, **options):
            if self._password != self._brokers.password:
                raise Permanent("KafkaAuthenticationFailed", "SASL authentication failed")
            return await getattr(self._brokers.cluster, name)(*arguments, **options)

        return call


class Brokers:
    """``used``: the passwords that clients were made with."""

    def __init__(self, cluster):
        self.cluster, self.password, self.used = cluster, "old", []

    def connect(self, settings, _owner):
        self.used.append(settings.password)
        return Login(self, settings.password)


@pytest.fixture
async def brokers(world):
    """Brokers that check passwords, and an operator that runs."""
    brokers = Brokers(world.real)
    world.connect = brokers.connect
    await world.supervisor.stop()
    world.begin()
    await world.supervisor.start()
    await world.supervisor.know(())
    return brokers


def owned(world, kind):
    """A connection of this kind with a Secret: the namespace of the Secret, and spec.kafka of a resource."""
    namespace = "a" if kind == "inline" else "k"
    world.kube.secrets[namespace, "login"] = SECRET
    if kind == "inline":
        return namespace, INLINE
    world.connection(see=False)
    world.edit(CONNECTIONS, "k", "prod", sasl=SASL)
    return namespace, REF


async def left(world, kind):
    """Abandoned copies are in flight under a throttle, and no resource has the connection; where its Secret is."""
    namespace, kafka = owned(world, kind)
    await world.draining(deletionPolicy="Abandon", kafka=kafka)
    body = world.kube.resources[REBALANCES, "a", "r"]
    await world.deleted("a")
    world.supervisor.seen(REBALANCES, body, deleted=True)
    if kind != "inline":
        world.gone(CONNECTIONS, "k", "prod")
    assert any(world.real.values.values())
    return namespace, "login"


def rotate(world, brokers, where, **secret):
    """The owner updates its Secret, and the brokers refuse the old password."""
    brokers.password = "new"
    world.kube.secrets[where] = {**SECRET, "password": b"new", **secret}
    world.real.arrive()


def unthrottled(world):
    """Whether nothing of ours is left in Kafka. Wakes the engine, which otherwise looks every half minute."""
    running = world.supervisor._engines.get("c")
    if running is not None:
        running.engine.wake()
    return not any(world.real.values.values())


async def refused_again(world, times=5):
    """Rounds pass in which the brokers refuse the engine."""
    engine = world.supervisor._engines.get("c").engine
    for _ in range(times):
        engine.problem = None
        engine.wake()
        await world.until(lambda: engine.problem is not None)
    assert engine.problem.reason == "KafkaAuthenticationFailed"


@pytest.fixture(params=["inline", "KafkaConnection"])
def kind(request):
    return request.param


class TestNothingNamesIt:
    async def test_an_updated_secret_is_used(self, world, brokers, kind, caplog):
        """The throttle is restored without a restart, and the log says what an administrator can do otherwise."""
        caplog.set_level(logging.WARNING)
        where = await left(world, kind)
        rotate(world, brokers, where)
        await world.until(lambda: unthrottled(world) and world.owner is None and not list(world.supervisor._book))
        assert set(brokers.used) == {"old", "new"}
        assert caplog.text.count("and no resource names it any more: the operator connects as") == 1
        assert "restore" in caplog.text
        assert next(text for text in caplog.messages if "did last, with the same Secrets" in text).count("ledger-") == 1

    async def test_one_that_was_created_again_is_not(self, world, brokers, kind, caplog):
        """It may belong to others."""
        caplog.set_level(logging.WARNING)
        where = await left(world, kind)
        world.kube.secret_uids[where] = "another"
        rotate(world, brokers, where)
        await refused_again(world)
        assert set(brokers.used) == {"old"}
        assert "login was created again since this connection was made" in caplog.text

    async def test_nor_without_throttles(self, world, brokers, kind, monkeypatch):
        """The connection on record is there to restore them, and for nothing else."""
        where = await left(world, kind)

        async def none(*_):
            return False

        monkeypatch.setattr(cluster_owners.ClusterLedgers, "throttled", none)
        rotate(world, brokers, where)
        await refused_again(world)
        assert set(brokers.used) == {"old"}

    async def test_no_connection_is_on_record(self, world, brokers, kind, caplog):
        """Nothing is guessed."""
        caplog.set_level(logging.WARNING)
        where = await left(world, kind)
        name = next(name for name in world.kube.config_maps if name.startswith("binding-"))
        data = world.kube.config_maps[name]["data"]
        data["binding.json"] = data["binding.json"].replace('"connection":"{', '"before":"{')
        rotate(world, brokers, where)
        await refused_again(world)
        assert set(brokers.used) == {"old"}
        assert "how to connect is not on record" in caplog.text


class TestAnotherConnectionIsNamed:
    async def test_of_another_owner(self, world, brokers):
        """What is in flight of a run whose resource names a KafkaConnection that does not connect ends, and no more."""
        namespace, kafka = owned(world, "inline")
        await world.draining(1, kafka=kafka, execution={"parallelPartitionCount": 1})
        began = {partition for partition, _ in world.real.altered}
        where = namespace, "login"
        world.kube.secrets["k", "login"] = {**SECRET, "password": b"none"}
        world.connection(see=False)
        world.edit(CONNECTIONS, "k", "prod", sasl=SASL)
        kept = {"bootstrapServers": None, "sasl": None, **REF}
        world.edit(REBALANCES, "a", "r", kafka=kept)
        await world.until(lambda: world.state("a") == "KafkaAuthenticationFailed")
        rotate(world, brokers, where)
        await world.until(lambda: unthrottled(world))
        assert {partition for partition, _ in world.real.altered} == began

    async def test_of_the_same_namespace_that_does_not_connect(self, world, brokers):
        """Its run goes on in the engine, so nothing is done there with the connection on record."""
        namespace, kafka = owned(world, "inline")
        await world.draining(kafka=kafka)
        world.kube.secrets["a", "other"] = {**SECRET, "password": b"none"}
        other = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "other"}}
        world.edit(REBALANCES, "a", "r", kafka={**INLINE, "sasl": other})
        await world.until(lambda: world.supervisor._engines.get("c").engine.rebalances)
        rotate(world, brokers, (namespace, "login"))
        await refused_again(world)
        assert "new" not in brokers.used

    async def test_a_kafka_connection_that_was_created_again(self, world, brokers):
        """Its present settings count, even if they lead nowhere."""
        where = await left(world, "KafkaConnection")
        world.kube.secrets["k", "other"] = {**SECRET, "password": b"none"}
        world.connection(see=False)
        other = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "other"}}
        world.edit(CONNECTIONS, "k", "prod", sasl=other)
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaAuthenticationFailed")
        rotate(world, brokers, where)
        await refused_again(world)
        assert "new" not in brokers.used
