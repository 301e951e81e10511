"""Whether a run can finish at its throttle: a copy fetched slower than its leader is produced to never catches up.

Pure. No false alarms: unknown rates, and copies that only might run at the same time, raise none.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import NamedTuple

from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Side
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


@dataclass(frozen=True, slots=True)
class Copying:
    """Copies of one partition that run at the same time, now or in its next step.

    ``source``: the leader; None: there is none. ``produce_rate``: bytes per second; None: not known.
    """

    tp: TopicPartition
    source: BrokerId | None
    destinations: Replicas
    produce_rate: float | None
    in_flight: bool


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A broker whose rate (bytes per second) is too low for its copies to catch up with their leaders.

    ``tp``: the partition produced fastest there. ``needed``: the lowest rate that is enough, whichever partitions the
    limits let run together.
    """

    broker: BrokerId
    side: Side
    rate: int
    needed: int
    tp: TopicPartition
    produce_rate: float


class _Load(NamedTuple):
    """One partition on one side of one broker: bytes per second produced, and the number of copies that need them."""

    produced: float
    tp: TopicPartition
    copies: int
    in_flight: bool


def never_finishes(
    copying: Iterable[Copying],
    rates: ClusterRates,
    parallel_partitions: int,
    per_broker_in: int | None = None,
    per_broker_out: int | None = None,
) -> Bottleneck | None:
    """The worst broker whose throttle can never be enough; None: none is known.

    Copies that run together into or out of one broker share its rate equally, and each catches up only if its share
    exceeds its produce rate. n of them are stuck when even the slowest produced cannot: otherwise it finishes and
    leaves its share to the others. Only partitions in flight together, and each partition alone, raise an alarm; what
    else the limits let run together (``parallel_partitions``; copies ``per_broker_in`` and ``per_broker_out``, None: no
    cap) only raises the rate needed.
    """
    found: list[tuple[float, Bottleneck]] = []
    for (broker, side), loads in sorted(_loads(copying).items()):
        both = rates.on(broker)
        rate, cap = (both.leader, per_broker_out) if side is Side.LEADER else (both.follower, per_broker_in)
        together = _least_rate(load for load in loads if load.in_flight)
        certain = max(together, *(load.produced * load.copies for load in loads))
        if rate is None or certain < rate:
            continue
        needed = int(max(certain, _least_rate(nlargest(parallel_partitions, loads), cap))) + 1
        fastest = max(loads)
        exceeds = certain / rate if rate else float("inf")
        found.append((exceeds, Bottleneck(broker, side, rate, needed, fastest.tp, fastest.produced)))
    return max(found, key=lambda row: row[0])[1] if found else None


def _loads(copying: Iterable[Copying]) -> dict[tuple[BrokerId, Side], list[_Load]]:
    """The leader sends every copy of a partition, each destination fetches one."""
    found: defaultdict[tuple[BrokerId, Side], list[_Load]] = defaultdict(list)
    for one in copying:
        if not one.produce_rate or not one.destinations:
            continue
        if one.source is not None:
            load = _Load(one.produce_rate, one.tp, len(one.destinations), one.in_flight)
            found[one.source, Side.LEADER].append(load)
        for broker in one.destinations:
            found[broker, Side.FOLLOWER].append(_Load(one.produce_rate, one.tp, 1, one.in_flight))
    return dict(found)


def _least_rate(loads: Iterable[_Load], cap: int | None = None) -> float:
    """The rate above which these catch up when at most ``cap`` of their copies run together."""
    copies = [load.produced for load in sorted(loads, reverse=True) for _ in range(load.copies)][:cap]
    return max((count * produced for count, produced in enumerate(copies, 1)), default=0.0)
