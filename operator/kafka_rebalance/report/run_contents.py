"""The course of a run, from the status of its resource and, where there is one, the record of its steps. Pure."""

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.model.run_record import RunRecord
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.report.load_contents import measured_facts
from kafka_rebalance.report.report_contents import BatchCopy, Conditioned, Course, Fact
from kafka_rebalance.units import format_bytes, format_duration, format_rate

_BACK = {Reason.UNDONE, Reason.ROLLED_BACK}
_GOING_BACK = {Reason.UNDOING, Reason.ROLLING_BACK}


def course_of(status: KafkaRebalanceStatus, record: RunRecord | None) -> Course | None:
    """How the run goes; None: it has no progress yet."""
    progress = status.progress
    if progress is None:
        return None
    partitions = progress.partitions
    return Course(
        phases={
            "completed": partitions.completed,
            "in flight": partitions.in_flight,
            "waiting": partitions.waiting,
            "skipped": partitions.skipped,
        },
        bytes_moved=progress.bytes.moved,
        bytes_total=progress.bytes.total,
        batch=[
            BatchCopy(
                TopicPartition(row.topic, row.partition), replicas_of(*row.adding), row.since, row.bytes_remaining
            )
            for row in status.current_batch
        ],
        in_flight=status.current_batch_size,
        conditions=[
            Conditioned(c.type, c.status, c.reason, c.message, c.last_transition_time) for c in status.conditions
        ],
        skipped=[(f"{row.topic}-{row.partition}", row.reason) for row in status.skipped],
        record=record,
    )


def run_facts(status: KafkaRebalanceStatus) -> list[Fact]:
    """The figures of the run; in a rollback or undo, and after it, those of the rollback."""
    facts, progress, throttle = [], status.progress, status.throttle
    back = bool(moved_back(status))
    ready = find_condition(status.conditions, ConditionType.READY)
    if ready is not None:
        facts.append(Fact("Now", ready.message or ready.reason))
    if status.plan is not None and status.plan.eta and status.completed_at is None:
        facts.append(Fact("Duration at the current throttle", f"{status.plan.eta} (by {status.plan.eta_source})"))
    if progress is not None:
        if progress.started_at is not None:
            facts.append(Fact("Started", format_time(progress.started_at)))
        copied = f"{format_bytes(progress.bytes.moved)} of {format_bytes(progress.bytes.total)}, {progress.percent}%"
        facts.append(Fact("Copied by the rollback" if back else "Copied", copied))
        if status.completed_at is None and progress.rate:
            facts.append(Fact("Rate", format_rate(progress.rate)))
        if status.completed_at is None and progress.estimated_completion is not None:
            facts.append(Fact("Estimated end", format_time(progress.estimated_completion)))
        if progress.started_at is not None and status.completed_at is not None:
            ended = format_time(status.completed_at)
            took = format_duration((status.completed_at - progress.started_at).total_seconds())
            facts.append(
                Fact("Rolled back", f"{ended}, {took} after the run started")
                if back
                else Fact("Ended", f"{ended}, after {took}")
            )
        if progress.above_replication_factor:
            facts.append(Fact("Partitions above their replication factor", str(progress.above_replication_factor)))
    if status.plan is not None and status.plan.load is not None:
        facts += measured_facts(status.plan.load)
    if throttle is not None:
        sides = {"leader": throttle.leader_rate, "follower": throttle.follower_rate}
        rates = ", ".join(f"{side} {format_rate(rate)}" for side, rate in sides.items() if rate) or "unlimited"
        facts.append(Fact("Throttle", f"{rates} per broker, by {throttle.source}"))
    return facts


def moved_back(status: KafkaRebalanceStatus) -> str:
    """Says that the figures of the plan are no longer the target; empty while they are."""
    ready = find_condition(status.conditions, ConditionType.READY)
    reason = ready.reason if ready is not None else ""
    if reason in _BACK:
        return "The moves of the run were taken back: the brokers have what is shown as before."
    if reason in _GOING_BACK:
        return "Moves of the run are being taken back: the brokers do not get what is shown as after."
    return ""


def next_command(name: str, options: str, status: KafkaRebalanceStatus) -> str:
    """What to paste next, if the state asks for it. ``options``: those that say where the resource is."""
    ready = find_condition(status.conditions, ConditionType.READY)
    if ready is None:
        return ""
    if ready.reason == Reason.AWAITING_APPROVAL:
        return f"kafka-rebalance approve {name} {options}"
    return f"kafka-rebalance undo {name} {options}" if ready.reason == Reason.SUCCEEDED else ""
