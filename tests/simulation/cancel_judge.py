"""The rules of the judge for orders that cancel a copy: null does not say which run sends it."""

from tests.simulation.process import at_once

from kafka_rebalance.api.v1alpha1 import parse_rebalance, planning_hash
from kafka_rebalance.kube.store import RunStore


class CancelJudge:
    """A copy of others is never cancelled, nor that of another run which still wants it."""

    def __init__(self, world, judge):
        self.world, self.judge = world, judge

    def ordered(self, what, tp, seen, known):
        """``seen``: the partition as it was read. ``known``: the brokers that the plan or the origin names."""
        unknown = set(seen.adding) - known
        if unknown:
            self.judge.breach(f"{what}: cancels the copy to {sorted(unknown)}, which no plan or origin names")
        for run in at_once(RunStore(self.world.kube).list_unshared()):
            if run.open and run.uid == self.judge.ours.get(tp) and self._wants(run, tp, seen):
                self.judge.breach(f"{what}: cancels the copy of {run.name}, which still wants it")

    def _wants(self, run, tp, seen):
        """Whether the run moves forward by a plan that nothing has made void, and the copy is part of it."""
        body, plan = self.world.body_of(run.uid), self.judge._plan(run)
        row = plan.get(tp)
        if any(self.judge.emptied.intersection(planned.added) for planned in plan.values()):
            return False  # it is planned again without the broker that another one empties
        if body is None or row is None or run.undo or self.judge.foreign or self.judge.deaths:
            return False
        if "deletionTimestamp" in body["metadata"] or planning_hash(parse_rebalance(body).spec) != run.planning_hash:
            return False
        return bool(seen.adding) and set(seen.adding) <= set(row.target)
