"""A deletion completes in every state of the run. Stores and API server are dictionaries."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.found_by_rounds import recorded, remembered
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import FINALIZER, LET_GO_ANNOTATION
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run, RunOutcome
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.decide.direction import direction_of
from kafka_rebalance.reconcile.state.memory import Planned
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.successions import waiting_for_heirs

TP = TopicPartition("orders", 0)
PLAN = Plan((PlannedPartition(TP, replicas_of(1, 2), replicas_of(3, 2)),), Certificate(1, optimal=True))
KEPT = {"metadata": {"name": "r", "namespace": "kafka", "uid": "r", "finalizers": [FINALIZER]}}
ENDED = {"closed_at": NOON, "outcome": RunOutcome.TAKEN_OVER, "successor": "new"}


class Resources:
    """Records the actions on the object; ``terminating``: whether its namespace is terminating."""

    def __init__(self):
        self.happened = []
        self.terminating = False

    async def namespace_or_crd_terminating(self, plural, namespace):
        return self.terminating

    async def announce(self, rebalance, outcome):
        self.happened.append(outcome)

    async def remove_finalizer(self, rebalance):
        self.happened.append("released")


class World:
    def __init__(self):
        self.kube = kube = KubeInMemory()
        self.stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        self.clock, self.resources = StoppedClock(), Resources()
        self.lifecycle = Lifecycle(self.resources, self.stores, self.clock, "c")

    async def stored(self, uid, **run):
        record = Run(uid, "kafka", uid, "c", f"run-{uid}", "sha256:0", PLAN.hash, NOON, started_at=NOON)
        record = replace(record, **run)
        await self.stores.plans.save(uid, PLAN.hash, "c", PLAN, NOON)
        await self.stores.origins.append(uid, record.run_id, [Origin(TP, "", replicas_of(1, 2))])
        await self.stores.runs.save(record)
        return record

    async def prepared(self, rebalance, *, connected=True):
        """As in a round."""
        await self.lifecycle.prepare(rebalance, connected=connected)
        if waiting_for_heirs([rebalance]):
            await self.lifecycle.prepare(rebalance, connected=connected)
        return self.resources.happened


def deleted(uid="r", *, annotations=None, **spec):
    metadata = {"name": uid, "namespace": "kafka", "uid": uid, "finalizers": [FINALIZER]}
    metadata |= {"deletionTimestamp": NOON.isoformat(), "annotations": annotations or {}}
    return Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}})


@pytest.fixture
def world():
    return World()


async def test_what_never_ran_is_let_go_at_once(world):
    """Kafka is not changed."""
    assert await world.prepared(deleted()) == ["released"]


async def test_a_run_is_rolled_back_first(world):
    """The finalizer stays until the rollback is complete."""
    await world.stored("r")
    mine = deleted()
    assert await world.prepared(mine) == []
    assert direction_of(mine) is Direction.ROLLBACK


async def test_a_run_of_another_cluster_is_never_loaded(world):
    """Topics of the same name are there: what was begun elsewhere is neither continued nor rolled back here."""
    await world.stored("r", cluster_id="d")
    mine = deleted()
    assert await world.prepared(mine) == []
    assert (mine.record.loaded_run, mine.memory.problem.error.reason) == (None, "OtherCluster")


async def test_an_end_that_was_not_announced_is_announced_again(world):
    """The run counts as closed only then: with a closed run, the round would cancel what Abandon leaves alone."""
    await world.stored("r")
    rebalance = deleted("r", deletionPolicy="Abandon")

    async def fails(rebalance, outcome):
        raise RuntimeError("no JSON")

    working, world.resources.announce = world.resources.announce, fails
    assert await world.prepared(rebalance) == []
    assert rebalance.record.run.open
    world.resources.announce = working
    world.clock.at += timedelta(minutes=1)
    assert await world.prepared(rebalance) == [RunOutcome.ABANDONED, "released"]


async def test_abandon_and_let_go_end_it_now(world):
    """By the policy, or by the annotation if Kafka is permanently gone."""
    await world.stored("r")
    assert await world.prepared(deleted(deletionPolicy="Abandon")) == [RunOutcome.ABANDONED, "released"]
    await world.stored("q")
    world.resources.happened.clear()
    ordered = deleted("q", annotations={LET_GO_ANNOTATION: "true"})
    assert await world.prepared(ordered, connected=False) == [RunOutcome.ABANDONED, "released"]


async def test_the_timeout_ends_it_at_once_without_kafka_and_after_a_while_with_it(world):
    """With Kafka, copies in flight are cancelled first."""
    await world.stored("r")
    mine = deleted(rollback={"timeout": "10m"})
    world.clock.at = NOON + timedelta(minutes=11)
    assert await world.prepared(mine) == []
    assert mine.desired.timed_out(world.clock.now())
    assert await world.prepared(mine, connected=False) == [RunOutcome.ABANDONED, "released"]
    await world.stored("q")
    world.resources.happened.clear()
    other = deleted("q", rollback={"timeout": "10m"})
    assert await world.prepared(other) == []
    world.clock.at += timedelta(minutes=2)
    assert await world.prepared(other) == []
    world.clock.at += timedelta(seconds=1)
    assert await world.prepared(other) == [RunOutcome.ABANDONED, "released"]


async def test_a_timeout_that_was_made_longer_and_shorter_again(world):
    """Each time that it is over, there is time for cancelling."""
    await world.stored("r")
    mine = deleted(rollback={"timeout": "10m"})
    world.clock.at = NOON + timedelta(minutes=11)
    await world.prepared(mine)
    mine.desired = deleted(rollback={"timeout": "1h"}).desired
    world.clock.at = NOON + timedelta(minutes=15)
    await world.prepared(mine)
    mine.desired = deleted(rollback={"timeout": "10m"}).desired
    assert await world.prepared(mine) == []


async def test_a_namespace_that_goes_is_held_up_for_two_minutes_at_most(world):
    """That leaves time for cancels, even if one is impossible; its own deletion may be older than that."""
    await world.stored("r")
    mine = deleted()
    world.clock.at = NOON + timedelta(hours=1)
    assert await world.prepared(mine) == []
    world.resources.terminating = True
    world.clock.at += timedelta(seconds=5)
    assert await world.prepared(mine) == []
    assert mine.memory.terminating
    world.clock.at += timedelta(minutes=2)
    assert await world.prepared(mine) == []
    world.clock.at += timedelta(seconds=1)
    assert await world.prepared(mine) == [RunOutcome.ABANDONED, "released"]


async def test_a_successor_that_goes_before_it_has_a_plan_is_rolled_back(world):
    """It must move back what it took over."""
    await world.stored("old", closed_at=NOON, outcome=RunOutcome.TAKEN_OVER, successor="new")
    mine = deleted("new")
    assert await world.prepared(mine) == []
    assert direction_of(mine) is Direction.ROLLBACK
    assert [(e.tp, e.origin, e.target) for e in mine.record.moves] == [(TP, replicas_of(1, 2), replicas_of(3, 2))]
    again = deleted("new")  # killed and restarted
    await world.prepared(again)
    assert again.record.run == mine.record.run


async def test_an_undo_that_could_not_restore_everything_keeps_the_origins(world):
    """The outcome says so."""
    record = await world.stored("r", closed_at=NOON, outcome=RunOutcome.SUCCEEDED)
    mine = deleted()
    recorded(mine, run=replace(record, outcome=RunOutcome.ROLLED_BACK_PARTIALLY, undo=True))
    await world.lifecycle.remove_finalizer_and_records(mine)
    assert await world.stores.origins.load("r", "run-r")


async def test_of_two_that_were_taken_over_the_first_says_where_to_go_back_to(world):
    """The second moved on what the first had moved."""
    ended = {"outcome": RunOutcome.TAKEN_OVER, "successor": "new"}
    await world.stored("a", closed_at=NOON, **ended)
    second = Plan((PlannedPartition(TP, replicas_of(3, 2), replicas_of(4, 2)),), Certificate(1, optimal=True))
    later = NOON + timedelta(minutes=1)
    run = Run("b", "kafka", "b", "c", "run-b", "sha256:0", second.hash, later, later, started_at=later, **ended)
    await world.stores.plans.save("b", second.hash, "c", second, later)
    await world.stores.origins.append("b", "run-b", [Origin(TP, "", replicas_of(3, 2))])
    await world.stores.runs.save(run)
    for mine in deleted("new"), deleted("new"):  # the second time as after a restart
        await world.prepared(mine)
        assert [(e.tp, e.origin, e.target) for e in mine.record.moves] == [(TP, replicas_of(1, 2), replicas_of(4, 2))]


class TestOtherClusters:
    """A run on record belongs to one cluster: nothing of it is used in another one."""

    async def test_nothing_is_inherited_from_there(self, world):
        """The KafkaConnection leads elsewhere now."""
        await world.stored("there", cluster_id="d", **ENDED)
        here = await world.stored("here", **ENDED)
        assert await world.lifecycle.inheritance("new") == [here]

    @pytest.mark.parametrize("cluster_id", ["c", ""])
    async def test_what_is_rolled_back_is_of_one_cluster(self, world, cluster_id):
        """Each has a topic of the same name; that of the engine goes first, with no engine that of the first run."""
        world.lifecycle = Lifecycle(world.resources, world.stores, world.clock, cluster_id)
        there = Plan((PlannedPartition(TP, replicas_of(5, 6), replicas_of(7, 6)),), Certificate(1, optimal=True))
        later = NOON + timedelta(minutes=1)
        run = Run("b", "kafka", "b", "d", "run-b", "sha256:0", there.hash, later, later, started_at=later)
        await world.stores.plans.save("b", there.hash, "d", there, later)
        await world.stores.origins.append("b", "run-b", [Origin(TP, "", replicas_of(5, 6))])
        await world.stores.runs.save(replace(run, outcome=RunOutcome.TAKEN_OVER, successor="new"))
        await world.stored("a", **ENDED)
        mine = deleted("new")
        await world.prepared(mine)
        plan = await world.stores.plans.load("new", mine.record.run.plan_hash)
        origins = await world.stores.origins.load("new", mine.record.run.run_id)
        assert mine.record.run.cluster_id == "c"
        assert [row.target for row in plan.plan.partitions] == [replicas_of(3, 2)]
        assert [origin.replicas for origin in origins.values()] == [replicas_of(1, 2)]

    async def test_a_rollback_there_waits(self, world):
        """It is not forgotten, and not carried out here."""
        await world.stored("there", cluster_id="d", **ENDED)
        mine = deleted("new")
        assert await world.prepared(mine) == []
        assert (mine.record.run.cluster_id, mine.record.loaded_run) == ("d", None)
        assert mine.memory.problem.error.reason == "OtherCluster"

    @pytest.mark.parametrize(("before", "cordoned"), [("c", (1,)), ("d", ())])
    async def test_cordons_there_are_not_removed_here(self, world, before, cordoned):
        """The next run takes over the cordons of the one before, of the same cluster."""
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}}
        mine = Rebalance.of({"metadata": {"name": "r", "namespace": "kafka", "uid": "r"}, "spec": spec})
        old = await world.stored("r", cluster_id=before, closed_at=NOON, outcome=RunOutcome.SUCCEEDED, cordoned=(1,))
        recorded(mine, run=old, was_read=True)
        new = replace(old, cluster_id="c", run_id="run-2", closed_at=None, outcome=None, cordoned=())
        await world.lifecycle.begin(mine, Planned(new, PLAN, "ref", {}, LoadModel("LogDirs", NOON)), {"r": mine})
        assert mine.record.run.cordoned == cordoned


async def test_a_plan_does_not_take_back_what_was_recorded_while_it_was_made(world):
    """The second call of a partition was sent meanwhile: its origin counts, wherever it is now.

    Another partition is of others now, so its origin is removed with the plan.
    """
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}}
    mine = Rebalance.of({"metadata": {"name": "r", "namespace": "kafka", "uid": "r"}, "spec": spec})
    run = await world.stored("r")
    theirs = Origin(TopicPartition("orders", 1), "", replicas_of(1, 2))
    before = Origin(TP, "", replicas_of(1, 2), first_call=replicas_of(3, 1, 2))
    now = replace(before, first_call=())
    origins = await world.stores.origins.append("r", run.run_id, [theirs, now])
    recorded(mine, run=run, was_read=True, origins=origins)
    await world.lifecycle.begin(mine, Planned(run, PLAN, "ref", {TP: before}, LoadModel("LogDirs", NOON)), {"r": mine})
    assert mine.record.origins == {TP: now}
    assert await world.stores.origins.load("r", run.run_id) == {TP: now}


@pytest.mark.parametrize("request_", ["replace_config_map", "get_config_map", "create_config_map"])
async def test_another_engine_begins_a_run_meanwhile(world, monkeypatch, request_):
    """Whichever request of the former engine is slow, it does not replace that run, nor delete its plan and origins.

    In order: the one for the origins, for the version of the record of the run, and for that record. The last one is
    carried out before the record of the other run, and answered later.
    """
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}}
    mine = Rebalance.of({"metadata": {"name": "r", "namespace": "kafka", "uid": "r"}, "spec": spec})
    served, real = {"r": mine}, getattr(world.kube, request_)
    recorded(mine, was_read=True)
    run = Run("r", "kafka", "r", "c", "run-1", "sha256:0", PLAN.hash, NOON)
    kind = "origins" if request_ == "replace_config_map" else "run"
    await world.stores.origins.replace("r", run.run_id, [Origin(TP, "", replicas_of(1, 3))])

    async def slow(name, *body):
        about = name if isinstance(name, str) else name["metadata"]["name"]
        if not about.startswith(f"{kind}-"):
            return await real(name, *body)
        monkeypatch.setattr(world.kube, request_, real)
        early = await real(name, *body) if request_ == "create_config_map" else None
        served.clear()
        await world.stored("r", cluster_id="d")
        return early or await real(name, *body)

    monkeypatch.setattr(world.kube, request_, slow)
    planned = Planned(run, PLAN, "ref", {TP: Origin(TP, "", replicas_of(1, 2))}, LoadModel("LogDirs", NOON))
    with pytest.raises(Conflict):
        await world.lifecycle.begin(mine, planned, served)
    other = await world.stores.runs.load("r")
    assert (other.cluster_id, other.run_id) == ("d", "run-r")
    assert await world.stores.plans.load("r", other.plan_hash)
    assert await world.stores.origins.load("r", other.run_id)
    assert not mine.record.was_read


@pytest.mark.parametrize("later", [True, False])
async def test_an_earlier_run_is_doubted_meanwhile(world, monkeypatch, later):
    """The new run has its cordons, and has to be in the same doubt: it is planned again."""
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}}
    mine = Rebalance.of({"metadata": {"name": "r", "namespace": "kafka", "uid": "r"}, "spec": spec})
    old = await world.stored("r", closed_at=NOON, outcome=RunOutcome.SUCCEEDED, cordoned=(1,))
    recorded(mine, run=old, was_read=True)
    real = world.kube.get_config_map

    async def slow(name):
        monkeypatch.setattr(world.kube, "get_config_map", real)
        await world.stores.runs.doubt(old, later=later)
        return await real(name)

    monkeypatch.setattr(world.kube, "get_config_map", slow)
    new = replace(old, run_id="run-2", closed_at=None, outcome=None, cordoned=())
    planned = Planned(new, PLAN, "ref", {}, LoadModel("LogDirs", NOON))
    with pytest.raises(Conflict):
        await world.lifecycle.begin(mine, planned, {"r": mine})
    found = await world.stores.runs.load("r")
    assert (found.run_id, found.was_unproved, found.unproved) == ("run-r", True, not later)
    assert not mine.record.was_read


class TestOneList:
    """The resources of a round share a list of the runs: a deletion still moves back what was handed over to it."""

    async def test_what_is_handed_over_after_the_list_is_moved_back(self, world):
        """An abandoned rollback is handed over while deletions are prepared, and the successor is one of these."""
        run = await world.stored("old")
        world.lifecycle.begin_round()
        assert await world.prepared(deleted("other")) == ["released"]
        old = recorded(deleted("old"), run=run, was_read=True)
        await world.lifecycle.close(old, RunOutcome.ABANDONED, "new")
        mine = deleted("new")
        await world.prepared(mine)
        assert [(e.tp, e.origin) for e in mine.record.moves] == [(TP, replicas_of(1, 2))]

    async def test_what_is_handed_over_during_the_list_is_moved_back(self, world):
        """The answer of the list is older than the record, which is written before it arrives."""
        run, runs = await world.stored("old"), world.stores.runs
        world.lifecycle.begin_round()
        old, list_all = recorded(deleted("old"), run=run, was_read=True), runs.list_all

        async def late():
            found = await list_all()
            runs.list_all = list_all
            await world.lifecycle.close(old, RunOutcome.ABANDONED, "new")
            return found

        runs.list_all = late
        assert await world.prepared(deleted("other")) == [RunOutcome.ABANDONED, "released"]
        mine = deleted("new")
        await world.prepared(mine)
        assert [(e.tp, e.origin) for e in mine.record.moves] == [(TP, replicas_of(1, 2))]

    async def test_the_next_round_lists_again(self, world):
        """A write of the leader before may arrive late."""
        world.lifecycle.begin_round()
        assert await world.prepared(deleted("other")) == ["released"]
        late = replace(await world.stored("old", closed_at=NOON, outcome=RunOutcome.TAKEN_OVER), successor="new")
        await RunStore(world.kube).save(late)
        world.lifecycle.begin_round()
        assert await world.lifecycle.inheritance("new") == [late]


@pytest.mark.parametrize("paused", [False, True])
async def test_a_plan_is_given_up_when_the_connection_is_refused(world, paused):
    """Also in the pause after a problem. The open run stays loaded: its copies in flight keep their throttle."""
    await world.stored("r")
    mine = Rebalance.of({**KEPT, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
    await world.prepared(mine)
    task = asyncio.create_task(asyncio.Event().wait())
    remembered(mine, planning=task, planned_spec=mine.desired.planning_hash)
    if paused:
        remembered(mine, problem=Transient(Reason.KAFKA_UNREACHABLE, "no answer"), retry_at=float("inf"))
    await world.prepared(mine)
    assert mine.memory.planning is task
    mine.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "not permitted")
    await world.prepared(mine)
    assert task.cancelled()
    assert mine.memory.planning is None
    assert mine.record.loaded_run is not None
