"""The rebalances, brokers and partitions in motion, for `top`, from the statuses of the resources. Pure.

A status lists at most 20 partitions in flight. Brokers count only these; ``unlisted`` is the number of the others.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle, KafkaRebalance


@dataclass(frozen=True, slots=True)
class MovingPartition:
    """A partition in flight. ``left``: bytes, None: not known."""

    rebalance: str
    partition: str
    current: tuple[int, ...]
    adding: tuple[int, ...]
    left: int | None = None


@dataclass(frozen=True, slots=True)
class BusyBroker:
    """Partitions that a broker fetches, and bytes per second as measured; None: not measured."""

    id: int
    fetches: int = 0
    left: int = 0
    sends_per_second: int | None = None
    fetches_per_second: int | None = None


@dataclass(frozen=True, slots=True)
class Motion:
    """``rebalances``: those that submit steps or have some in flight.

    ``unlisted``: partitions in flight that no status lists. ``metered``: a KafkaReassignmentThrottle measures brokers.
    """

    rebalances: tuple[KafkaRebalance, ...] = ()
    brokers: tuple[BusyBroker, ...] = ()
    partitions: tuple[MovingPartition, ...] = ()
    unlisted: int = 0
    metered: bool = False


def motion_of(rebalances: Iterable[KafkaRebalance], throttles: Iterable[KafkaReassignmentThrottle]) -> Motion:
    """Everything in motion; the partitions with the most bytes left first."""
    moving, throttles = [seen for seen in rebalances if _moving(seen)], list(throttles)
    partitions = sorted((row for seen in moving for row in _partitions(seen)), key=lambda row: -(row.left or 0))
    in_flight = sum(seen.status.current_batch_size for seen in moving)
    brokers = _brokers(partitions, throttles)
    unlisted = max(0, in_flight - len(partitions))
    return Motion(tuple(moving), tuple(brokers), tuple(partitions), unlisted, metered=bool(throttles))


def _moving(seen: KafkaRebalance) -> bool:
    moving = find_condition(seen.status.conditions, ConditionType.REBALANCING)
    return bool(seen.status.current_batch_size) or (moving is not None and moving.status == "True")


def _partitions(seen: KafkaRebalance) -> Iterator[MovingPartition]:
    name = f"{seen.metadata.namespace}/{seen.metadata.name}"
    for row in seen.status.current_batch:
        yield MovingPartition(name, f"{row.topic}-{row.partition}", row.current, row.adding, row.bytes_remaining)


def _brokers(
    partitions: Iterable[MovingPartition], throttles: Iterable[KafkaReassignmentThrottle]
) -> Iterator[BusyBroker]:
    """Those that fetch, and those whose traffic is measured."""
    fetches, left = Counter[int](), Counter[int]()
    for row in partitions:
        for broker in row.adding:
            fetches[broker] += 1
            left[broker] += (row.left or 0) // len(row.adding)
    measured = {row.id: row for throttle in throttles for row in throttle.status.brokers}
    for broker in sorted(fetches.keys() | measured.keys()):
        found = measured.get(broker)
        yield BusyBroker(
            broker,
            fetches[broker],
            left[broker],
            found.leader_bytes_per_second if found is not None else None,
            found.follower_bytes_per_second if found is not None else None,
        )
