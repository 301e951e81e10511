"""Follows the states in the statuses of KafkaRebalances, and compares them with the state table."""

from tests.arch.state_transitions import can_reach, may_follow, transition_between

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.api.rebalance_states import STATES, summary_of
from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.reasons import Reason

PROBLEM = "Problem"
"""Stands for any reason that is not a state."""


def state_in(status):
    """The state that a status shows, ``PROBLEM``, or None if it has none yet.

    A reason that is both is a state only with the summary of that state: ClusterUnhealthy is in progress while it
    blocks steps, and a problem if it refuses a plan.
    """
    if not any(c["type"] == "Ready" for c in (status or {}).get("conditions", ())):
        return None
    reason, summary = _shown(status)
    return Reason(reason) if reason in STATES and summary_of(Reason(reason)) is summary else PROBLEM


def _shown(status):
    """The reason of Ready, and the summary of the three conditions."""
    conditions = {c["type"]: c for c in status["conditions"]}
    kinds = ("Ready", "Reconciling", "Stalled")
    return conditions["Ready"]["reason"], ReadySummary(tuple(conditions[kind]["status"] for kind in kinds))


class StateWalk:
    """The states of each KafkaRebalance, from one written status to the next.

    ``walked`` are the observed transitions, ``refused`` those that are not in the table.
    """

    def __init__(self):
        self.walked = set()
        self.refused = []
        self._paths = {}

    def following(self, patch_status):
        """Wraps ``KubeInMemory.patch_status`` and follows its writes by namespace and name."""

        async def follow(kube, plural, namespace, name, patch):
            before = kube.resources.get((plural, namespace, name), {}).get("status")
            written = await patch_status(kube, plural, namespace, name, patch)
            if written and plural == REBALANCES:
                self.write((namespace, name), before, patch["status"])
            return written

        return follow

    def write(self, key, before, after):
        """Record that a status replaces another one; ``key`` is the resource."""
        path = self._paths.setdefault(key, [])
        came, goes = state_in(before), state_in(after)
        if goes == PROBLEM and _shown(after)[1] is not ReadySummary.STUCK:
            self.refused.append(f"{_shown(after)} is not in the table, and a problem is stuck")
        if not path or path[-1] != came:
            path.append(came)  # the fake was given another status, as if the last one had not been written
        if goes == came:
            return
        if PROBLEM not in {came, goes}:
            self.walked.add((came, goes))
            if not may_follow(came, goes):
                self.refused.append(f"{goes} may not follow {came}: {path} (see api/rebalance_states.py)")
        elif came == PROBLEM:
            ordinary = next((state for state in reversed(path) if state != PROBLEM), None)
            if goes not in can_reach(ordinary):
                self.refused.append(f"{goes} cannot be reached from {ordinary}, which a problem interrupted: {path}")
        path.append(goes)

    def path(self, key):
        """The states of a resource in order, as text, without the time before its first status."""
        return [str(state) for state in self._paths.get(key, ()) if state is not None]

    @property
    def rows(self):
        """The observed rows of the table."""
        return {row for before, after in self.walked for row in transition_between(before, after)}
