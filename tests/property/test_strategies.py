"""The strategies, replication factors and pinned partitions, against judges that share no code with the planner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from tests.property.planning_judge import (
    check,
    list_violations,
    measure,
    present,
    rack_cap,
    result,
    staying,
    target_racks,
)
from tests.property.planning_optima import fewest_moves, one_after_the_other
from tests.property.test_planning_properties import requests

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import RackAwareness, Strategy
from kafka_rebalance.model.plan import Certificate, Plan
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan, planner
from kafka_rebalance.planning.ordering import arranging
from kafka_rebalance.planning.replicas import replica_sets as sets
from kafka_rebalance.planning.replicas import shrink_replication_factor as narrowing
from kafka_rebalance.planning.strategies import forced


@contextmanager
def as_if_large() -> Iterator[None]:
    """Use the code for large clusters at any size, but not the parts that give up a proof."""
    with (
        mock.patch.object(sets, "SMALL", 0),
        mock.patch.object(planner, "EXACT_ORDER", 0),
        mock.patch.object(arranging, "EXACT_ORDER", 0),
        mock.patch.object(forced, "_PORTION", 12),
    ):
        yield


SIZES = pytest.mark.parametrize("size", [nullcontext, as_if_large], ids=["small", "large"])


@st.composite
def with_pins(draw: st.DrawFn, most_partitions: int = 30) -> PlanRequest:
    """The partitions of some topics are pinned."""
    request = draw(requests(most_partitions, most_brokers=9))
    pinned = draw(st.sets(st.sampled_from(sorted({p.tp for p in request.partitions})))) if request.partitions else set()
    return replace(request, partitions=tuple(replace(p, pinned=p.tp in pinned) for p in request.partitions))


@st.composite
def with_budget(draw: st.DrawFn) -> PlanRequest:
    """A budget of moves, of bytes or of both, possibly with pinned partitions."""
    request = draw(with_pins(most_partitions=10))
    moves = draw(st.none() | st.integers(0, 6))
    data = draw(st.integers(0, 60) if moves is None else st.none() | st.integers(0, 60))
    return replace(request, goals=replace(request.goals, max_replica_moves=moves, max_data_to_move=data))


@st.composite
def with_factor(draw: st.DrawFn) -> PlanRequest:
    """One replication factor for all movable partitions; lists are longer, shorter or equal."""
    request = draw(with_pins())
    return replace(request, replication_factor=draw(st.integers(1, min(len(request.targets), 4))))


def everything(request: PlanRequest) -> tuple[int, int, int]:
    return fewest_moves(request, request.goals.rack_awareness is RackAwareness.PREFERRED)


def again(request: PlanRequest, made: Plan) -> Plan:
    """The plan for the planned state."""
    after = result(request, made)
    partitions = tuple(replace(p, replicas=after.get(p.tp, p.replicas)) for p in request.partitions)
    return plan(replace(request, partitions=partitions))


@SIZES
class TestMinimalMovement:
    @given(request_=with_pins())
    def test_pinned_partitions_stay_and_count(self, size: type, request_: PlanRequest) -> None:
        """The others are balanced around them with the fewest moves."""
        self.assert_the_best(size, request_)

    @given(request_=with_factor())
    def test_a_replication_factor_is_reached_with_the_fewest_moves(self, size: type, request_: PlanRequest) -> None:
        """Replicas are dropped so that the rest moves the least; added replicas go where they are needed."""
        self.assert_the_best(size, request_)

    def assert_the_best(self, size: type, request_: PlanRequest) -> None:
        with size():
            made = plan(request_)
            assert made.certificate.optimal
            metrics = check(request_, made)
            assert (metrics.rack_violations, metrics.count_sumsq, metrics.moves) == everything(request_)
            assert again(request_, made).partitions == ()


class TestLargeShrinking:
    @given(with_factor())
    def test_the_bound_holds_and_is_met_or_told(self, request_: PlanRequest) -> None:
        """Without the exact flow, as many replicas stay as there is room for: as balanced, with nearly as few moves."""
        with as_if_large(), mock.patch.object(narrowing, "EXACT", 0):
            made = plan(request_)
        metrics = check(request_, made)
        violations, fair, moves = everything(request_)
        assert (metrics.rack_violations, metrics.count_sumsq) == (violations, fair)
        assert made.certificate.lower_bound <= moves <= metrics.moves


def repaired(request: PlanRequest) -> tuple[int, int, int, int]:
    """(violations, moves, leaders lost, sum of squared counts) of the best repair, level by level."""
    model = cp_model.CpModel()
    racks, brokers = target_racks(request), sorted(request.targets)
    partitions = [p for p in request.partitions if p.has_leader and not p.pinned]
    factor = {p.tp: request.replication_factor or len(p.replicas) for p in partitions}
    on = {(p.tp, b): model.new_bool_var("") for p in partitions for b in brokers}
    over = []
    for p in partitions:
        model.add(sum(on[p.tp, b] for b in brokers) == factor[p.tp])
        for rack in {r for r in racks.values() if r is not None}:
            beyond = model.new_int_var(0, factor[p.tp], "")
            model.add(beyond >= sum(on[p.tp, b] for b in brokers if racks[b] == rack) - rack_cap(racks, factor[p.tp]))
            over.append(beyond)
    held = Counter(b for replicas in staying(request) for b in replicas)
    squares = []
    for b in brokers:
        count = model.new_int_var(held[b], held[b] + len(partitions), "")
        model.add(count == held[b] + sum(on[p.tp, b] for p in partitions))
        square = model.new_int_var(0, (held[b] + len(partitions)) ** 2, "")
        model.add_multiplication_equality(square, [count, count])
        squares.append(square)
    levels = [
        sum(over),
        sum(on[p.tp, b] for p in partitions for b in brokers if b not in p.replicas),
        sum(1 - on[p.tp, p.replicas[0]] if p.replicas[0] in request.targets else 1 for p in partitions),
        sum(squares),
    ]
    violations, moves, changes, evenness = one_after_the_other(model, levels)
    return violations, moves, changes, evenness


@SIZES
class TestForcedMovesOnly:
    @given(request_=with_factor() | with_pins(most_partitions=10))
    def test_what_is_broken_is_mended_and_nothing_else_moves(self, size: type, request_: PlanRequest) -> None:
        """The fewest violations, then moves, then leader changes; for small clusters also the most even counts."""
        asked = replace(request_, strategy=Strategy.FORCED_MOVES_ONLY)
        with size():
            made = plan(asked)
        metrics = check(asked, made)
        violations, moves, leaders, counts = repaired(asked)
        assert made.certificate.optimal
        assert (metrics.rack_violations, metrics.moves, metrics.leader_changes) == (violations, moves, leaders)
        assert metrics.count_sumsq >= counts
        assert metrics.count_sumsq == counts or size is as_if_large

    @given(request_=with_factor() | with_pins())
    def test_what_is_whole_stays_as_it_is(self, size: type, request_: PlanRequest) -> None:
        """A changed list loses or gains a replica; the others keep their order, and the leader if it stays."""
        asked = replace(request_, strategy=Strategy.FORCED_MOVES_ONLY)
        with size():
            made = plan(asked)
            assert again(asked, made).partitions == ()
        for p in made.partitions:
            stay = [b for b in p.current if b in p.target]
            assert set(p.target) != set(p.current)
            assert [b for b in p.target if b in p.current] == stay or p.current[0] not in p.target
            assert p.target[0] == p.current[0] or p.current[0] not in p.target


def fewest_leader_squares(request: PlanRequest) -> tuple[int, int]:
    """(sum of squared leader counts, leader changes) of the best order, by a solver that does not use flows."""
    model = cp_model.CpModel()
    partitions = [p for p in request.partitions if p.has_leader and not p.pinned and set(p.replicas) & request.targets]
    lead = {(p.tp, b): model.new_bool_var("") for p in partitions for b in p.replicas if b in request.targets}
    for p in partitions:
        model.add_exactly_one(lead[p.tp, b] for b in p.replicas if b in request.targets)
    held = Counter(replicas[0] for replicas in staying(request))
    squares = []
    for b in sorted(request.targets):
        count = model.new_int_var(0, held[b] + len(partitions), "")
        model.add(count == held[b] + sum(lead[p.tp, b] for p in partitions if (p.tp, b) in lead))
        square = model.new_int_var(0, (held[b] + len(partitions)) ** 2, "")
        model.add_multiplication_equality(square, [count, count])
        squares.append(square)
    changes = sum(1 - lead.get((p.tp, p.replicas[0]), 0) for p in partitions)
    evenness, changed = one_after_the_other(model, (sum(squares), changes))
    return evenness, changed


@SIZES
class TestPreferredLeaders:
    @given(request_=with_pins(most_partitions=15), follower_order=st.booleans())
    def test_leaders_get_as_even_as_the_sets_allow(
        self, size: type, request_: PlanRequest, follower_order: bool
    ) -> None:
        """No data moves; leaders are on eligible brokers if possible, and as even as possible."""
        goals = replace(request_.goals, leaders=False, follower_order=follower_order)
        asked = replace(request_, strategy=Strategy.PREFERRED_LEADERS, goals=goals)
        with size():
            made = plan(asked)
        assert (made.replica_moves, made.certificate) == (0, Certificate(0, optimal=True))
        before, after = present(asked), result(asked, made)
        pinned = {p.tp for p in asked.partitions if p.pinned}
        for tp, replicas in after.items():
            assert sorted(replicas) == sorted(before[tp])
            assert replicas[0] in asked.targets or not set(replicas) & asked.targets or tp in pinned
            assert replicas == before[tp] or (tp not in pinned and set(replicas) & asked.targets)
        squares, changes = fewest_leader_squares(asked)
        metrics = measure(asked, before, after)
        assert metrics.leader_sumsq == squares
        if not follower_order:
            assert metrics.leader_changes == changes or size is as_if_large
            assert again(asked, made).partitions == ()
        assert metrics.leader_changes >= changes


class TestGivenLists:
    @given(with_factor())
    def test_generate_is_a_whole_assignment(self, request_: PlanRequest) -> None:
        """Distinct eligible brokers, the requested replication factor, pinned partitions unchanged, deterministic."""
        aware = request_.goals.rack_awareness is not RackAwareness.DISABLED
        racks = {b.rack is None for b in request_.brokers if b.id in request_.targets}
        assume(not aware or len(racks) == 1)
        asked = replace(request_, strategy=Strategy.GENERATE)
        made = plan(asked)
        check(asked, made)
        assert again(asked, made).partitions == ()

    @given(with_pins(), st.data())
    def test_an_assignment_is_carried_out_to_the_letter(self, request_: PlanRequest, data: st.DataObject) -> None:
        """Listed partitions get the listed replicas; the others stay, wherever they are."""
        wanted: Mapping[TopicPartition, Replicas] = {
            p.tp: tuple(data.draw(st.permutations(sorted(request_.targets)))[: len(p.replicas)])
            for p in request_.partitions
            if not p.pinned and data.draw(st.booleans())
        }
        asked = replace(request_, strategy=Strategy.ASSIGNMENT, assignment=wanted)
        made = plan(asked)
        before, after = present(asked), result(asked, made)
        assert after == {tp: wanted.get(tp, replicas) for tp, replicas in before.items()}
        metrics = measure(asked, before, after)
        assert made.replica_moves == metrics.moves
        assert made.certificate == Certificate(metrics.moves, optimal=not metrics.moves)
        assert made.rack_violations == metrics.rack_violations


class TestMinimumGain:
    @given(with_factor() | with_pins() | with_budget(), st.integers(1, 100))
    def test_what_is_forced_is_made_and_what_gains_little_is_not(self, request_: PlanRequest, gain: int) -> None:
        """The plan is the one without a minimum or, if nothing is forced and it gains less, empty with a reason.

        A plan that is empty anyway has no reason. With a budget, the gain of the plan within it counts.
        """
        plain = plan(request_)
        made = plan(replace(request_, goals=replace(request_.goals, minimum_gain=gain)))
        unlimited = Goals(request_.goals.rack_awareness)
        forced = plan(replace(request_, strategy=Strategy.FORCED_MOVES_ONLY, goals=unlimited))
        before, after = present(request_), result(request_, plain)
        fullest = [
            max(Counter(b for row in found.values() for b in row)[b] for b in request_.targets)
            for found in (before, after)
        ]
        too_little = forced.partitions == () and bool(before) and (fullest[0] - fullest[1]) * 100 < gain * fullest[0]
        if too_little and plain.partitions:
            assert (made.partitions, made.reason, made.certificate) == (
                (),
                "GainTooSmall",
                Certificate(0, optimal=True),
            )
            pinned = {p.tp for p in request_.partitions if p.pinned}
            left = [list_violations(request_, row) for tp, row in before.items() if tp not in pinned]
            assert made.rack_violations == sum(left)
        else:
            assert made == plain

    def test_what_a_budget_buys_is_what_has_to_gain(self) -> None:
        """Ten replicas on broker 0 and none on 1: one move gains 10 %, of the 50 % that five would gain."""
        partitions = tuple(PartitionInput(TopicPartition("t", i), replicas_of(0)) for i in range(10))
        brokers = tuple(Broker(BrokerId(b)) for b in range(2))
        request = PlanRequest(brokers, partitions, frozenset(b.id for b in brokers))

        def moves(budget: int, gain: int) -> int:
            return plan(replace(request, goals=Goals(max_replica_moves=budget, minimum_gain=gain))).replica_moves

        assert [moves(1, 10), moves(2, 20), moves(9, 50)] == [1, 2, 5]
        assert [moves(1, 11), moves(2, 21), moves(9, 51)] == [0, 0, 0]


class TestRefusals:
    @given(with_factor(), st.integers(1, 4))
    def test_never_below_min_insync(self, request_: PlanRequest, min_insync: int) -> None:
        """A replication factor that shrinks lists below min.insync.replicas is refused; the error names a partition."""
        asked = replace(request_, partitions=tuple(replace(p, min_insync=min_insync) for p in request_.partitions))
        factor = asked.replication_factor or 1
        too_low = [
            p.tp
            for p in asked.partitions
            if p.has_leader and not p.pinned and factor < len(p.replicas) and factor < min_insync
        ]
        if not too_low:
            check(asked, plan(asked))
            return
        with pytest.raises(Refused, match=r"min\.insync\.replicas") as refused:
            plan(asked)
        assert refused.value.reason == "BelowMinInsyncReplicas"
        assert str(min(too_low)) in refused.value.message

    @given(requests(), st.integers(1, 9))
    def test_more_replicas_than_brokers(self, request_: PlanRequest, factor: int) -> None:
        """Refused before any placement, by every strategy that places replicas."""
        movable = [p for p in request_.partitions if p.has_leader]
        assume(movable and factor > len(request_.targets))
        for strategy in (Strategy.MINIMAL_MOVEMENT, Strategy.FORCED_MOVES_ONLY, Strategy.GENERATE):
            with pytest.raises(Refused) as refused:
                plan(replace(request_, replication_factor=factor, strategy=strategy, goals=Goals()))
            assert refused.value.reason == "InsufficientBrokers"
