"""A KafkaRebalance with an invalid spec, for example after an operator downgrade, can still be deleted."""

import asyncio
from datetime import UTC, datetime

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.partly_valid import parse_partly_valid
from kafka_rebalance.api.v1alpha1 import FINALIZER, LET_GO_ANNOTATION, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.run import Run
from kafka_rebalance.reconcile.act import unreadable_resources
from kafka_rebalance.reconcile.supervisor import Supervisor

WHERE = (REBALANCES, "kafka", "r")
KAFKA = {"bootstrapServers": "kafka:9092"}


def deleted(**spec):
    metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "deletionTimestamp": NOON.isoformat()}
    return {"metadata": metadata, "spec": {"kafka": KAFKA, **spec}}


class TestWhatCanBeRead:
    @pytest.mark.parametrize(
        ("spec", "read"),
        [
            ({"later": 1, "deletionPolicy": "Revert"}, {"deletionPolicy": "Revert"}),
            ({"execution": {"suspend": True, "later": 1}}, {"execution": {"suspend": True}}),
            (
                {"execution": {"suspend": True, "windows": [{"cron": "soon"}, {}]}, "strategy": "Later"},
                {"execution": {"suspend": True}},
            ),
            ({"execution": {"maxPerBroker": {"in": 0, "out": 3}}}, {"execution": {"maxPerBroker": {"out": 3}}}),
            ({"throttle": {"unlimited": True, "leaderRate": 5}, "priority": 4}, {"priority": 4}),
            (
                {"strategy": "PreferredLeaders", "replicationFactor": 3, "deletionPolicy": "Abandon"},
                {"deletionPolicy": "Abandon"},
            ),
            ({"execution": 5}, {}),
        ],
    )
    def test_the_rest_of_it(self, spec, read):
        """Everything needed to roll back with the requested policy and speed."""
        found = parse_partly_valid(deleted(**spec)).spec
        assert found.model_dump(mode="json", by_alias=True, exclude_defaults=True) == {"kafka": KAFKA, **read}

    @pytest.mark.parametrize("kafka", [{}, {**KAFKA, "later": 1}, {"bootstrapServers": 1}])
    def test_without_a_cluster_nothing_can_be_done(self, kafka):
        """The connection is not guessed either."""
        with pytest.raises(Refused, match=r"spec\.kafka"):
            parse_partly_valid(deleted(kafka=kafka, later=1))


class Engine:
    cluster_id = "c"

    def __init__(self):
        self.rebalances = {}

    def wake(self):
        pass

    def see_throttles(self, throttles):
        pass


class World:
    """An operator that has just started."""

    def __init__(self):
        self.kube, self.engine = KubeInMemory(), Engine()
        self.supervisor = Supervisor(self.kube, None, None, StoppedClock())
        self.supervisor._engines.reached_by = self.connect

    async def connect(self, _connection):
        return self.engine

    def seen(self, **spec):
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "finalizers": [FINALIZER]}
        self.kube.create(REBALANCES, {"metadata": metadata, "spec": {"kafka": KAFKA, **spec}})
        self.supervisor.rebalance_seen(self.kube.delete(*WHERE, NOON.isoformat()), deleted=False)

    @property
    def state(self):
        conditions = self.kube.resources[WHERE].get("status", {}).get("conditions", ())
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), None)

    @property
    def observed(self):
        return self.kube.resources[WHERE].get("status", {}).get("observedGeneration")

    async def until(self, holds):
        """Only threads take time here."""
        for _ in range(30_000):
            if holds():
                return
            await asyncio.sleep(0.001)
        raise AssertionError("it does not come to that")


@pytest.fixture
async def world():
    world = World()
    yield world
    await world.supervisor.stop()


class TestDeleted:
    async def test_its_engine_gets_it(self, world):
        """It is rolled back or released like any other."""
        world.seen(later=1, deletionPolicy="Revert")
        await world.until(lambda: world.engine.rebalances)
        assert world.engine.rebalances["u-1"].desired.spec.deletion_policy == "Revert"

    async def test_no_cluster_and_nothing_under_way(self, world):
        """No cluster has to be asked."""
        world.seen(kafka={})
        await world.until(lambda: WHERE not in world.kube.resources)

    async def test_no_cluster_and_an_open_run(self, world):
        """It waits for the annotation, and says why."""
        noon = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
        await world.supervisor._stores.runs.save(Run("u-1", "kafka", "r", "c", "run", "sha256:a", "sha256:b", noon))
        world.seen(kafka={})
        await world.until(lambda: world.state == "InvalidSpec")
        body = world.kube.resources[WHERE]
        assert body["metadata"]["finalizers"] == [FINALIZER]
        body["metadata"]["annotations"] = {LET_GO_ANNOTATION: "true"}
        world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: WHERE not in world.kube.resources)


class TestLog:
    """A user may edit a resource for as long as the operator runs."""

    @pytest.fixture
    def lines(self, caplog):
        return lambda: [record.getMessage() for record in caplog.records]

    async def test_a_message_is_logged_when_it_is_new(self, world, lines):
        """Not at each edit, and not when our own status comes back."""
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        world.kube.create(REBALANCES, {"metadata": metadata, "spec": {"kafka": {}}})
        counts = []
        for spec in ({"priority": 1}, {"priority": 2}, {"kafka": {"bogus": 1}}):
            body = world.kube.edit(*WHERE, **{"kafka": {}, **spec})
            world.supervisor.rebalance_seen(body, deleted=False)
            await world.until(lambda at=body["metadata"]["generation"]: world.observed == at)
            world.supervisor.rebalance_seen(world.kube.resources[WHERE], deleted=False)
            await world.until(lambda: not world.supervisor._unreadable._waiting)
            counts.append(len(lines()))
        assert counts == [1, 1, 2]

    async def test_a_change_meanwhile_is_not_logged(self, world, lines):
        """The status of what has changed is not written, and the change has an event of its own."""
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        body = world.kube.create(REBALANCES, {"metadata": metadata, "spec": {"kafka": {}}})
        world.kube.edit(*WHERE, kafka={}, priority=1)
        world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: not world.supervisor._unreadable._waiting)
        assert world.state is None
        assert not [line for line in lines() if "status not written" in line]


class Busy(KubeInMemory):
    """``busy``: how many of the next removals of a finalizer are refused."""

    busy = 2

    async def patch_finalizers(self, *arguments):
        if self.busy:
            self.busy -= 1
            raise Transient("ApiServerBusy", "too many requests")
        return await super().patch_finalizers(*arguments)


class TestAnswerOfTheApiServer:
    """The watch reports nothing more of the resource, so nothing else tries again."""

    @pytest.fixture
    def busy(self, world, monkeypatch):
        monkeypatch.setattr(unreadable_resources, "_AGAIN_SECONDS", 0.01)
        world.kube.__class__ = Busy
        return world

    async def test_the_finalizer_of_a_rebalance_is_removed_later(self, busy):
        busy.seen(kafka={})
        await busy.until(lambda: WHERE not in busy.kube.resources)

    async def test_the_finalizer_of_a_throttle_is_removed_later(self, busy):
        where = (REASSIGNMENT_THROTTLES, "kafka", "t")
        metadata = {"name": "t", "namespace": "kafka", "uid": "u-2", "finalizers": [FINALIZER]}
        busy.kube.create(where[0], {"metadata": metadata, "spec": {"kafka": {}}})
        busy.supervisor.throttle_seen(busy.kube.delete(*where, NOON.isoformat()), deleted=False)
        await busy.until(lambda: where not in busy.kube.resources)
