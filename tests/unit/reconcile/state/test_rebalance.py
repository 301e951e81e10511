"""The state of a rebalance: six values, each replaced by one package; readers cannot change any of them."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from tests.fakes.found_by_rounds import found, recorded, remembered

import kafka_rebalance.reconcile
from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.health_gate import Vitals
from kafka_rebalance.execution.list_budget import ListBudget
from kafka_rebalance.execution.partition_status import Direction, MovePhase, Observation, PartitionStatus
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import (
    at_rest,
    copies_to_keep,
    direction_of,
    going_back,
    requires_decision,
)
from kafka_rebalance.reconcile.decide.judging import judge_again, judge_inputs, partitions_to_read, skipped_partitions
from kafka_rebalance.reconcile.decide.queue_places import ahead_of, may_plan, place_requests
from kafka_rebalance.reconcile.decide.replanning import (
    only_kept_copies_in_flight,
    replanning_for_drift,
    replanning_for_spec,
    undo_ordered,
)
from kafka_rebalance.reconcile.decide.requeue import requeue_after
from kafka_rebalance.reconcile.decide.step_blocks import BlockInputs, step_block_for
from kafka_rebalance.reconcile.decide.step_orders import choice_for
from kafka_rebalance.reconcile.decide.superseding import copies_of
from kafka_rebalance.reconcile.decide.teardown import (
    awaited_plans,
    outcome_of,
    renamed_from,
    selections_with_all_of,
    successors_of,
    teardown_of,
)
from kafka_rebalance.reconcile.decide.throttle_claims import claims_of, rates_of
from kafka_rebalance.reconcile.observe.cluster_readings import DiskReading
from kafka_rebalance.reconcile.observe.observer import Changes
from kafka_rebalance.reconcile.report.progress_tracking import advance_of
from kafka_rebalance.reconcile.report.rebalance_report import build_status
from kafka_rebalance.reconcile.state.assessment import Assessment, Drain, Replanning
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.judgement import Judgement
from kafka_rebalance.reconcile.state.memory import Memory
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Record, loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
ROOM = Path(kafka_rebalance.reconcile.__file__).parent
TPS = [TopicPartition("t", number) for number in range(2)]
ALIVE = {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3)}
WRITERS = {
    "desired": {"state"},
    "record": {"act"},
    "memory": {"act"},
    "assessment": {"rounds.py", "sending.py", "drained_brokers.py", "successions.py"},
    "refusal": {"connection_book.py"},
    "unverified": {"connection_book.py"},
}
"""The packages, or modules, that replace each value."""


@dataclass(frozen=True, slots=True)
class View:
    """A read-only rebalance."""

    desired: Desired
    record: Record
    assessment: Assessment
    memory: Memory
    refusal: RebalanceError | None
    held_by: RebalanceError | None
    unverified: RebalanceError | None
    may_begin: bool
    own_origins: Mapping[TopicPartition, Origin]
    rests: bool
    place_given_up: bool
    unsettled: frozenset
    rest_ends: bool
    waits_at_rest: bool


def rebalance(name="r", *, deleting=False):
    metadata = {"name": name, "namespace": "kafka", "uid": name, "finalizers": [FINALIZER]}
    metadata |= {"creationTimestamp": NOON.isoformat()} | ({"deletionTimestamp": NOON.isoformat()} if deleting else {})
    return Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})


def running(name="r", *, deleting=False):
    mine = rebalance(name, deleting=deleting)
    plan = Plan(
        tuple(PlannedPartition(tp, replicas_of(1, 2), replicas_of(3, 2)) for tp in TPS), Certificate(2, optimal=True)
    )
    run = Run(name, "kafka", name, "c", "run", mine.desired.planning_hash, plan.hash, NOON)
    recorded(mine, run=run, was_read=True, loaded_run=loaded_run_of(run, plan, "ref", {}))
    return found(mine, statuses=dict.fromkeys(TPS, PartitionStatus(MovePhase.IN_FLIGHT)), direction=Direction.FORWARD)


def view(mine):
    asked = mine.desired, mine.record, mine.assessment, mine.memory
    allowed = mine.refusal, mine.held_by, mine.unverified, mine.may_begin
    return View(
        *asked,
        *allowed,
        mine.own_origins,
        mine.rests,
        mine.place_given_up,
        mine.unsettled,
        mine.rest_ends,
        mine.waits_at_rest,
    )


@cache
def assigned() -> list[tuple[str, str, Path]]:
    """Each attribute that a module of the package assigns, and the name of the object."""
    return list(_assigned())


def _assigned() -> Iterator[tuple[str, str, Path]]:
    for path in sorted(ROOM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in (part for t in targets for part in (t.elts if isinstance(t, ast.Tuple) else [t])):
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    yield target.value.id, target.attr, path.relative_to(ROOM)


class TestOneWriter:
    @pytest.mark.parametrize("value", [field.name for field in fields(Rebalance)])
    def test_each_value_is_replaced_in_one_room(self, value):
        """So that there is one place to look for the origin of a value."""
        rooms = {path.parts[0] for _, name, path in assigned() if name == value}
        assert rooms == WRITERS[value]

    def test_nothing_else_of_a_rebalance_is_assigned(self):
        """This holds for the fields of the values and for any other attribute."""
        names = {name for owner, name, _ in assigned() if owner in {"rebalance", "old", "new", "other", "r"}}
        assert names == {"record", "memory", "assessment", "refusal", "unverified"}

    @pytest.mark.parametrize("kind", [Desired, Record, Assessment, Memory, Judgement])
    def test_the_values_are_frozen(self, kind):
        """Recursively, for all our own types."""
        mine = view(running())
        value = mine.assessment.judgement if kind is Judgement else getattr(mine, kind.__name__.lower())
        for field in fields(kind):
            with pytest.raises(FrozenInstanceError):
                setattr(value, field.name, None)
            part = getattr(value, field.name)
            assert not is_dataclass(part) or type(part).__dataclass_params__.frozen


class TestDecisions:
    """Each gets read-only rebalances, and leaves every value unchanged."""

    SELECTIONS = frozenset(TPS), frozenset({*TPS})
    """Kept, because a decision names them by their identity."""

    def decisions(self, mine, other):
        states = {
            tp: PartitionState(tp, "", replicas_of(3, 1, 2), frozenset(replicas_of(1, 2)), BrokerId(1), replicas_of(3))
            for tp in TPS
        }
        seen = Observation(ClusterState("c", ALIVE, states), {"t": 1})
        both, (one, two) = [mine, other], self.SELECTIONS
        selected = {mine.desired.uid: one, other.desired.uid: two}
        block_inputs = BlockInputs(NOON, Vitals(states, {}, None, frozenset(ALIVE)), set(TPS))
        inputs = judge_inputs(mine, mine.record.loaded_run, Direction.FORWARD, seen, frozenset(), both)
        return [
            *(question(mine) for question in (at_rest, copies_to_keep, going_back, requires_decision, may_plan)),
            *(
                question(mine)
                for question in (
                    replanning_for_spec,
                    replanning_for_drift,
                    only_kept_copies_in_flight,
                    undo_ordered,
                    outcome_of,
                )
            ),
            (direction_of(mine), partitions_to_read(mine.assessment), skipped_partitions(mine)),
            judge_again(mine.assessment.judgement, inputs, seen, Changes(frozenset(TPS), 0, 1), NOON),
            place_requests(both, selected, NOON, 0.0).places(),
            ahead_of(mine, both),
            successors_of(both),
            dict(renamed_from(both, selected)),
            selections_with_all_of(mine.record, mine.assessment, selected.values()),
            awaited_plans(both, dict(renamed_from(both, selected)), NOON),
            teardown_of(mine, seen, {}, NOON),
            step_block_for(mine, block_inputs),
            choice_for(both, seen.cluster, None, DiskReading(), ListBudget())(),
            copies_of(mine.record.moves, copies_to_keep(mine), states, ALIVE),
            claims_of(both, None, seen.cluster, {}, {}),
            rates_of(mine.desired.spec.throttle, None),
            requeue_after(both, 0.0, sent=False, sent_at=0.0, ledger_empty=True, limits_others=False),
            advance_of(mine, seen.cluster, {}, {}, 0.0),
            build_status(mine, seen.cluster, {}, now=NOON),
        ]

    @pytest.mark.parametrize("deleting", [False, True])
    @pytest.mark.parametrize("replanning", [None, Replanning(Reason.SUPERSEDED)])
    def test_change_no_argument(self, deleting, replanning):
        """Called twice they return the same, and their arguments are unchanged."""
        mine, other = view(found(running(deleting=deleting), replanning=replanning)), view(rebalance("other"))
        before = repr((mine, other))
        assert self.decisions(mine, other) == self.decisions(mine, other)
        assert repr((mine, other)) == before


class TestAboutARun:
    def test_another_run_begins_another_assessment(self):
        """No finding about one plan applies to the next one; the queue place does."""
        drain = Drain(frozenset(), True, "")
        mine = found(running(), progress="old", drain=drain, sent=frozenset(TPS), replanning=Replanning("x"))
        queue = mine.assessment.queue
        recorded(mine, loaded_run=loaded_run_of(mine.record.run, mine.record.loaded_run.plan, "ref", {}))
        assert mine.assessment == Assessment(run=mine.record.loaded_run, queue=queue)

    def test_what_is_said_of_a_run_that_has_ended_stays(self):
        """Its progress and skipped partitions are in the last status; its direction is no longer needed."""
        mine = found(running(), progress="all", drain=Drain(frozenset(), True, ""), replanning=Replanning("x"))
        statuses = mine.assessment.statuses
        ended = recorded(mine, loaded_run=None).assessment
        assert (ended.statuses, ended.advance.progress, ended.drain) == (statuses, "all", Drain(frozenset(), True, ""))
        assert (ended.replanning, ended.judgement.direction, ended.judgement.inputs) == (None, None, None)

    def test_the_same_run_keeps_it(self):
        """Nothing has changed."""
        mine = running()
        assert mine.assessment.about(mine.record.loaded_run) is mine.assessment


class TestForgotten:
    def test_a_memory_that_is_lost_changes_no_decision_but_when_to_try_again(self):
        """Memory is lost at each restart: direction and calls depend only on stored and observed state."""
        mine = remembered(running(deleting=True), problem=Transient("X", "x"), retry_at=99.0, prepared=("1",))
        forgotten = replace(view(mine), memory=Memory())
        for question in (going_back, replanning_for_spec, outcome_of, copies_to_keep, only_kept_copies_in_flight):
            assert question(forgotten) == question(view(mine))
