"""What readings of a whole cluster are compared with, and how their sizes are kept."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from kafka_rebalance.execution.disk_space import DiskSpace
from kafka_rebalance.execution.health_gate import is_unhealthy, unhealthy
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.bulk import kept_for_long
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, Replicas, TopicPartition

_SUSPECTS_AT_MOST = 100
_NOTHING: Mapping[TopicPartition, int] = {}
_MANY_REPLICAS = 200_000
"""Their sizes take some 8 MB."""
Comparison = tuple[
    dict[TopicPartition, PartitionState], set[TopicPartition], dict[TopicPartition, PartitionState], set[TopicPartition]
]


class ReplicaSizes(Mapping[ReplicaKey, int]):
    """Bytes on disk by partition and broker. Kept per broker: only a few brokers are read again every few seconds."""

    def __init__(self) -> None:
        self._of: dict[BrokerId, Mapping[TopicPartition, int]] = {}

    def replace(self, broker: BrokerId, sizes: Mapping[TopicPartition, int]) -> None:
        """Replace what is known of this broker."""
        self._of[broker] = sizes

    def remove(self, broker: BrokerId) -> None:
        """Forget this broker."""
        self._of.pop(broker, None)

    @property
    def read_of(self) -> frozenset[BrokerId]:
        """Those that were asked."""
        return frozenset(self._of)

    @property
    def brokers(self) -> frozenset[BrokerId]:
        """Those of which anything is known."""
        return frozenset(broker for broker, sizes in self._of.items() if sizes)

    def get(self, key: ReplicaKey, default: Any = None) -> Any:
        """Faster than by the exception of a missing key."""
        tp, broker = key
        return self._of.get(broker, _NOTHING).get(tp, default)

    def __contains__(self, key: object) -> bool:
        tp, broker = cast("ReplicaKey", key)
        return tp in self._of.get(broker, _NOTHING)

    def __getitem__(self, key: ReplicaKey) -> int:
        tp, broker = key
        return self._of[broker][tp]

    def __iter__(self) -> Iterator[ReplicaKey]:
        return ((tp, broker) for broker, sizes in self._of.items() for tp in sizes)

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))


@dataclass(frozen=True, slots=True)
class DiskReading:
    """What brokers report of their disks, as last read.

    ``was_incomplete``: whether a replica was not on its disk then, or not completely; on a broker with ``space``, only
    of ``recent`` partitions. ``in_flight``: every partition that is being reassigned; None: not known.
    """

    space: Mapping[BrokerId, DiskSpace] = field(default_factory=dict)
    replica_bytes: ReplicaBytes = field(default_factory=dict)
    was_incomplete: Callable[[TopicPartition, BrokerId], bool] = lambda _tp, _broker: False
    recent: Collection[TopicPartition] = ()
    in_flight: Collection[TopicPartition] | None = None


def sizes_in(dirs: Iterable[LogDir]) -> Mapping[TopicPartition, int]:
    """Bytes of each replica in these log dirs. Nothing is copied if there is only one log dir."""
    parts = [log_dir.replica_bytes for log_dir in dirs]
    return parts[0] if len(parts) == 1 else {tp: size for part in parts for tp, size in part.items()}


def sizes_of_each(dirs_of: Mapping[BrokerId, Iterable[LogDir]]) -> dict[BrokerId, Mapping[TopicPartition, int]]:
    """Of each broker, as ``sizes_in``."""
    return {broker: sizes_in(dirs) for broker, dirs in dirs_of.items()}


def asked_together(brokers: Collection[BrokerId], replicas: int) -> list[tuple[BrokerId, ...]]:
    """The brokers whose log dirs are read at the same time: all, or one half after the other if ``replicas`` are many.

    The former sizes of the first half are freed before the second half is read.
    """
    each = sorted(brokers)
    return [tuple(each)] if replicas < _MANY_REPLICAS or len(each) < 2 else [tuple(each[::2]), tuple(each[1::2])]


def known_ones(
    found: Mapping[TopicPartition, PartitionState], known: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, PartitionState]:
    """This reading, with known objects instead of equal new ones, so that the new ones can be freed."""
    kept = {}
    for tp, new in found.items():
        old = known.get(tp)
        state = old if old is not None and (old is new or old == new) else new
        kept[state.tp] = state
    return kept


def compared(
    found: dict[TopicPartition, PartitionState],
    before: Mapping[TopicPartition, PartitionState],
    kept: Mapping[TopicPartition, PartitionState],
) -> Comparison:
    """Every partition after this reading; those changed since the one before, the unhealthy ones, those in flight.

    Runs in a thread. The garbage collector never searches the first reading. ``found`` becomes the first of what is
    returned: an unchanged partition stays the same object, because two readings of a large cluster would take twice the
    memory. ``kept``: partitions that this reading does not have and that stay as before.
    """
    with nullcontext() if before else kept_for_long(len(found)):
        return _compared(found, before, kept)


def changed_since(
    found: Mapping[TopicPartition, PartitionState], known: Mapping[TopicPartition, PartitionState]
) -> set[TopicPartition]:
    """The partitions that read otherwise than they are known."""
    return {tp for tp, state in found.items() if known.get(tp) != state}


def _compared(
    found: dict[TopicPartition, PartitionState],
    before: Mapping[TopicPartition, PartitionState],
    kept: Mapping[TopicPartition, PartitionState],
) -> Comparison:
    known, changed = found, set[TopicPartition]()
    for tp, state in found.items():
        old = before.get(tp)
        if old is state:
            continue
        if old == state:
            known[tp] = old
        else:
            changed.add(tp)
    known |= kept
    changed |= before.keys() - known.keys()
    return known, changed, unhealthy(known), {tp for tp, state in known.items() if state.adding or state.removing}


def suspects(unhealthy: Collection[TopicPartition], planned: Collection[TopicPartition]) -> set[TopicPartition]:
    """The planned partitions among the unhealthy ones, to be read again; none if they are many.

    A broker with outdated metadata shows the new replica of a step that has just ended as out of sync. The health gate
    must not stay closed until the next reading of everything.
    """
    found = set(islice((tp for tp in unhealthy if tp in planned), _SUSPECTS_AT_MOST))
    return found if len(found) < _SUSPECTS_AT_MOST else set()


def update_unhealthy(
    unhealthy: dict[TopicPartition, PartitionState],
    read: set[TopicPartition],
    known: Mapping[TopicPartition, PartitionState],
) -> None:
    """Update in place those that were read since; none is added before the next reading of everything."""
    for tp in unhealthy.keys() & read:
        state = known.get(tp)
        if state is None or not is_unhealthy(state):
            del unhealthy[tp]
        else:
            unhealthy[tp] = state


def held_by(state: PartitionState | None) -> tuple[frozenset[BrokerId], Replicas] | None:
    """The brokers that hold the partition, and those that are still copying it. Their order does not matter on disk."""
    return None if state is None else (frozenset(state.replicas), state.adding)


def absent_from(
    known: Mapping[TopicPartition, PartitionState], asked: Collection[TopicPartition]
) -> set[TopicPartition]:
    """Those of these partitions that are not known. ``set.difference`` would look at each that is."""
    return {tp for tp in asked if tp not in known}
