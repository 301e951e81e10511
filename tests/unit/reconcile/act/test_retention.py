"""How long records are kept after their resource is gone."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from kafka_rebalance.kube.api_errors import Conflict, Forbidden
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import replicas_of
from kafka_rebalance.reconcile.act import retention
from kafka_rebalance.reconcile.act.retention import MOST_KEPT, keep_limited, keep_swept, limit, sweep
from kafka_rebalance.reconcile.state.record import PLAN_RETENTION, Stores

NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
YOUNG = NOW - PLAN_RETENTION + timedelta(seconds=1)
OLD = NOW - PLAN_RETENTION


class Clock:
    now_is = NOW

    def now(self):
        return self.now_is

    def monotonic(self):
        return 0.0


class Blobs:
    """Plans or origins: the uids that are left."""

    def __init__(self, uids):
        self.uids = set(uids)

    async def stored(self):
        return {}

    async def delete(self, uid, *, keep=()):
        assert not keep
        self.uids.discard(uid)


class Runs:
    """The store of runs, without an API server."""

    def __init__(self, *runs):
        self.runs = {run.uid: run for run in runs}

    async def list_all(self):
        return list(self.runs.values())

    async def load(self, uid):
        return self.runs.get(uid)

    async def save(self, run):
        self.runs[run.uid] = run

    async def delete(self, uid):
        self.runs.pop(uid, None)

    def how_to_see(self, uid):
        return f"look at {uid}"


class Resources:
    """The existing resources; ``meanwhile`` is called during a lookup."""

    def __init__(self, *there, meanwhile=lambda: None):
        self.there = set(there)
        self.meanwhile = meanwhile

    async def exists(self, namespace, name, uid):
        self.meanwhile()
        return uid in self.there

    async def has_uid(self, namespace, uid):
        assert namespace == "kafka"
        return uid in self.there

    async def uids(self, namespace):
        self.meanwhile()
        if namespace == "unread":
            raise Forbidden("no role there")
        return self.there


def run(*, opened=YOUNG, closed=None, uid="u-1", outcome=RunOutcome.SUCCEEDED, **fields):
    ended = {"closed_at": closed, "outcome": outcome} if closed else {}
    return Run(uid, "kafka", "grow", "c", "run-1", "sha256:a", "sha256:b", opened, **ended, **fields)


def stores(*runs):
    uids = [run.uid for run in runs]
    return Stores(plans=Blobs(uids), origins=Blobs(uids), runs=Runs(*runs))


def left(kept):
    assert kept.plans.uids == kept.origins.uids == set(kept.runs.runs)
    return kept.plans.uids


class TestClosed:
    """A closed run's records are kept as long as its resource exists, and at least 30 days."""

    @pytest.mark.parametrize(
        ("closed", "there", "forgotten"), [(OLD, False, 1), (OLD, True, 0), (YOUNG, False, 0), (YOUNG, True, 0)]
    )
    async def test_forgotten_when_old_and_gone(self, closed, there, forgotten, caplog):
        kept = stores(run(opened=OLD - timedelta(days=300), closed=closed))
        assert await sweep(kept, Resources(*(["u-1"] if there else [])), Clock()) == forgotten
        assert left(kept) == (set() if forgotten else {"u-1"})
        assert not caplog.records

    async def test_only_the_one(self):
        kept = stores(run(closed=OLD, uid="gone"), run(closed=OLD, uid="there"), run(closed=YOUNG, uid="young"))
        assert await sweep(kept, Resources("there"), Clock()) == 1
        assert left(kept) == {"there", "young"}

    @pytest.mark.parametrize("heir", [True, False])
    async def test_handed_over(self, heir):
        """The record stays while the new resource exists, which may not have stored the origins yet."""
        kept = stores(run(closed=OLD, outcome=RunOutcome.TAKEN_OVER, successor="u-2"))
        assert await sweep(kept, Resources(*(["u-2"] if heir else [])), Clock()) == (not heir)
        assert left(kept) == ({"u-1"} if heir else set())

    async def test_an_unreadable_namespace_keeps_only_its_own_records(self, caplog):
        """Its namespace may not be read any more."""
        kept = stores(run(closed=OLD, uid="unread"), run(closed=OLD, uid="gone"))
        answers = iter([Forbidden("no role there")])

        def meanwhile():
            for error in answers:
                raise error

        assert await sweep(kept, Resources(meanwhile=meanwhile), Clock()) == 1
        assert left(kept) == {"unread"}
        assert "no role there" in caplog.text


class TestLimit:
    """A user who creates and deletes resources cannot fill etcd with their records, nor slow down the operator."""

    @staticmethod
    def ended(count, namespace="kafka", **fields):
        """The last one ended first."""
        runs = [run(uid=f"{namespace}-{n:03d}", closed=NOW - timedelta(minutes=n), **fields) for n in range(count)]
        return [replace(run, namespace=namespace) for run in runs]

    async def test_the_oldest_are_forgotten(self):
        kept = stores(*self.ended(MOST_KEPT + 3), *self.ended(2, "other"))
        assert await limit(kept, Resources()) == 3
        assert left(kept) == {run.uid for run in (*self.ended(MOST_KEPT), *self.ended(2, "other"))}
        assert await limit(kept, Resources()) == 0

    async def test_of_existing_resources_none(self):
        """They do not count, either."""
        runs = self.ended(MOST_KEPT + 3)
        kept = stores(*runs)
        assert await limit(kept, Resources(*(run.uid for run in runs[-3:]))) == 0

    async def test_open_ones_last(self, caplog):
        """A user can leave these behind too, by removing the finalizer."""
        kept = stores(*self.ended(2), *(run(uid=f"open-{n}", opened=NOW - timedelta(n)) for n in range(MOST_KEPT + 1)))
        assert await limit(kept, Resources(f"open-{MOST_KEPT}")) == 2
        assert left(kept) == {f"open-{n}" for n in range(MOST_KEPT + 1)}
        assert not caplog.records
        assert await limit(kept, Resources()) == 1
        assert left(kept) == {f"open-{n}" for n in range(MOST_KEPT)}
        assert "has lost its resource (uid open-50)" in caplog.text

    async def test_none_that_a_new_resource_continues(self):
        runs = self.ended(MOST_KEPT + 3, outcome=RunOutcome.TAKEN_OVER, successor="u-2")
        assert await limit(stores(*runs), Resources("u-2")) == 0
        assert await limit(stores(*runs), Resources()) == 3

    async def test_none_that_has_changed_meanwhile(self):
        kept = stores(*self.ended(MOST_KEPT + 1))
        oldest = replace(self.ended(MOST_KEPT + 1)[-1], run_id="run-2")
        resources = Resources(meanwhile=lambda: kept.runs.runs.update({oldest.uid: oldest}))
        assert await limit(kept, resources) == 0

    async def test_an_unreadable_namespace_keeps_its_records(self, caplog):
        kept = stores(*self.ended(MOST_KEPT + 1, "unread"), *self.ended(MOST_KEPT + 1))
        assert await limit(kept, Resources()) == 1
        assert "no role there" in caplog.text


class TestPlansWithoutARun:
    class Plans(Blobs):
        """Plans of resources that were deleted before their run was opened."""

        async def stored(self):
            return {f"plan-{uid}": uid for uid in self.uids}

        async def namespace_of(self, ref):
            return ref.partition("/")[2]

    async def test_the_resources_of_a_namespace_are_read_once(self):
        """It may have many such plans, and many large resources."""
        looks = []
        plans = self.Plans([f"u-{number}/{namespace}" for number in range(3) for namespace in ("kafka", "unread")])
        kept = Stores(plans=plans, origins=Blobs(()), runs=Runs())
        await limit(kept, Resources("u-1/kafka", meanwhile=lambda: looks.append(1)))
        assert plans.uids == {"u-1/kafka", "u-0/unread", "u-1/unread", "u-2/unread"}
        assert len(looks) == 4  # three attempts are of the namespace that cannot be read


class TestOrphans:
    """An open run whose resource is gone: the operator warns about it, and its origins are the only way back."""

    async def test_with_its_resource_it_is_none(self, caplog):
        """However long it takes."""
        kept = stores(run(opened=OLD))
        assert await sweep(kept, Resources("u-1"), Clock()) == 0
        assert kept.runs.runs["u-1"].open
        assert not caplog.records

    async def test_told_and_kept(self, caplog):
        """The warning says which run, since when, what may be left of it, and how to see its records."""
        kept = stores(run(cordoned=replicas_of(4, 7)))
        assert await sweep(kept, Resources(), Clock()) == 0
        assert left(kept) == {"u-1"}
        assert kept.runs.runs["u-1"].open
        (warning,) = caplog.records
        assert warning.levelno == logging.WARNING
        for part in ("kafka/grow", "run-1", "2026-05-02T12:00:01+00:00", "u-1", "4, 7", "look at u-1"):
            assert part in warning.getMessage()

    async def test_closed_when_the_retention_is_over(self, caplog):
        """As abandoned, with plan and origins; those are deleted after another retention period."""
        orphan = run(opened=OLD)
        kept, clock = stores(orphan), Clock()
        assert await sweep(kept, Resources(), clock) == 0
        assert kept.runs.runs["u-1"] == replace(orphan, closed_at=NOW, outcome=RunOutcome.ABANDONED)
        assert left(kept) == {"u-1"}
        assert "Abandoned" in caplog.text
        clock.now_is = NOW + PLAN_RETENTION - timedelta(seconds=1)
        assert await sweep(kept, Resources(), clock) == 0
        clock.now_is = NOW + PLAN_RETENTION
        assert await sweep(kept, Resources(), clock) == 1
        assert left(kept) == set()

    @pytest.mark.parametrize("opened", [OLD, YOUNG])
    async def test_ended_while_we_look(self, opened, caplog):
        """A teardown that ends between the listing and the lookup takes precedence."""
        kept = stores(run(opened=opened))
        ended = run(opened=opened, closed=NOW, outcome=RunOutcome.ROLLED_BACK_PARTIALLY)
        resources = Resources(meanwhile=lambda: kept.runs.runs.update({"u-1": ended}))
        assert await sweep(kept, resources, Clock()) == 0
        assert kept.runs.runs["u-1"] == ended
        forgotten = stores(run(opened=opened))
        assert await sweep(forgotten, Resources(meanwhile=forgotten.runs.runs.clear), Clock()) == 0
        assert not forgotten.runs.runs
        assert not caplog.records


class Fails(Runs):
    """The first listing is refused, the second one raises an unexpected error, and the third one ends the test."""

    def __init__(self):
        super().__init__()
        self.errors = [Forbidden("not now"), KeyError("defect"), asyncio.CancelledError()]

    async def list_all(self):
        raise self.errors.pop(0)


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (lambda stores: keep_swept(stores, Resources(), Clock()), "old records were not swept"),
        (lambda stores: keep_limited(stores, Resources()), "the number of old records was not limited"),
    ],
    ids=["sweep", "limit"],
)
async def test_goes_on_after_failures(kept, text, monkeypatch, caplog):
    """Each is logged; the records are looked at again after a pause."""
    monkeypatch.setattr(retention, "_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(retention, "_LIMIT_EVERY_SECONDS", 0.0)
    with pytest.raises(asyncio.CancelledError):
        await kept(Stores(plans=Blobs(()), origins=Blobs(()), runs=Fails()))
    assert [record.getMessage() for record in caplog.records] == [f"{text}: not now", text]
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]


async def test_what_is_left_half_written_of_each_kind(monkeypatch):
    """One kind that cannot be cleaned does not keep the others from it."""
    cleaned = []

    class Left:
        def __init__(self, kind):
            self.kind = kind

        async def clean(self):
            cleaned.append(self.kind)
            raise Conflict("written meanwhile")

    monkeypatch.setattr(retention, "LedgerStore", lambda _: Left("ledgers"))
    await retention.clean_up(SimpleNamespace(plans=Left("plans"), origins=Left("origins")), None)
    assert cleaned == ["plans", "origins", "ledgers"]
