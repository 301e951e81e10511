"""Prints the whole batch of a KafkaRebalance as text. Apart from the status, which needs no rules of execution."""

from kafka_rebalance.cli.tables.console import plain_console, plain_table
from kafka_rebalance.cli.tables.current_batch import Batch, Underway
from kafka_rebalance.cli.tables.phrases import counted, ids
from kafka_rebalance.cli.tables.status_table import BATCH_COLUMNS
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.units import format_bytes

_EXAMPLES = 5


def print_batch(batch: Batch, on_disk: ReplicaBytes) -> None:
    """All partitions in flight. ``on_disk``: bytes by partition and broker, without brokers that did not answer."""
    console = plain_console()
    if not batch.planned:
        console.print("no run is open: nothing is in flight")
        return
    if batch.current:
        table = plain_table(*BATCH_COLUMNS)
        for row in batch.current:
            lists = (row.current, row.step, row.target, row.adding)
            table.add_row(str(row.tp), *(ids(brokers) or "-" for brokers in lists), _left(row, on_disk))
        console.print(table, "")
    elsewhere = f"{len(batch.ongoing)} of {batch.planned} partitions of the plan are not at their targets"
    console.print(f"{counted(len(batch.current), 'partition')} in flight; {elsewhere}")
    if batch.foreign:
        console.print(f"being reassigned by another tool: {_examples(batch.foreign)}")
    if batch.unreported:
        console.print(f"not reported by any broker: {_examples(batch.unreported)}")


def _left(row: Underway, on_disk: ReplicaBytes) -> str:
    """Bytes that the replicas being added have not fetched yet; - where a broker did not report."""
    held = [on_disk.get((row.tp, broker)) for broker in row.adding]
    known = [size for size in held if size is not None]
    if len(known) < len(held):
        return "-"
    return format_bytes(sum(max(0, row.size_bytes - size) for size in known))


def _examples(partitions: tuple[TopicPartition, ...]) -> str:
    shown = ", ".join(str(tp) for tp in partitions[:_EXAMPLES])
    return f"{counted(len(partitions), 'partition')}: {shown}{', …' if len(partitions) > _EXAMPLES else ''}"
