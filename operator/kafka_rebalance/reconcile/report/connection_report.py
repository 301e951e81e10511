"""The status of a KafkaConnection: whether brokers answer, and whether the cluster is its own. Pure."""

from dataclasses import dataclass
from datetime import datetime

from kafka_rebalance.api.conditions import (
    NO_CONNECTION_REASONS,
    ConditionType,
    ReadySummary,
    remove_condition,
    set_condition,
    summarise,
)
from kafka_rebalance.api.connection_resource import (
    MAX_MISSING,
    ConnectionBrokers,
    KafkaConnectionStatus,
    LastSample,
)
from kafka_rebalance.api.v1alpha1 import KafkaConnection
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.kafka.least_permissions import MissingPermission, sentence
from kafka_rebalance.model.kafka_version import KafkaVersion
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.report.sampling_report import SamplingState


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """``live_brokers`` None: none answered lately. ``problem``: why the connection cannot be used as it is.

    ``version`` and ``missing`` permissions: None and empty: not known. ``sampling`` None: the cluster is not sampled.
    """

    cluster_id: str
    live_brokers: int | None
    problem: RebalanceError | None
    version: KafkaVersion | None = None
    missing: tuple[MissingPermission, ...] = ()
    sampling: SamplingState | None = None


def build_connection_status(
    connection: KafkaConnection, state: ConnectionState, *, now: datetime
) -> KafkaConnectionStatus:
    """The whole status."""
    before, generation, problem = connection.status, connection.metadata.generation, state.problem
    if problem is not None:
        again = "; trying again" if isinstance(problem, Transient) else ""
        ready = (ReadySummary.STUCK, problem.reason, problem.message + again)
    elif connection.unread:
        ready = (ReadySummary.STUCK, str(Reason.INVALID_SPEC), f"{connection.unread}; the last valid spec still holds")
    else:
        live = f"{state.live_brokers} brokers answer"
        ready = (ReadySummary.DONE, str(Reason.CONNECTED), f"{live}; Kafka cluster {state.cluster_id} is its own")
    conditions = summarise(before.conditions, *ready, generation=generation, now=now)
    reachable = problem is None or problem.reason not in NO_CONNECTION_REASONS

    def put(kind: ConditionType, status: bool, why: str, text: str) -> None:
        nonlocal conditions
        conditions = set_condition(conditions, kind, status, why, text, generation=generation, now=now)

    if problem is None:
        put(ConditionType.REACHABLE, True, Reason.CONNECTED, "brokers answer")
    else:
        put(ConditionType.REACHABLE, reachable, problem.reason, problem.message)
    if state.version is not None:
        put(ConditionType.VERSION_RECORDED, *state.version.finding())
    if state.missing:
        put(ConditionType.PERMITTED, False, Reason.PERMISSIONS_MISSING, sentence(state.missing))
    else:
        conditions = remove_condition(conditions, ConditionType.PERMITTED)
    sampled = _sampled(connection, state)
    if connection.spec.sampling is None:
        conditions = remove_condition(conditions, ConditionType.SAMPLING)
    elif sampled is not None:
        put(ConditionType.SAMPLING, *sampled)
    live_brokers = ConnectionBrokers(live=state.live_brokers) if state.live_brokers is not None else before.brokers
    return KafkaConnectionStatus(
        observed_generation=generation,
        cluster_id=state.cluster_id or before.cluster_id,
        conditions=conditions,
        brokers=live_brokers,
        kafka_version=state.version.line if state.version is not None else before.kafka_version,
        missing_permissions=tuple(missing.what for missing in state.missing[:MAX_MISSING]),
        last_sample=_last_sample(connection, state),
    )


def _sampled(connection: KafkaConnection, state: ConnectionState) -> tuple[bool, str, str] | None:
    """Status, reason and message of Sampling; None: as before, because no sample was due yet."""
    if state.sampling is not None and connection.spec.sampling is not None:
        return state.sampling.finding(connection.spec.sampling.interval)
    return None if state.problem is None else (False, state.problem.reason, state.problem.message)


def _last_sample(connection: KafkaConnection, state: ConnectionState) -> LastSample | None:
    if connection.spec.sampling is None:
        return None
    last = None if state.sampling is None else state.sampling.last
    return connection.status.last_sample if last is None else LastSample(time=last.taken_at, rows=last.rows)
