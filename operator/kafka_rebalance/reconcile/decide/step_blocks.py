"""Why a rebalance starts no new step now: a chain of named checks, the first that applies is shown. Pure.

Holding back never stops a null, a drop of what is above the replication factor, or the repair of an order: those lead
to rest. A rebalance that rests because of its own resource gives its place in the queue away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.v1alpha1 import ApprovalPolicy, KafkaReassignmentThrottle
from kafka_rebalance.execution.health_gate import Tolerance, Vitals, gate
from kafka_rebalance.execution.windows import Shut, state_of
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState, StepBlock


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the checks look at beside the resource itself. ``ours``: partitions of all running rebalances."""

    now: datetime
    vitals: Vitals | None = None
    ours: Collection[TopicPartition] = ()
    throttles: Mapping[str, KafkaReassignmentThrottle] = field(default_factory=dict)


def hold_on(work: RebalanceState, around: Surroundings) -> StepBlock | None:
    """Why no new step of this rebalance may start; None: it may."""
    for check in _CHAIN:
        if (hold := check(work, around)) is not None:
            return hold
    return None


def _frozen(_: RebalanceState, around: Surroundings) -> StepBlock | None:
    frozen = [t for t in around.throttles.values() if t.spec.freeze and not t.metadata.deleting]
    if not frozen:
        return None
    names = ", ".join(sorted(f"{t.metadata.namespace}/{t.metadata.name}" for t in frozen))
    return StepBlock(Reason.FROZEN, f"KafkaReassignmentThrottle {names} has freeze set")


def _suspended(work: RebalanceState, _: Surroundings) -> StepBlock | None:
    if not work.rebalance.spec.execution.suspend:
        return None
    return StepBlock(Reason.SUSPENDED, "spec.execution.suspend is set", releases=True)


def _queued(work: RebalanceState, _: Surroundings) -> StepBlock | None:
    if work.place is None or work.place.runs:
        return None
    if work.place.yields:
        return StepBlock(
            Reason.YIELDING, f"{work.place.behind} goes first and wants the same partitions", releases=True
        )
    return StepBlock(Reason.QUEUED, work.queue_message, releases=True)


def _unapproved(work: RebalanceState, _: Surroundings) -> StepBlock | None:
    approval = work.rebalance.spec.approval
    if approval.policy is not ApprovalPolicy.MANUAL or work.going_back or work.open is None:
        return None
    if approval.plan_hash == work.open.plan.hash:
        return None
    return StepBlock(Reason.AWAITING_APPROVAL, f"set spec.approval.planHash to {work.open.plan.hash}", releases=True)


def _outside_window(work: RebalanceState, around: Surroundings) -> StepBlock | None:
    try:
        found = state_of([w.as_rule() for w in work.rebalance.spec.execution.windows], around.now)
    except ValueError as error:
        # No reason to lose sight of the resource: what it says of a deletion counts all the same.
        return StepBlock(Reason.INVALID_SPEC, f"spec.execution.windows: {error}", releases=True)
    if not isinstance(found, Shut):
        return None
    opens = f"; the next one opens at {format_time(found.opens_at)}" if found.opens_at else "; none ever opens"
    return StepBlock(Reason.OUTSIDE_WINDOW, f"no window of spec.execution.windows is open{opens}", releases=True)


def _unhealthy(work: RebalanceState, around: Surroundings) -> StepBlock | None:
    if around.vitals is None:
        return None
    spec = work.rebalance.spec
    tolerance = Tolerance(
        spec.execution.max_unhealthy,
        spec.execution.broker_settle_seconds,
        frozenset(BrokerId(b) for b in spec.brokers.decommission),
    )
    closed = gate(around.vitals, around.ours, tolerance, tearing_down=work.going_back)
    return None if closed is None else StepBlock(Reason.CLUSTER_UNHEALTHY, f"{closed.check}: {closed.message}")


_CHAIN: tuple[Callable[[RebalanceState, Surroundings], StepBlock | None], ...] = (
    _frozen,
    _suspended,
    _unapproved,
    _outside_window,
    _queued,
    _unhealthy,
)
