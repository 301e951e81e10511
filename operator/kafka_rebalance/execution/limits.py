"""How many steps may be in flight: the limits of one rebalance and those over all of them, and what is left of each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one rebalance, as they are in its spec now (patched in flight).

    KIP-435's R, P and L and its cap on copies count what the rebalance itself has in flight. ``per_broker_in`` and
    ``per_broker_out`` (``execution.maxPerBroker``) hold back its calls, but count the copies of all rebalances on the
    broker. None: no cap.
    """

    parallel_replicas: int
    parallel_partitions: int
    parallel_leader_movements: int
    max_concurrent_replicas: int | None
    per_broker_in: int | None = None
    per_broker_out: int | None = None


@dataclass(frozen=True, slots=True)
class Ceilings:
    """KIP-435's cluster-wide values, over all rebalances together: ``limits`` of the KafkaReassignmentThrottle.

    None: no ceiling.
    """

    parallel_partitions: int | None = None
    parallel_leader_movements: int | None = None
    max_concurrent_replicas: int | None = None


@dataclass(slots=True)
class LimitUsage:
    """P, L and the cap on copies, of one rebalance or of all together, and how much of each is in use.

    ``calls``: how many were chosen now.
    """

    caps: Limits | Ceilings
    partitions: int = 0
    leader_movements: int = 0
    replicas: int = 0
    calls: int = 0

    def admits_partition(self, *, leads: bool) -> bool:
        """Whether a call for another partition may be sent; ``leads``: it moves the leader."""
        if self.caps.parallel_partitions is not None and self.partitions >= self.caps.parallel_partitions:
            return False
        most = self.caps.parallel_leader_movements
        return not leads or most is None or self.leader_movements < most

    @property
    def partitions_left(self) -> int | None:
        """How many more partitions may be in flight; None: any number."""
        most = self.caps.parallel_partitions
        return max(0, most - self.partitions) if most is not None else None

    @property
    def most_copies(self) -> int | None:
        """How many copies a step may make now; None: any number, even above the cap, because nothing else is copied."""
        most = self.caps.max_concurrent_replicas
        return max(0, most - self.replicas) if most is not None and self.replicas else None
