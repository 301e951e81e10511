"""The conditions of a KafkaRebalance: a pure function of the rebalance and the cluster as just seen."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, remove_condition, set_condition, summarise, warn
from kafka_rebalance.api.execution_spec import Approval, ApprovalPolicy
from kafka_rebalance.api.resource_status import Condition
from kafka_rebalance.api.spec_warnings import rebalance_warnings
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kafka.least_permissions import sentence
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, ClusterState
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import at_rest, going_back
from kafka_rebalance.reconcile.decide.leaving_brokers import not_named
from kafka_rebalance.reconcile.decide.replanning import already_done
from kafka_rebalance.reconcile.report.override_report import with_overrides
from kafka_rebalance.reconcile.report.ready_state import ready_of
from kafka_rebalance.reconcile.state.assessment import LeavingBroker, ThrottleFindings
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.units import few, format_rate

_NAMED = 3
"""Other rebalances that empty brokers, in one status."""


class _Finding(NamedTuple):
    """The new values of a condition. ``status`` None is Unknown."""

    status: bool | None
    reason: str
    message: str


_Findings = Mapping[ConditionType, _Finding | None]
"""None: the condition does not apply and is removed. The conditions that are not named stay as they are."""


def conditions_of(
    rebalance: RebalanceView,
    before: Iterable[Condition],
    problem: RebalanceError | None,
    cluster: ClusterState,
    now: datetime,
) -> tuple[Condition, ...]:
    """All conditions of the status. ``before``: those of the last status; ``problem``: what went wrong."""
    desired, opened, assessment = rebalance.desired, rebalance.record.loaded_run, rebalance.assessment
    generation = desired.metadata.generation
    summary, reason, message = ready_of(rebalance, problem)
    conditions = summarise(before, summary, reason, message, generation=generation, now=now)
    if opened is not None or desired.status.plan is None:
        conditions = warn(conditions, _warnings(rebalance, cluster), generation=generation, now=now)
    overrides, problems = desired.overrides, desired.override_problems
    conditions = with_overrides(conditions, overrides, problems, generation=generation, now=now)
    waits = assessment.step_block is not None and at_rest(rebalance)
    succeeded = summary is ReadySummary.DONE and reason != Reason.UNDONE
    findings: _Findings = {
        **_version(cluster),
        ConditionType.REBALANCING: _Finding(
            opened is not None and not assessment.finished and not waits, reason, message
        ),
        ConditionType.SUCCEEDED: _Finding(succeeded, reason, message),
        **_run(rebalance, succeeded=succeeded),
        **_permissions(rebalance),
        **_drain(rebalance),
    }
    for kind, found in findings.items():
        if found is None:
            conditions = remove_condition(conditions, kind)
        else:
            conditions = set_condition(conditions, kind, *found, generation=generation, now=now)
    return conditions


def _warnings(rebalance: RebalanceView, cluster: ClusterState) -> Sequence[tuple[str, str]]:
    """Reasons and messages of SpecWarning."""
    opened, warnings = rebalance.record.loaded_run, rebalance_warnings(rebalance.desired.spec)
    if opened is not None:
        warnings += [(Reason.PATTERN_MATCHES_NOTHING, text) for text in opened.plan.unmatched]
        warnings += [(Reason.FEW_BROKERS_IN_RACK, text) for text in opened.plan.crowded]
        left_empty = _left_empty(not_named(rebalance, cluster.brokers))
        warnings += [(Reason.BROKER_LEAVES, text) for text in left_empty]
    return warnings


def _left_empty(leaving: Mapping[BrokerId, LeavingBroker]) -> list[str]:
    """A sentence for each of the first few rebalances that empty brokers, and how many brokers others empty."""
    by_rebalance: defaultdict[LeavingBroker, list[BrokerId]] = defaultdict(list)
    for broker in sorted(leaving):
        by_rebalance[leaving[broker]].append(broker)
    found = [_stay_empty(brokers, row) for row, brokers in islice(by_rebalance.items(), _NAMED)]
    if more := sum(map(len, islice(by_rebalance.values(), _NAMED, None))):
        found.append(f"{more} more brokers that other rebalances empty or have drained get no replicas")
    return found


def _stay_empty(brokers: Sequence[BrokerId], row: LeavingBroker) -> str:
    one = len(brokers) == 1
    names, they = (f"broker {brokers[0]}", "it gets") if one else (f"brokers {few(brokers)}", "they get")
    empty = "as long as it is empty, it gets" if one else "those that are empty get"
    does = f"has drained {names}: {empty}" if row.drained else f"drains {names}: {they}"
    them = "it" if one else "them"
    return f"{row.by} {does} no replicas. To use {them}, list {them} in spec.brokers.include, or delete {row.by}"


def _version(cluster: ClusterState) -> _Findings:
    return {} if cluster.version is None else {ConditionType.VERSION_RECORDED: _Finding(*cluster.version.finding())}


def _run(rebalance: RebalanceView, *, succeeded: bool) -> _Findings:
    """Plan, approval and throttle of the open run; without one, those of the last run stay as they are."""
    opened = rebalance.record.loaded_run
    if opened is not None:
        return {
            ConditionType.PLANNED: _planned(opened.plan),
            ConditionType.THROTTLE_APPLIED: _throttle(rebalance.assessment.throttle),
            ConditionType.APPROVED: _approval(rebalance.desired.spec.approval, opened.plan),
        }
    if succeeded:
        return {ConditionType.THROTTLE_APPLIED: _Finding(False, Reason.RESTORED, "what was there before is back")}
    return {}


def _planned(plan: Plan) -> _Finding:
    elections = f", {plan.elections} leader elections" if plan.elections else ""
    between = f", {plan.log_dir_moves} moves between log dirs" if plan.log_dir_moves else ""
    moves = f"{plan.changed} partitions, {plan.replica_moves} replica moves{elections}{between}"
    return _Finding(True, Reason.PLANNED, moves)


def _approval(approval: Approval, plan: Plan) -> _Finding | None:
    if approval.policy is not ApprovalPolicy.MANUAL:
        return None
    if approval.plan_hash == plan.hash:
        return _Finding(True, Reason.APPROVED, f"plan {plan.hash}")
    return _Finding(False, Reason.AWAITING_APPROVAL, f"plan {plan.hash} is not the one in spec.approval.planHash")


def _permissions(rebalance: RebalanceView) -> _Findings:
    missing = rebalance.assessment.missing_permissions
    found = _Finding(False, Reason.PERMISSIONS_MISSING, sentence(missing)) if missing else None
    return {ConditionType.PERMITTED: found}


def _drain(rebalance: RebalanceView) -> _Findings:
    """Whether the brokers to decommission are empty. The answer stays after the run, until another plan is wanted."""
    drain, done = rebalance.assessment.drain, already_done(rebalance)
    known = rebalance.record.loaded_run is not None or done
    leaving = rebalance.desired.spec.brokers.decommission
    if drain is not None and known and drain.brokers == set(leaving):
        reason = {True: Reason.DRAINED, False: Reason.NOT_DRAINED, None: Reason.DRAIN_UNPROVED}[drain.empty]
        return {ConditionType.DRAINED: _Finding(drain.empty, reason, drain.message)}
    if going_back(rebalance) and leaving:
        moved_back = _Finding(False, Reason.NOT_DRAINED, "replicas are moved back to the brokers")
        return {ConditionType.DRAINED: moved_back}
    return {} if done else {ConditionType.DRAINED: None}


def _throttle(throttle: ThrottleFindings) -> _Finding:
    if not throttle.source:
        return _Finding(False, Reason.PENDING, "it is not known yet which throttle applies")
    if throttle.rates.unlimited and not throttle.brokers:
        return _Finding(False, Reason.UNLIMITED, "the spec asks for full speed")
    if throttle.refused:
        return _Finding(False, Reason.REPLICATION_THROTTLE_LOWER, throttle.refused)
    if throttle.not_allowed:
        return _Finding(False, Reason.THROTTLE_NOT_ALLOWED, throttle.not_allowed)
    rates = f"{rates_text(throttle)} from {throttle.source}"
    if throttle.brokers_pending and not throttle.rates.unlimited:
        total = throttle.brokers + throttle.brokers_pending
        return _Finding(False, Reason.PENDING, f"{rates}: set on {throttle.brokers} of {total} brokers")
    if not throttle.brokers:
        return _Finding(False, Reason.PENDING, "no replica is being copied yet")
    bound = f"; on some brokers less, by {throttle.bound_by}" if throttle.bound_by else ""
    relieved = f"; {throttle.relieved} partitions only where they arrive: a replica is out of the ISR"
    relieved = relieved if throttle.relieved else ""
    left_out = f"; {throttle.left_out} partitions not at both ends: the lists of throttled replicas are full"
    left_out = left_out if throttle.left_out else ""
    return _Finding(True, Reason.APPLIED, f"{rates}{bound}{relieved}{left_out}")


def rates_text(throttle: ThrottleFindings) -> str:
    """The general rates, as one value if both sides have the same."""
    leader, follower = throttle.rates.general.leader, throttle.rates.general.follower
    if leader is None and follower is None:
        return "unlimited" if throttle.source else "-"
    if leader == follower and leader is not None:
        return format_rate(leader)
    sides: Mapping[str, int | None] = {"leader": leader, "follower": follower}
    return ", ".join(f"{side} {format_rate(rate)}" for side, rate in sides.items() if rate is not None)
