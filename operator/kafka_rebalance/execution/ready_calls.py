"""The calls of a run that are ready, in the order in which they are taken: kept between rounds, updated where changed.

Pure: ``updated`` returns a new value. Copies wait in pipes, from a leader to the first new replica of a call; in each
the largest partition is first. A round takes a few calls of hundreds of thousands, so ``schedule`` looks at the first
of each pipe only, as far as it needs them.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Self

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.steps import Alter
from kafka_rebalance.model.amended import amended
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition

_MANY = 16
"""More changes than one in this many of a queue: sort it instead."""


class Pipe(NamedTuple):
    """From the leader (None: unknown) to the first new replica; calls with more new replicas have their own."""

    source: BrokerId | None
    destination: BrokerId
    copies: int


class Queue(NamedTuple):
    """Which calls wait together. ``pipe`` None: they copy nothing. ``pausable``: a pause holds them back."""

    begun: bool
    internal: bool
    leads: bool
    pausable: bool
    pipe: Pipe | None


@dataclass(frozen=True, slots=True)
class ReadyCalls:
    """Of one run: the partitions of each queue, the largest first, then by name. ``sizes``: as planned."""

    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    queues: Mapping[Queue, tuple[TopicPartition, ...]] = field(default_factory=dict)
    _where: Mapping[TopicPartition, Queue | None] = field(default_factory=dict)
    _to_rest: frozenset[TopicPartition] = frozenset()
    """The partitions that have another call during a pause: it only drops replicas."""

    @classmethod
    def of(
        cls,
        statuses: Mapping[TopicPartition, PartitionStatus],
        partitions: Mapping[TopicPartition, PartitionState],
        sizes: Mapping[TopicPartition, int],
    ) -> Self:
        """The ready ones of these."""
        where = dict[TopicPartition, Queue | None]()
        waiting: defaultdict[Queue, list[tuple[int, TopicPartition]]] = defaultdict(list)
        to_rest, size_of = set[TopicPartition](), sizes.get
        for tp, status in statuses.items():
            where[tp] = queue = _queue_of(tp, status, partitions.get(tp))
            if queue is not None:
                waiting[queue].append((-size_of(tp, 0), tp))  # as by ``order``, without a call for each
            if status.pausable and status.to_rest is not None:
                to_rest.add(tp)
        for rows in waiting.values():
            rows.sort()
        queues = {queue: tuple([tp for _, tp in rows]) for queue, rows in waiting.items()}
        return cls(sizes, queues, where, frozenset(to_rest))

    def updated(
        self,
        changed: Iterable[TopicPartition],
        statuses: Mapping[TopicPartition, PartitionStatus],
        partitions: Mapping[TopicPartition, PartitionState],
    ) -> Self:
        """After these partitions have changed, or their statuses."""
        changed = list(changed)
        where: dict[TopicPartition, Queue | None] = {}
        gone: defaultdict[Queue, list[TopicPartition]] = defaultdict(list)
        come: defaultdict[Queue, list[TopicPartition]] = defaultdict(list)
        for tp in changed:
            before, now = self._where.get(tp), _queue_of(tp, statuses[tp], partitions.get(tp))
            if before != now or tp not in self._where:
                where[tp] = now
            if before is not None and before != now:
                gone[before].append(tp)
            if now is not None and before != now:
                come[now].append(tp)
        queues = dict(self.queues)
        for queue in gone.keys() | come.keys():
            left = self._sorted(queues.pop(queue, ()), gone[queue], come[queue])
            if left:
                queues[queue] = left
        to_rest = {tp for tp in changed if statuses[tp].pausable and statuses[tp].to_rest is not None}
        all_where = amended(self._where, where, share=50)
        return type(self)(self.sizes, queues, all_where, self._to_rest.difference(changed) | to_rest)

    def of_pause(self) -> Self:
        """Those that a pause does not hold back, and those that lead to a rest point instead."""
        queues = {queue: waiting for queue, waiting in self.queues.items() if not queue.pausable}
        for internal in {tp.internal for tp in self._to_rest}:
            queue = Queue(begun=True, internal=internal, leads=False, pausable=False, pipe=None)
            more = (tp for tp in self._to_rest if tp.internal is internal)
            queues[queue] = tuple(sorted((*queues.get(queue, ()), *more), key=self.order))
        return type(self)(self.sizes, queues)

    def without(self, held: Collection[TopicPartition]) -> Self:
        """Those of the other partitions."""
        left = {queue: tuple(tp for tp in waiting if tp not in held) for queue, waiting in self.queues.items()}
        return type(self)(self.sizes, {queue: waiting for queue, waiting in left.items() if waiting})

    def order(self, tp: TopicPartition) -> tuple[int, TopicPartition]:
        """Sorts the largest partition first."""
        return -self.sizes.get(tp, 0), tp

    def _sorted(
        self, waiting: tuple[TopicPartition, ...], gone: list[TopicPartition], come: list[TopicPartition]
    ) -> tuple[TopicPartition, ...]:
        if (len(gone) + len(come)) * _MANY > len(waiting):
            left = set(gone)
            # As by ``order``, without a call for each.
            ordered = [(-self.sizes.get(tp, 0), tp) for tp in (*(tp for tp in waiting if tp not in left), *come)]
            ordered.sort()
            return tuple([tp for _, tp in ordered])
        found = list(waiting)
        for tp in gone:
            del found[bisect_left(found, self.order(tp), key=self.order)]
        for tp in come:
            insort(found, tp, key=self.order)
        return tuple(found)


def _queue_of(tp: TopicPartition, status: PartitionStatus, state: PartitionState | None) -> Queue | None:
    """The queue of its call; None: it has none that is ready."""
    call = status.call
    if call is None or status.phase is not MovePhase.READY:
        return None
    pipe = None
    if isinstance(call, Alter) and call.until_in_sync:
        pipe = (state.leader if state is not None else None, call.until_in_sync[0], len(call.until_in_sync))
    return _interned(status.started, tp.internal, status.leader_movement, status.pausable, pipe)


@lru_cache(maxsize=65536)
def _interned(
    begun: bool,
    internal: bool,
    leads: bool,
    pausable: bool,
    pipe: tuple[BrokerId | None, BrokerId, int] | None,
) -> Queue:
    """Thousands of partitions share a queue."""
    return Queue(begun, internal, leads, pausable, Pipe(*pipe) if pipe is not None else None)
