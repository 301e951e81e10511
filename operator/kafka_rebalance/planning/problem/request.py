"""What the planner is asked: which partitions, which brokers may hold them, and what counts as good."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import Balance, RackAwareness, Strategy
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Goals:
    """What is optimised beyond replica counts. ``leaders`` False: leaders stay wherever their replica stays.

    ``max_replica_moves`` and ``max_data_to_move`` (bytes) are the movement budget, None: none. ``minimum_gain`` is in
    percent of what the fullest broker holds of what is balanced: a plan that forces nothing and lowers it by less,
    within the budget, is empty.
    """

    rack_awareness: RackAwareness = RackAwareness.ENFORCED
    leaders: bool = True
    follower_order: bool = True
    balance: Balance = Balance.TOTAL
    max_replica_moves: int | None = None
    max_data_to_move: int | None = None
    minimum_gain: int = 0

    @property
    def limited(self) -> bool:
        """Whether there is a movement budget."""
        return self.max_replica_moves is not None or self.max_data_to_move is not None


@dataclass(frozen=True, slots=True)
class PartitionInput:
    """One selected partition. Without a leader it is skipped, and does not count: its data cannot be copied.

    A ``pinned`` one stays as it is and counts, with a leader or without: the others are balanced around it.
    """

    tp: TopicPartition
    replicas: Replicas
    topic_id: str = ""
    size_bytes: int = 0
    has_leader: bool = True
    pinned: bool = False
    min_insync: int = 1

    @property
    def counts(self) -> bool:
        """Whether its replicas are among those that are balanced, or balanced around."""
        return self.has_leader or self.pinned


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """``brokers`` are the known ones (racks are read from them), ``targets`` those that may hold replicas.

    Replicas on any other broker, known or not, have to leave it. Only the partitions given are moved, and balance
    counts over them. ``replication_factor`` (None: as it is) is what each partition that is not pinned shall have;
    ``assignment`` is the target of the strategy Assignment.
    """

    brokers: tuple[Broker, ...]
    partitions: tuple[PartitionInput, ...]
    targets: frozenset[BrokerId]
    goals: Goals = field(default_factory=Goals)
    strategy: Strategy = Strategy.MINIMAL_MOVEMENT
    replication_factor: int | None = None
    assignment: Mapping[TopicPartition, Replicas] = field(default_factory=dict)


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
        raise Refused(Reason.INSUFFICIENT_BROKERS, "no broker is left to hold replicas")
    return eligible


def _refuse_unknown(where: str, unknown: Collection[BrokerId], known: Collection[BrokerId]) -> None:
    if unknown:
        names = ", ".join(str(b) for b in sorted(unknown))
        raise Refused(Reason.UNKNOWN_BROKER, f"{where} names broker {names}; known brokers: {sorted(known)}")
