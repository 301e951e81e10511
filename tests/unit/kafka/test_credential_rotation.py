"""Credentials that change while the operator runs: Secrets are read again when brokers reject the old ones."""

import asyncio
from dataclasses import replace
from typing import NamedTuple

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.kafka.credential_rotation import rotating
from kafka_rebalance.kafka.ports import KafkaReader, KafkaWriter
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reconcile.supervisor import Supervisor

OLD = ConnectionSettings("kafka:9092", username="u", password="old")
NEW = replace(OLD, password="new")
ELSEWHERE = replace(OLD, bootstrap_servers="elsewhere:9092")
MINE, THEIRS = ("kafka", "{}"), ("kafka", "{other}")


class Brokers:
    """They accept one ``password``; ``connected`` are the open clients."""

    def __init__(self):
        self.password, self.away, self.connected = "old", "", []

    def connect(self, settings):
        if settings.password == "":
            raise Permanent("KafkaSettingsInvalid", "no password")
        self.connected.append(client := Client(self, settings))
        return client


class Client(KafkaInMemory):
    def __init__(self, brokers, settings):
        super().__init__([1, 2, 3], t=[(1, 2)])
        self._of, self._settings = brokers, settings

    async def describe_cluster(self):
        self._let_in()
        there = "d" if self._settings.bootstrap_servers.startswith("elsewhere") else "c"
        return replace(self.info, cluster_id=there)

    async def list_reassignments(self):
        self._let_in()
        return {}

    async def close(self):
        self._of.connected.remove(self)

    def _let_in(self):
        if self._of.away:
            raise Transient(self._of.away, "no answer")
        if self._settings.password != self._of.password:
            raise Permanent("KafkaAuthenticationFailed", "refused the credentials")


async def no_model(_cluster_id):
    return None


async def same(_info, _reader, _servers):
    """It is the cluster that it claims to be."""


class World:
    """``secrets`` made the client, ``theirs`` belong to another connection of the same owner."""

    def __init__(self, secrets=None, theirs=None):
        self.brokers, self.asked = Brokers(), 0
        self.secrets = {MINE: secrets, THEIRS: theirs}
        self.admin = rotating(self.brokers.connect(OLD), (MINE, OLD), "c", self.brokers.connect, self.now, same)

    async def now(self):
        self.asked += 1
        return {whose: secrets for whose, secrets in self.secrets.items() if secrets is not None}

    async def rounds(self, count=2):
        """The outcome of the last of ``count`` rounds."""
        for _ in range(count):
            try:
                await self.admin.describe_cluster()
                await self.admin.list_reassignments()
            except (Permanent, Transient) as error:
                found = error.reason
            else:
                found = "served"
        return found

    @property
    def clients(self):
        return [client._settings for client in self.brokers.connected]


class Echoed(NamedTuple):
    name: str
    arguments: tuple
    options: dict
    cluster_id = "c"


class Echo:
    """A client that returns its arguments, or raises ``failure``."""

    def __init__(self):
        self.failure = None

    def __getattr__(self, name):
        async def call(*arguments, **options):
            if self.failure is not None:
                raise self.failure
            return Echoed(name, arguments, options)

        return call


@pytest.mark.parametrize("name", [n for port in (KafkaReader, KafkaWriter) for n in vars(port) if n[0] != "_"])
class TestEveryCall:
    async def test_goes_to_the_client_as_it_is(self, name):
        admin = rotating(Echo(), (MINE, OLD), "c", None, None, same)
        given = ((), {}) if name == "describe_cluster" else ((1,), {"two": 2})
        assert await getattr(admin, name)(*given[0], **given[1]) == (name, *given)

    async def test_has_the_secrets_read_when_it_failed(self, name):
        """In the next round, once; the call itself is not repeated."""
        kafka, reads = Echo(), []

        async def secrets():
            reads.append(name)
            return {}

        admin = rotating(kafka, (MINE, OLD), "c", None, secrets, same)
        kafka.failure = Transient("KafkaUnreachable", "no broker answered")
        with pytest.raises(Transient):
            await getattr(admin, name)()
        kafka.failure = None
        assert reads == []
        await admin.describe_cluster()
        await admin.describe_cluster()
        assert reads == [name]


class TestAdmin:
    async def test_an_answer_with_the_id_of_another_cluster(self):
        """The owner of the cluster was decided by the first answer."""
        with pytest.raises(Refused, match="answer as c now") as refused:
            await rotating(Echo(), (MINE, OLD), "x", None, None, same).describe_cluster()
        assert refused.value.reason == "OtherCluster"

    async def test_what_works_is_left_alone(self):
        """Even if the Secrets have changed or are gone."""
        world = World(NEW)
        assert (await world.rounds(), world.asked, world.clients) == ("served", 0, [OLD])

    @pytest.mark.parametrize("secrets", [{"secrets": NEW}, {"secrets": OLD, "theirs": NEW}, {"theirs": NEW}])
    async def test_brokers_that_no_longer_let_us_in(self, secrets):
        """From the next round on; the old client is closed. Another connection of the owner works, too."""
        world = World(**secrets)
        world.brokers.password = "new"
        assert await world.rounds(1) == "KafkaAuthenticationFailed"
        assert (await world.rounds(1), world.clients) == ("served", [NEW])

    async def test_any_call_tells(self):
        """Existing connections may continue while a new one is rejected."""
        world = World(NEW)
        await world.admin.describe_cluster()
        world.brokers.password = "new"
        with pytest.raises(Permanent):
            await world.admin.list_reassignments()
        assert await world.rounds(1) == "served"

    @pytest.mark.parametrize("secrets", [None, OLD, replace(OLD, password="other"), replace(OLD, password="")])
    async def test_nothing_better_is_known(self, secrets):
        """The client stays: the password may be corrected on the brokers."""
        world = World(secrets)
        world.brokers.password = "new"
        assert await world.rounds(5) == "KafkaAuthenticationFailed"
        world.brokers.password = "old"
        assert (await world.rounds(1), len(world.clients)) == ("served", 1)

    @pytest.mark.parametrize("mine", [OLD, None])
    async def test_brokers_that_are_away(self, mine):
        """A listener may have moved: another connection of the owner is used if it reaches them."""
        world = World(mine, replace(OLD, username="other"))
        world.brokers.away = "KafkaUnreachable"
        await world.rounds(1)
        assert world.clients == [OLD]
        world.brokers.away = ""
        assert (await world.rounds(1), world.clients) == ("served", [replace(OLD, username="other")])

    async def test_a_server_that_only_claims_the_id(self):
        """It is not used: its brokers or topics are others."""
        world = World(NEW)

        async def other(_info, _reader, _servers):
            raise Refused("ClusterIdCollision", "other brokers")

        world.admin = rotating(world.brokers.connected[0], (MINE, OLD), "c", world.brokers.connect, world.now, other)
        world.brokers.password = "new"
        assert (await world.rounds(3), world.clients) == ("KafkaAuthenticationFailed", [OLD])

    async def test_an_answer_that_cannot_be_read(self):
        """A server that sends garbage makes a client library raise anything: no client is left open."""
        world = World(NEW)

        async def garbage(_info, _reader, _servers):
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

        world.admin = rotating(world.brokers.connected[0], (MINE, OLD), "c", world.brokers.connect, world.now, garbage)
        world.brokers.password = "new"
        await world.rounds(1)
        with pytest.raises(UnicodeDecodeError):
            await world.admin.describe_cluster()
        assert world.clients == [OLD]

    @pytest.mark.parametrize("reason", ["KafkaUnreachable", "TokenUnavailable"])
    async def test_a_certificate_that_has_run_out(self, reason):
        """It looks like brokers, or an OAuth server, that are down: retry with the client's own Secret."""
        world = World(NEW)
        world.brokers.away = reason
        await world.rounds(1)
        world.brokers.away, world.brokers.password = "", "new"
        assert (await world.rounds(1), world.clients) == ("served", [NEW])

    async def test_a_call_of_the_client_that_is_replaced(self):
        """It fails as any call without an answer: an order may have been carried out."""
        world, closed = World(NEW), asyncio.Event()
        (old,) = world.brokers.connected

        async def ended(_orders):
            await closed.wait()
            raise RuntimeError("cannot schedule new futures after shutdown")

        async def close():
            world.brokers.connected.remove(old)
            closed.set()

        old.alter_reassignments, old.close = ended, close
        order = asyncio.create_task(world.admin.alter_reassignments({}))
        await asyncio.sleep(0)
        world.brokers.password = "new"
        assert await world.rounds() == "served"
        with pytest.raises(Transient, match="the client was replaced"):
            await order

    async def test_another_cluster_is_none(self):
        """A client is used only if it reaches the same cluster."""
        world = World(ELSEWHERE)
        world.brokers.away = "KafkaUnreachable"
        await world.rounds(1)
        world.brokers.away = ""
        assert (await world.rounds(1), world.clients) == ("served", [OLD])


class TestOperator:
    async def test_a_secret_that_was_mended(self):
        """The rebalance continues without a restart."""
        kube, brokers, clock = KubeInMemory(), Brokers(), StoppedClock()
        kube.secrets["kafka", "us"] = {"username": b"u", "password": b"old"}
        supervisor = Supervisor(kube, lambda settings, _: brokers.connect(settings), no_model, clock)
        sasl = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "us"}}
        spec = {"kafka": {"bootstrapServers": "kafka:9092", "sasl": sasl}}
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        supervisor.rebalance_seen(kube.create(REBALANCES, {"metadata": metadata, "spec": spec}), deleted=False)
        for _ in range(1000):
            await asyncio.sleep(0)
        engine = supervisor._engines.get("c").engine
        brokers.password = "new"
        await engine.tick()
        assert await engine.tick() == 30
        kube.secrets["kafka", "us"]["password"] = b"new"
        await engine.tick()
        assert [client._settings.password for client in brokers.connected] == ["new"]
        await supervisor.stop()
