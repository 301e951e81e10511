"""How the statuses of the tests in this directory are checked against the state table."""

from itertools import pairwise

from tests.fakes.state_walk import PROBLEM, StateWalk, state_in

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.api.rebalance_states import summary_of
from kafka_rebalance.reasons import Reason


class TestStateWalk:
    """The fixture that checks the statuses of all these tests."""

    def test_a_transition_that_is_not_in_the_table(self):
        """It names the state and the one before it."""
        walk = StateWalk()
        for before, after in pairwise([None, "Planning", "Succeeded", "Rebalancing"]):
            walk.write("r", status(before), status(after))
        assert len(walk.refused) == 1
        assert walk.refused[0].startswith("Rebalancing may not follow Succeeded")

    def test_a_problem_leads_back_to_where_it_came_from(self):
        """Or to a later state, because time passes meanwhile."""
        walk = StateWalk()
        for before, after in pairwise([None, "KafkaUnreachable", "Planning", "InsufficientBrokers", "Rebalancing"]):
            walk.write("r", status(before), status(after))
        assert walk.refused == []

    def test_a_problem_is_no_way_out_of_a_deletion(self):
        """Without the problem the state is unreachable, too."""
        walk = StateWalk()
        for before, after in pairwise([None, "Planning", "RollingBack", "KafkaUnreachable", "Rebalancing"]):
            walk.write("r", status(before), status(after))
        assert len(walk.refused) == 1
        assert walk.refused[0].startswith("Rebalancing cannot be reached from RollingBack")

    def test_the_same_reason_as_a_problem(self):
        """A broker is down: steps are blocked, or a plan is refused."""
        assert state_in(status("ClusterUnhealthy")) == Reason.CLUSTER_UNHEALTHY
        assert state_in(status("ClusterUnhealthy", ReadySummary.STUCK)) == PROBLEM

    def test_a_summary_that_is_not_that_of_the_state(self):
        """A resource must not look done while replicas still move."""
        walk = StateWalk()
        walk.write("r", status("Planning"), status("Rebalancing", ReadySummary.DONE))
        assert len(walk.refused) == 1


def status(reason, summary=None):
    """As it is stored; None means that it was never written."""
    if reason is None:
        return None
    summary = summary or summary_of(Reason(reason))
    kinds = zip(("Ready", "Reconciling", "Stalled"), summary.value, strict=True)
    return {"conditions": [{"type": kind, "status": value, "reason": reason} for kind, value in kinds]}
