"""The best plan within a movement budget of moves, bytes or both.

First as many copies as possible leave brokers that are not eligible, then as many rack violations as possible are
repaired; the rest of the budget minimises the sum of squared counts, with the fewest moves. The plan is proved when it
reaches the counts of the budget outline within the budget. Between two brokers, the smallest partitions move.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.model.plan import Certificate, Imbalance
from kafka_rebalance.planning.budget.budget_outline import BudgetOutline
from kafka_rebalance.planning.budget.cp_sat_budget import exactly
from kafka_rebalance.planning.budget.drain import drain
from kafka_rebalance.planning.budget.rack_repair import RackRepair
from kafka_rebalance.planning.budget.trim import Budget, Trim, squares_of, topic_squares_of, value_of
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.flow import even_square_sum
from kafka_rebalance.planning.problem.instance import Instance, without_racks
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.planning.replicas.construct import construct
from kafka_rebalance.planning.replicas.exchange import GivenCounts
from kafka_rebalance.planning.replicas.fewer_bytes import fewer_bytes

_EFFORT = 200
"""Maximum number of searches for chains, for given counts."""

_ATTEMPTS = 4
"""How many smaller numbers of moves are tried when the outline's counts take more moves than it says."""

_DATA_ATTEMPTS = 8
"""How many decreasing numbers of moves are tried until one is within the bytes."""

_UNLIMITED = 2**200


@dataclass(frozen=True)
class BudgetResult:
    """The copies, the proof, and the imbalance that remains."""

    copies: Copies
    certificate: Certificate
    imbalance: Imbalance


def exceeds(full: Copies, goals: Goals) -> bool:
    """Whether the whole plan exceeds the budget."""
    too_many = goals.max_replica_moves is not None and full.moves() > goals.max_replica_moves
    return too_many or (goals.max_data_to_move is not None and full.data() > goals.max_data_to_move)


def best_within_budget(instance: Instance, full: Copies, goals: Goals) -> BudgetResult:
    """The best within the budget, which the whole plan exceeds."""
    # A budget of bytes may allow more moves of small copies than the whole plan has.
    most = full.moves() if goals.max_data_to_move is None else len(instance.broker_of_slot)
    moves = most if goals.max_replica_moves is None else min(max(0, goals.max_replica_moves), most)
    if goals.balance is not Balance.TOTAL:
        return trimmed(Copies.of_lists(instance, full.broker_of_slot), goals, moves)
    solver = BudgetSolver(instance, full)
    if goals.max_data_to_move is None:
        found = solver.within(moves)
    else:
        found = solver.within_data(moves, max(0, goals.max_data_to_move))
    copies = Copies.of_lists(instance, found.copies.broker_of_slot)
    copies.tidy()
    return replace(found, copies=fewer_bytes(copies))


def trimmed(full: Copies, goals: Goals, moves: int) -> BudgetResult:
    """The most useful moves of the plan; used when topics are balanced, where no better method is known, and when
    counts are free and all moves are forced."""
    data = _UNLIMITED if goals.max_data_to_move is None else max(0, goals.max_data_to_move)
    copies = Trim(full, goals.balance).within(Budget(moves, data))
    squares = topic_squares_of if goals.balance is Balance.PER_TOPIC else squares_of
    least = min(squares(copies), squares(full)) if _as_repaired(copies, full) else 0
    imbalance = Imbalance(squares(copies), least)
    return BudgetResult(copies, Certificate(0, optimal=moves == 0), imbalance)


def _as_repaired(copies: Copies, full: Copies) -> bool:
    """Whether all objectives before balance are met; only then ``full`` bounds how even a plan can be."""
    instance = full.instance
    if copies.counts()[~instance.eligible].any():
        return False
    preferred = instance.rack_awareness is RackAwareness.PREFERRED
    return preferred or instance.violations(copies.broker_of_slot) <= instance.violations(full.broker_of_slot)


class BudgetSolver:
    """Plans for any budget less than ``full``, the whole plan, with counts over all topics together."""

    def __init__(self, instance: Instance, full: Copies) -> None:
        self._instance = instance
        self._full = Copies.of_lists(instance, full.broker_of_slot)
        aware = instance.rack_awareness
        plain = aware is RackAwareness.PREFERRED or bool(instance.rack_excess.any())
        # When racks may be violated, the outline without racks still bounds the imbalance.
        self._strict = without_racks(instance) if plain else instance
        self._outline = BudgetOutline(self._strict)

    def within(self, moves: int) -> BudgetResult:
        """The best plan within ``moves``, fewer than the whole plan's."""
        candidates = self._candidates(moves)
        found = next(candidates)
        while not self._certified(found, moves).certificate.optimal and (other := next(candidates, None)) is not None:
            found = min(found, other, key=value_of)
        return self._or_exact(found, self._certified(found, moves), moves, None)

    def within_data(self, moves: int, data: int) -> BudgetResult:
        """The best plan found within ``moves`` and ``data`` bytes, which the whole plan exceeds."""
        affordable = min(moves, self._affordable(data))
        found = self._topped_up(Copies.of_lists(self._instance, self._instance.broker_of_slot), moves, data)
        asked = self._estimate(min(affordable, self._full.moves()), data)
        for _ in range(_DATA_ATTEMPTS):
            copies = fewer_bytes(self._filled(asked))
            taken, spent = copies.moves(), copies.data()
            if taken <= moves and spent <= data:
                found = min(found, self._topped_up(copies, moves, data), key=value_of)
                break
            # Reduce by the excess, at the average bytes of a move.
            asked -= max(1, taken - moves, (spent - data) * taken // max(1, spent))
            if asked < 0:
                break
        return self._or_exact(found, self._certified(found, affordable), moves, data)

    def _or_exact(self, found: Copies, result: BudgetResult, moves: int, data: int | None) -> BudgetResult:
        """The exact result if the bound is not met and the cluster is small, else ``result``."""
        best = None if result.certificate.optimal else exactly(found, moves, data)
        if best is None:
            return result
        kept = best if value_of(best) < value_of(found) else found
        moves, squares = kept.moves(), squares_of(kept)
        return BudgetResult(kept, Certificate.of(moves, moves), Imbalance(squares, squares))

    def _estimate(self, most: int, data: int) -> int:
        """About the number of moves that the bytes allow, if brokers give their smallest copies."""
        instance, outline = self._instance, self._outline
        size = instance.size[instance.partition_of_slot]
        order = np.lexsort((size, instance.broker_of_slot))
        before = np.concatenate([[0], np.cumsum(size[order])])
        begin = np.searchsorted(instance.broker_of_slot[order], np.arange(instance.brokers))
        counts = np.bincount(instance.broker_of_slot, minlength=instance.brokers)
        low = 0
        while low < most:
            middle = (low + most + 1) // 2
            goes = np.maximum(counts - outline.outline(outline.point(middle), middle).target, 0)
            low, most = (middle, most) if (before[begin + goes] - before[begin]).sum() <= data else (low, middle - 1)
        return low

    def _affordable(self, data: int) -> int:
        """The most copies that any plan can move within these bytes."""
        size = np.sort(self._instance.size[self._instance.partition_of_slot])
        return next((i for i, total in enumerate(accumulate(size.tolist())) if total > data), len(size))

    def _certified(self, copies: Copies, moves: int) -> BudgetResult:
        """The copies with their certificate, when no plan within the budget has more than ``moves``."""
        squares, least = squares_of(copies), self._outline.least_squares(moves)
        bound = self._outline.lower_bound(squares, copies.moves())
        if not self._repaired(copies, moves):
            held = (self._instance.fixed_replicas + copies.counts())[self._instance.eligible]
            even = even_square_sum(int(held.sum()), len(held))
            # The outline makes all forced moves; a plan that cannot make them all may need fewer moves than its bound.
            return BudgetResult(copies, Certificate(0, optimal=False), Imbalance(squares, even))
        optimal = squares == least and bound == copies.moves()
        return BudgetResult(copies, Certificate(bound, optimal), Imbalance(squares, least))

    def _repaired(self, copies: Copies, moves: int) -> bool:
        """Whether as many forced moves as possible are made."""
        outline, instance = self._outline, self._instance
        if int(copies.counts()[~instance.eligible].sum()) > max(0, outline.forced - moves):
            return False
        if outline.forced > moves:
            unavoidable = instance.violations(instance.broker_of_slot)
        else:
            unavoidable = max(int(instance.partition_excess.sum()), outline.forced + outline.repairs - moves)
        return instance.violations(copies.broker_of_slot) == unavoidable

    def _candidates(self, moves: int) -> Iterator[Copies]:
        asked = moves
        for _ in range(_ATTEMPTS):
            copies = self._filled(asked)
            taken = copies.moves()
            if taken <= moves:
                yield self._topped_up(copies, moves)
                break
            asked -= taken - moves
            if asked < 0:
                break
        drained = drain(self._instance, min(moves, self._outline.forced))
        if drained is not None:
            yield self._topped_up(RackRepair(drained).after(moves - drained.moves()), moves)
        yield self._topped_up(Copies.of_lists(self._instance, self._instance.broker_of_slot), moves)

    def _topped_up(self, copies: Copies, moves: int, data: int = _UNLIMITED) -> Copies:
        budget = Budget(moves - copies.moves(), data - copies.data())
        return Trim(self._full, Balance.TOTAL, copies).within(budget) if budget.moves else copies

    def _filled(self, moves: int) -> Copies:
        """Copies with the counts of the outline for ``moves``; they may take more moves."""
        plan = self._outline.outline(self._outline.point(moves), moves)
        filled = construct(self._strict, plan)
        if filled.moves() > plan.lower_bound or (filled.counts() != plan.target).any():
            GivenCounts(filled, plan.target).improve(_EFFORT)
        filled.tidy()
        return Copies.of_lists(self._instance, filled.broker_of_slot)
