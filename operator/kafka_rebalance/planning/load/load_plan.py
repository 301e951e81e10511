"""Lists that keep the counts of a plan and bring the brokers into the bands of the load goals.

The order of goals: capacity limits, counts (unless they are free), the use above the bands in order of priority, bytes,
leader changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import LoadGoal
from kafka_rebalance.model.load_outcome import MOST_ROWS, LoadOutcome, OutsideBroker, OutsideReason, ResourceBalance
from kafka_rebalance.model.rate_room import RateRoom
from kafka_rebalance.planning.load.array_types import Bools, Floats
from kafka_rebalance.planning.load.load_bound import bytes_bound
from kafka_rebalance.planning.load.load_problem import UNLIMITED, LoadProblem, leaders_matter, load_problem, use_of
from kafka_rebalance.planning.load.load_state import TINY, LoadArrays, LoadState, at_home, revalue
from kafka_rebalance.planning.load.relief import give, relieve
from kafka_rebalance.planning.load.take_back import lead_again, take_back
from kafka_rebalance.planning.load.tight_rates import tight_rates
from kafka_rebalance.planning.problem.copies import in_order
from kafka_rebalance.planning.problem.encoding import Encoded
from kafka_rebalance.planning.problem.instance import Indices, Instance
from kafka_rebalance.planning.problem.request import PlanRequest
from kafka_rebalance.reasons import Reason

_SAMPLES = 24
_MOST_SAMPLES = 4_096
_SAMPLES_PER_REPLICA = 16
"""Samples of a step, at first and for brokers that find none: fewer in clusters so small that they only repeat."""

_EFFORT, _EFFORT_PER_BROKER = 200_000, 2_000
"""Samples of all steps together."""

_LOWER = 1e-3
"""The weight of resources of lower priority, where not all can be within their bands."""

_VISIBLE = 1e-4
"""Use above a band, in shares of all brokers together, that makes a difference."""

_PASSES = 2
_RETURNS = 16
"""Passes that take moves back, and exchanges that each move is offered."""

_SEED = 0x9E3779B97F4A7C15

_INSIDE = 0.98
"""The part of a band that the search aims at: steps get smaller and smaller near the edge."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Relieved:
    """The lists [N]; ``fair``: their counts are those of the plan before, or free; ``leaders_matter``: a resource
    depends on who leads, so leaders must stay. ``rate_room``: what the order of the steps has to respect."""

    lists: Indices
    outcome: LoadOutcome
    fair: bool
    leaders_matter: bool
    rate_room: RateRoom | None


def relieved(request: PlanRequest, encoded: Encoded, lists: Indices, *, budget_reached: bool) -> Relieved:
    """The lists after the search. Raises Refused where a capacity limit would be exceeded, or exceeded by more."""
    problem = load_problem(request, encoded)
    search = _Search(problem, encoded.instance, lists)
    found = search.run()
    fair = True
    if search.breaks(found).any():
        found, fair = search.without_counts(found), not request.goals.counts
        _check_limits(encoded, problem.goals, search, found)
    counted = request.goals.counts and fair and not budget_reached and not problem.arrays.by_topic
    outcome = search.outcome(encoded, found, counted=counted)
    tight = tight_rates(problem, encoded, search.present, found.lists)
    return Relieved(found.lists, outcome, fair, leaders_matter(problem.goals), tight)


class _Search:
    def __init__(self, problem: LoadProblem, instance: Instance, lists: Indices) -> None:
        self._problem, self._instance = problem, instance
        self._arrays, self._lists = problem.arrays, lists
        self.present = use_of(problem, self._arrays.home_start, self._arrays.homes, present=True)

    def run(self) -> LoadState:
        """The best state found, with the counts of the lists.

        All resources weigh the same; if some stay outside, they are tried one after the other in order of priority.
        """
        start = self._state(self._arrays, self._lists)
        inside = self._arrays._replace(band=1 + (self._arrays.band - 1) * _INSIDE)
        found = self._improved(inside, self._lists)
        ranked = found
        for r in range(len(inside.weight)):
            if self._excess(ranked)[r] > _VISIBLE:
                number = np.arange(len(inside.weight))
                weight = np.where(number < r, 0.0, np.where(number == r, 1.0, _LOWER))
                ranked = self._improved(inside._replace(weight=weight, locked=number < r), ranked.lists)
        return min((found, ranked, start), key=self.rank)

    def without_counts(self, found: LoadState) -> LoadState:
        """Limits come before counts: the same state within the limits, if moves alone can do it."""
        nothing = np.zeros_like(self._arrays.weight)
        found = self._relieve(self._arrays._replace(weight=nothing, keep_counts=False), found.lists)
        return self._state(self._arrays, found.lists)

    def breaks(self, found: LoadState) -> Bools:
        """Where [B, R] a limit is exceeded, by more than at present."""
        a = self._arrays
        most = np.maximum(a.limit, self.present * a.inverse)
        return (found.use > most * (1 + _ROUNDING)) & a.eligible[:, None]

    def rank(self, found: LoadState) -> tuple[float, ...]:
        """Smaller is better: use above the limits, use above each band, bytes."""
        a = self._arrays
        beyond = np.maximum(found.use - a.limit, 0)[a.eligible].sum()
        above = [round(float(value) / _VISIBLE) for value in (beyond, *self._excess(found))]
        return (*above, float(found.spent[0]))

    def _excess(self, found: LoadState) -> Floats:
        """The use above each band [R], in shares."""
        a = self._arrays
        return np.asarray(np.maximum(found.use - a.band, 0)[a.eligible].sum(axis=0))

    def _improved(self, a: LoadArrays, lists: Indices) -> LoadState:
        found = self._relieve(a, lists)
        thrifty = self._state(a, found.lists)
        for _ in range(_PASSES):
            slots = np.flatnonzero(~at_home(a, thrifty.lists))
            slots = slots[np.argsort(-a.size[a.partition[slots]], kind="stable")]
            if not take_back(a, thrifty, slots, _RETURNS):
                break
        lead_again(a, thrifty)
        return min((thrifty, found), key=self.rank)

    def _relieve(self, a: LoadArrays, lists: Indices) -> LoadState:
        state = self._state(a, lists)
        most = max(_SAMPLES, min(_MOST_SAMPLES, _SAMPLES_PER_REPLICA * len(lists)))
        relieve(a, state, _EFFORT + _EFFORT_PER_BROKER * len(state.held), _SAMPLES, most)
        return state

    def _state(self, a: LoadArrays, lists: Indices) -> LoadState:
        brokers = len(a.eligible)
        use = use_of(self._problem, a.start, lists) * a.inverse
        held = np.bincount(lists, minlength=brokers)
        most = int(held.max()) + (64 if a.keep_counts else int(held.max()) * 2 + 64)
        order = in_order(lists)
        place = np.empty(len(lists), dtype=np.int32)
        place[order] = np.arange(len(lists)) - np.repeat(np.cumsum(held) - held, held)
        member = np.full((brokers, most), -1, dtype=np.int32)
        member[lists, place] = np.arange(len(lists), dtype=np.int32)
        new = ~at_home(a, lists)
        spent = np.array([a.size[a.partition[new]].sum(), new.sum()], dtype=np.float64)
        count = self._instance.fixed_replicas + held
        luck = np.array([_SEED], dtype=np.uint64)
        state = LoadState(lists.copy(), use, np.zeros(brokers), member, held, place, count, spent, luck)
        for b in np.flatnonzero(a.eligible).tolist():
            revalue(a, state, b)
        return state

    def outcome(self, encoded: Encoded, found: LoadState, *, counted: bool) -> LoadOutcome:
        """What the state does; ``counted``: totals are fair, which the bound uses."""
        a, share = self._arrays, self._problem.share
        here = np.flatnonzero(a.eligible)
        after = use_of(self._problem, a.start, found.lists)
        shrinking = np.bincount(a.homes, minlength=len(share)) - np.bincount(found.lists, minlength=len(share)) - 1
        leaves = np.maximum(shrinking, 0) * (counted and not self._instance.shrinks)
        rows = []
        for r, goal in enumerate(self._problem.goals):
            columns = [column[here, r] for column in (share, self.present, after)]
            peaks = [100 * float((use / columns[0]).max()) for use in columns[1:]]
            outside = [int((use > columns[0] * a.band[r] * (1 + _ROUNDING)).sum()) for use in columns[1:]]
            whole = [tuple(np.rint(column).astype(np.int64).tolist()) for column in columns]
            row = ResourceBalance(goal.resource, goal.band, peaks[0], peaks[1], outside[0], outside[1], *whole)
            rows.append(row)
        return LoadOutcome(
            tuple(rows),
            round(found.spent[0]),
            bytes_bound(self._problem, self.present, self._excess(found), leaves),
            tuple(encoded.brokers[b] for b in here.tolist()),
            tuple(self._outside(encoded, found, after)),
        )

    def _outside(self, encoded: Encoded, found: LoadState, after: Floats) -> Iterator[OutsideBroker]:
        a = self._arrays
        allowed = self._problem.share * a.band
        rows = np.argwhere((after > allowed * (1 + _ROUNDING)) & a.eligible[:, None])
        for b, r in rows[:MOST_ROWS].tolist():
            reason = self._reason(found, b, r)
            yield OutsideBroker(
                encoded.brokers[b], self._problem.goals[r].resource, round(after[b, r]), round(allowed[b, r]), reason
            )

    def _reason(self, found: LoadState, b: int, r: int) -> OutsideReason:
        a = self._arrays
        slots = found.member[b, : found.held[b]]
        each = a.follows[a.partition[slots], r] + a.leads[a.partition[slots], r] * (
            a.start[a.partition[slots]] == slots
        )
        if (each * a.inverse[b, r]).max(initial=0) > a.band[r]:
            return OutsideReason.PARTITION_TOO_LARGE
        room = np.full_like(a.room, len(a.eligible))
        without = {
            OutsideReason.RACK_RULE: a._replace(group=np.zeros_like(a.group), room=room),
            OutsideReason.MOVEMENT_BUDGET: a._replace(most_bytes=UNLIMITED, most_moves=2**62),
            OutsideReason.CAPACITY_LIMIT: a._replace(limit=np.full_like(a.limit, UNLIMITED)),
            OutsideReason.EVEN_COUNTS: a._replace(keep_counts=False, keep_leaders=False, by_topic=False),
        }
        copy = LoadState._make(column.copy() for column in found)  # only a step that is found changes it
        for reason, arrays in {OutsideReason.NO_EXCHANGE_FOUND: a, **without}.items():
            revalue(arrays, copy, b)
            if copy.value[b] > TINY and any(give(arrays, copy, b, _MOST_SAMPLES, largest) for largest in (False, True)):
                return reason
        return OutsideReason.NO_EXCHANGE_FOUND


def _check_limits(encoded: Encoded, goals: tuple[LoadGoal, ...], search: _Search, found: LoadState) -> None:
    broken = np.argwhere(search.breaks(found))
    if not len(broken):
        return
    b, r = broken[0].tolist()
    goal = goals[r]
    raise Refused(
        Reason.CAPACITY_LIMIT_EXCEEDED,
        f"broker {encoded.brokers[b]} would use more than {goal.capacity_limit}% of its {goal.resource} capacity, and "
        f"no exchange was found that avoids it: add brokers, raise capacityLimit in goals.load, or correct "
        f"spec.capacity of the KafkaConnection",
    )
