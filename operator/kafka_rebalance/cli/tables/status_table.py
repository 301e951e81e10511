"""Prints the status of a KafkaRebalance as text."""

from collections.abc import Iterable
from datetime import datetime

from rich.table import Column, Table

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.resource_status import (
    KafkaRebalanceStatus,
    LoadStatus,
    PlanStatus,
    ProgressStatus,
    ThrottleStatus,
)
from kafka_rebalance.api.v1alpha1 import KafkaRebalance
from kafka_rebalance.cli.tables.console import plain_console, plain_table
from kafka_rebalance.cli.tables.phrases import counted, ids, proof
from kafka_rebalance.cli.tables.rate_notes import ABOVE_THROTTLE, above_throttle
from kafka_rebalance.units import format_bytes, format_duration, format_rate

_EXAMPLES = 5
BATCH_COLUMNS = ("TOPIC-PARTITION", "CURRENT", "STEP", "TARGET", "ADDING", "LEFT")


def print_summary(rebalance: KafkaRebalance, now: datetime) -> None:
    """The state and its message, then plan, progress, throttle, batch, skipped partitions and conditions."""
    console = plain_console()
    for line in _headlines(rebalance, now):
        console.print(line)
    facts = Table.grid(Column(), Column(overflow="fold"), padding=(0, 3, 0, 0))
    for label, text in _facts(rebalance.status):
        facts.add_row(label, text)
    if facts.row_count:
        console.print("", facts)
    if rebalance.status.current_batch:
        console.print("", _first_rows(rebalance.status))
    if rebalance.status.conditions:
        console.print("", _conditions(rebalance.status, now))
        for line in _messages(rebalance.status):
            console.print(line)


def _headlines(rebalance: KafkaRebalance, now: datetime) -> Iterable[str]:
    metadata, status = rebalance.metadata, rebalance.status
    ready = find_condition(status.conditions, ConditionType.READY)
    yield f"{metadata.namespace}/{metadata.name}: {ready.reason if ready else 'Pending'}"
    if ready is None:
        yield "no operator has processed it yet: is one running, and does it watch this namespace?"
        return
    if ready.message:
        yield ready.message
    if metadata.deletion_timestamp is not None:
        ago = format_duration((now - metadata.deletion_timestamp).total_seconds())
        yield f"deleted {ago} ago, with deletionPolicy {rebalance.spec.deletion_policy.value}"
    if status.observed_generation != metadata.generation:
        seen, current = status.observed_generation, metadata.generation
        yield f"this status is of generation {seen} of the spec; the current one is {current}"


def _facts(status: KafkaRebalanceStatus) -> Iterable[tuple[str, str]]:
    yield from plan_facts(status.plan)
    if status.progress is not None:
        yield from _progress(status.progress, status.display.eta if status.display else None)
    if status.throttle is not None:
        yield "Throttle", _throttle(status.throttle)
        if above_throttle(status):
            yield "", ABOVE_THROTTLE
    if status.progress is not None or status.current_batch_size:
        yield "In flight", counted(status.current_batch_size, "partition")
    if status.skipped_count:
        rows = [f"{row.topic}-{row.partition} ({row.reason})" for row in status.skipped[:_EXAMPLES]]
        more = ", …" if status.skipped_count > len(rows) else ""
        yield "Skipped", f"{status.skipped_count}: {', '.join(rows)}{more}"


def plan_facts(plan: PlanStatus | None) -> Iterable[tuple[str, str]]:
    """The figures of a plan and its hash, with labels."""
    if plan is not None:
        yield "Plan", _plan(plan)
        yield "", plan.hash
        if plan.load is not None:
            yield from _load(plan.load)


def _plan(plan: PlanStatus) -> str:
    parts = [
        counted(plan.partitions, "partition"),
        f"{counted(plan.replica_moves, 'replica move')} ({proof(plan, budget_reached=plan.budget_reached is True)})",
        f"{counted(plan.leader_moves, 'preferred leader')} to change",
        f"{format_bytes(plan.data_to_move)} to copy",
    ]
    return ", ".join(parts)


def _load(load: LoadStatus) -> Iterable[tuple[str, str]]:
    for label, row in zip(("Load", *[""] * len(load.resources)), load.resources, strict=False):
        measured = f" ({row.peak_measured}% measured afterwards)" if row.peak_measured is not None else ""
        peaks = f"fullest broker {row.peak_before}% -> {row.peak_after}% of its share{measured}"
        yield label, f"{row.resource}: {peaks}, {row.outside_before} -> {row.outside_after} brokers above the band"
    yield "", f"{load.gap} times the lower bound of {format_bytes(load.data_lower_bound)} to copy"
    for left in load.outside[:_EXAMPLES]:
        yield "", f"broker {left.broker} stays above the band of {left.resource}: {left.reason}"


def _progress(progress: ProgressStatus, eta: str | None) -> Iterable[tuple[str, str]]:
    p = progress.partitions
    states = f"{p.completed} completed, {p.in_flight} in flight, {p.waiting} waiting, {p.skipped} skipped"
    yield "Progress", f"{progress.percent}%: of {counted(p.total, 'partition')} {states}"
    moved = f"{format_bytes(progress.bytes.moved)} of {format_bytes(progress.bytes.total)}"
    rate = f" at {format_rate(progress.rate)}" if progress.rate else ""
    left = f", {eta} left" if eta and eta != "-" and progress.percent < 100 else ""
    replicas = f"{progress.replica_moves.completed} of {counted(progress.replica_moves.total, 'replica move')} in sync"
    yield "Copied", f"{moved}{rate}{left}; {replicas}"
    if progress.above_replication_factor:
        yield "", f"{counted(progress.above_replication_factor, 'partition')} temporarily above the replication factor"


def _throttle(throttle: ThrottleStatus) -> str:
    sides = [("leaders send", throttle.leader_rate), ("followers fetch", throttle.follower_rate)]
    rates = [f"{what} at most {format_rate(rate)}" for what, rate in sides if rate is not None]
    if not rates:
        return f"none, by {throttle.source}"
    where = f"on {counted(throttle.brokers, 'broker')}" if throttle.brokers else "on no broker"
    bound = f"; less on some, by {throttle.bound_by}" if throttle.bound_by else ""
    return f"{', '.join(rates)}, by {throttle.source}; set {where} now{bound}"


def _first_rows(status: KafkaRebalanceStatus) -> Table:
    table = plain_table(*BATCH_COLUMNS)
    for row in status.current_batch:
        left = "-" if row.bytes_remaining is None else format_bytes(row.bytes_remaining)
        lists = (row.current, row.step, row.target, row.adding)
        table.add_row(f"{row.topic}-{row.partition}", *(ids(brokers) or "-" for brokers in lists), left)
    more = status.current_batch_size - len(status.current_batch)
    if more > 0:
        table.add_row(f"… {more} more: --batch")
    return table


def _conditions(status: KafkaRebalanceStatus, now: datetime) -> Table:
    """Without the messages, which are sentences and would make the table too wide."""
    table = plain_table("CONDITION", "STATUS", "REASON", "SINCE")
    for c in status.conditions:
        table.add_row(c.type, c.status, c.reason, format_duration((now - c.last_transition_time).total_seconds()))
    return table


def _messages(status: KafkaRebalanceStatus) -> Iterable[str]:
    """Each message once; that of Ready is above."""
    ready = find_condition(status.conditions, ConditionType.READY)
    said = {ready.message} if ready is not None else set()
    for c in status.conditions:
        if c.message and c.message not in said:
            said.add(c.message)
            yield f"{c.type}: {c.message}"
