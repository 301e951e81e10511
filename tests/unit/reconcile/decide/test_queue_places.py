"""The queue place of a rebalance, and its direction."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.fakes.counted_progress import measure
from tests.fakes.found_by_rounds import found, recorded, remembered

from kafka_rebalance.api.v1alpha1 import FINALIZER, UNDO_ANNOTATION
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import Progress
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide import queue_places
from kafka_rebalance.reconcile.decide.direction import at_rest, direction_of
from kafka_rebalance.reconcile.decide.queue_places import ahead_of, is_to_give_up_place, may_plan, place_requests
from kafka_rebalance.reconcile.decide.replanning import replanning_for_spec, undo_ordered, wants_plan
from kafka_rebalance.reconcile.decide.step_blocks import BlockInputs, step_block_for
from kafka_rebalance.reconcile.state.assessment import Replanning, RollbackBarrier, StepBlock
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of
from kafka_rebalance.reconcile.state.selection import select

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
TP = TopicPartition("orders", 0)
EVERYTHING = {TP: PartitionState(TP, "", replicas_of(1, 2), frozenset(replicas_of(1, 2)), BrokerId(1))}
AT_REST = Progress(1, 0, 0, 1, 0, 1, 0, 0, 0, 0)
FLYING = PartitionStatus(MovePhase.IN_FLIGHT)
WAITING = PartitionStatus(MovePhase.WAITING, "Paused")


def resource(name, *, namespace="kafka", created="2026-03-04T10:00:00Z", deleting=False, annotations=None, **spec):
    metadata = {"name": name, "namespace": namespace, "uid": name, "finalizers": [FINALIZER]}
    metadata |= {"creationTimestamp": created, "annotations": annotations or {}}
    if deleting:
        metadata["deletionTimestamp"] = NOON.isoformat()
    mine = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}})
    return recorded(mine, was_read=True)


def running(name, status=FLYING, progress=AT_REST, **more):
    mine = resource(name, **more)
    plan = Plan((PlannedPartition(TP, replicas_of(1, 2), replicas_of(3, 2)),), Certificate(1, optimal=True))
    run = Run(name, "kafka", name, "c", "run-1", mine.desired.planning_hash, plan.hash, NOON, started_at=NOON)
    recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))
    return found(mine, statuses={TP: status}, progress=progress)


def lined_up(*rebalances):
    for mine in rebalances:
        if is_to_give_up_place(mine, 100.0):
            place_given_up(mine)
    return in_line(*rebalances)


def place_given_up(mine):
    mine.record = replace(mine.record, run=replace(mine.record.run, place_given_up=True))


def in_line(*rebalances):
    selected = {r.desired.uid: frozenset(select(r.desired.spec, EVERYTHING)) for r in rebalances if may_plan(r)}
    queues = place_requests(rebalances, selected, NOON, 100.0).places()
    for mine in rebalances:
        found(mine, queue=queues[mine.uid])
    return {mine.uid: mine.assessment.queue.place for mine in rebalances}


class TestPlaces:
    def test_a_newcomer_waits_for_who_moves_the_same_partitions(self):
        """The holder and the position are known."""
        places = lined_up(running("first"), resource("second"))
        assert places["first"].runs
        assert (places["second"].runs, places["second"].behind, places["second"].position) == (
            False,
            "kafka/first",
            1,
        )

    def test_partitions_left_alone_hold_nobody_up(self):
        """The run will not change them any more."""
        places = lined_up(running("first", PartitionStatus(MovePhase.SKIPPED, "Drifted")), resource("second"))
        assert places["second"].runs

    def test_other_topics_do_not_matter(self):
        """Disjoint rebalances run together."""
        assert lined_up(running("first"), resource("second", topics={"include": ["other"]}))["second"].runs

    def test_a_suspended_one_at_rest_lets_others_by(self):
        """It keeps its place only while it may submit steps."""
        first = running("first", WAITING)
        found(first, step_block=StepBlock(Reason.SUSPENDED, "", gives_up_place=True))
        assert lined_up(first, resource("second"))["second"].runs

    @pytest.mark.parametrize(
        ("status", "progress"), [(FLYING, AT_REST), (WAITING, replace(AT_REST, above_replication_factor=1))]
    )
    def test_one_that_is_not_at_rest_yet_does_not(self, status, progress):
        """In flight, or above its replication factor."""
        first = running("first", status, progress)
        found(first, step_block=StepBlock(Reason.SUSPENDED, "", gives_up_place=True))
        assert not lined_up(first, resource("second"))["second"].runs

    @pytest.mark.parametrize("reason", [Reason.DRIFTED, Reason.SUPERSEDED])
    def test_one_that_may_not_plan_again_lets_others_by(self, reason):
        """Its plan was put aside, and its connection is refused: no plan is made for it, so it holds up nobody."""
        first = running("first", WAITING)
        first.refusal = Refused(Reason.CLUSTER_OWNED_ELSEWHERE, "")
        block = StepBlock(Reason.CLUSTER_OWNED_ELSEWHERE, "", gives_up_place=True)
        found(first, replanning=Replanning(reason, ready=True), step_block=block)
        second = resource("second")
        for _ in range(2):
            assert lined_up(first, second)["second"].runs
        first.refusal = None
        assert not lined_up(first, running("second"))["first"].runs

    def test_an_unhealthy_cluster_gives_no_place_away(self):
        """No other rebalance could start steps there either."""
        first = running("first", WAITING)
        found(first, step_block=StepBlock(Reason.CLUSTER_UNHEALTHY, ""))
        assert not lined_up(first, resource("second"))["second"].runs

    def test_a_higher_priority_makes_it_come_to_rest_and_then_goes_first(self):
        """At rest points, not in the middle of a copy."""
        first, urgent = running("first"), resource("urgent", priority=5)
        places = lined_up(first, urgent)
        assert places["first"].yields
        assert not places["urgent"].runs
        found(first, statuses={TP: WAITING}, step_block=StepBlock(Reason.YIELDING, ""))
        places = lined_up(first, urgent)
        assert places["urgent"].runs
        assert places["first"].behind == "kafka/urgent"

    def test_one_that_cannot_be_planned_is_in_nobodys_way_until_it_is_tried_again(self):
        """Refused, and the next attempt is not due yet."""
        refused = resource("refused", created="2026-03-04T09:00:00Z")
        remembered(refused, problem=Refused("UnknownBroker", "7"), retry_at=110.0)
        assert lined_up(refused, resource("second"))["second"].runs

    def test_one_whose_end_could_not_be_recorded_keeps_its_place(self):
        """The record may be there all the same, and what others move next must not be undone."""
        first = running("first", PartitionStatus(MovePhase.DONE), deleting=True)
        lined_up(first)
        remembered(first, problem=Transient("ApiServerUnreachable", "no answer"), retry_at=110.0)
        assert not lined_up(first, resource("second"))["second"].runs

    def test_one_that_is_tried_again_later_makes_room(self):
        """It has not arrived yet, and nothing of it is in flight."""
        first = running("first", WAITING)
        lined_up(first)
        remembered(first, problem=Transient("ApiServerUnreachable", "no answer"), retry_at=110.0)
        assert lined_up(first, resource("second"))["second"].runs


class TestSharedSets:
    """A set of a large cluster takes megabytes, and hundreds of resources may wait that select all of it."""

    def test_they_are_not_copied(self, monkeypatch):
        """Neither for one that waits, nor for a run that is planned again."""
        seen, line_up = {}, queue_places.line_up

        def noted(claimants, before, now):
            seen.update({claimant.key: claimant for claimant in claimants})
            return line_up(claimants, before, now)

        monkeypatch.setattr(queue_places, "line_up", noted)
        again = found(running("again"), replanning=Replanning(Reason.DRIFTED, ready=True))
        selected = frozenset({TP, TopicPartition("orders", 1)})
        mine = [again, resource("new"), running("on")]
        place_requests(mine, {"again": selected, "new": selected}, NOON, 100.0).places()
        assert {key: [id(some) for some in claimant.wants] for key, claimant in seen.items()} == {
            "again": [id(again.record.loaded_run.partitions), id(selected)],
            "new": [id(selected)],
            "on": [id(seen["on"].partitions)],
        }
        assert seen["on"].partitions == {TP}


class TestInAThread:
    @pytest.mark.parametrize(
        ("count", "partitions", "many"), [(1, 9_998, False), (1, 9_999, True), (99, 1, False), (100, 1, True)]
    )
    def test_for_many(self, count, partitions, many):
        """Partitions, or rebalances: the time grows with the square of their number."""
        selected = frozenset(TopicPartition("orders", number) for number in range(partitions))
        mine = [resource(f"r-{number}") for number in range(count)]
        assert place_requests(mine, {r.uid: selected for r in mine}, NOON, 100.0).many is many

    def test_what_changes_meanwhile_does_not_matter(self):
        """A watch event may replace the spec. The place is that for which it asked."""
        first, second = resource("first"), resource("second")
        requests = place_requests([first, second], {uid: frozenset({TP}) for uid in ("first", "second")}, NOON, 100.0)
        asked, edited = second.desired, resource("second", priority=5, topics={"include": ["other"]}).desired
        second.desired = edited
        found = requests.places()["second"]
        assert (found.place.behind, found.asks_for) == ("kafka/first", asked.planning_hash)


class TestManyOfOneNamespace:
    @pytest.fixture(autouse=True)
    def small_queue(self, monkeypatch):
        monkeypatch.setattr(queue_places, "MOST_IN_LINE", 2)

    def test_only_some_have_a_place(self):
        """The order of thousands would take the event loop for minutes. The oldest ones have the places."""
        mine = [resource(f"r-{number}", created=f"2026-03-04T10:00:0{number}Z") for number in (3, 1, 2, 0)]
        places = lined_up(*mine)
        assert {name for name, place in places.items() if place.no_room} == {"r-2", "r-3"}
        assert (places["r-1"].behind, places["r-1"].position) == ("kafka/r-0", 1)
        assert (places["r-3"].runs, places["r-3"].behind, places["r-3"].position) == (False, "kafka/r-2", 3)
        assert mine[0].assessment.queue.message == (
            "3 rebalances of this namespace are before it, and no more of a namespace have a place in the queue of a "
            "cluster; it comes after kafka/r-2"
        )

    def test_a_higher_priority_gets_a_place(self):
        """As in the queue itself."""
        urgent = resource("urgent", created="2026-03-04T11:00:00Z", priority=1)
        places = lined_up(resource("r-0"), resource("r-1"), urgent)
        assert [name for name, place in places.items() if place.no_room] == ["r-1"]

    def test_those_with_an_open_run_are_always_in_it(self):
        """They may have copies in flight."""
        mine = [running(f"r-{number}") for number in range(3)]
        places = lined_up(*mine, resource("new", created="2026-03-04T09:00:00Z"))
        assert [name for name, place in places.items() if place.no_room] == ["new"]

    def test_other_namespaces_have_places_of_their_own(self):
        """One namespace cannot keep another from the queue."""
        mine = [resource(f"r-{number}") for number in range(4)]
        theirs = resource("other", namespace="b", created="2026-03-04T11:00:00Z")
        assert not lined_up(*mine, theirs)["other"].no_room


class TestAhead:
    def test_those_that_run_while_it_waits(self):
        """Their moves are left alone; a rebalance that runs leaves nothing to others."""
        low = running("low", WAITING)
        high = running("high", priority=5, created="2026-03-04T11:00:00Z")
        found(low, place=Place(runs=False, behind="kafka/high", position=1))
        found(high, place=Place(runs=True))
        assert ahead_of(low, [low, high]) == [high]
        assert ahead_of(high, [low, high]) == []

    def test_those_that_end_their_steps_to_make_room(self):
        """One that awaits its approval has begun nothing, so these steps are not its own."""
        unapproved, displaced = running("unapproved"), running("displaced")
        found(unapproved, place=Place(runs=False, behind="kafka/urgent", position=2))
        found(displaced, place=Place(runs=False, behind="kafka/urgent", position=1, yields=True))
        assert ahead_of(unapproved, [unapproved, displaced]) == [displaced]

    def test_two_that_end_steps_do_not_wait_for_each_other(self):
        """After a restart two may have begun steps of the same partition."""
        first, second = running("first"), running("second")
        for one in (first, second):
            found(one, place=Place(runs=False, behind="kafka/urgent", position=1, yields=True))
        assert ahead_of(first, [first, second]) == []

    def test_one_that_has_no_plan_yet_moves_nothing(self):
        """It has its turn, but the copies in flight still belong to the previous rebalance."""
        low, high = running("low"), resource("high", priority=5)
        found(low, place=Place(runs=False, behind="kafka/high", position=1, yields=True))
        found(high, place=Place(runs=True))
        assert ahead_of(low, [low, high]) == []

    def test_a_partition_that_left_the_run_keeps_nobody_from_rest(self):
        """Another tool added a replica: the partition is not above its replication factor because of us."""
        first = running("first", PartitionStatus(MovePhase.SKIPPED, "Drifted"))
        state = PartitionState(TP, "", replicas_of(1, 2, 9), frozenset(replicas_of(1, 2)), BrokerId(1))
        statuses, cluster = first.assessment.statuses.by_partition, ClusterState("c", {}, {TP: state})
        found(first, progress=measure(first.record.moves, statuses, cluster, {}, Direction.FORWARD))
        assert at_rest(first)

    def test_a_deletion_that_waits_for_a_word_lets_others_by(self):
        """It submits nothing until its limit is raised."""
        waiting = running("first", WAITING, deleting=True)
        found(waiting, barrier=RollbackBarrier.TOO_LARGE)
        assert lined_up(waiting, resource("second"))["second"].runs

    def test_one_that_is_handed_over_keeps_its_place_until_it_is_closed(self):
        """Even while suspended: the successor must not plan before it is known what it inherits."""
        old = running("first", WAITING, deleting=True, execution={"suspend": True})
        block = StepBlock(Reason.SUSPENDED, "", gives_up_place=True)
        found(old, barrier=RollbackBarrier.SUCCESSOR, step_block=block)
        assert not lined_up(old, resource("second"))["second"].runs


class TestUnreadableSpec:
    def test_a_deletion_is_seen_all_the_same(self):
        """The last valid spec applies; only the metadata is updated, and the message names the field."""
        mine = running("r", execution={"parallelPartitionCount": 7})
        metadata = {"name": "r", "namespace": "kafka", "uid": "r", "deletionTimestamp": NOON.isoformat()}
        mine.see({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, "bogus": 1}})
        assert mine.desired.deleting
        assert mine.desired.limits.parallel_partitions == 7
        assert "bogus" in mine.desired.spec_problem.message
        mine.see({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
        assert mine.desired.spec_problem is None

    @pytest.mark.parametrize("spec", [{"bogus": 1}, {"strategy": "PreferredLeaders", "replicationFactor": 3}])
    def test_one_that_was_never_readable_rests_with_its_plan(self, spec):
        """The operator was restarted: what is asked for is not known, so the plan stands and others go by."""
        mine = running("r", WAITING, **spec)
        recorded(mine, run=replace(mine.record.run, planning_hash="of the last valid spec"))
        assert replanning_for_spec(mine) is None
        block = step_block_for(mine, BlockInputs(NOON))
        assert block.reason is Reason.INVALID_SPEC
        for replanning in (None, Replanning(Reason.DRIFTED, ready=True)):
            found(mine, step_block=block, replanning=replanning)
            assert not wants_plan(mine)
            assert lined_up(mine, resource("second"))["second"].runs

    def test_a_spec_that_is_valid_again_holds(self):
        """Everything in it, and nothing of what could be read before."""
        mine = running("r", bogus=1, suspend=True)
        metadata = {"name": "r", "namespace": "kafka", "uid": "r", "finalizers": [FINALIZER]}
        mine.see({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, "priority": 4}})
        assert mine.held_by is None
        assert (mine.desired.spec.priority, mine.desired.spec.suspended) == (4, False)


class TestWhereItGoes:
    def test_forward_unless_something_else_is_asked(self):
        """Approval and windows do not matter: they only block steps."""
        assert direction_of(running("r")) is Direction.FORWARD

    @pytest.mark.parametrize(
        ("policy", "direction"), [("Rollback", Direction.ROLLBACK), ("Revert", Direction.REVERT), ("Abandon", None)]
    )
    def test_a_deletion_goes_where_the_policy_says(self, policy, direction):
        """The policy can change while the resource is terminating."""
        assert direction_of(running("r", deleting=True, deletionPolicy=policy)) is direction

    def test_a_barrier_turns_a_rollback_into_a_revert(self):
        """Copies in flight are cancelled, even if a barrier holds the rest."""
        mine = running("r", deleting=True)
        assert direction_of(found(mine, barrier=RollbackBarrier.TOO_LARGE)) is Direction.REVERT

    def test_a_new_plan_first_cancels_what_is_in_flight(self):
        """The rule for duplicates in KIP-236."""
        mine = found(running("r"), replanning=Replanning(Reason.SUPERSEDED))
        assert direction_of(mine) is Direction.REVERT

    def test_an_undo_goes_back(self):
        """Until it is complete or superseded."""
        mine = running("r")
        recorded(mine, run=replace(mine.record.run, undo=True))
        assert direction_of(mine) is Direction.ROLLBACK
        found(mine, replanning=Replanning(Reason.SUPERSEDED))
        assert direction_of(mine) is Direction.REVERT


class TestUndoOrder:
    def closed(self, outcome, order):
        plan_hash = running("r").record.run.plan_hash
        mine = resource("r", annotations={UNDO_ANNOTATION: plan_hash if order == "right" else order})
        run = Run("r", "kafka", "r", "c", "run-1", mine.desired.planning_hash, plan_hash, NOON, NOON, outcome)
        return recorded(mine, run=run)

    def test_only_a_success_of_that_plan_is_undone(self):
        """A wrong or outdated hash, or a run that is already undone, has no effect."""
        assert undo_ordered(self.closed(RunOutcome.SUCCEEDED, "right"))
        assert not undo_ordered(self.closed(RunOutcome.SUCCEEDED, "sha256:other"))
        assert not undo_ordered(self.closed(RunOutcome.UNDONE, "right"))

    @pytest.mark.parametrize("outcome", [RunOutcome.SUCCEEDED, RunOutcome.UNDONE])
    def test_what_is_done_or_undone_is_not_planned_again(self, outcome):
        """A run happens once per spec."""
        assert not wants_plan(self.closed(outcome, "right"))

    @pytest.mark.parametrize("outcome", [RunOutcome.REVERTED, RunOutcome.ABANDONED])
    def test_any_other_end_is(self, outcome):
        """The target was never reached."""
        assert wants_plan(self.closed(outcome, "right"))
