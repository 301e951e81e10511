"""How a deletion ends: the successor that takes over, and the barriers to a complete rollback."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.found_by_rounds import found, recorded, remembered

from kafka_rebalance.api.v1alpha1 import FINALIZER, LET_GO_ANNOTATION
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.plan_order import takeovers
from kafka_rebalance.reconcile.decide import teardown
from kafka_rebalance.reconcile.decide.teardown import (
    MOST_TAKEN_OVER,
    as_rolled_back,
    awaited_plans,
    expired,
    lets_go,
    moved_back,
    renamed_from,
    successors_of,
    teardown_of,
    uncounted_successors,
)
from kafka_rebalance.reconcile.state.assessment import RollbackBarrier, Successor, Teardown
from kafka_rebalance.reconcile.state.judgement import Judgement
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of
from kafka_rebalance.reconcile.state.selection import select

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def tp(number, topic="orders"):
    return TopicPartition(topic, number)


def resource(name, *, deleting=False, metadata=None, **spec):
    given = {"creationTimestamp": NOON.isoformat(), **(metadata or {})}
    metadata = {"name": name, "namespace": "kafka", "uid": f"uid-{name}", "finalizers": [FINALIZER], **given}
    if deleting:
        metadata["deletionTimestamp"] = NOON.isoformat()
    mine = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}})
    return recorded(mine, was_read=True)


def dying(*numbers, size_bytes=100, name="old", **spec):
    mine = resource(name, deleting=True, **spec)
    rows = tuple(PlannedPartition(tp(n), replicas_of(1, 2), replicas_of(3, 4), size_bytes=size_bytes) for n in numbers)
    plan = Plan(rows, Certificate(len(rows), optimal=True))
    run = Run(mine.uid, "kafka", name, "c", "run-1", mine.desired.planning_hash, plan.hash, NOON)
    return recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))


def cluster(*replicas, adding=()):
    held = replicas_of(*replicas)
    state = PartitionState(tp(0), "", held, frozenset(held) - set(adding), held[0], replicas_of(*adding))
    return ClusterState("c", {}, {tp(0): state})


EVERYTHING = {
    key: PartitionState(key, "", replicas_of(1, 2), frozenset(replicas_of(1, 2)), BrokerId(1))
    for key in (tp(0), tp(1), tp(0, "other"))
}


def barrier_of(old, seen, now=NOON, sizes=None):
    return teardown_of(old, Observation(seen), sizes or {}, now).barrier


def successor_of(old, *others):
    """As a round finds it: the successor is set on the rebalance that it replaces."""
    successor = successors_of([old, *others]).chosen.get(old.uid)
    found(old, successor=successor)
    return successor


def planned(name, *numbers, started=None, **given):
    """A new resource whose stored plan moves these partitions."""
    mine = resource(name, **given)
    rows = tuple(PlannedPartition(tp(n), replicas_of(1, 2), replicas_of(3, 2)) for n in numbers)
    plan = Plan(rows, Certificate(len(rows), optimal=True))
    run = Run(mine.uid, "kafka", name, "c", "run-2", mine.desired.planning_hash, plan.hash, NOON, started_at=started)
    return recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))


def created(minutes):
    return {"creationTimestamp": (NOON + timedelta(minutes=minutes)).isoformat()}


class TestSuccessors:
    @pytest.mark.parametrize("minutes", [-5, 0, 5])
    def test_a_new_resource_that_moves_all_its_partitions_takes_over(self, minutes):
        """Renamed in Git: its partitions are not moved back only to be moved again."""
        old, new = dying(0, 1), planned("new", 0, 1, 2, metadata=created(minutes))
        assert successor_of(old, new) == Successor(new.uid, "kafka/new")
        assert barrier_of(old, cluster(3, 4)) is RollbackBarrier.SUCCESSOR

    @pytest.mark.parametrize("minutes", [-6, 6, 240])
    def test_one_that_was_created_at_another_time_does_not(self, minutes):
        """Somebody applies another rebalance of the same topics, hours into the rollback that was asked for."""
        assert successor_of(dying(0), planned("new", 0, metadata=created(minutes))) is None

    def test_one_whose_plan_leaves_a_partition_does_not(self):
        """It would stay where no spec wants it: PreferredLeaders of all topics, for instance."""
        assert successor_of(dying(0, 1), planned("new", 0)) is None

    def test_one_without_a_plan_does_not_yet(self):
        """What it wants is known from its plan, not from its topics."""
        assert successor_of(dying(0), resource("new", topics={"include": ["orders"]})) is None

    def test_partitions_that_were_left_alone_need_no_successor(self):
        """They are not moved back either."""
        old, new = dying(0, 7), planned("new", 0)
        found(old, statuses={tp(7): PartitionStatus(MovePhase.SKIPPED, "TopicDeleted")})
        assert successor_of(old, new).uid == new.uid

    @pytest.mark.parametrize(
        "change", [{"problem": Refused("UnknownBroker", "7")}, {"metadata": {"namespace": "other"}}]
    )
    @pytest.mark.parametrize("spec", [{}, {"takesOver": "old"}])
    def test_one_that_cannot_go_on_does_not(self, change, spec):
        """Refused by planning, or in another namespace: the rollback was requested."""
        old, new = dying(0), planned("new", 0, metadata=change.get("metadata"), **spec)
        remembered(new, problem=change.get("problem"))
        assert successor_of(old, new) is None

    @pytest.mark.parametrize("spec", [{}, {"takesOver": "old"}])
    def test_one_that_has_to_try_again_still_does(self, spec):
        """Metadata were stale, or a broker is away: that passes, while a rollback copies everything twice."""
        old, new = dying(0), planned("new", 0, **spec)
        remembered(new, problem=Transient("MetadataStale", "reading again", 1.0))
        assert successor_of(old, new).uid == new.uid

    @pytest.mark.parametrize("spec", [{}, {"takesOver": "old"}])
    def test_one_with_a_past_of_its_own_or_on_its_way_out_does_not(self, spec):
        """Its own origins would be mixed with the inherited ones."""
        old = dying(0)
        assert successor_of(old, planned("used", 0, started=NOON, **spec)) is None
        assert successor_of(old, planned("leaving", 0, deleting=True, **spec)) is None

    @pytest.mark.parametrize("minutes", [-600, 600])
    def test_one_that_names_it_needs_neither_the_time_nor_a_plan(self, minutes):
        """spec.takesOver says what is meant."""
        old, other = dying(0), planned("other", 0)
        named = resource("new", metadata=created(minutes), takesOver="old")
        assert successor_of(old, other, named).uid == named.uid
        assert successor_of(dying(0), resource("new", takesOver="another")) is None

    def test_a_successor_that_goes_away_is_none(self):
        """The rollback continues."""
        old = dying(0)
        assert successor_of(old, planned("new", 0))
        assert successor_of(old) is None
        assert barrier_of(old, cluster(3, 4)) is None

    def test_what_the_cancellation_leaves_in_place_changes_nothing(self):
        """Then nothing is left to move back; it still waits for its throttle to go."""
        old, new = dying(0), planned("new", 0)
        assert successor_of(old, new)
        found(old, statuses={tp(0): PartitionStatus(MovePhase.SKIPPED, "LeftInPlace")})
        assert successor_of(old, new).uid == new.uid

    def test_what_the_cancellation_leaves_in_place_has_to_be_moved_too(self):
        """The run is handed over with all its partitions, so one that moves only some of them gets nothing."""
        old, new = dying(0, 1), planned("new", 0, 1, metadata=created(1))
        older = planned("older", 0, metadata=created(-1))
        assert successor_of(old, older, new).uid == new.uid
        found(old, statuses={tp(1): PartitionStatus(MovePhase.SKIPPED, "LeftInPlace")})
        assert successor_of(old, older, new).uid == new.uid
        assert successor_of(old, older) is None

    @pytest.mark.parametrize("barrier", list(RollbackBarrier))
    def test_what_a_rollback_that_may_not_go_on_leaves_in_place_has_to_be_moved_too(self, barrier):
        """It only reverts until it may, for example until ``rollback.maxData`` is raised (seed 3361)."""
        old = dying(0, 1)
        left = {tp(0): PartitionStatus(MovePhase.SKIPPED, "LeftInPlace")}
        found(old, statuses=left, barrier=barrier)
        assert successor_of(old, planned("new", 1)) is None
        assert successor_of(old, planned("new", 0, 1)) is not None

    def test_nothing_is_handed_over_that_is_not_rolled_back(self):
        """With deletionPolicy Revert it ends in a moment."""
        assert successor_of(dying(0, deletionPolicy="Revert"), planned("new", 0)) is None


class TestFull:
    """Of one that never begins, the records of any number of runs would have to be kept."""

    def test_the_next_one_is_rolled_back(self):
        """As if it had no successor; it is known which one it would have been."""
        old, new = dying(0), recorded(planned("new", 0), handed_over=MOST_TAKEN_OVER - 1)
        assert successors_of([old, new]) == ({old.uid: Successor(new.uid, "kafka/new")}, {})
        recorded(new, handed_over=MOST_TAKEN_OVER)
        assert successors_of([old, new]) == ({}, {old.uid: Successor(new.uid, "kafka/new")})

    def test_another_one_takes_over(self):
        """The one that is named in vain does not stop it."""
        old, other = dying(0), planned("other", 0)
        full = recorded(resource("full", takesOver="old"), handed_over=MOST_TAKEN_OVER)
        assert successor_of(old, full, other).uid == other.uid

    def test_those_that_are_being_handed_over_count(self):
        """They may be deleted together. One that has a successor keeps it."""
        olds, new = [dying(0, name=f"old-{n}") for n in range(3)], planned("new", 0)
        recorded(new, handed_over=MOST_TAKEN_OVER - 1)
        assert successor_of(olds[2], new)
        chosen, full = successors_of([*olds, new])
        assert (chosen.keys(), full.keys()) == ({"uid-old-2"}, {"uid-old-0", "uid-old-1"})

    def test_it_does_not_plan_beside_the_rollback(self):
        """The rollback does not wait for its plan."""
        old, new = dying(0), recorded(resource("new"), handed_over=MOST_TAKEN_OVER)
        assert dict(renamed_from([old, new], {new.uid: frozenset([tp(0)])}))[new.uid] == []

    @pytest.mark.parametrize("given", [{"metadata": created(0)}, {"metadata": created(60), "takesOver": "old"}])
    def test_what_it_has_taken_over_is_counted_once(self, given):
        """For a deletion that it may take over: all runs have to be listed for that."""
        old, new, later = dying(0), resource("new", **given), resource("later", metadata=created(60))
        assert uncounted_successors([old, new, later]) == {new.uid}
        assert not uncounted_successors([new, later])
        assert not uncounted_successors([old, recorded(new, handed_over=0), later])


class TestMany:
    """A user may create thousands of resources, and delete 200 that run."""

    @pytest.mark.parametrize("find", [successors_of, uncounted_successors])
    @pytest.mark.parametrize("minutes", [60, 600])
    def test_not_every_one_is_compared_with_every_rollback(self, monkeypatch, find, minutes):
        compared = []
        for name in ("_names", "_renamed"):
            compare = getattr(teardown, name)
            monkeypatch.setattr(teardown, name, lambda new, old, call=compare: compared.append(old) or call(new, old))
        olds = [dying(0, name=f"old-{number}") for number in range(10)]
        news = [resource(f"new-{number}", metadata=created(minutes)) for number in range(10)]
        find([*olds, *news])
        assert len(compared) <= 10


class TestRenamed:
    """A new resource is planned during the rollback, as if that had ended: its plan decides whether it takes over."""

    @staticmethod
    def waits(old, new, minutes=0):
        selected = {new.desired.uid: frozenset(select(new.desired.spec, EVERYTHING))}
        renamed = asyncio.run(takeovers([old, new], selected))
        assert (renamed[new.desired.uid] == [old]) is bool(awaited_plans([old, new], renamed, NOON))
        return awaited_plans([old, new], renamed, NOON + timedelta(minutes=minutes)).get(old.uid, "")

    def test_each_is_compared_when_it_is_asked_for(self, monkeypatch):
        """A round pauses between them: there may be thousands, and 200 rollbacks."""
        compared, news = [], [resource(name) for name in ("first", "second")]
        monkeypatch.setattr(teardown, "_renamed", lambda new, _old: compared.append(new.metadata.name))
        renamings = renamed_from([*news, dying(0)], {new.uid: frozenset([tp(0)]) for new in news})
        assert (next(renamings), compared) == ((news[0].uid, []), ["first"])
        assert (next(renamings), compared) == ((news[1].uid, []), ["first", "second"])

    def test_the_rollback_waits_for_the_plan(self):
        """Otherwise some partitions would be moved back only to be moved again."""
        assert self.waits(dying(0, 1), resource("new")) == "kafka/new"

    @pytest.mark.parametrize(
        "new",
        [
            resource("new", topics={"include": ["other"]}),
            resource("new", metadata=created(-6)),
            resource("new", metadata={"namespace": "other"}),
            remembered(resource("new"), problem=Refused("UnknownBroker", "7")),
            resource("new", deleting=True),
        ],
    )
    def test_not_for_one_that_cannot_take_over(self, new):
        """No other resource blocks a rollback."""
        assert self.waits(dying(0, 1), new) == ""

    def test_not_for_longer_than_one_may_be_created(self):
        """A plan that takes hours does not hold it up either."""
        assert self.waits(dying(0), resource("new"), minutes=5) == "kafka/new"
        assert self.waits(dying(0), resource("new"), minutes=6) == ""

    def test_it_is_asked_once_for_all_rollbacks_whether_it_wants_a_plan(self, monkeypatch):
        """A user may create thousands of resources, and delete as many."""
        olds, news = [dying(0, name=f"old-{n}") for n in range(20)], [resource(f"new-{n}") for n in range(20)]
        renamed = {new.uid: olds for new in news} | {old.uid: [] for old in olds}
        asked = []
        monkeypatch.setattr(teardown, "wants_plan", lambda new: asked.append(new.uid))
        assert awaited_plans([*olds, *news], renamed, NOON) == {}
        assert asked == [new.uid for new in news]

    def test_planned_from_where_the_rollback_leads_to(self):
        """A copy in flight is cancelled, the replicas and their order are back."""
        old, seen = dying(0, 1), cluster(3, 1, 2, adding=(3,)).partitions
        left = as_rolled_back(moved_back(old.record, old.assessment).values(), seen)
        assert left == {tp(0): PartitionState(tp(0), "", replicas_of(1, 2), frozenset({1, 2}), BrokerId(1))}


class TestBarriers:
    def test_without_one_everything_goes_back(self):
        """The bytes to copy are known before it begins."""
        old = dying(0)
        teardown = teardown_of(old, Observation(cluster(3, 4)), {}, NOON)
        assert (teardown.barrier, teardown.bytes_to_move_back) == (None, 200)

    @pytest.mark.parametrize(
        ("replicas", "adding", "back"),
        [((1, 2), (), 0), ((3, 2), (), 100), ((1, 2, 3), (3,), 0), ((3, 4, 1), (1,), 200)],
    )
    def test_only_originals_without_a_copy_count(self, replicas, adding, back):
        """A copy in flight is cancelled first, so it does not count as present."""
        old = dying(0)
        seen = Observation(cluster(*replicas, adding=adding))
        assert teardown_of(old, seen, {}, NOON).bytes_to_move_back == back

    def test_more_than_max_data_waits_for_a_word(self):
        """Up to the limit, it moves back."""
        assert barrier_of(dying(0, rollback={"maxData": 199}), cluster(3, 4), NOON) is RollbackBarrier.TOO_LARGE
        assert barrier_of(dying(0, rollback={"maxData": 200}), cluster(3, 4), NOON) is None

    def test_a_size_that_is_not_known_waits_too(self):
        """Planned without one, it is what a broker reports; if none does, it may be anything."""
        old = dying(0, size_bytes=0, rollback={"maxData": 199})
        assert barrier_of(old, cluster(3, 4)) is RollbackBarrier.TOO_LARGE
        assert barrier_of(old, cluster(3, 4), sizes={(tp(0), BrokerId(3)): 100}) is RollbackBarrier.TOO_LARGE
        for size in (0, 99):
            assert barrier_of(old, cluster(3, 4), sizes={(tp(0), BrokerId(3)): size}) is None
        assert barrier_of(old, cluster(1, 2)) is None
        assert barrier_of(dying(0, size_bytes=0), cluster(3, 4)) is None

    def test_a_partition_that_was_not_read_waits_too(self):
        """It may have arrived. Once the rollback is under way, an answer without it does not stop the others."""
        old, nothing = dying(0, rollback={"maxData": 1}), ClusterState("c", {}, {})
        assert teardown_of(old, Observation(nothing), {}, NOON) == Teardown(RollbackBarrier.TOO_LARGE, 0, (tp(0),))
        assert teardown_of(old, Observation(nothing, gone={tp(0)}), {}, NOON).barrier is None
        there = Observation(cluster(1, 2), unread={"orders"})
        assert teardown_of(old, there, {}, NOON).barrier is RollbackBarrier.TOO_LARGE
        found(old, judgement=Judgement(Direction.ROLLBACK))
        assert teardown_of(old, there, {}, NOON).barrier is None

    def test_the_timeout_counts_from_the_deletion(self):
        """After the timeout, copies in flight are cancelled and the rest is named."""
        old = dying(0, rollback={"timeout": "1h"})
        assert barrier_of(old, cluster(3, 4), NOON + timedelta(hours=1)) is None
        assert barrier_of(old, cluster(3, 4), NOON + timedelta(hours=1, seconds=1)) is RollbackBarrier.TIMED_OUT

    def test_a_namespace_that_goes_takes_it_along(self):
        """A finalizer never blocks the deletion of a namespace."""
        old = dying(0)
        remembered(old, terminating=True)
        assert barrier_of(old, cluster(3, 4), NOON) is RollbackBarrier.TERMINATING

    @pytest.mark.parametrize("policy", ["Revert", "Abandon"])
    def test_a_policy_that_moves_nothing_back_needs_none(self, policy):
        """Also if it was changed while a barrier applied."""
        old = dying(0, deletionPolicy=policy, rollback={"maxData": 1})
        assert barrier_of(old, cluster(3, 4), NOON) is None


class TestLetsGo:
    """A deletion that does not change Kafka."""

    @pytest.mark.parametrize("policy", ["Rollback", "Revert"])
    def test_goes_on(self, policy):
        assert not lets_go(dying(0, deletionPolicy=policy), NOON + timedelta(days=30), 9e9, connected=False)

    def test_asked_for(self):
        """By the policy or by annotation."""
        ordered = resource("old", deleting=True, metadata={"annotations": {LET_GO_ANNOTATION: "true"}})
        for asked in (dying(0, deletionPolicy="Abandon"), ordered):
            assert lets_go(asked, NOON, 0.0, connected=True)

    def test_timed_out(self):
        """At once without Kafka; with it, there is time to cancel what is in flight."""
        old, end = dying(0, rollback={"timeout": "1h"}), NOON + timedelta(hours=1)
        assert not expired(old, end, 5.0, connected=False)
        assert expired(old, end + timedelta(seconds=1), 6.0, connected=False)
        remembered(old, timed_out_at=6.0)
        assert not expired(old, end + timedelta(minutes=2), 126.0, connected=True)
        assert expired(old, end + timedelta(minutes=2), 127.0, connected=True)
        assert lets_go(old, end + timedelta(minutes=2), 127.0, connected=True)

    def test_the_timeout_was_over_before_this_process_has_seen_it(self):
        """It was down, or the timeout has just been made shorter: the time for cancelling begins now."""
        old, later = dying(0, rollback={"timeout": "1h"}), NOON + timedelta(hours=3)
        assert not expired(old, later, 9000.0, connected=True)
        assert not expired(remembered(old, timed_out_at=9000.0), later, 9120.0, connected=True)

    def test_with_its_namespace(self):
        """The time for cancelling begins when the deletion of the namespace is seen, however old its own is."""
        old, later = remembered(dying(0), terminating=True, terminating_checked_at=500.0), NOON + timedelta(hours=3)
        assert not expired(old, later, 620.0, connected=True)
        assert expired(old, later, 621.0, connected=True)
        assert expired(old, later, 621.0, connected=False)
