"""Runs that may have started in another cluster, when a cluster gets another owner."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.api_errors import Conflict
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.doubtful_runs import doubt_runs, doubt_runs_again
from kafka_rebalance.reconcile.act.handed_over_runs import HandedOverRuns
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.record import Stores

PLAN = Plan((PlannedPartition(TopicPartition("t", 0), replicas_of(4), replicas_of(1)),), Certificate(1, optimal=True))
OWNER, OTHER = Owner("k", "prod"), Owner("evil")
CLOSED = {"closed_at": NOON + timedelta(hours=1), "outcome": RunOutcome.SUCCEEDED}
SENT = {"started_at": NOON}
SPEC = {"kafka": {"bootstrapServers": "kafka:9092"}}
HEIR = Desired.of({"metadata": {"name": "heir", "namespace": "kafka", "uid": "heir"}, "spec": SPEC})


def run(uid="u", cluster_id="c", **more):
    return Run(uid, "kafka", uid, cluster_id, f"run-{uid}", "planning", PLAN.hash, NOON, **more)


async def stores_with(*handed_over):
    stores = Stores(PlanStore(kube := KubeInMemory()), OriginStore(kube), RunStore(kube))
    for one in handed_over:
        await stores.plans.save(one.uid, PLAN.hash, "c", PLAN, NOON)
        await stores.origins.replace(one.uid, one.run_id, ())
        await stores.runs.save(one)
    return stores


@pytest.fixture
def runs():
    return RunStore(KubeInMemory())


@pytest.mark.parametrize(
    "more",
    [
        {},
        SENT | {"cordoned": (BrokerId(1),)},
        SENT | CLOSED | {"successor": "heir"},
        SENT | CLOSED | {"cordoned": (BrokerId(1),), "owner": OTHER},
        CLOSED | {"last_success": run(**SENT, **CLOSED, cordoned=(BrokerId(1),), owner=OTHER), "owner": OWNER},
        SENT | CLOSED | {"owner": Owner("k", "staging"), "was_unproved": True},
    ],
    ids=["open", "cordoned", "handed over", "ended", "before the last one", "continued with a KafkaConnection"],
)
async def test_what_could_still_change_the_cluster_is_unproved(runs, more):
    """Nothing of it is undone in this cluster, and no cordon is removed."""
    await runs.save(run(**more))
    await doubt_runs(runs, "c", OWNER)
    found = await runs.load("u")
    assert (found.unproved, found.cordoned) == (True, ())
    assert found.last_success is None or (found.last_success.unproved, found.last_success.cordoned) == (True, ())


@pytest.mark.parametrize(
    "other",
    [
        run(cluster_id="d", **SENT),
        run(owner=OTHER, **CLOSED),
    ],
    ids=["elsewhere", "sent nothing"],
)
async def test_other_runs_stay_as_they_are(runs, other):
    await runs.save(other)
    await doubt_runs(runs, "c", OWNER)
    assert await runs.load("u") == other


@pytest.mark.parametrize(
    "ended",
    [
        run(owner=OWNER, **SENT, **CLOSED),
        run(owner=Owner("k", "staging"), **SENT, **CLOSED),
        run(**SENT, **CLOSED),
    ],
    ids=["the same owner", "of a KafkaConnection", "an earlier version"],
)
async def test_what_has_ended_can_be_undone_until_there_is_another_owner(runs, ended):
    """The KafkaConnection was deleted and created again, for example. What an undo opens is doubted by the next one."""
    await runs.save(ended)
    await doubt_runs(runs, "c", OWNER)
    assert await runs.load("u") == replace(ended, was_unproved=True)
    await runs.save(replace(ended, was_unproved=True, closed_at=None, outcome=None, undo=True, cordoned=(BrokerId(1),)))
    await doubt_runs_again(runs, "c")
    found = await runs.load("u")
    assert (found.unproved, found.cordoned) == (True, ())


@pytest.mark.parametrize(
    "more",
    [
        SENT,
        SENT | CLOSED | {"cordoned": (BrokerId(1),), "owner": OWNER},
        CLOSED | {"successor": "heir"},
    ],
    ids=["open", "ended", "handed over"],
)
async def test_what_was_in_doubt_once_is_doubted_by_the_next_owner(runs, more):
    """It may have gone on with permission of the owner in between. An undo or its heir would go on with its origins."""
    await runs.save(run(was_unproved=True, **more))
    await doubt_runs_again(runs, "c")
    found = await runs.load("u")
    assert (found.unproved, found.cordoned) == (True, ())


@pytest.mark.parametrize(
    "other",
    [
        run(was_unproved=True, cluster_id="d", **SENT),
        run(was_unproved=True, **CLOSED),
    ],
    ids=["elsewhere", "sent nothing"],
)
async def test_other_runs_that_were_in_doubt_stay_as_they_are(runs, other):
    await runs.save(other)
    await doubt_runs_again(runs, "c")
    assert await runs.load("u") == other


async def test_what_was_never_in_doubt_goes_on_with_the_next_owner(runs):
    await runs.save(run(owner=OWNER, **SENT))
    await doubt_runs_again(runs, "c")
    assert await runs.load("u") == run(owner=OWNER, **SENT)


async def test_what_was_read_before_does_not_prove_it_again(runs):
    """A round that has read the run saves it later. A resource with permission continues it."""
    before = run(**SENT)
    await runs.save(before)
    await doubt_runs(runs, "c", OWNER)
    assert runs.is_outdated(before)
    await runs.save(before)
    found = await runs.load("u")
    assert found.unproved
    assert not runs.is_outdated(found)
    await runs.go_on(replace(found, unproved=False))
    await runs.save(before)
    found = await runs.load("u")
    assert (found.unproved, found.was_unproved) == (False, True)


@pytest.mark.parametrize("then", [{}, {"run_id": "another"}], ids=["reopened", "planned again"])
async def test_what_was_read_before_does_not_take_the_later_doubt_back(runs, then):
    """An ended run is undone, or the next one has its cordons: made of the record of before, by the same process."""
    before = run(owner=OWNER, **SENT, **CLOSED)
    await runs.save(before)
    await doubt_runs(runs, "c", OWNER)
    assert runs.is_outdated(before)
    await runs.save(replace(before, closed_at=None, outcome=None, cordoned=(BrokerId(1),), **then))
    await doubt_runs_again(runs, "c")
    found = await runs.load("u")
    assert (found.unproved, found.cordoned) == (True, ())


async def test_a_run_in_another_cluster_has_nothing_of_it(runs):
    ended = run(owner=OWNER, **SENT, **CLOSED)
    await runs.save(ended)
    await doubt_runs(runs, "c", OWNER)
    await runs.save(elsewhere := run(cluster_id="d", **SENT))
    assert await runs.load("u") == elsewhere


async def test_what_an_engine_saves_while_the_record_is_read(monkeypatch):
    """The answer of before comes last. The doubt is recorded with the next try."""
    runs = RunStore(kube := KubeInMemory())
    await runs.save(before := run(owner=OTHER, **SENT))
    real, ended = kube.get_config_map, replace(before, **CLOSED)

    async def slow(name):
        monkeypatch.setattr(kube, "get_config_map", real)
        found = await real(name)
        await runs.save(ended)
        return found

    monkeypatch.setattr(kube, "get_config_map", slow)
    with pytest.raises(Conflict):
        await runs.doubt(before)
    await runs.doubt(before)
    assert await runs.list_all(on_record=True) == [ended.doubted]


async def test_one_that_just_goes_on_with_the_former_owner(monkeypatch):
    """The request is on its way while the cluster gets another owner."""
    runs = RunStore(kube := KubeInMemory())
    await runs.save(before := run(**SENT).doubted)
    real = kube.replace_config_map

    async def slow(name, body):
        monkeypatch.setattr(kube, "replace_config_map", real)
        await doubt_runs_again(runs, "c")
        return await real(name, body)

    monkeypatch.setattr(kube, "replace_config_map", slow)
    with pytest.raises(Conflict):
        await runs.go_on(replace(before, unproved=False))
    assert await runs.list_all(on_record=True) == [before]


async def test_a_doubt_that_could_not_be_written(monkeypatch):
    """It counts in this process, and the next try writes it."""
    runs = RunStore(kube := KubeInMemory())
    await runs.save(before := run(**SENT))

    async def away(*_):
        raise Transient("ApiServerUnreachable", "no answer")

    with monkeypatch.context() as patched:
        patched.setattr(kube, "replace_config_map", away)
        with pytest.raises(Transient):
            await doubt_runs(runs, "c", OWNER)
    assert [await runs.load("u")] == await runs.list_all() == [before.doubted]
    await doubt_runs(runs, "c", OWNER)
    assert await RunStore(kube).load("u") == before.doubted


@pytest.mark.parametrize("moment", ["handed_over", "origins", "used_up"])
async def test_one_that_is_just_made_of_others(monkeypatch, moment):
    """The resource to which runs were handed over is deleted while the cluster gets another owner."""
    stores = await stores_with(run(successor="heir", **SENT, **CLOSED))
    owner, name = {
        "handed_over": (stores.plans, "load"),
        "origins": (stores.origins, "replace"),
        "used_up": (HandedOverRuns, "use_up"),
    }[moment]
    before = getattr(owner, name)

    async def taken_over_first(*arguments, **more):
        await doubt_runs(stores.runs, "c", OWNER)
        return await before(*arguments, **more)

    monkeypatch.setattr(owner, name, taken_over_first)
    await HandedOverRuns(stores, StoppedClock(), "").rebuilt(HEIR)
    assert {found.uid: (found.unproved, found.successor) for found in await stores.runs.list_all()} == {
        "u": (True, None),
        "heir": (True, None),
    }


@pytest.mark.parametrize("doubted", ["u", "v"])
async def test_one_that_is_made_of_one_that_was_in_doubt(doubted):
    """It is deleted before it has a plan. The next owner has to doubt it, as it would have doubted the others."""
    both = [run(uid, successor="heir", was_unproved=uid == doubted, **SENT, **CLOSED) for uid in ("u", "v")]
    stores = await stores_with(*both)
    found = await HandedOverRuns(stores, StoppedClock(), "").rebuilt(HEIR)
    assert (found.unproved, found.was_unproved) == (False, True)
    assert await stores.runs.load("heir") == found


async def test_one_that_appears_after_they_were_listed(runs, monkeypatch):
    """It was made of others that had been read before."""
    await runs.save(run(**SENT))
    doubt = runs.doubt

    async def with_another(found):
        await doubt(found)
        if found.uid == "u":
            await runs.save(run("heir", **SENT))

    monkeypatch.setattr(runs, "doubt", with_another)
    await doubt_runs(runs, "c", OWNER)
    assert (await runs.load("heir")).unproved
