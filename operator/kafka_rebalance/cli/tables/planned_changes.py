"""The plan of a KafkaRebalance: its cost, and what it changes on the brokers and in the partitions."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.api.v1alpha1 import KafkaRebalance
from kafka_rebalance.cli.tables.console import plain_console, plain_table
from kafka_rebalance.cli.tables.phrases import ids
from kafka_rebalance.cli.tables.status_table import plan_facts
from kafka_rebalance.model.plan import PlannedPartition
from kafka_rebalance.units import format_bytes

_PARTITION_COLUMNS = ("TOPIC-PARTITION", "CURRENT", "TARGET", "NEW REPLICAS", "TO COPY")


def print_planned(rebalance: KafkaRebalance) -> None:
    """The figures of the plan with its hash, the warnings of the operator, and the table of the brokers."""
    console, status = plain_console(), rebalance.status
    facts = Table.grid(padding=(0, 3, 0, 0))
    for label, text in plan_facts(status.plan):
        facts.add_row(label, text)
    if leaving := rebalance.spec.brokers.decommission:
        facts.add_row("Decommission", f"brokers {', '.join(map(str, sorted(leaving)))}")
    if status.plan is not None and status.plan.eta is not None:
        facts.add_row("Duration", f"{status.plan.eta}, at the current throttle")
    console.print(facts)
    if (warning := find_condition(status.conditions, ConditionType.SPEC_WARNING)) is not None:
        console.print(f"warning: {warning.message}", soft_wrap=True)
    if status.plan is None or not status.plan.per_broker:
        return
    table = plain_table("BROKER", "REPLICAS IN", "OUT", "BYTES IN", "OUT", "LEADERS IN", "OUT")
    for row in status.plan.per_broker:
        replicas = (str(row.replicas_in), str(row.replicas_out))
        leaders = (str(row.leaders_in), str(row.leaders_out))
        table.add_row(str(row.broker), *replicas, format_bytes(row.bytes_in), format_bytes(row.bytes_out), *leaders)
    more = status.plan.per_broker_count - len(status.plan.per_broker)
    if more > 0:
        table.add_row(f"… {more} more")
    console.print("", table)


def print_partitions(partitions: Sequence[PlannedPartition]) -> None:
    """Each partition that changes, with its replicas at planning time and its target."""
    table = plain_table(*_PARTITION_COLUMNS)
    for p in partitions:
        size = format_bytes(p.size_bytes * len(p.added)) if p.added else "-"
        table.add_row(str(p.tp), ids(p.current), ids(p.target), ids(p.added) or "-", size)
    plain_console().print("", table)


def planned_document(status: KafkaRebalanceStatus, partitions: Sequence[PlannedPartition] | None) -> dict[str, Any]:
    """The plan of the status; with ``partitions``, unless they could not be read."""
    plan = status.plan.model_dump(mode="json", by_alias=True, exclude_none=True) if status.plan else {}
    if partitions is None:
        return plan
    rows = [
        {
            "topic": p.tp.topic,
            "partition": p.tp.partition,
            "current": list(p.current),
            "target": list(p.target),
            "sizeBytes": p.size_bytes,
        }
        for p in partitions
    ]
    return {**plan, "changes": rows}
