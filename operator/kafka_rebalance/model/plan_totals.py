"""What the partitions of a plan add up to, computed in one pass over all of them. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from kafka_rebalance.model.topology import BrokerId, Replicas


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """The replicas, their bytes and the preferred leaderships that a broker gets and gives."""

    broker: BrokerId
    replicas_in: int
    replicas_out: int
    bytes_in: int
    bytes_out: int
    leaders_in: int
    leaders_out: int


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """As the fields of ``Plan`` of these names. ``bytes_into`` and ``bytes_out_of``: by broker, of all new copies."""

    changed: int
    replica_moves: int
    leader_moves: int
    data_to_move_bytes: int
    bytes_into: dict[BrokerId, int]
    bytes_out_of: dict[BrokerId, int]
    broker_changes: tuple[BrokerChange, ...]

    @classmethod
    def of(cls, rows: Iterable[tuple[Replicas, Replicas, int]]) -> Self:
        """The present list, the target and the bytes of one replica of each partition."""
        changed = replica_moves = leader_moves = to_move = 0
        out_of: defaultdict[BrokerId, int] = defaultdict(int)
        tally: defaultdict[BrokerId, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0, 0])
        for current, target, size in rows:
            if current == target:
                continue
            changed += 1
            new = 0
            for broker in target:
                if broker not in current:
                    new += 1
                    found = tally[broker]
                    found[0] += 1
                    found[2] += size
            if new:
                replica_moves += new
                to_move += new * size
                out_of[current[0]] += new * size
            for broker in current:
                if broker not in target:
                    found = tally[broker]
                    found[1] += 1
                    found[3] += size
            if current[:1] != target[:1]:
                leader_moves += 1
                for at, replicas in ((4, target), (5, current)):
                    if replicas:
                        tally[replicas[0]][at] += 1
        into = {broker: numbers[2] for broker, numbers in tally.items() if numbers[0]}
        changes = [BrokerChange(broker, *numbers) for broker, numbers in tally.items()]
        changes.sort(key=lambda c: (-c.replicas_in - c.replicas_out, -c.leaders_in - c.leaders_out, c.broker))
        return cls(changed, replica_moves, leader_moves, to_move, into, dict(out_of), tuple(changes))
