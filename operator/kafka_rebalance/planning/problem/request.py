"""The input of the planner: partitions, the brokers that may hold them, and the goals."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.bulk import made_in_bulk
from kafka_rebalance.model.goals import Balance, LoadGoal, LoadResource, RackAwareness, Strategy
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Goals:
    """The objectives. ``leaders`` False: a leader stays where its replica stays.

    ``max_replica_moves`` and ``max_data_to_move`` (bytes) are the movement budget; None: no limit. ``minimum_gain`` is
    in percent of the replicas on the fullest broker: a plan without forced moves that removes less is empty.
    ``load``: the resources to be evened, in order of priority. ``counts`` False: replica counts are free, and only
    these decide.
    """

    rack_awareness: RackAwareness = RackAwareness.ENFORCED
    leaders: bool = True
    follower_order: bool = True
    balance: Balance = Balance.TOTAL
    max_replica_moves: int | None = None
    max_data_to_move: int | None = None
    minimum_gain: int = 0
    load: tuple[LoadGoal, ...] = ()
    counts: bool = True

    @property
    def limited(self) -> bool:
        """Whether there is a movement budget."""
        return self.max_replica_moves is not None or self.max_data_to_move is not None


@made_in_bulk
@dataclass(frozen=True, slots=True)
class PartitionInput:
    """One selected partition. Without a leader it is skipped and not counted: its data cannot be copied.

    A ``pinned`` partition is not changed, but counts, with or without a leader: the others are balanced around it.
    ``size_bytes`` is what a new copy takes; ``replica_bytes`` what each of ``replicas`` takes now (empty: each the
    same). ``loads`` has one value for each of ``goals.load`` (`goal_loads`): for Disk the bytes of a
    new copy; else bytes per second of the partition itself: for BytesOut to consumers only, for the others from
    producers. What replication adds, (replicas - 1) times bytes in, is up to the planner; ``written`` is bytes in for
    BytesOut where no goal has them.
    """

    tp: TopicPartition
    replicas: Replicas
    topic_id: str = ""
    size_bytes: int = 0
    has_leader: bool = True
    pinned: bool = False
    min_insync: int = 1
    replica_bytes: tuple[int, ...] = ()
    loads: tuple[float, ...] = ()
    written: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether its replicas are counted."""
        return self.has_leader or self.pinned


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """``brokers`` are the known ones, with their racks; ``targets`` those that may hold replicas.

    Replicas on any other broker, known or not, must move. Only these partitions are moved and counted.
    ``replication_factor`` (None: no change) applies to each partition that is not pinned; ``assignment`` is the target
    of the strategy Assignment. ``capacities``: bytes or bytes per second of each broker and resource, where known.
    ``decommission``: which of the brokers that are no targets are to be empty; the plan names them.
    """

    brokers: tuple[Broker, ...]
    partitions: tuple[PartitionInput, ...]
    targets: frozenset[BrokerId]
    goals: Goals = field(default_factory=Goals)
    strategy: Strategy = Strategy.MINIMAL_MOVEMENT
    replication_factor: int | None = None
    assignment: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    capacities: Mapping[BrokerId, Mapping[LoadResource, int]] = field(default_factory=dict)
    decommission: frozenset[BrokerId] = frozenset()


def eligible_brokers(
    brokers: Iterable[Broker],
    include: Collection[BrokerId] = (),
    decommission: Collection[BrokerId] = (),
    holding: Collection[BrokerId] = (),
) -> frozenset[BrokerId]:
    """The brokers that may hold replicas: ``include`` (empty: every known broker) without ``decommission``.

    A dead broker that still holds replicas (``holding``) may be decommissioned. Raises Refused(UnknownBroker) for any
    other unknown id, Refused(InsufficientBrokers) when no broker is left.
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
