"""kafka-rebalance verify: verifies that a reassignment file has been executed. Only reads from Kafka.

Prints what Kafka's own tool prints, in its words, and more. Unlike that tool it never removes throttles: another tool
may have set them, and they are needed while anything is in flight.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO, TypeVar

import click

from kafka_rebalance.cli.exit_codes import EXIT_NO
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.options.connection_options import kafka_connection
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.phrases import ids
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.ports import ConfigSource, ConfigValue, KafkaReader
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.reassignment_file import Reassigned, read_reassignment
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.printable_text import printable

_Key = TypeVar("_Key", BrokerId, str)
_FILE = "--reassignment-json-file"
_SET_AT_RUN_TIME = {ConfigSource.DYNAMIC_TOPIC, ConfigSource.DYNAMIC_BROKER}


class CheckOutcome(StrEnum):
    """State of a partition compared to its row in the file."""

    COMPLETED = "Completed"  # has exactly these replicas, and no reassignment is in flight
    IN_PROGRESS = "InProgress"  # a reassignment is in flight, to these replicas or others
    DIFFERENT = "Different"  # has other replicas, and no reassignment is in flight
    MISSING = "Missing"  # the partition does not exist


@dataclass(frozen=True, slots=True)
class Check:
    """One partition of the file. ``state`` is None where it does not exist."""

    tp: TopicPartition
    target: Replicas
    state: PartitionState | None

    @property
    def outcome(self) -> CheckOutcome:
        """As in Kafka's tool, the order of the replicas matters."""
        if self.state is None:
            return CheckOutcome.MISSING
        if self.state.in_flight:
            return CheckOutcome.IN_PROGRESS
        return CheckOutcome.COMPLETED if self.state.replicas == self.target else CheckOutcome.DIFFERENT

    @property
    def elsewhere(self) -> bool:
        """Whether the reassignment in flight has other target replicas: a step, or one of another tool."""
        return self.outcome is CheckOutcome.IN_PROGRESS and set(self._left) != set(self.target)

    @property
    def _left(self) -> Replicas:
        assert self.state is not None  # noqa: S101 - asked for reassignments in flight only
        return tuple(b for b in self.state.replicas if b not in self.state.removing)

    @property
    def led(self) -> bool | None:
        """Whether the preferred leader leads; None unless completed."""
        if self.outcome is not CheckOutcome.COMPLETED or self.state is None:
            return None
        return self.state.leader == self.target[0]

    @property
    def sentence(self) -> str:
        """In the words of Kafka's tool."""
        if self.state is None:
            return f"There is no partition {self.tp}."
        if self.outcome is CheckOutcome.COMPLETED:
            return f"Reassignment of partition {self.tp} is completed."
        if self.outcome is CheckOutcome.DIFFERENT:
            sets = f"{ids(self.state.replicas)} rather than {ids(self.target)}"
            return f"There is no active reassignment of partition {self.tp}, but replica set is {sets}."
        return f"Reassignment of partition {self.tp} is still in progress."


@dataclass(frozen=True, slots=True)
class Verified:
    """All partitions, and the throttles that are set on the topics of the file and on live brokers."""

    checks: Sequence[Check]
    broker_throttles: Mapping[BrokerId, Mapping[str, str]]
    topic_throttles: Mapping[str, Mapping[str, str]]

    @property
    def complete(self) -> bool:
        """Whether every partition is completed."""
        return all(check.outcome is CheckOutcome.COMPLETED for check in self.checks)


@click.command("verify")
@kafka_connection
@click.option(
    _FILE, "file", type=click.File("rb"), required=True, help="Kafka's reassignment JSON, or the output of plan."
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def verify(connection: ConnectionSettings, *, file: BinaryIO, output: str) -> None:
    """Verify for each partition of a reassignment file whether it is completed. Exits with 4 if any is not.

    Lists the throttles that are set, and removes none.
    """
    found = asyncio.run(_verify(connection, parsed(_FILE, file, read_reassignment)))
    if output == "table":
        click.echo("\n".join(map(printable, lines(found))))
    else:
        print_document(document(found), output)
    if not found.complete:
        sys.exit(EXIT_NO)


async def _verify(connection: ConnectionSettings, rows: Sequence[Reassigned]) -> Verified:
    admin = connect(connection)
    try:
        return await look(admin, rows)
    finally:
        await admin.close()


async def look(admin: KafkaReader, rows: Sequence[Reassigned]) -> Verified:
    """Read the state of these partitions from the cluster."""
    topics = sorted({row.tp.topic for row in rows})
    states = (await admin.describe_partitions(topics)).or_raise()
    brokers = sorted((await admin.describe_cluster()).brokers)
    rates = (await admin.broker_configs(brokers, [LEADER_RATE, FOLLOWER_RATE])).or_raise()
    lists = (await admin.topic_configs(topics, [LEADER_LIST, FOLLOWER_LIST])).or_raise()
    return Verified([Check(row.tp, row.replicas, states.get(row.tp)) for row in rows], _set(rates), _set(lists))


def _set(configs: Mapping[_Key, Mapping[str, ConfigValue]]) -> dict[_Key, dict[str, str]]:
    """The configs that were set at run time, not in a broker's properties file."""
    found = {
        key: {n: c.value for n, c in values.items() if c.value and c.source in _SET_AT_RUN_TIME}
        for key, values in sorted(configs.items())
    }
    return {key: values for key, values in found.items() if values}


def lines(found: Verified) -> list[str]:
    """Text output, compatible with scripts that search the output of Kafka's tool."""
    counts = Counter(check.outcome for check in found.checks)
    said = ["Status of partition reassignment:", *(check.sentence for check in found.checks), ""]
    said += [
        f"{check.tp} is being reassigned to other replicas: {ids(check.state.replicas)} now."
        for check in found.checks
        if check.elsewhere and check.state
    ]
    said += [
        f"{check.tp} is led by {check.state.leader}; its preferred leader is {check.target[0]}."
        for check in found.checks
        if check.led is False and check.state
    ]
    said.append(
        f"{counts[CheckOutcome.COMPLETED]} of {len(found.checks)} partitions are completed, "
        f"{counts[CheckOutcome.IN_PROGRESS]} in flight, {counts[CheckOutcome.DIFFERENT]} different, "
        f"{counts[CheckOutcome.MISSING]} missing."
    )
    said += [f"Throttle set on broker {b}: {_configs(values)}" for b, values in found.broker_throttles.items()]
    said += [f"Throttle set on topic {topic}: {_configs(values)}" for topic, values in found.topic_throttles.items()]
    return said


def document(found: Verified) -> dict[str, Any]:
    """JSON and YAML output."""
    return {
        "complete": found.complete,
        "partitions": [_row(check) for check in found.checks],
        "throttles": {
            "brokers": [{"id": int(b), "configs": dict(values)} for b, values in found.broker_throttles.items()],
            "topics": [{"topic": topic, "configs": dict(values)} for topic, values in found.topic_throttles.items()],
        },
    }


def _row(check: Check) -> dict[str, Any]:
    state = check.state
    return {
        "topic": check.tp.topic,
        "partition": check.tp.partition,
        "outcome": check.outcome.value,
        "replicas": list(state.replicas) if state else [],
        "target": list(check.target),
        "adding": list(state.adding) if state else [],
        "removing": list(state.removing) if state else [],
        "inSync": sorted(state.isr) if state else [],
        "leader": state.leader if state else None,
        "ledByPreferred": check.led,
        "elsewhere": check.elsewhere,
    }


def _configs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
