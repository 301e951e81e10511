"""The state table: what it says of each state, and that it matches the operator and the docs."""

import ast
from pathlib import Path

import pytest
from tests.arch.state_transitions import can_reach, groups_of, may_follow, members_of, transitions

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.api.rebalance_states import GROUPS, STATES, StateGroup, summary_of
from kafka_rebalance.reasons import Reason

ROOT = Path(__file__).parents[3]
RECONCILE = ROOT / "operator" / "kafka_rebalance" / "reconcile"

PROBLEMS = {
    Reason.INVALID_SPEC,
    Reason.REPLICATION_THROTTLE_LOWER,
    Reason.STALLED,
    Reason.THROTTLE_NOT_ALLOWED,
}
"""Problems that the operator finds when it computes the state, not when something fails."""
PARTS_OF_MESSAGES = {
    Reason.BUDGET_REACHED,
    Reason.CAPACITY_LIMIT_REACHED,
    Reason.DISK_FULL,
    Reason.DRAINED,
    Reason.GAIN_TOO_SMALL,
    Reason.METADATA_STALE,
    Reason.NOTHING_SELECTED,
    Reason.NOT_DRAINED,
    Reason.NO_LEADER,
    Reason.ORDER_REFUSED,
    Reason.ORIGINAL_BROKER_GONE,
    Reason.PAUSED,
    Reason.SIZES_UNKNOWN,
    Reason.THROTTLE_LIST_FULL,
}


def named_in(*files):
    """The members of Reason that these files of the package ``reconcile`` use."""
    nodes = [node for file in files for node in ast.walk(ast.parse((RECONCILE / file).read_text(encoding="utf-8")))]
    names = {n.attr for n in nodes if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "Reason"}
    return {Reason[name] for name in names}


class TestStates:
    def test_are_those_that_the_operator_computes(self):
        """Every state has a row, and every row has a state."""
        computed = named_in("report/ready_state.py", "decide/step_blocks.py")
        assert computed - PROBLEMS - PARTS_OF_MESSAGES == set(STATES)

    def test_other_reasons_are_problems(self):
        """Each of them needs help or is retried."""
        assert {summary_of(reason) for reason in Reason if reason not in STATES} == {ReadySummary.STUCK}

    @pytest.mark.parametrize("reason", STATES)
    def test_are_in_the_docs(self, reason):
        """Including what they mean and what to do."""
        first_cells = [line.split("|")[1] for line in docs("conditions.md") if line.startswith("| `")]
        assert any(f"`{reason}`" in cell for cell in first_cells)

    @pytest.mark.parametrize("reason", STATES)
    def test_can_be_reached_and_lead_on(self, reason):
        """Every state is reachable from a resource without status and can lead to deletion: there are no dead ends."""
        assert reason in can_reach(None)
        assert StateGroup.DELETING in groups_of(reason) or set(members_of(StateGroup.DELETING)) <= can_reach(reason)

    def test_only_an_ended_run_is_ready(self):
        """A resource must not look done while replicas still move."""
        done = {reason for reason, state in STATES.items() if state.summary is ReadySummary.DONE}
        assert done < set(members_of(StateGroup.ENDED))


class TestTransitions:
    def test_no_row_follows_from_another(self):
        """A row that another row implies is redundant."""

        def pairs(before, after):
            return {(b, a) for b in ([None] if before is None else members_of(before)) for a in members_of(after)}

        rows = [pairs(*row) for row in transitions()]
        assert not [
            row for place, row in enumerate(rows) if any(row <= other for other in rows[:place] + rows[place + 1 :])
        ]

    def test_a_group_stands_for_each_of_its_states(self):
        """Including the states of nested groups."""
        assert may_follow(Reason.AWAITING_APPROVAL, Reason.REBALANCING)
        assert may_follow(Reason.FROZEN, Reason.REBALANCING)
        assert may_follow(Reason.FROZEN, Reason.UNDOING)
        assert not may_follow(Reason.AWAITING_APPROVAL, Reason.UNDOING)

    def test_a_state_may_stay(self):
        """Most status updates change only figures."""
        assert all(may_follow(reason, reason) for reason in STATES)

    @pytest.mark.parametrize("deleting", members_of(StateGroup.DELETING))
    def test_nothing_leads_out_of_a_deletion(self, deleting):
        """A resource that is being deleted is never shown as active again."""
        assert can_reach(deleting) == set(members_of(StateGroup.DELETING))

    def test_a_success_is_not_planned_again_by_itself(self):
        """Only after an edit or an undo; neither continues from the targets without a new plan."""
        assert not may_follow(Reason.SUCCEEDED, Reason.REBALANCING)
        assert not may_follow(Reason.UNDONE, Reason.UNDOING)

    def test_a_first_status_claims_nothing(self):
        """A new resource is either planned or queued; one that had ended is restored as it was."""
        ended = set(members_of(StateGroup.ENDED))
        assert {reason for reason in STATES if may_follow(None, reason)} == {Reason.PLANNING, Reason.QUEUED, *ended}

    def test_groups_have_states(self):
        """An empty group is not needed."""
        assert all(members_of(group) for group in GROUPS)


def docs(name):
    """The lines of a page."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
