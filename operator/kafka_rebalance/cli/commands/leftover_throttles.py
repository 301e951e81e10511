"""Replication throttles that no reassignment needs any more: finds them, and removes them on request.

Kafka's own tool leaves them behind if its ``--verify`` is never run. A throttle that the operator's ledger mentions is
the operator's to restore. Lists with a wildcard are set by people and stay, and so do the rates of their brokers.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.cli.tables.findings_table import Finding
from kafka_rebalance.execution.ledger import Ledger, split
from kafka_rebalance.execution.list_budget import batches
from kafka_rebalance.execution.list_state import WILDCARD
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, REPLICATION_RATES, broker_of
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin, KafkaReader
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

_MEANING = (
    "a replication throttle that no reassignment needs any more; kafka-rebalance doctor --clear-throttles removes it. "
    "Keep it if it is there to throttle ordinary replication"
)


@dataclass(frozen=True, slots=True)
class Leftover:
    """One config of one topic or broker."""

    where: str | BrokerId
    name: str
    value: str


async def leftover_throttles(
    admin: KafkaAdmin, ledger: Callable[[], Awaitable[Ledger]], *, clear: bool = False
) -> list[Finding]:
    """The leftovers; with ``clear``, each with the result of its removal. ``ledger`` reads what the operator claims."""
    found = await find(admin, await ledger())
    if not clear or not found:
        return [_finding(leftover) for leftover in found]
    # Looked at once more: meanwhile a reassignment may have begun, or the operator may have claimed one.
    again = set(await find(admin, await ledger()))
    problems: dict[Leftover, str | None] = {leftover: "in use by now" for leftover in found if leftover not in again}
    problems |= await _remove(admin, [leftover for leftover in found if leftover in again])
    return [_finding(leftover, problems[leftover]) for leftover in found]


async def find(admin: KafkaReader, ledger: Ledger) -> list[Leftover]:
    """Rates of brokers, then lists of topics, sorted."""
    info = await admin.describe_cluster()
    states = await admin.describe_partitions()
    moving = await admin.list_reassignments()
    topics = sorted({tp.topic for tp in states})
    values: dict[str, Mapping[str, ConfigValue]] = {}
    for batch in batches(dict.fromkeys(topics, 0)):
        values |= await admin.topic_configs(batch, LIST_NAMES)
    set_lists = [
        Leftover(topic, name, read.value)
        for topic, lists in sorted(values.items())
        for name, read in sorted(lists.items())
        if read.source is ConfigSource.DYNAMIC_TOPIC and read.value
    ]
    kept = {tp.topic for tp in moving} | set(ledger.topics) | set(ledger.entries)
    lists = [row for row in set_lists if row.where not in kept and WILDCARD not in split(row.value)]
    needed = {broker for row in moving.values() for broker in row.replicas}
    needed |= _brokers_of((row for row in set_lists if row not in lists), states)
    rates = [
        Leftover(broker, name, read.value)
        for broker, names in sorted((await admin.broker_configs(sorted(info.brokers), REPLICATION_RATES)).items())
        for name, read in sorted(names.items())
        if read.source is ConfigSource.DYNAMIC_BROKER and read.value is not None
        if broker not in needed and ledger.rate(broker, name) is None
    ]
    return [*rates, *lists]


def _brokers_of(lists: Iterable[Leftover], states: Mapping[TopicPartition, PartitionState]) -> set[BrokerId]:
    """The brokers whose rates hold for what these lists contain."""
    found: set[BrokerId] = set()
    for row in lists:
        entries = split(row.value)
        if WILDCARD in entries:
            found |= {broker for tp, state in states.items() if tp.topic == row.where for broker in state.replicas}
        else:
            found |= {broker_of(entry) for entry in entries}
    return found


async def _remove(admin: KafkaAdmin, leftovers: Collection[Leftover]) -> dict[Leftover, str | None]:
    """Why each was not removed; None: it was."""
    rates: dict[BrokerId, list[ConfigChange]] = {}
    lists: dict[str, list[ConfigChange]] = {}
    for row in leftovers:
        change = ConfigChange(row.name, ConfigOp.DELETE)
        if isinstance(row.where, str):
            lists.setdefault(row.where, []).append(change)
        else:
            rates.setdefault(row.where, []).append(change)
    of_brokers = await admin.alter_broker_configs(rates) if rates else {}
    of_topics: dict[str, str | None] = {}
    for batch in batches(dict.fromkeys(lists, 0)):
        of_topics |= await admin.alter_topic_configs({topic: lists[topic] for topic in batch})
    silent = "no answer"
    return {
        row: of_topics.get(row.where, silent) if isinstance(row.where, str) else of_brokers.get(row.where, silent)
        for row in leftovers
    }


_NOT_TRIED = ""


def _finding(leftover: Leftover, problem: str | None = _NOT_TRIED) -> Finding:
    """``problem``: why it was not removed, None where it was."""
    of_topic = isinstance(leftover.where, str)
    replicas = len(split(leftover.value))
    shown = f"{replicas} replicas" if of_topic else f"{leftover.value} B/s"
    row = {
        "WHERE": f"{'topic' if of_topic else 'broker'} {leftover.where}",
        "CONFIG": leftover.name,
        "VALUE": shown,
    }
    fields: dict[str, Any] = {"topic" if of_topic else "broker": leftover.where, "config": leftover.name}
    fields |= {"replicas": replicas} if of_topic else {"value": leftover.value}
    if problem != _NOT_TRIED:
        row["OUTCOME"] = "removed" if problem is None else f"not removed: {problem}"
        fields |= {} if problem is None else {"notRemoved": problem}
    return Finding(Reason.LEFTOVER_THROTTLE, _MEANING, row, fields, mended=problem is None)
