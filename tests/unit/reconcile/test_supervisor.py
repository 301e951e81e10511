"""The supervisor shows from outside whether engines run: a round that hangs, an engine that has ended."""

import asyncio
import math
from datetime import UTC, datetime

import pytest
from e2e.bench.waiting import wait_until
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.shared_clusters import placed

from kafka_rebalance.api.v1alpha1 import FINALIZER, LET_GO_ANNOTATION, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import Answers, ClusterInfo
from kafka_rebalance.reconcile import connection_book
from kafka_rebalance.reconcile.supervisor import Supervisor


class Clock:
    seconds = 0.0

    def now(self):
        return datetime(2026, 3, 4, 12, 0, tzinfo=UTC)

    def monotonic(self):
        return self.seconds


class Brokers:
    """The first call returns the cluster id; later calls do ``then``."""

    def __init__(self, then):
        self.asked = 0
        self._then = then

    async def describe_cluster(self):
        self.asked += 1
        return ClusterInfo("c-1", {}) if self.asked == 1 else await self._then()

    async def topic_ids(self, topics=None):
        return Answers()

    async def close(self):
        pass


async def hang():
    await asyncio.get_running_loop().create_future()


async def away():
    raise Transient("KafkaUnreachable", "nobody answers", retry_after=3600)


class NotAnException(BaseException):
    """Neither an error nor a cancellation, and a round catches only these."""


async def ends():
    raise NotAnException


@pytest.fixture
async def begun():
    """Creates a supervisor with one rebalance on such brokers, and returns it with its clock and the brokers."""
    made = []

    def begin(then):
        kube, clock, brokers = KubeInMemory(), Clock(), Brokers(then)
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        body = kube.create(REBALANCES, {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
        made.append(Supervisor(kube, lambda *_: brokers, None, clock))
        made[-1].rebalance_seen(body, deleted=False)
        brokers.seen_again = lambda: made[-1].rebalance_seen(body, deleted=False)
        return made[-1], clock, brokers

    yield begin
    for supervisor in made:
        await supervisor.stop()


class Nobody:
    """No broker answers."""

    asked = 0

    async def describe_cluster(self):
        self.asked += 1
        raise Transient("KafkaUnreachable", "nobody answers")

    async def close(self):
        pass


def unreachable_cluster(*, throttled=False):
    """A supervisor with a rebalance, and perhaps a throttle that is being deleted, of such a cluster."""
    kube, nobody = KubeInMemory(), Nobody()
    supervisor = Supervisor(kube, lambda *_: nobody, None, Clock())
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}}
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
    if throttled:
        held = {"uid": "u-2", "finalizers": [FINALIZER], "annotations": {LET_GO_ANNOTATION: "true"}}
        kube.create(REASSIGNMENT_THROTTLES, {"metadata": {**metadata, **held}, "spec": {**spec, "leaderRate": "1Mi"}})
        body = kube.delete(REASSIGNMENT_THROTTLES, "kafka", "r", "2026-03-04T12:00:00Z")
        supervisor.throttle_seen(body, deleted=False)
    supervisor.rebalance_seen(kube.create(REBALANCES, {"metadata": metadata, "spec": spec}), deleted=False)
    return supervisor, nobody


async def until(holds):
    await asyncio.to_thread(wait_until, "it holds", holds)


class TestRounds:
    async def test_a_round_that_does_not_end(self, begun):
        """Its age grows; a cluster that is not connected yet is not reported."""
        supervisor, clock, brokers = begun(hang)
        assert supervisor.rounds() == {}
        await until(lambda: brokers.asked > 1)
        clock.seconds += 700
        assert supervisor.rounds() == {"c-1": 700.0}

    async def test_a_round_whose_calls_take_long(self, begun):
        """Its age is that of its last answer: a restart would not make a slow server faster."""

        async def slow():
            clock.seconds += 700
            return ClusterInfo("c-1", {})

        supervisor, clock, brokers = begun(slow)
        brokers.authorized_operations = brokers.list_reassignments = lambda *_: hang()
        await until(lambda: brokers.asked > 1 and clock.seconds == 700)
        assert supervisor.rounds() == {"c-1": 0.0}
        clock.seconds += 700
        assert supervisor.rounds() == {"c-1": 700.0}

    async def test_between_two_rounds(self, begun):
        """Unreachable brokers end a round with an error: nothing hangs."""
        supervisor, clock, brokers = begun(away)
        await until(lambda: brokers.asked > 1 and supervisor.rounds() == {})
        clock.seconds += 700
        assert supervisor.rounds() == {}

    async def test_an_engine_that_has_ended(self, begun):
        """The probe is the only one that says so."""
        supervisor, _, _ = begun(ends)
        await until(lambda: supervisor.rounds() == {"c-1": math.inf})


class TestConnecting:
    """A cluster that cannot be reached is tried again, even if the status of its resources cannot be written."""

    @pytest.mark.parametrize("failing", ["patch_status", "get", "patch_finalizers"])
    async def test_an_unexpected_error_in_a_status(self, failing, monkeypatch):
        """Such as an answer that is no JSON."""

        async def page(*_):
            raise ValueError("Expecting value")

        monkeypatch.setattr("kafka_rebalance.reconcile.connection_retries.FIRST_PAUSE_SECONDS", 0.01)
        monkeypatch.setattr(KubeInMemory, failing, page)
        supervisor, brokers = unreachable_cluster(throttled=True)
        await until(lambda: brokers.asked > 3)
        assert supervisor.failed_tasks == ()
        await supervisor.stop()

    async def test_an_unexpected_error_while_connecting(self, monkeypatch):
        """The task that connects does not end."""

        async def defect(nobody):
            nobody.asked += 1
            raise ValueError("Expecting value")

        monkeypatch.setattr("kafka_rebalance.reconcile.connection_retries.FIRST_PAUSE_SECONDS", 0.01)
        monkeypatch.setattr(Nobody, "describe_cluster", defect)
        supervisor, brokers = unreachable_cluster()
        await until(lambda: brokers.asked > 3)
        assert supervisor.failed_tasks == ()
        await supervisor.stop()

    async def test_an_end_that_nobody_ordered_is_named(self, monkeypatch):
        """Only a restart connects again, and the liveness probe asks for one."""

        async def defect(*_):
            raise RuntimeError("a defect")

        monkeypatch.setattr(Supervisor, "_settle", defect)
        supervisor, _ = unreachable_cluster()
        await until(
            lambda: supervisor.failed_tasks == ("the task that connects the inline connections of namespace kafka",)
        )
        await supervisor.stop()

    async def test_an_ordered_end_is_no_failure(self):
        supervisor, brokers = unreachable_cluster()
        await until(lambda: brokers.asked)
        await supervisor.stop()
        assert supervisor.failed_tasks == ()


class TestManyResources:
    async def test_an_event_hands_over_only_its_own(self, world, monkeypatch):
        """A namespace may have thousands with the same connection, and edit one of them again and again."""
        monkeypatch.setattr(connection_book, "_FEW", 10, raising=False)
        for number in range(20):
            world.create("a", name=f"r-{number}", suspend=True)
            world.create("a", name=f"t-{number}", plural=REASSIGNMENT_THROTTLES)
        world.see()
        await world.until(lambda: all(known.may_move for known in world.supervisor._book))
        given = placed(monkeypatch)
        world.edit(REASSIGNMENT_THROTTLES, "a", "t-3", leaderRate="1Mi")
        world.supervisor.seen(REBALANCES, world.create("a", name="new", suspend=True), deleted=False)
        assert set(given) == {"a/t-3", "a/new"}
        for rate in range(50):
            world.edit(REASSIGNMENT_THROTTLES, "a", "t-3", leaderRate=f"{rate + 2}Mi")
        assert len(given) < 200


class TestStop:
    @pytest.mark.parametrize("turns", range(5))
    async def test_while_it_is_being_woken(self, begun, turns):
        """At any point of the wake-up: an engine that continues after a lost Lease would keep the operator alive."""
        supervisor, _, brokers = begun(away)
        await until(lambda: brokers.asked > 1 and supervisor.rounds() == {})
        await asyncio.sleep(0)
        brokers.seen_again()
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await supervisor.stop()
