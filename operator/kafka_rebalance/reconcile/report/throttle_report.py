"""The status of a KafkaReassignmentThrottle: a pure function of the resource and of what is in force."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from kafka_rebalance.api import throttle_resource
from kafka_rebalance.api.conditions import ConditionType, ReadySummary, remove_condition, set_condition, summarise, warn
from kafka_rebalance.api.resource_status import Condition
from kafka_rebalance.api.spec_warnings import throttle_warnings
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.list_budget import MOST_BYTES
from kafka_rebalance.execution.reassignment_throttle import Rates
from kafka_rebalance.kafka.least_permissions import MissingPermission, sentence
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.override_report import override_rows, with_overrides
from kafka_rebalance.units import format_bytes, format_rate

State = tuple[ReadySummary, str, str]
Inputs = tuple[object, ...]
"""What a status was built from; to be compared only."""
REFUSED_ADVICE = (
    "no new copy starts there, and the previous rate stays: remove what another tool has left (kafka-rebalance doctor "
    "--clear-throttles), lower the rate, raise that throttle, or set whenReplicationThrottled: Lowest in a "
    "KafkaReassignmentThrottle to move at the lower of both"
)
NOT_ALLOWED_ADVICE = (
    "no copy starts without its throttle: allow ALTER_CONFIGS on the cluster; where that is not possible, remove "
    "the rates of KafkaReassignmentThrottle, set spec.throttle of the KafkaRebalance to {unlimited: true}, and limit "
    "with spec.execution how much moves at once"
)


@dataclass(frozen=True, slots=True)
class SideRow:
    """One side of one broker, in bytes per second: the rate in force, the claim that binds, the traffic measured.

    ``rate`` includes a replication throttle that ours was added to. ``measured`` None: not known.
    """

    rate: int
    claim: str
    measured: int | None = None


@dataclass(frozen=True, slots=True)
class BrokerThrottleRow:
    """The throttle of one broker; a side that is None is not throttled by us."""

    broker: BrokerId
    leader: SideRow | None = None
    follower: SideRow | None = None


@dataclass(frozen=True, slots=True)
class ThrottleView:
    """The throttle of one cluster as applied. The texts are sentences for the status, empty if all is well.

    ``replicas``: throttled replicas; ``foreign``: partitions that other tools reassign; ``reverts``: how often somebody
    undid the throttle. ``refused``: brokers whose replication throttle is below the rate asked for, with both values;
    ``not_allowed``: brokers that do not let us set a rate;
    ``contested``: who may keep undoing the throttle; ``unlisted``: reassignments of other tools for which a list of
    throttled replicas has no room; ``trouble``: what could not be read or written lately;
    ``brakes``: lower rates that somebody set and that are kept; ``missing``: permissions that Kafka denies us.
    """

    rows: tuple[BrokerThrottleRow, ...] = ()
    replicas: int = 0
    foreign: int = 0
    reverts: int = 0
    refused: str = ""
    not_allowed: str = ""
    contested: str = ""
    unlisted: str = ""
    trouble: str = ""
    brakes: str = ""
    missing: tuple[MissingPermission, ...] = ()


NOTHING_IN_FORCE = ThrottleView()


def build_throttle_status(
    throttle: KafkaReassignmentThrottle,
    ruling: KafkaReassignmentThrottle | None,
    view: ThrottleView,
    *,
    cluster_id: str,
    now: datetime,
    problem: RebalanceError | None = None,
) -> throttle_resource.KafkaReassignmentThrottleStatus:
    """The whole status. ``ruling``: the resource whose rates count; only that one shows the view.

    ``problem``: why this round observed nothing; the brokers last reported then stay.
    """
    metadata, before = throttle.metadata, throttle.status
    rules = ruling is not None and ruling.metadata.uid == metadata.uid
    shown = view if rules else NOTHING_IN_FORCE
    conditions = _conditions(throttle, _state(throttle, ruling, view, problem), view.missing, now)
    if problem is not None:
        known = {"observed_generation": metadata.generation, "overrides": override_rows(throttle.overrides)}
        return before.model_copy(update={**known, "conditions": conditions})
    rows = sorted(shown.rows, key=lambda row: row.broker)
    return throttle_resource.KafkaReassignmentThrottleStatus(
        observed_generation=metadata.generation,
        cluster_id=cluster_id or before.cluster_id,
        conditions=conditions,
        brokers=tuple(_broker(row) for row in rows[: throttle_resource.MAX_BROKER_ROWS]),
        brokers_total=len(rows),
        throttled_replicas=shown.replicas,
        foreign_reassignments=shown.foreign,
        reverts=shown.reverts,
        overrides=override_rows(throttle.overrides),
        display=_display(throttle.spec, rows),
    )


def inputs_of(
    throttle: KafkaReassignmentThrottle,
    ruling: KafkaReassignmentThrottle | None,
    view: ThrottleView,
    *,
    cluster_id: str,
    problem: RebalanceError | None,
) -> Inputs:
    """What the status is built from, except for the time: while this is equal, the status of the last round holds.

    The view is a part of it only in so far as the status shows it.
    """
    metadata = throttle.metadata
    rules = ruling is not None and ruling.metadata.uid == metadata.uid
    shown = view if rules else ThrottleView(trouble=view.trouble if metadata.deleting else "", missing=view.missing)
    by = None if ruling is None else (ruling.metadata.namespace, ruling.metadata.name, ruling.metadata.uid)
    why = None if problem is None else (problem.reason, problem.message, isinstance(problem, Transient))
    own = (metadata, throttle.spec, throttle.unread, throttle.overrides, throttle.override_problems)
    return *own, by, shown, cluster_id, why


def _conditions(
    throttle: KafkaReassignmentThrottle, state: State, missing: tuple[MissingPermission, ...], now: datetime
) -> tuple[Condition, ...]:
    summary, reason, message = state
    if throttle.spec.freeze and not throttle.metadata.deleting:
        message += "; freeze: no rebalance starts a new step"
    generation = throttle.metadata.generation
    before = throttle.status.conditions
    conditions = summarise(before, summary, reason, message, generation=generation, now=now)
    conditions = warn(conditions, throttle_warnings(throttle.spec), generation=generation, now=now)
    overrides, problems = throttle.overrides, throttle.override_problems
    conditions = with_overrides(conditions, overrides, problems, generation=generation, now=now)
    if not missing:
        return remove_condition(conditions, ConditionType.PERMITTED)
    why, text = Reason.PERMISSIONS_MISSING, sentence(missing)
    return set_condition(conditions, ConditionType.PERMITTED, False, why, text, generation=generation, now=now)


def _state(
    throttle: KafkaReassignmentThrottle,
    ruling: KafkaReassignmentThrottle | None,
    view: ThrottleView,
    problem: RebalanceError | None,
) -> State:
    """Ready's reason is the STATE column; states that need a user come first."""
    if throttle.metadata.deleting:
        waits = problem.message if problem else view.trouble
        restoring = _sentences("restoring the configs that it changed in Kafka", waits)
        return ReadySummary.IN_PROGRESS, Reason.RESTORING, restoring
    if problem is not None:
        again = "trying again" if isinstance(problem, Transient) else ""
        return ReadySummary.STUCK, problem.reason, _sentences(problem.message, again)
    if throttle.unread:
        return ReadySummary.STUCK, Reason.INVALID_SPEC, _sentences(throttle.unread, "the last valid spec still holds")
    if ruling is None:
        return ReadySummary.IN_PROGRESS, Reason.PENDING, "its rates count once it has our finalizer"
    if ruling.metadata.uid != throttle.metadata.uid:
        names = f"{ruling.metadata.namespace}/{ruling.metadata.name}"
        return ReadySummary.STUCK, Reason.CONFLICTED, f"{names} is older: its rates hold instead"
    return _state_of_the_ruling(throttle.spec, view)


def _state_of_the_ruling(spec: throttle_resource.KafkaReassignmentThrottleSpec, view: ThrottleView) -> State:
    if not spec.sets_rates:
        return ReadySummary.DONE, Reason.APPLIED, "sets no rate; its limits hold for all rebalances of the cluster"
    if view.refused:
        text = _sentences(view.refused, REFUSED_ADVICE, view.contested, view.brakes, view.trouble)
        return ReadySummary.STUCK, Reason.REPLICATION_THROTTLE_LOWER, text
    if view.not_allowed:
        text = _sentences(view.not_allowed, NOT_ALLOWED_ADVICE, view.brakes)
        return ReadySummary.STUCK, Reason.THROTTLE_NOT_ALLOWED, text
    if view.contested:
        return ReadySummary.STUCK, Reason.CONTESTED, _sentences(view.contested, view.brakes, view.trouble)
    if view.unlisted:
        full = f"the lists of throttled replicas hold at most {MOST_BYTES} bytes per topic and side"
        text = _sentences(view.unlisted, f"{full}; more are listed as listed ones arrive", view.brakes, view.trouble)
        return ReadySummary.IN_PROGRESS, Reason.THROTTLE_LIST_FULL, text
    if view.trouble:
        return ReadySummary.IN_PROGRESS, Reason.PENDING, _sentences(view.trouble, view.brakes)
    if not (view.rows or view.replicas or view.foreign):
        holds = "no reassignment is running; holds for all reassignments of the cluster"
        return ReadySummary.DONE, Reason.NOTHING_TO_THROTTLE, holds
    others = f", {_count(view.foreign, 'reassignment')} of other tools among them" if view.foreign else ""
    moving = f"{_count(view.replicas, 'moving replica')} on {_count(len(view.rows), 'broker')}{others}"
    holds = f"holds for all reassignments of the cluster: {moving}"
    return ReadySummary.DONE, Reason.APPLIED, _sentences(holds, view.brakes)


def _broker(row: BrokerThrottleRow) -> throttle_resource.ThrottledBroker:
    leader, follower = row.leader, row.follower
    return throttle_resource.ThrottledBroker(
        id=row.broker,
        leader_rate=leader.rate if leader else None,
        leader_claim=leader.claim if leader else None,
        leader_bytes_per_second=leader.measured if leader else None,
        leader_utilisation_percent=_percent(leader),
        follower_rate=follower.rate if follower else None,
        follower_claim=follower.claim if follower else None,
        follower_bytes_per_second=follower.measured if follower else None,
        follower_utilisation_percent=_percent(follower),
    )


def _percent(side: SideRow | None) -> int | None:
    if side is None or side.measured is None or side.rate <= 0:
        return None
    return round(100 * side.measured / side.rate)


def _display(
    spec: throttle_resource.KafkaReassignmentThrottleSpec, rows: Collection[BrokerThrottleRow]
) -> throttle_resource.ThrottleDisplay:
    own = spec.rates_on(BrokerId(row.id) for row in spec.brokers)
    asked = [Rates(spec.leader_rate, spec.follower_rate), *own.values()]
    return throttle_resource.ThrottleDisplay(
        leader=_range([row.leader.rate for row in rows if row.leader], [rates.leader for rates in asked]),
        follower=_range([row.follower.rate for row in rows if row.follower], [rates.follower for rates in asked]),
    )


def _range(in_force: Collection[int], asked: Collection[int | None]) -> str:
    """The rates in force, from lowest to highest; if there are none, those of the spec."""
    rates = in_force or [rate for rate in asked if rate is not None]
    if not rates:
        return "-"
    lowest, highest = min(rates), max(rates)
    return format_rate(highest) if lowest == highest else f"{format_bytes(lowest)}-{format_rate(highest)}"


def _sentences(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
