"""What an explanation says of budgets, a minimum gain and pinned topics is true, recounted."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from tests.property.explain_told import Told, budgeted, count, explainable, judged_by_gain, with_gain
from tests.property.planning_judge import check_budget, list_violations, result
from tests.property.planning_optima import best_within_budget
from tests.property.test_planning_properties import requests

from kafka_rebalance.cli.explain import sentences as words
from kafka_rebalance.model.goals import Balance, RackAwareness
from kafka_rebalance.planning import PlanRequest, plan
from kafka_rebalance.planning.budget import cp_sat_budget as budget_model


def line_of(lines: list[str], begins: str) -> str | None:
    found = [line for line in lines if line.startswith(begins)]
    assert len(found) <= 1
    return found[0] if found else None


class TestBudget:
    @given(budgeted())
    def test_reached_or_not(self, request_: PlanRequest) -> None:
        """Reached: full balance exceeds the budget. Not reached: the plan is the one without a budget."""
        told = Told(request_)
        lines, goals = words.of_plan(told.explained), request_.goals
        reached = line_of(lines, "The movement budget is reached: ")
        assert (reached is None) == (told.made == told.full)
        assert (reached is None) != (line_of(lines, "The movement budget of ") is None)
        assert told.explained.cut_short == (reached is not None)
        if reached is None:
            return
        too_many = goals.max_replica_moves is not None and told.full.replica_moves > goals.max_replica_moves
        too_much = goals.max_data_to_move is not None and told.full.data_to_move_bytes > goals.max_data_to_move
        assert too_many or too_much
        assert re.search(rf"full balance takes {told.full.replica_moves} replica moves?\b", reached)
        assert re.search(rf"This plan takes {told.made.replica_moves} replica moves?\b", reached)

    @given(budgeted())
    def test_what_is_left(self, request_: PlanRequest) -> None:
        """Spreads, squares, and the brokers that end outside their shares or are not drained."""
        told = Told(request_)
        lines = words.of_plan(told.explained)
        if not told.explained.cut_short:
            return
        spreads = [sorted(held[b] for b in request_.targets) for held in (told.holds, told.held, told.full_holds)]
        left = line_of(lines, "It leaves ")
        assert left is not None
        assert [int(n) for n in re.findall(r"\d+", left)] == [n for held in spreads for n in (held[0], held[-1])]
        squares = line_of(lines, "The sum of the squares of ")
        assert squares is not None
        topics = {tp.topic for tp in told.before}
        per_topic = sum(told.squares(told.of_topic(told.after, topic)) for topic in topics)
        said = per_topic if request_.goals.balance is Balance.PER_TOPIC else told.squares(told.holds)
        assert re.search(rf" is {said}\b", squares)
        stuck = {b: n for b, n in told.holds.items() if b not in request_.targets and n}
        found = dict(re.findall(r"(\d+) \(holds (\d+)\)", line_of(lines, "Not drained") or ""))
        assert found == {str(b): str(n) for b, n in stuck.items()}
        outside = re.findall(r"(\d+) \((\d+) (more|fewer) than", line_of(lines, "Outside their shares") or "")
        beyond = {int(b): int(n) if how == "more" else -int(n) for b, n, how in outside}
        for a in told.explained.brokers:
            if a.share is not None:
                alike = [told.full_holds[b] for b in told.alike(a.share, a.broker)]
                nearest = min(max(told.holds[a.broker], min(alike)), max(alike))
                assert beyond.pop(a.broker, 0) == told.holds[a.broker] - nearest
        assert not beyond

    @given(requests(most_partitions=6, most_brokers=5), st.integers(0, 5))
    def test_what_is_proved(self, request_: PlanRequest, k: int) -> None:
        """No plan within the budget has fewer squares than the bound, or is better than a plan called proven."""
        asked = replace(request_, goals=replace(request_.goals, max_replica_moves=k))
        with mock.patch.object(budget_model, "SMALL", 0):  # as in large clusters, where not everything is proved
            told = Told(asked)
        if not told.explained.cut_short:
            return
        squares = line_of(words.of_plan(told.explained), "The sum of the squares of ")
        assert squares is not None
        value, best = check_budget(asked, told.made), best_within_budget(asked)
        least = re.search(r"no plan within the budget has less than (\d+)\.", squares)
        if least is None:
            assert squares.endswith("Proven: no better plan is within the budget.")
            assert value == best
        elif value != best:
            assert int(least[1]) <= best[1 if asked.goals.rack_awareness is RackAwareness.PREFERRED else 2]


class TestPartitions:
    @given(explainable())
    def test_what_the_limit_keeps_from_them(self, request_: PlanRequest) -> None:
        """A move described as not carried out is in the plan without the limit; no other move is described so."""
        told = Told(request_)
        for p in request_.partitions:
            if not p.counts:
                continue
            lines = words.of_partition(told.explained, told.explained.partition(p.tp))
            whole = told.at_full[p.tp]
            if p.pinned:
                assert lines == [f"{p.tp} is pinned: it stays on {','.join(map(str, p.replicas))}, {AROUND}."]
                assert told.after[p.tp] == p.replicas
                continue
            without, same = line_of(lines, "Not done: "), line_of(lines, "The plan without the ")
            assert (without is None) == (not told.explained.cut_short or set(told.after[p.tp]) == set(whole))
            assert (same is None) == (not told.explained.cut_short or without is not None)
            if without is not None:
                assert f" has it on {','.join(map(str, whole))};" in without

    @given(with_gain())
    def test_pinned_replicas(self, request_: PlanRequest) -> None:
        """Their number, and how many stay on brokers that must not hold replicas."""
        told = Told(request_)
        lines = words.of_plan(told.explained)
        pinned = [p for p in request_.partitions if p.pinned]
        said = line_of(lines, "Pinned: ")
        assert (said is None) == (not pinned)
        if said is None:
            return
        assert [int(n) for n in re.findall(r"\d+", said)] == [len(pinned), sum(told.pinned.values())]
        stuck = sum(n for b, n in told.pinned.items() if b not in request_.targets)
        assert any(line.startswith(f"{stuck} of these replicas ") for line in lines) == bool(stuck)


AROUND = "and the other partitions are balanced around it"


class TestGain:
    @given(with_gain())
    def test_figures(self, request_: PlanRequest) -> None:
        """Too small: nothing moves, as the fullest broker would lose too few. Met: it loses enough."""
        told = Told(request_)
        lines, gain = words.of_plan(told.explained), request_.goals.minimum_gain
        too_small = line_of(lines, "Nothing moves, because the gain is too small: ")
        met, forced = (line_of(lines, f"The minimum gain of {gain} % {said}") for said in ("is met", "does not apply"))
        assert (too_small is not None) == (told.made != told.full)
        assert sum(said is not None for said in (too_small, met, forced)) == bool(gain and told.full.partitions)
        before, after = (max(held[b] for b in request_.targets) for held in (told.held, told.full_holds))
        if too_small or met:
            found = re.search(
                r"holds (\d+) and (?:would hold|holds) (\d+) after (\d+) replica moves?, (\d+)\.(\d) % less",
                too_small or met or "",
            )
            assert found is not None
            assert [int(n) for n in found.groups()[:3]] == [before, after, told.full.replica_moves]
            tenths = int(found[4]) * 10 + int(found[5])
            assert tenths * before <= (before - after) * 1000 < (tenths + 1) * before
        if too_small:
            assert not told.made.partitions
            assert (before - after) * 100 < gain * before
        if met:
            assert (before - after) * 100 >= gain * before
        if forced:
            free = [p for p in request_.partitions if p.has_leader and not p.pinned]
            assert (
                any(set(p.replicas) - request_.targets for p in free)
                or any(list_violations(request_, p.replicas) for p in free)
                or any(len(p.replicas) != (request_.replication_factor or len(p.replicas)) for p in free)
            )
            assert plan(told.unlimited) == told.made

    @given(judged_by_gain())
    def test_of_what_is_judged(self, request_: PlanRequest) -> None:
        """The figures describe the plan within the budget and the balanced counts, and one of them decides."""
        told = Told(request_)
        goals, lines = request_.goals, words.of_plan(told.explained)
        small = line_of(lines, "Nothing moves, because the gain is too small: ")
        met = line_of(lines, f"The minimum gain of {goals.minimum_gain} % is met: ")
        line = small or met
        if line is None:
            return
        bought = plan(replace(request_, goals=replace(goals, minimum_gain=0)))
        ends = (told.before, result(request_, bought))
        free = {p.tp for p in request_.partitions if not p.pinned}
        figures = {False: [max(count(at)[b] for b in request_.targets) for at in ends]}
        loose = [{tp: row for tp, row in at.items() if tp in free} for at in ends]
        topics = {tp.topic for tp in loose[0]}
        figures[True] = [
            sum(max(told.of_topic(at, topic)[b] for b in request_.targets) for topic in topics) for at in loose
        ]
        kinds = {Balance.TOTAL: [False], Balance.PER_TOPIC: [True], Balance.BOTH: [False, True]}[goals.balance]
        found = [
            [int(n) for n in numbers]
            for numbers in re.findall(r"holds (\d+) (?:of it )?and (?:would hold|holds) (\d+) after (\d+) ", line)
        ]
        assert found == [[*figures[kind], bought.replica_moves] for kind in kinds]
        enough = any((a - b) * 100 >= goals.minimum_gain * a for a, b, _ in found)
        assert enough == (met is not None)
        reached = line_of(lines, "The movement budget is reached: ")
        assert (reached is None) == (bought == told.full)
