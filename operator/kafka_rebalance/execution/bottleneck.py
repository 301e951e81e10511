"""Whether a run can ever end at its throttle: a copy that fetches slower than its leader is produced to never does.

Pure. No false alarm: what is not known, and what merely might run at once, is no cause for one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import NamedTuple

from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Side
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


@dataclass(frozen=True, slots=True)
class Copying:
    """Copies of one partition that are made at once, or will be at its next step.

    ``source`` is the leader, None: it has none. ``produce_rate`` in bytes per second, None: not known.
    """

    tp: TopicPartition
    source: BrokerId | None
    destinations: Replicas
    produce_rate: float | None
    in_flight: bool


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A broker whose rate (bytes per second) is too low for what it copies ever to catch up with its leader.

    ``tp`` is the partition produced fastest there. ``needed``: the least rate that does, whichever partitions the
    limits let run at once.
    """

    broker: BrokerId
    side: Side
    rate: int
    needed: int
    tp: TopicPartition
    produce_rate: float


class _Load(NamedTuple):
    """What one partition puts on one side of one broker: bytes per second produced, to each of so many copies."""

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
    """Where the throttle can never be enough, the worst first; None: nowhere, as far as is known.

    Copies that run at once into one broker, or out of one, share its rate alike; one catches up only if its share
    exceeds what is produced to it. n of them are stuck for good when not even the slowest produced does: slower ones
    get through and leave their shares to the others. Certain are those in flight now, and each partition by itself;
    what else the limits let run at once (``parallel_partitions``; copies ``per_broker_in`` and ``per_broker_out``,
    None: no cap) is no cause for alarm, but raises what is needed.
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
    """The leader's side carries every copy of a partition, each destination one."""
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
    """The rate above which these get through when all begin at once, at most ``cap`` copies of them."""
    copies = [load.produced for load in sorted(loads, reverse=True) for _ in range(load.copies)][:cap]
    return max((count * produced for count, produced in enumerate(copies, 1)), default=0.0)
