"""Our finalizer on an object with concurrent writers, and the status of a throttle resource."""

import copy
import itertools
from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.found_by_rounds import recorded
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.api.v1alpha1 import (
    CONNECTIONS,
    FINALIZER,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    UNDO_ANNOTATION,
    parse_connection,
    parse_throttle,
)
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, ClusterState
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.report.connection_report import ConnectionState
from kafka_rebalance.reconcile.report.throttle_report import ThrottleView
from kafka_rebalance.reconcile.state.rebalance import Rebalance

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}


class BusyObject:
    """One object on an API server. `rivals` change it, one before each of the next writes."""

    def __init__(self, *finalizers, rivals=()):
        self._versions = itertools.count(1)
        self._rivals = list(rivals)
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "generation": 1, "finalizers": list(finalizers)}
        self.body = {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}}
        self._touch()

    def _touch(self):
        self.body["metadata"]["resourceVersion"] = str(next(self._versions))

    async def get(self, *_):
        return copy.deepcopy(self.body)

    async def patch_finalizers(self, _plural, _namespace, _name, finalizers, version):
        if self._rivals:
            self._rivals.pop(0)(self.body["metadata"])
            self._touch()
        if version != self.body["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified")
        self.body["metadata"]["finalizers"] = list(finalizers)
        self._touch()
        return await self.get()


def foreign(metadata):
    metadata["finalizers"] = [*metadata["finalizers"], "example.com/theirs"]


def unimportant(metadata):
    metadata["labels"] = {"touched": "yes"}


def deletion(metadata):
    metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"


def being_deleted(throttle):
    metadata = throttle.metadata.model_copy(update={"deletion_timestamp": NOW})
    return throttle.model_copy(update={"metadata": metadata})


async def test_an_order_to_undo_stays_on_another_of_its_name():
    """The resource was deleted and created again, which the watch has not reported yet."""
    kube = KubeInMemory()
    body = {"metadata": {"name": "r", "namespace": "kafka", "uid": "u-1"}, "spec": KAFKA}
    ended = Rebalance.of(body)
    mine = {UNDO_ANNOTATION: "sha256:1"}
    kube.create(REBALANCES, {**body, "metadata": {**body["metadata"], "uid": "u-2", "annotations": mine}})
    await Resources(kube, lambda: NOW).clear_undo(ended)
    assert kube.resources[REBALANCES, "kafka", "r"]["metadata"]["annotations"] == mine


class TestEnd:
    @pytest.mark.parametrize("outcome", [outcome for outcome in RunOutcome if outcome is not RunOutcome.SUCCEEDED])
    async def test_it_names_the_brokers_that_are_still_cordoned(self, outcome):
        """Those of an abandoned run for good; those that were dead until the end of a rollback until they are back."""
        kube = KubeInMemory()
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
        run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOW, cordoned=(BrokerId(4), BrokerId(5)))
        await Resources(kube, lambda: NOW).announce(recorded(rebalance, run=run), outcome)
        ((_, message),) = kube.events
        stay = "; brokers 4, 5 stay cordoned: delete their cordoned.log.dirs to use them again"
        removed = "; the cordons of brokers 4, 5 are removed when these answer"
        assert message.endswith(stay if outcome is RunOutcome.ABANDONED else removed)

    async def test_it_names_no_broker_whose_cordon_is_gone(self):
        kube = KubeInMemory()
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
        run = Run("u-1", "kafka", "r", "c", "run", "h", "p", NOW)
        await Resources(kube, lambda: NOW).announce(recorded(rebalance, run=run), RunOutcome.ROLLED_BACK)
        ((_, message),) = kube.events
        assert "cordoned" not in message


class TestFinalizer:
    @pytest.mark.parametrize("rival", [unimportant, foreign])
    async def test_somebody_is_faster_once(self, rival):
        """It is added and removed in the same round, and foreign finalizers stay."""
        there = BusyObject(rivals=[rival])
        rebalance = Rebalance.of(await there.get())
        resources = Resources(there, lambda: NOW)
        await resources.add_finalizer(rebalance)
        assert rebalance.desired.has_finalizer
        theirs = ["example.com/theirs"] if rival is foreign else []
        assert sorted(there.body["metadata"]["finalizers"]) == sorted([FINALIZER, *theirs])
        there._rivals = [unimportant]
        await resources.remove_finalizer(rebalance)
        assert there.body["metadata"]["finalizers"] == theirs

    @pytest.mark.parametrize("rivals", [[], [unimportant]])
    async def test_all_of_many_foreign_ones_stay(self, rivals):
        """Only some of them are kept in memory."""
        theirs = [f"example.com/{number}" for number in range(1000)]
        there = BusyObject(*theirs, rivals=rivals)
        rebalance = Rebalance.of(await there.get())
        resources = Resources(there, lambda: NOW)
        await resources.add_finalizer(rebalance)
        assert rebalance.desired.has_finalizer
        assert len(rebalance.desired.metadata.finalizers) == 20
        assert there.body["metadata"]["finalizers"] == [*theirs, FINALIZER]
        await resources.remove_finalizer(rebalance)
        assert there.body["metadata"]["finalizers"] == theirs

    async def test_somebody_is_faster_every_time(self):
        """It fails with an error that is retried later."""
        there = BusyObject(FINALIZER, rivals=[unimportant] * 100)
        rebalance = Rebalance.of(await there.get())
        with pytest.raises(Conflict):
            await Resources(there, lambda: NOW).remove_finalizer(rebalance)

    async def test_deleted_meanwhile(self):
        """No finalizer is added to an object that is being deleted: the API server would refuse it."""
        there = BusyObject(rivals=[deletion])
        rebalance = Rebalance.of(await there.get())
        await Resources(there, lambda: NOW).add_finalizer(rebalance)
        assert there.body["metadata"]["finalizers"] == []
        assert rebalance.desired.deleting


class TestReportThrottle:
    """A status is written when it changes, an event when the state changes."""

    @pytest.fixture
    def kube(self):
        return KubeInMemory()

    @pytest.fixture
    def mine(self, kube):
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "leaderRate": "50Mi"}
        metadata = {"name": "limits", "namespace": "kafka", "uid": "k-1"}
        return parse_throttle(kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": spec}))

    async def test_only_what_is_new_is_written(self, kube, mine):
        """The engine reports twice a second."""
        resources = Resources(kube, lambda: NOW)
        for view in (ThrottleView(), ThrottleView(), ThrottleView(replicas=1), ThrottleView(replicas=1)):
            assert await resources.report_throttle(mine, "c", mine, view)
        assert [what for what, *_ in kube.writes] == ["status"] * 2
        status = kube.resources[REASSIGNMENT_THROTTLES, "kafka", "limits"]["status"]
        assert (status["throttledReplicas"], status["clusterId"]) == (1, "c")

    async def test_one_event_per_transition(self, kube, mine):
        """A changed count is not a transition."""
        resources = Resources(kube, lambda: NOW)
        told = [ThrottleView(), ThrottleView(replicas=1), ThrottleView(replicas=2), ThrottleView(contested="who")]
        for view in told:
            await resources.report_throttle(mine, "c", mine, view)
        assert [reason for reason, _ in kube.events] == ["NothingToThrottle", "Applied", "Contested"]

    async def test_one_that_is_gone_is_told_every_time(self, kube, mine):
        """Its deletion may have been missed: the caller must not continue with a resource that is gone."""
        resources = Resources(kube, lambda: NOW)
        await resources.report_throttle(mine, "c", mine)
        kube.resources.clear()
        for _ in range(2):
            assert not await resources.report_throttle(mine, "c", mine, ThrottleView(replicas=1))
            assert not await resources.report_throttle(mine, "c", mine)

    async def test_one_that_was_deleted_and_created_again(self, kube, mine):
        """It counts as gone, and its status is not written to the new one."""
        kube.resources[REASSIGNMENT_THROTTLES, "kafka", "limits"]["metadata"]["uid"] = "k-2"
        deleted = being_deleted(mine)
        assert not await Resources(kube, lambda: NOW).report_throttle(deleted, "c", deleted)
        assert kube.writes == []

    async def test_one_that_changes_while_its_status_is_written(self, kube, mine):
        """Another of its name may have been created in between: the next round looks again."""
        get = kube.get

        async def then_changed(*where):
            body = await get(*where)
            kube._touch(kube.resources[where])
            return body

        kube.get = then_changed
        deleted = being_deleted(mine)
        with pytest.raises(Conflict):
            await Resources(kube, lambda: NOW).report_throttle(deleted, "c", deleted)
        assert kube.writes == []


class Unanswered(KubeInMemory):
    """``lost``: the answer to the next write of a status is lost. ``delayed``: it is not executed before ``arrive``."""

    lost = delayed = False

    async def arrive(self):
        await super().patch_status(*self.under_way)

    async def patch_status(self, plural, namespace, name, patch):
        if self.delayed:
            self.delayed, self.under_way = False, (plural, namespace, name, patch)
            raise Transient("ApiServerUnreachable", "no answer")
        written = await super().patch_status(plural, namespace, name, patch)
        if self.lost:
            self.lost = False
            raise Transient("ApiServerUnreachable", "no answer")
        return written


class TestLostAnswer:
    """The API server has written a status without an answer. The next one is written, even if it is the earlier one."""

    @pytest.fixture
    def kube(self):
        return Unanswered()

    @pytest.fixture
    def clock(self):
        return StoppedClock(NOW)

    @pytest.fixture(params=[REBALANCES, REASSIGNMENT_THROTTLES, CONNECTIONS])
    def process(self, request, kube, clock):
        """Starts a process, which reports a problem of a resource of this kind, or none."""
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        spec = KAFKA["kafka"] if request.param == CONNECTIONS else KAFKA
        body = kube.create(request.param, {"metadata": metadata, "spec": spec})

        def started():
            resources = Resources(kube, clock.now)
            if request.param == REBALANCES:
                rebalance = Rebalance.of(body)
                return lambda problem: resources.report(rebalance, ClusterState("c", {}), {}, problem)
            if request.param == CONNECTIONS:
                connection = parse_connection(body)
                return lambda problem: resources.report_connection(connection, ConnectionState("c", 1, problem))
            throttle = parse_throttle(body)
            return lambda problem: resources.report_throttle(throttle, "c", None, problem=problem)

        return started

    @pytest.fixture
    def report(self, process):
        return process()

    async def test_the_earlier_status_is_written_again(self, kube, report):
        await report(None)
        (before,) = [copy.deepcopy(body["status"]) for body in kube.resources.values()]
        kube.lost = True
        with pytest.raises(Transient):
            await report(Transient("KafkaUnreachable", "no answer"))
        await report(None)
        (after,) = [body["status"] for body in kube.resources.values()]
        assert reasons(after) == reasons(before)

    @pytest.mark.parametrize("killed", [False, True])
    async def test_it_is_written_again_if_the_lost_one_may_have_come_later(self, kube, process, clock, killed):
        report = process()
        kube.delayed = True
        with pytest.raises(Transient):
            await report(Transient("KafkaUnreachable", "no answer"))
        report = process() if killed else report
        await report(None)
        (before,) = [copy.deepcopy(body["status"]) for body in kube.resources.values()]
        await kube.arrive()
        clock.at += timedelta(minutes=1)
        await report(None)
        (after,) = [body["status"] for body in kube.resources.values()]
        assert reasons(after) == reasons(before)
        writes = len(kube.writes)
        clock.at += timedelta(seconds=50)
        await report(None)
        assert len(kube.writes) == writes


def reasons(status):
    return {condition["type"]: condition["reason"] for condition in status["conditions"]}


class TestConfigMaps:
    """Missing lists of the strategy Assignment are retried."""

    @pytest.mark.parametrize("there", [{}, {("n", "lists"): {"other.json": "{}"}}])
    async def test_what_lacks_is_named(self, there):
        kube = KubeInMemory()
        kube.user_config_maps = there
        with pytest.raises(Transient, match="ConfigMap n/lists") as missing:
            await Resources(kube, lambda: None).config_map_key("n", "lists", "a.json")
        assert missing.value.reason == "ConfigMapNotFound"

    async def test_the_key_is_read(self):
        kube = KubeInMemory()
        kube.user_config_maps["n", "lists"] = {"a.json": "{}"}
        assert await Resources(kube, lambda: None).config_map_key("n", "lists", "a.json") == "{}"
