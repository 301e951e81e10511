"""Why a rebalance starts no new step now: a chain of named checks, the first that applies is shown. Pure.

A step block never stops a null, a drop of a replica above the replication factor, or the repair of an order: those lead
to rest. A run that has sent nothing sends none of them. A rebalance that rests because of its own resource gives up its
place in the queue.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kafka_rebalance.api.execution_spec import ApprovalPolicy
from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.overrides import FREEZE, SUSPEND, OverrideInForce
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.execution.health_gate import Tolerance, Vitals, gate
from kafka_rebalance.execution.windows import Shut, WindowClock
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import going_back
from kafka_rebalance.reconcile.state.assessment import StepBlock
from kafka_rebalance.reconcile.state.rebalance import RebalanceView


@dataclass(frozen=True, slots=True)
class BlockInputs:
    """The inputs of the checks, in addition to the resource itself.

    ``in_motion``: of all open runs. ``awaited``: by uid of a rollback, the resource that takes over from it if its plan
    says so. ``stopped``: the process is about to end.
    """

    now: datetime
    vitals: Vitals | None = None
    in_motion: Collection[TopicPartition] = ()
    throttles: Mapping[str, KafkaReassignmentThrottle] = field(default_factory=dict)
    awaited: Mapping[str, str] = field(default_factory=dict)
    windows: WindowClock = field(default_factory=WindowClock)
    stopped: bool = False


STOPPED = StepBlock(Reason.SUSPENDED, "the run stops at a rest point: repeat its command to go on", gives_up_place=True)
"""While the process waits until no step is in flight, to end then."""


def step_block_for(rebalance: RebalanceView, inputs: BlockInputs) -> StepBlock | None:
    """Why no new step of this rebalance may start; None: it may."""
    return next((block for check in _CHAIN if (block := check(rebalance, inputs)) is not None), None)


def _stopped(_: RebalanceView, inputs: BlockInputs) -> StepBlock | None:
    return STOPPED if inputs.stopped else None


def _held(rebalance: RebalanceView, _: BlockInputs) -> StepBlock | None:
    run = rebalance.record.run
    why = rebalance.held_by or (None if run is not None and run.started_at is not None else rebalance.unverified)
    return None if why is None else StepBlock(Reason(why.reason), why.message, gives_up_place=True)


def _frozen(_: RebalanceView, inputs: BlockInputs) -> StepBlock | None:
    frozen = [t for t in inputs.throttles.values() if t.spec.freeze and not t.metadata.deleting]
    if not frozen:
        return None
    names = ", ".join(sorted(f"{t.name}{_until(t.overrides, FREEZE)}" for t in frozen))
    return StepBlock(Reason.FROZEN, f"KafkaReassignmentThrottle {names} has freeze set")


def _suspended(rebalance: RebalanceView, _: BlockInputs) -> StepBlock | None:
    spec, overrides = rebalance.desired.spec, rebalance.desired.overrides
    if not spec.suspended:
        return None
    by = _until(overrides, SUSPEND)
    setting = SUSPEND if by or spec.suspend else "spec.execution.suspend"
    return StepBlock(Reason.SUSPENDED, f"{setting} is set{by}", gives_up_place=True)


def _until(overrides: Iterable[OverrideInForce], setting: str) -> str:
    """The end of the override that has set it, for messages; empty without one."""
    found = next((row for row in overrides if row.setting == setting), None)
    return "" if found is None else f" by an override until {format_time(found.until)}"


def _queued(rebalance: RebalanceView, _: BlockInputs) -> StepBlock | None:
    queue = rebalance.assessment.queue
    if queue.place is None or queue.place.runs:
        return None
    if queue.place.yields:
        return StepBlock(Reason.YIELDING, f"{queue.place.behind} goes first and wants the same partitions")
    return StepBlock(Reason.QUEUED, queue.message)


def _may_be_taken_over(rebalance: RebalanceView, inputs: BlockInputs) -> StepBlock | None:
    name = inputs.awaited.get(rebalance.desired.uid)
    if not name:
        return None
    return StepBlock(Reason.PLANNING, f"waits for the plan of {name}, which takes over if it moves the same partitions")


def _unapproved(rebalance: RebalanceView, _: BlockInputs) -> StepBlock | None:
    approval, opened = rebalance.desired.spec.approval, rebalance.record.loaded_run
    if approval.policy is not ApprovalPolicy.MANUAL or going_back(rebalance) or opened is None:
        return None
    if approval.plan_hash == opened.plan.hash:
        return None
    return StepBlock(Reason.AWAITING_APPROVAL, f"set spec.approval.planHash to {opened.plan.hash}", gives_up_place=True)


def _outside_window(rebalance: RebalanceView, inputs: BlockInputs) -> StepBlock | None:
    try:
        found = inputs.windows.at([w.as_rule() for w in rebalance.desired.spec.execution.windows], inputs.now)
    except ValueError as error:
        # No reason to lose sight of the resource: what it says of a deletion counts all the same.
        return StepBlock(Reason.INVALID_SPEC, f"spec.execution.windows: {error}", gives_up_place=True)
    if not isinstance(found, Shut):
        return None
    opens = f"; the next one opens at {format_time(found.opens_at)}" if found.opens_at else "; none ever opens"
    return StepBlock(Reason.OUTSIDE_WINDOW, f"no window of spec.execution.windows is open{opens}", gives_up_place=True)


def _unhealthy(rebalance: RebalanceView, inputs: BlockInputs) -> StepBlock | None:
    # A rollback leads back to where the cluster was; waiting for other partitions or a dead broker might never end.
    if inputs.vitals is None or going_back(rebalance):
        return None
    spec = rebalance.desired.spec
    tolerance = Tolerance(
        spec.execution.max_unhealthy,
        spec.execution.broker_settle_seconds,
        frozenset(BrokerId(b) for b in spec.brokers.decommission),
    )
    closed = gate(inputs.vitals, inputs.in_motion, tolerance)
    return None if closed is None else StepBlock(Reason.CLUSTER_UNHEALTHY, f"{closed.check}: {closed.message}")


_CHAIN = (
    _stopped,
    _held,
    _frozen,
    _suspended,
    _unapproved,
    _outside_window,
    _queued,
    _may_be_taken_over,
    _unhealthy,
)
