"""Limits what the plans of a namespace's inline connections take of the memory of the operator.

Their servers can claim any number of partitions, and any number of resources can wait with their plans for an approval
or for each other. A plan stays in memory until its run ends.
"""

from functools import partial
from weakref import ReferenceType, ref

from kafka_rebalance.errors import Transient
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.reasons import Reason

MOST_ROWS = 100_000
"""Partitions of three replicas, and replicas in log dirs. Plan and moves of 37,500 of them take 27 MB."""
_RETRY_SECONDS = 30.0


class HeldPlans:
    """Of one namespace. A plan counts for as long as anything refers to it, also beside a newer one of its resource.

    ``most`` None: there is no limit.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._plans: dict[int, tuple[str, int, ReferenceType[Plan]]] = {}
        """By identity: the uid of the resource, the size of its plan, and the plan. Equal plans count each."""

    def note(self, uid: str, plan: Plan) -> None:
        """Count this plan of the resource, which is in memory already."""
        key = id(plan)
        self._plans[key] = uid, _rows(plan), ref(plan, partial(_forget, self._plans, key))

    def take(self, uid: str, plan: Plan) -> None:
        """Count this new plan of the resource. Raises what ``refuse`` raises: others may have planned meanwhile."""
        self.refuse(uid)
        self.note(uid, plan)

    def refuse(self, uid: str) -> None:
        """Transient("TooManyPlans") if the plans of the other resources reach the limit.

        Only one plan goes beyond the limit, so a cluster of any size can be planned.
        """
        if self._most is None:
            return
        found = [(other, rows) for other, rows, _ in self._plans.copy().values() if other != uid]
        rows, others = sum(rows for _, rows in found), {other for other, _ in found}
        if rows >= self._most:
            raise Transient(
                Reason.TOO_MANY_PLANS,
                f"the plans of {len(others)} other rebalances with inline connections of this namespace have "
                f"{rows} partitions of three replicas. From {self._most} on, no more are kept in memory: this one "
                "continues when enough of them have ended. Approve or delete some, or use a KafkaConnection",
                _RETRY_SECONDS,
            )


def _forget(plans: dict[int, tuple[str, int, ReferenceType[Plan]]], key: int, _gone: ReferenceType[Plan]) -> None:
    plans.pop(key, None)


def _rows(plan: Plan) -> int:
    longer = sum((len(p.current) + len(p.target)) // 6 for p in plan.partitions if len(p.current) + len(p.target) > 11)
    return longer + len(plan.partitions) + len(plan.skipped) + len(plan.in_place) + len(plan.log_dirs)
