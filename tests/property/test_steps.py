"""Any two assignments, any R, any ISR: the steps reach the target without harm."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafka_rebalance.execution.steps import Alter, Elect, Present, Step, StepRules, Wait, next_step

BROKERS = st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True)
EVERYONE = frozenset(range(10))


@st.composite
def moves(draw):
    current = tuple(draw(BROKERS))
    target = tuple(draw(BROKERS))
    isr = frozenset(draw(st.lists(st.sampled_from(current), min_size=1, unique=True)))
    leader = draw(st.sampled_from(sorted(isr)))
    rules = StepRules(draw(st.integers(1, 6)), draw(st.integers(1, 4)))
    return Present(current, isr, leader), target, rules


@st.composite
def moves_among_dead(draw):
    """Some brokers are dead, but never the leader; only some of the living ones are in sync."""
    present, target, rules = draw(moves())
    dead = draw(st.frozensets(st.integers(0, 9))) - {present.leader}
    present = Present(present.replicas, present.isr - dead, present.leader)
    return present, target, StepRules(rules.parallel_replicas, rules.min_insync, EVERYONE - dead)


def completes(present, call, alive, family):
    """Whether brokers of this version line complete the call if living ones are in sync (docs/kafka-behaviour.md)."""
    added = set(call.replicas) - set(present.replicas)
    removed = set(present.replicas) - set(call.replicas)
    if not added and not removed:
        return True
    if family == "4.3" and len(removed) <= len(added):
        return added <= alive
    return set(call.replicas) <= alive


def carried_out(present, call):
    if isinstance(call, Elect):
        assert call.leader in present.isr, "an election of a replica that is not in sync fails"
        assert call.leader == present.replicas[0], "a preferred election takes the first"
        return Present(present.replicas, present.isr, call.leader)
    added = set(call.replicas) - set(present.replicas)
    assert added == set(call.until_in_sync)
    isr = (present.isr | added) & set(call.replicas)
    leader = present.leader if present.leader in isr else next(b for b in call.replicas if b in isr)
    return Present(call.replicas, frozenset(isr), leader)


class TestAnyMove:
    @given(moves())
    def test_ends_at_the_target_or_waits_for_its_leader(self, move):
        """Termination: each call makes progress towards the target, and no call repeats for ever."""
        present, target, rules = move
        for _ in range(60):
            step = next_step(present, target, rules)
            if step is None or isinstance(step, Wait):
                break
            present = carried_out(present, step.calls[0])
        else:
            raise AssertionError(f"still going at {present}")
        if step is None:
            assert present.replicas == target
        else:
            assert step.reason in {"PreferredLeaderNotInSync", "MinInsyncReplicas"}

    @given(moves())
    def test_never_adds_and_drops_in_one_call(self, move):
        """Make before break: the operator decides when to drop, and a null during an add restores the old order."""
        present, target, rules = move
        step = next_step(present, target, rules)
        while step is not None and not isinstance(step, Wait):
            call = step.calls[0]
            if isinstance(call, Alter):
                before, after = set(present.replicas), set(call.replicas)
                assert not (after - before and before - after)
            present = carried_out(present, call)
            step = next_step(present, target, rules)

    @given(moves())
    def test_replicas_and_in_sync_ones_never_fall_below_what_was_there(self, move):
        """Replicas never below the smaller of start and target; in sync never below min ISR or the start's ISR."""
        start, target, rules = move
        present, fewest = start, min(len(start.replicas), len(target))
        in_sync_floor = min(rules.min_insync, len(start.isr))
        step = next_step(present, target, rules)
        while step is not None and not isinstance(step, Wait):
            present = carried_out(present, step.calls[0])
            assert len(present.replicas) >= fewest
            assert len(present.isr) >= in_sync_floor
            step = next_step(present, target, rules)

    @given(moves())
    def test_at_most_r_copies_of_a_partition_at_once(self, move):
        """R limits concurrent copies, except to reach min.insync.replicas together with the new leader."""
        present, target, rules = move
        step = next_step(present, target, rules)
        while step is not None and not isinstance(step, Wait):
            call = step.calls[0]
            if isinstance(call, Alter):
                lacking = rules.min_insync - len(present.isr)
                assert len(call.until_in_sync) <= max(rules.parallel_replicas, lacking, 1)
            present = carried_out(present, call)
            step = next_step(present, target, rules)


class TestBesideDeadReplicas:
    @pytest.mark.parametrize("family", ["3.9", "4.3"])
    @given(moves_among_dead())
    def test_a_target_that_is_alive_is_reached(self, family, move):
        """Whichever other brokers are dead: no call waits for a broker that may never return."""
        present, target, rules = move
        assume(rules.alive.issuperset(target) and rules.min_insync <= len(target))
        for _ in range(60):
            present = caught_up(present, rules.alive)
            step = next_step(present, target, rules)
            if step is None:
                break
            assert isinstance(step, Step), step
            call = step.calls[0]
            assert isinstance(call, Elect) or completes(present, call, rules.alive, family)
            present = carried_out(present, call)
        assert present.replicas == target

    @given(moves_among_dead())
    def test_the_newer_line_is_sent_nothing_that_it_does_not_complete(self, move):
        """If a dead replica stays, calls that drop others wait before the first copy, and the message names it."""
        present, target, rules = move
        for _ in range(60):
            present = caught_up(present, rules.alive)
            step = next_step(present, target, rules)
            if step is None or isinstance(step, Wait):
                break
            call = step.calls[0]
            assert isinstance(call, Elect) or completes(present, call, rules.alive, "4.3")
            present = carried_out(present, call)
        if isinstance(step, Wait) and step.reason == "ReplicaNotInSync":
            assert set(target) & set(present.replicas) - present.isr

    @given(moves_among_dead())
    def test_only_what_is_dead_goes_in_the_call_that_adds(self, move):
        """The number of replicas never falls below that before the call or that of the target."""
        present, target, rules = move
        fewest = min(len(present.replicas), len(target))
        for _ in range(60):
            step = next_step(present, target, rules)
            if step is None or isinstance(step, Wait):
                break
            call = step.calls[0]
            if isinstance(call, Alter) and call.until_in_sync:
                gone = set(present.replicas) - set(call.replicas)
                assert gone.isdisjoint(present.isr | rules.alive | set(target))
            present = carried_out(present, call)
            assert len(present.replicas) >= fewest


def caught_up(present, alive):
    return Present(present.replicas, present.isr | (set(present.replicas) & alive), present.leader)
