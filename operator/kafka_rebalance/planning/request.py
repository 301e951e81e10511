"""What the planner is asked: which partitions, which brokers may hold them, and what counts as good."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition


class RackAwareness(StrEnum):
    """How the rack rule ranks.

    Enforced: above balance; violations are only those that no placement avoids. Preferred: below balance, above
    moves. Disabled: racks are not looked at.
    """

    ENFORCED = "Enforced"
    PREFERRED = "Preferred"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class Goals:
    """What is optimised beyond replica counts. ``leaders`` False: leaders stay wherever their replica stays."""

    rack_awareness: RackAwareness = RackAwareness.ENFORCED
    leaders: bool = True
    follower_order: bool = True


@dataclass(frozen=True, slots=True)
class PartitionInput:
    """One selected partition. Without a leader it is skipped: its data cannot be copied."""

    tp: TopicPartition
    replicas: Replicas
    topic_id: str = ""
    size_bytes: int = 0
    has_leader: bool = True


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """``brokers`` are the known ones (racks are read from them), ``targets`` those that may hold replicas.

    Replicas on any other broker, known or not, have to leave it. Only the partitions given are moved, and balance
    counts over them.
    """

    brokers: tuple[Broker, ...]
    partitions: tuple[PartitionInput, ...]
    targets: frozenset[BrokerId]
    goals: Goals = field(default_factory=Goals)


def eligible_brokers(
    brokers: Iterable[Broker],
    include: Collection[BrokerId] = (),
    decommission: Collection[BrokerId] = (),
    holding: Collection[BrokerId] = (),
) -> frozenset[BrokerId]:
    """The brokers that may hold replicas: ``include`` (empty: every known broker) without ``decommission``.

    A broker that is dead but still holds replicas (``holding``) may be decommissioned. Raises Refused(UnknownBroker)
    for any other id that nobody knows, Refused(InsufficientBrokers) when nothing is left.
    """
    known = frozenset(b.id for b in brokers)
    _refuse_unknown("brokers.include", set(include) - known, known)
    _refuse_unknown("brokers.decommission", set(decommission) - known - set(holding), known)
    eligible = (frozenset(include) or known) - frozenset(decommission)
    if not eligible:
        raise Refused("InsufficientBrokers", "no broker is left to hold replicas")
    return eligible


def _refuse_unknown(where: str, unknown: Collection[BrokerId], known: Collection[BrokerId]) -> None:
    if unknown:
        names = ", ".join(str(b) for b in sorted(unknown))
        raise Refused("UnknownBroker", f"{where} names broker {names}; known brokers: {sorted(known)}")
