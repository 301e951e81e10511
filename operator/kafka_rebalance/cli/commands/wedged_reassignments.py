"""Stuck reassignments, which add and remove the same broker: finds them, and cancels them on request.

A reassignment in flight whose target is changed can become one; Kafka 4.3 never completes it
(`docs/kafka-behaviour.md`). A null target cancels it. Other reassignments are not touched: each one is read again as
stuck just before it is cancelled.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.cli.tables.findings_table import Finding
from kafka_rebalance.cli.tables.phrases import ids
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.execution.cancellation import why_not_cancel
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin, KafkaReader
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_MIN_INSYNC = "min.insync.replicas"
_SETTLE_SECONDS = 20.0
"""How long to wait for the result of a cancellation; usually it shows within a second."""
_ASK_AGAIN_SECONDS = 0.2
_MEANING = (
    "adds and removes the same broker. Kafka 4.3 never completes such a reassignment (earlier versions do when the "
    "new replicas are in sync); kafka-rebalance doctor --cancel-wedged cancels it"
)
_REFUSED = {
    AlterCode.INVALID_REPLICA_ASSIGNMENT: "Kafka refuses: none of the original replicas is in sync",
    AlterCode.UNKNOWN_TOPIC_OR_PARTITION: "the partition no longer exists",
    AlterCode.NOT_AUTHORIZED: "not authorized to alter reassignments (ALTER on the cluster)",
}


@dataclass(frozen=True, slots=True)
class Wedge:
    """A stuck reassignment. ``isr`` and ``min_insync`` are None where no broker reported them."""

    tp: TopicPartition
    replicas: Replicas
    adding: Replicas
    removing: Replicas
    isr: frozenset[BrokerId] | None = None
    min_insync: int | None = None

    @property
    def kept(self) -> Replicas:
        """The replicas after a cancellation, not always in this order: all but those being added."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


@dataclass(frozen=True, slots=True)
class Ending:
    """The result of a cancellation: the replicas afterwards, or why it was not cancelled."""

    left: Replicas = ()
    why_not: str = ""


async def wedged_reassignments(admin: KafkaAdmin, *, cancel: bool = False) -> list[Finding]:
    """The stuck reassignments; with ``cancel``, each with the result of its cancellation."""
    wedges = await find(admin)
    endings = await end(admin, wedges) if cancel and wedges else {}
    return [finding(wedge, endings.get(wedge.tp)) for wedge in wedges]


async def find(admin: KafkaReader) -> list[Wedge]:
    """The stuck reassignments of all topics, sorted."""
    listed = {tp: row for tp, row in (await admin.list_reassignments()).items() if row.wedged}
    if not listed:
        return []
    states = await admin.describe_partitions({tp.topic for tp in listed})
    min_insync = await _min_insync(admin, {tp.topic for tp in listed})
    wedges = []
    for tp, row in sorted(listed.items()):
        state = states.get(tp)
        if state is None:
            wedges.append(Wedge(tp, row.replicas, row.adding, row.removing))
        elif state.wedged:
            least = min_insync.get(tp.topic)
            wedges.append(Wedge(tp, state.replicas, state.adding, state.removing, state.isr, least))
    return wedges


async def _min_insync(admin: KafkaReader, topics: Collection[str]) -> dict[str, int]:
    """The effective min.insync.replicas by topic; empty where they cannot be read: nothing is cancelled then."""
    try:
        configs = await admin.topic_configs(set(topics), [_MIN_INSYNC])
    except RebalanceError:
        return {}
    return {topic: int(found[_MIN_INSYNC].value or 1) for topic, found in configs.items()}


def obstacle(wedge: Wedge) -> str:
    """Why the reassignment must not be cancelled; empty where it may be.

    KIP-236: if none of the original replicas is in sync, the only live replica would be lost. 3.9 and 4.0
    allow that, later versions refuse it. None looks at min.insync.replicas.
    """
    if wedge.isr is None:
        return "no broker reported which replicas are in sync; try again"
    wait = why_not_cancel(wedge.kept, wedge.isr, wedge.min_insync)
    return f"{wait.message}; try again when more of the original replicas are in sync" if wait is not None else ""


async def end(admin: KafkaAdmin, wedges: Iterable[Wedge]) -> dict[TopicPartition, Ending]:
    """Cancel these, and read the result from the cluster."""
    obstacles = {wedge: obstacle(wedge) for wedge in wedges}
    endings = {wedge.tp: Ending(why_not=why) for wedge, why in obstacles.items() if why}
    wanted = {wedge.tp: wedge for wedge, why in obstacles.items() if not why}
    # Listed once more: meanwhile another client may have cancelled one and started another reassignment.
    listed = await admin.list_reassignments()
    try:
        codes = await admin.alter_reassignments({tp: None for tp in wanted if tp in listed and listed[tp].wedged})
    except Transient:
        codes = {}  # no answer is not a refusal: the next read shows the result
    endings |= {tp: Ending(why_not=_REFUSED[code]) for tp, code in codes.items() if code in _REFUSED}
    return endings | await _settle(admin, {tp: wedge for tp, wedge in wanted.items() if tp not in endings})


async def _settle(admin: KafkaReader, waiting: Mapping[TopicPartition, Wedge]) -> dict[TopicPartition, Ending]:
    """Read until each shows a result, or until the timeout; the listing is empty before the metadata follows."""
    endings: dict[TopicPartition, Ending] = {}
    deadline = time.monotonic() + _SETTLE_SECONDS
    while left := waiting.keys() - endings.keys():
        states, silence = await _read(admin, left)
        last = time.monotonic() >= deadline
        for tp in left:
            state = states.get(tp)
            if state is not None and _ended(waiting[tp], state, last=last):
                endings[tp] = Ending(left=state.replicas)
            elif last:
                why = silence or ("no broker reports the partition any more" if state is None else "")
                endings[tp] = Ending(why_not=why or f"still listed {_SETTLE_SECONDS:g} s after the cancellation")
        if not last:
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
    return endings


async def _read(
    admin: KafkaReader, partitions: Collection[TopicPartition]
) -> tuple[dict[TopicPartition, PartitionState], str]:
    try:
        return await admin.describe_partitions({tp.topic for tp in partitions}), ""
    except Transient as silent:
        return {}, f"unknown whether it was cancelled: {silent.message}"


def _ended(wedge: Wedge, state: PartitionState, *, last: bool) -> bool:
    """Whether the state shows the cancellation: no added replicas, or a new reassignment of another client."""
    if state.wedged:
        return False
    return last or state.in_flight or set(state.replicas) == set(wedge.kept)


def finding(wedge: Wedge, ending: Ending | None = None) -> Finding:
    """The finding for doctor; ``ending`` where a cancellation was requested."""
    row = {
        "TOPIC-PARTITION": str(wedge.tp),
        "REPLICAS": ids(wedge.replicas),
        "ADDING": ids(wedge.adding) or "-",
        "REMOVING": ids(wedge.removing) or "-",
        "IN SYNC": "-" if wedge.isr is None else ids(sorted(wedge.isr)) or "-",
    }
    fields: dict[str, Any] = {
        "topic": wedge.tp.topic,
        "partition": wedge.tp.partition,
        "replicas": list(wedge.replicas),
        "adding": list(wedge.adding),
        "removing": list(wedge.removing),
        "inSync": None if wedge.isr is None else sorted(wedge.isr),
    }
    if ending is not None:
        row["OUTCOME"] = (
            f"not cancelled: {ending.why_not}" if ending.why_not else f"cancelled; replicas are {ids(ending.left)}"
        )
        fields |= {"left": list(ending.left)} if ending.left else {"notCancelled": ending.why_not}
    return Finding(Reason.WEDGED_REASSIGNMENT, _MEANING, row, fields, mended=ending is not None and not ending.why_not)
