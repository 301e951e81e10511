"""What may be sent now, out of what is ready: the one place where every cap is enforced, over all rebalances together.

Rebalances take their turns in order of precedence. Whatever Kafka carries out already counts first; then each turn
takes what its own limits, the ceilings over all of them, the brokers and their disks admit. Usage only grows while
choosing, so what does not fit once is never looked at again. Like the judge, this looks only at the present.

Order within a turn: partitions already begun, then new ones; internal topics after others; leader movements (at most
KIP-435's L) before the rest. Among copies, the pipe (from the leader to a new replica) whose ends have the fewest bytes
under way comes next, with its largest partition: every pipe is full, no broker is piled upon, and the longest copy does
not start last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from types import MappingProxyType

from kafka_rebalance.execution.decide import Kind, Verdict
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition

_INTERNAL_LEADERS = 1
"""Leaders of internal topics that move at once, cluster-wide."""

_Pipe = tuple[BrokerId | None, BrokerId | None, int]
"""Leader, first new replica and number of new replicas of a call; both None for a call that copies nothing."""
_Row = tuple[int, TopicPartition]
"""Size in bytes, negated, and partition: sorts the largest first, equal ones by name."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one rebalance, as they are in its spec now (patched in flight).

    KIP-435's R, P and L and its cap on copies count what the rebalance itself has in flight. ``per_broker_in`` and
    ``per_broker_out`` (design, ``execution.maxPerBroker``) hold back its submissions, but count the copies of all
    rebalances on the broker. None: no cap.
    """

    parallel_replicas: int
    parallel_partitions: int
    parallel_leader_movements: int
    max_concurrent_replicas: int
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


@dataclass(frozen=True, slots=True)
class Share:
    """One rebalance's part: its verdicts, the bytes of one replica of each partition (absent: unknown), its limits."""

    verdicts: Mapping[TopicPartition, Verdict]
    sizes: Mapping[TopicPartition, int]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Orders:
    """What to send. ``cancels`` may always be sent; ``alters`` only after their throttle entries are in place.

    ``no_room``: partitions held back by nothing but the disk of the broker named.
    """

    cancels: tuple[TopicPartition, ...] = ()
    alters: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    elections: tuple[TopicPartition, ...] = ()
    no_room: Mapping[TopicPartition, BrokerId] = field(default_factory=dict)


def schedule(
    shares: Sequence[Share],
    cluster: ClusterState,
    ceilings: Ceilings,
    free_bytes: Mapping[BrokerId, int] = MappingProxyType({}),
    replica_bytes: ReplicaBytes = MappingProxyType({}),
) -> list[Orders]:
    """What each share may send, in the order of ``shares``, which is the order of precedence.

    ``free_bytes``: usable bytes of the fullest log dir of each broker (absent: unknown, nothing is held back); what
    copies in flight still lack, and all of those chosen, must fit, because old and new copies coexist.
    ``replica_bytes``: what lies on disk already. Partitions of ``cluster`` that are in flight and in no share count
    towards what is cluster-wide. A step that alone exceeds a cap on copies passes when nothing else counts against
    that cap, or it would never come; nothing ever passes a full disk. Cancels are never held back.
    """
    usage = _Usage(ceilings, free_bytes)
    turns = [_Turn(share, cluster, usage) for share in shares]
    for tp, state in cluster.partitions.items():
        if state.adding or state.removing:
            turn = next((turn for turn in turns if tp in turn.share.verdicts), None)
            usage.count_in_flight(tp, state, turn, replica_bytes)
    return [turn.orders() for turn in turns]


def _admits(cap: int | None, used: int, more: int) -> bool:
    """Whether a cap on copies admits ``more`` of them: within the cap, or alone."""
    return cap is None or used == 0 or used + more <= cap


@dataclass(slots=True)
class _Budget:
    """P, L and the cap on copies, of one rebalance or of all together, and what counts towards them."""

    parallel_partitions: int | None
    parallel_leader_movements: int | None
    max_concurrent_replicas: int | None
    partitions: int = 0
    leader_movements: int = 0
    replicas: int = 0

    def admits_partition(self, *, leads: bool) -> bool:
        """Whether another partition may be sent something; ``leads``: a leader movement."""
        if self.parallel_partitions is not None and self.partitions >= self.parallel_partitions:
            return False
        if not leads or self.parallel_leader_movements is None:
            return True
        return self.leader_movements < self.parallel_leader_movements

    def admits_replicas(self, copies: int) -> bool:
        """Whether so many copies may begin."""
        return _admits(self.max_concurrent_replicas, self.replicas, copies)


class _Usage:
    """What is under way in the cluster, and what has been chosen: it only ever grows."""

    def __init__(self, ceilings: Ceilings, free_bytes: Mapping[BrokerId, int]) -> None:
        self.budget = _Budget(
            ceilings.parallel_partitions, ceilings.parallel_leader_movements, ceilings.max_concurrent_replicas
        )
        self.internal_leaders = 0
        self.copies_into: defaultdict[BrokerId | None, int] = defaultdict(int)
        self.copies_out_of: defaultdict[BrokerId | None, int] = defaultdict(int)
        # Bytes; each copy counts one more than it has, so that copies of unknown or no size are spread as well.
        self.load_into: defaultdict[BrokerId | None, int] = defaultdict(int)
        self.load_out_of: defaultdict[BrokerId | None, int] = defaultdict(int)
        self._room = dict(free_bytes)

    def count_in_flight(
        self, tp: TopicPartition, state: PartitionState, turn: _Turn | None, replica_bytes: ReplicaBytes
    ) -> None:
        """Kafka is reassigning a partition; ``turn``: of the share that it belongs to, None: of none."""
        copies = len(state.adding)
        size = 0
        self.budget.replicas += copies
        if turn is None:
            self.budget.partitions += 1
        else:
            turn.count_in_flight(tp, copies)
            size = turn.size_of(tp)
        for broker in state.adding:
            arrived = size if broker in state.isr else replica_bytes.get((tp, broker), 0)
            self.count_copy(state.leader, broker, max(0, size - arrived))

    def count_copy(self, source: BrokerId | None, destination: BrokerId, size: int) -> None:
        """A copy of which ``size`` bytes are still to come."""
        self.copies_into[destination] += 1
        self.load_into[destination] += size + 1
        if source is not None:
            self.copies_out_of[source] += 1
            self.load_out_of[source] += size + 1
        if destination in self._room:
            self._room[destination] -= size

    def load(self, source: BrokerId | None, destinations: Replicas) -> tuple[int, int, int]:
        """Sorts the least loaded first: by the busiest end, then the busiest destination, then the source."""
        if not destinations:
            return (-1, -1, -1)  # copies nothing and is done at once
        into = max([self.load_into[broker] for broker in destinations])
        out_of = self.load_out_of[source]
        return (max(into, out_of), into, out_of)

    def full_disk(self, destinations: Replicas, size: int) -> BrokerId | None:
        """The first destination on whose disk so many bytes do not fit."""
        return next((broker for broker in destinations if size > self._room.get(broker, size)), None)


class _Turn:
    """One share's turn: takes what every cap admits, best first, and counts it."""

    def __init__(self, share: Share, cluster: ClusterState, usage: _Usage) -> None:
        self.share = share
        self._cluster = cluster
        self._usage = usage
        limits = share.limits
        self._budget = _Budget(
            limits.parallel_partitions, limits.parallel_leader_movements, limits.max_concurrent_replicas
        )
        self._cancels: list[TopicPartition] = []
        self._ready: list[TopicPartition] = []
        self._alters: dict[TopicPartition, Replicas] = {}
        self._elections: list[TopicPartition] = []
        self._no_room: dict[TopicPartition, BrokerId] = {}
        for tp, verdict in share.verdicts.items():
            if verdict.cancel:
                self._cancels.append(tp)
                self._count(tp, leads=False)
            elif verdict.kind is Kind.IN_FLIGHT:
                self._count(tp, leads=verdict.leader_movement)
            elif verdict.kind is Kind.READY and verdict.call is not None:
                self._ready.append(tp)

    def size_of(self, tp: TopicPartition) -> int:
        """Bytes of one replica; 0 where unknown."""
        return max(0, self.share.sizes.get(tp, 0))

    def count_in_flight(self, tp: TopicPartition, copies: int) -> None:
        """Kafka lists one of our partitions with so many copies."""
        self._budget.replicas += copies
        verdict = self.share.verdicts[tp]
        if verdict.kind is Kind.WAITING and verdict.started:
            self._count(tp, leads=False)  # ours, and cannot be cancelled now; a foreign one takes no slot

    def orders(self) -> Orders:
        """What is sent. What all shares have in flight must have been counted before."""
        for ready, internal, leads in self._in_classes():
            self._take(ready, internal=internal, leads=leads)
        return Orders(tuple(sorted(self._cancels)), self._alters, tuple(self._elections), self._no_room)

    def _in_classes(self) -> Iterator[tuple[list[TopicPartition], bool, bool]]:
        """What is ready, first things first, with whether it is internal and whether it moves a leader."""
        if not self._admits_partition(internal=False, leads=False):
            return
        classes: defaultdict[tuple[bool, bool, bool], list[TopicPartition]] = defaultdict(list)
        verdicts = self.share.verdicts
        for tp in self._ready:
            verdict = verdicts[tp]
            classes[not verdict.started, tp.internal, not verdict.leader_movement].append(tp)
        for key in sorted(classes):
            yield classes[key], key[1], not key[2]

    def _take(self, ready: list[TopicPartition], *, internal: bool, leads: bool) -> None:
        """Take from one class until it or a cap is exhausted.

        The heap holds the head of every pipe under the load that it had when it was put in. Loads only grow, so an
        entry that is still right when it comes up is the least loaded of all.
        """
        if not self._admits_partition(internal=internal, leads=leads):
            return
        pipes = self._pipes(ready)
        heap = [self._head(pipe, rows) for pipe, rows in pipes.items()]
        heapify(heap)
        while heap and self._admits_partition(internal=internal, leads=leads):
            _, (_, tp), pipe = heap[0]
            rows = pipes[pipe]
            head = self._head(pipe, rows)
            if head != heap[0]:
                heapreplace(heap, head)
                continue
            if not self._admits_pipe(pipe):
                heappop(heap)
                continue
            self._take_or_leave(tp, pipe[0], leads=leads)
            heappop(rows)
            if rows:
                heapreplace(heap, self._head(pipe, rows))
            else:
                heappop(heap)

    def _pipes(self, ready: list[TopicPartition]) -> dict[_Pipe, list[_Row]]:
        """The partitions by pipe, each a heap with the largest first."""
        pipes: defaultdict[_Pipe, list[_Row]] = defaultdict(list)
        verdicts, sizes, partitions = self.share.verdicts, self.share.sizes, self._cluster.partitions
        for tp in ready:
            copies = _copies(verdicts[tp])
            row = (-sizes.get(tp, 0), tp)
            if copies:
                state = partitions.get(tp)
                pipes[state.leader if state else None, copies[0], len(copies)].append(row)
            else:
                pipes[None, None, 0].append(row)
        for rows in pipes.values():
            heapify(rows)
        return pipes

    def _head(self, pipe: _Pipe, rows: list[_Row]) -> tuple[tuple[int, int, int], _Row, _Pipe]:
        return self._usage.load(pipe[0], _copies(self.share.verdicts[rows[0][1]])), rows[0], pipe

    def _take_or_leave(self, tp: TopicPartition, source: BrokerId | None, *, leads: bool) -> None:
        usage, verdict = self._usage, self.share.verdicts[tp]
        copies, size = _copies(verdict), self.size_of(tp)
        if not all(_admits(self.share.limits.per_broker_in, usage.copies_into[b], 1) for b in copies):
            return
        full = usage.full_disk(copies, size)
        if full is not None:
            self._no_room[tp] = full
            return
        if isinstance(verdict.call, Alter):
            self._alters[tp] = verdict.call.replicas
        elif isinstance(verdict.call, Elect):
            self._elections.append(tp)
        self._count(tp, leads=leads)
        self._budget.replicas += len(copies)
        usage.budget.replicas += len(copies)
        for broker in copies:
            usage.count_copy(source, broker, size)

    def _count(self, tp: TopicPartition, *, leads: bool) -> None:
        for budget in (self._budget, self._usage.budget):
            budget.partitions += 1
            budget.leader_movements += leads
        self._usage.internal_leaders += leads and tp.internal

    def _admits_partition(self, *, internal: bool, leads: bool) -> bool:
        if internal and leads and self._usage.internal_leaders >= _INTERNAL_LEADERS:
            return False
        return self._budget.admits_partition(leads=leads) and self._usage.budget.admits_partition(leads=leads)

    def _admits_pipe(self, pipe: _Pipe) -> bool:
        """Whether there is any room for the pipe's copies; the other destinations of a head are judged with it."""
        source, destination, copies = pipe
        if not copies:
            return True
        limits, usage = self.share.limits, self._usage
        return (
            self._budget.admits_replicas(copies)
            and usage.budget.admits_replicas(copies)
            and _admits(limits.per_broker_in, usage.copies_into[destination], 1)
            and _admits(limits.per_broker_out, usage.copies_out_of[source], copies)
        )


def _copies(verdict: Verdict) -> Replicas:
    """The replicas that the call makes."""
    return verdict.call.until_in_sync if isinstance(verdict.call, Alter) else ()
