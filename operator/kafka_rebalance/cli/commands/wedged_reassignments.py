"""Reassignments that add and remove the same broker: finding them, and ending them by the user's order.

Whoever gives a reassignment in flight another target gets one of these: Kafka 4.3 keeps it for ever
(`docs/kafka-behaviour.md`). A null ends it. Nothing else in flight is touched: what is sent a null was read as wedged
just before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.cli.tables.findings_table import Finding
from kafka_rebalance.cli.tables.phrases import ids
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import AlterCode, KafkaAdmin, KafkaReader
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

_SETTLE_SECONDS = 20.0
"""For how long the cluster is asked what a null left: usually it shows within a second."""
_ASK_AGAIN_SECONDS = 0.2
_MEANING = (
    "adds and removes the same broker. Kafka 4.3 never ends that by itself (3.9 does, once its copies are in sync); "
    "kafka-rebalance doctor --cancel-wedged does"
)
_REFUSED = {
    AlterCode.INVALID_REPLICA_ASSIGNMENT: "Kafka refuses, for none of the replicas it would go back to is in sync",
    AlterCode.UNKNOWN_TOPIC_OR_PARTITION: "the partition is gone",
    AlterCode.NOT_AUTHORIZED: "Kafka does not allow us to alter reassignments (ALTER on the cluster)",
}


@dataclass(frozen=True, slots=True)
class Wedge:
    """A wedged reassignment. ``isr`` is None where no broker told about the partition."""

    tp: TopicPartition
    replicas: Replicas
    adding: Replicas
    removing: Replicas
    isr: frozenset[BrokerId] | None = None

    @property
    def kept(self) -> Replicas:
        """What a null leads back to: all but what is being added; in this set, not always in this order."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of an order to cancel: the replicas that it left, or why it is not cancelled."""

    left: Replicas = ()
    why_not: str = ""


async def wedged_reassignments(admin: KafkaAdmin, *, cancel: bool = False) -> list[Finding]:
    """All that are wedged now; with ``cancel``, what was found, with what became of it."""
    wedges = await find(admin)
    endings = await end(admin, wedges) if cancel and wedges else {}
    return [finding(wedge, endings.get(wedge.tp)) for wedge in wedges]


async def find(admin: KafkaReader) -> list[Wedge]:
    """The wedged ones of all topics, sorted."""
    listed = {tp: row for tp, row in (await admin.list_reassignments()).items() if row.wedged}
    if not listed:
        return []
    states = await admin.describe_partitions({tp.topic for tp in listed})
    wedges = []
    for tp, row in sorted(listed.items()):
        state = states.get(tp)
        if state is None:
            wedges.append(Wedge(tp, row.replicas, row.adding, row.removing))
        elif state.wedged:
            wedges.append(Wedge(tp, state.replicas, state.adding, state.removing, state.isr))
    return wedges


def obstacle(wedge: Wedge) -> str:
    """Why a null must not be sent; empty where it may be.

    KIP-236: with none of the others in sync it would throw away the only live copy. 3.9 would do that, 4.3 refuses.
    """
    if wedge.isr is None:
        return "no broker told which of its replicas are in sync; try again"
    if wedge.isr.isdisjoint(wedge.kept):
        return f"none of the replicas {ids(wedge.kept)} it would go back to is in sync; try again when one is"
    return ""


async def end(admin: KafkaAdmin, wedges: Iterable[Wedge]) -> dict[TopicPartition, Ending]:
    """Send null for these, and ask the cluster what that left."""
    obstacles = {wedge: obstacle(wedge) for wedge in wedges}
    endings = {wedge.tp: Ending(why_not=why) for wedge, why in obstacles.items() if why}
    wanted = {wedge.tp: wedge for wedge, why in obstacles.items() if not why}
    # Listed once more: somebody may have ended one since, and begun another that is none of our business.
    listed = await admin.list_reassignments()
    try:
        codes = await admin.alter_reassignments({tp: None for tp in wanted if tp in listed and listed[tp].wedged})
    except Transient:
        codes = {}  # no answer is no refusal: what is read next settles it
    endings |= {tp: Ending(why_not=_REFUSED[code]) for tp, code in codes.items() if code in _REFUSED}
    return endings | await _settle(admin, {tp: wedge for tp, wedge in wanted.items() if tp not in endings})


async def _settle(admin: KafkaReader, waiting: Mapping[TopicPartition, Wedge]) -> dict[TopicPartition, Ending]:
    """Ask until each shows what the null left, or for so long; the listing is empty before metadata has followed."""
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
                why = silence or ("no broker tells about the partition any more" if state is None else "")
                endings[tp] = Ending(why_not=why or f"still listed {_SETTLE_SECONDS:g} s after the order to cancel it")
        if not last:
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
    return endings


async def _read(
    admin: KafkaReader, partitions: Collection[TopicPartition]
) -> tuple[dict[TopicPartition, PartitionState], str]:
    try:
        return await admin.describe_partitions({tp.topic for tp in partitions}), ""
    except Transient as silent:
        return {}, f"whether it is cancelled is not known: {silent.message}"


def _ended(wedge: Wedge, state: PartitionState, *, last: bool) -> bool:
    """Whether this shows what the null left: at rest without the copies, or on another way that somebody began."""
    if state.wedged:
        return False
    return last or state.in_flight or set(state.replicas) == set(wedge.kept)


def finding(wedge: Wedge, ending: Ending | None = None) -> Finding:
    """The wedge as doctor tells it; ``ending`` where it was to be cancelled."""
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
            f"not cancelled: {ending.why_not}" if ending.why_not else f"cancelled, left on {ids(ending.left)}"
        )
        fields |= {"left": list(ending.left)} if ending.left else {"notCancelled": ending.why_not}
    return Finding(Reason.WEDGED_REASSIGNMENT, _MEANING, row, fields, mended=ending is not None and not ending.why_not)
