"""Which of the ready calls to send now: the one place that enforces every limit, over all rebalances together.

Pure. Reassignments in flight count first; then each rebalance, in order of precedence, takes what its own limits, the
ceilings over all of them, the brokers and their disks admit. Like ``judge`` it looks only at what was observed.

A round has at most ``MOST_CALLS`` of each rebalance, so that none takes the calls of others.

Order within a rebalance: partitions already begun, then new ones; internal topics after others; leader movements (at
most KIP-435's L) before the rest; calls that copy nothing before copies, which ``execution.copy_order`` orders.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain, product
from types import MappingProxyType

from kafka_rebalance.execution.copy_order import BytesInOut, Pipes, Traffic, chain_left, together
from kafka_rebalance.execution.limits import Ceilings, Limits, LimitUsage
from kafka_rebalance.execution.list_budget import ListBudget, ListRoom
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.execution.ready_calls import ReadyCalls
from kafka_rebalance.execution.room_order import reservations
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.execution.tight_disks import may_be_tight, moving, shifts_at_tight
from kafka_rebalance.model.rate_room import RateKey
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, Replicas, TopicPartition

_EMPTY_LISTS = ListBudget()
_FIRST_LOOK = 4
"""How many calls of each pipe are looked at first."""
MOST_CALLS = 10_000
"""Calls of one rebalance in one round. What is in flight grows to P over several rounds: to send and to record a call
takes some 0.1 ms of the event loop, which serves all clusters."""
_INTERNAL_LEADERS = 1
"""Leader movements of internal topics at the same time, cluster-wide."""


@dataclass(frozen=True, slots=True)
class RebalanceShare:
    """One rebalance: its statuses, the bytes of one replica of each partition (absent: unknown), its limits.

    ``goals``: the list that each partition goes to in the end. Without it, room is not kept for what has to come first.
    ``kept_free``: bytes that its copies leave free on brokers in any case. ``waiting``: bytes into and out of each
    broker that are not in flight; None: not known. ``held``: partitions that may not begin now, each with a rate that
    is at its limit.

    What a caller keeps between rounds, and is found from the statuses without it: ``few`` of the statuses, among them
    all in flight, all that wait and all to be cancelled; the ``ready`` calls; the bytes ``coming`` to each broker at
    most.
    """

    statuses: Mapping[TopicPartition, PartitionStatus]
    sizes: Mapping[TopicPartition, int]
    limits: Limits
    goals: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    kept_free: Mapping[BrokerId, int] = field(default_factory=dict)
    few: Mapping[TopicPartition, PartitionStatus] | None = None
    ready: ReadyCalls | None = None
    coming: Mapping[BrokerId, int] | None = None
    waiting: BytesInOut | None = None
    held: Mapping[TopicPartition, RateKey] = field(default_factory=dict)

    @property
    def unsettled(self) -> Mapping[TopicPartition, PartitionStatus]:
        """With those in flight, those that wait and those to be cancelled."""
        return self.statuses if self.few is None else self.few


@dataclass(frozen=True, slots=True)
class Orders:
    """The calls to send. ``cancels`` may always be sent; ``alters`` only after their throttle entries are in place.

    ``no_room``: partitions that only a full disk holds back, with its broker; ``list_full``: those that only a list of
    throttled replicas holds back, which has no room for their entries; ``at_limit``: those that the limit of a rate
    holds back; ``more``: whether others wait for the next round, because there are ``MOST_CALLS``.
    """

    cancels: tuple[TopicPartition, ...] = ()
    alters: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    elections: tuple[TopicPartition, ...] = ()
    no_room: Mapping[TopicPartition, BrokerId] = field(default_factory=dict)
    list_full: frozenset[TopicPartition] = frozenset()
    at_limit: Mapping[TopicPartition, RateKey] = field(default_factory=dict)
    more: bool = False


def schedule(
    shares: Sequence[RebalanceShare],
    cluster: ClusterState,
    ceilings: Ceilings,
    free_bytes: Mapping[BrokerId, int] = MappingProxyType({}),
    replica_bytes: ReplicaBytes = MappingProxyType({}),
    list_budget: ListBudget = _EMPTY_LISTS,
    in_flight: Collection[TopicPartition] | None = None,
    *,
    copying: bool = True,
) -> list[Orders]:
    """The calls of each share, in the order of ``shares``, which is the order of precedence.

    ``copying`` False: only those that copy nothing, so that disks, lists and brokers do not matter.

    ``free_bytes``: usable bytes of the fullest log dir of each broker (absent: unknown, no limit); the bytes that
    copies in flight still lack, and all bytes of those chosen, must fit, because old and new copies coexist, and leave
    room for what has to come first (``execution.room_order``).
    ``replica_bytes``: sizes on disk. ``list_budget``: what the lists of throttled replicas hold already. Partitions of
    ``cluster`` ``in_flight`` (None: look) that are in no share count towards the cluster-wide limits. A step that alone
    exceeds a cap on copies may run alone, or it would never start; a full disk is never exceeded. Cancels are never
    held back.
    """
    usage = _Usage(ceilings, Traffic(free_bytes, together(share.waiting for share in shares)), ListRoom(list_budget))
    turns = [_Turn(share, cluster, usage) for share in shares]
    for tp in cluster.partitions if in_flight is None else in_flight:
        state = cluster.partitions[tp]
        if state.adding or state.removing:
            mine = [turn for turn in turns if tp in turn.share.statuses]
            turn = max(mine, key=lambda t: t.moves(tp)) if len(mine) > 1 else next(iter(mine), None)
            usage.count_in_flight(state, turn)
            if copying:
                usage.count_traffic(state, turn, replica_bytes)
    if free_bytes and copying:
        kept = {broker: max(s.kept_free.get(broker, 0) for s in shares) for s in shares for broker in s.kept_free}
        room = {broker: free - kept.get(broker, 0) for broker, free in usage.traffic.room.items()}
        if may_be_tight([s.coming for s in shares], room):
            rows = [m for s in shares for m in moving(s.statuses, s.goals, s.sizes, cluster) if m.tp not in s.held]
            usage.reserved = reservations(shifts_at_tight(rows, replica_bytes, room), room)
    return [turn.orders(copying=copying) for turn in turns]


class _Usage:
    """The steps in flight in the cluster and the chosen ones; the set only grows."""

    def __init__(self, ceilings: Ceilings, traffic: Traffic, lists: ListRoom) -> None:
        self.budget = LimitUsage(ceilings)
        self.lists = lists
        self.traffic = traffic
        self.internal_leaders = 0
        self.reserved: Mapping[TopicPartition, Mapping[BrokerId, int]] = {}

    def count_in_flight(self, state: PartitionState, turn: "_Turn | None") -> None:
        """Count a partition that Kafka is reassigning; ``turn``: of its share, None: it is in no share."""
        self.budget.replicas += len(state.adding)
        if turn:
            turn.count_in_flight(state.tp, len(state.adding))
        else:
            self.budget.partitions += 1

    def count_traffic(self, state: PartitionState, turn: "_Turn | None", replica_bytes: ReplicaBytes) -> None:
        """Count the bytes that its copies still lack."""
        tp = state.tp
        size, left = turn.size_and_chain(tp, state) if turn else (0, 0)
        for broker in state.adding:
            arrived = size if broker in state.isr else min(size, replica_bytes.get((tp, broker), 0))
            self.traffic.add(state.leader, broker, size - arrived, left)


@dataclass(slots=True)
class _Ready:
    """Ready calls of one class, by queue: those that copy nothing, and those that copy. The largest are first."""

    internal: bool = False
    leads: bool = False
    at_once: list[Sequence[TopicPartition]] = field(default_factory=list)
    pipes: list[Sequence[TopicPartition]] = field(default_factory=list)
    several: bool = False
    """Whether a call has several new replicas."""


class _Turn:
    """Chooses the calls of one share, best first, within every limit, and counts them."""

    def __init__(self, share: RebalanceShare, cluster: ClusterState, usage: _Usage) -> None:
        self.share = share
        self._cluster = cluster
        self._usage = usage
        self._budget = LimitUsage(share.limits)
        self._alters: dict[TopicPartition, Replicas] = {}
        self._elections: list[TopicPartition] = []
        self._no_room: dict[TopicPartition, BrokerId] = {}
        self._list_full: set[TopicPartition] = set()
        self._cancels: list[TopicPartition] = []
        kept = share.ready
        ready = kept if kept is not None else ReadyCalls.of(share.statuses, cluster.partitions, share.sizes)
        self._ready = ready.without(share.held) if share.held else ready
        for tp, status in share.unsettled.items():
            if status.phase is MovePhase.IN_FLIGHT:
                self._count(tp, leads=status.leader_movement)
            elif status.cancel:
                self._cancels.append(tp)
                self._count(tp, leads=False)

    @property
    def _budgets(self) -> tuple[LimitUsage, LimitUsage]:
        return self._budget, self._usage.budget

    def moves(self, tp: TopicPartition) -> tuple[bool, bool]:
        """Whether the share has one of its partitions in flight, and whether it has begun to move it.

        Several plans may have the same partition, but only one of the shares moves it.
        """
        status = self.share.statuses[tp]
        return status.phase is MovePhase.IN_FLIGHT, status.started and status.phase is not MovePhase.SKIPPED

    def count_in_flight(self, tp: TopicPartition, copies: int) -> None:
        """Count one of the share's partitions that Kafka is reassigning with this number of copies."""
        self._budget.replicas += copies
        status = self.share.unsettled.get(tp)
        if status is not None and status.phase is MovePhase.WAITING and status.started:
            self._count(tp, leads=False)  # ours, and cannot be cancelled now; a foreign one does not count

    def size_and_chain(self, tp: TopicPartition, state: PartitionState | None) -> tuple[int, int]:
        """The bytes of one replica of one of the share's partitions, and its ``copy_order.chain_left``."""
        share = self.share
        size = share.sizes.get(tp, 0)
        return size, chain_left(state, share.goals.get(tp, ()), size, share.limits.parallel_replicas)

    def orders(self, *, copying: bool) -> Orders:
        """The calls to send. Everything in flight, of all shares, must be counted before."""
        if self._admits_partition(_Ready()):
            for ready in self._ready_classes():
                self._take_at_once(ready)
                if copying:
                    self._take_copying(ready)
        cancels, elections, full = tuple(sorted(self._cancels)), tuple(self._elections), frozenset(self._list_full)
        more = self._budget.calls >= MOST_CALLS
        return Orders(cancels, self._alters, elections, self._no_room, full, self.share.held, more)

    def _ready_classes(self) -> list[_Ready]:
        """Ready calls by class, in the order of precedence."""
        classes_of = product((True, False), (False, True), (True, False))
        classes = [_Ready(internal=internal, leads=leads) for _begun, internal, leads in classes_of]
        shut = self._usage.traffic.shut(self.share.limits.per_broker_in)
        for queue, waiting in self._ready.queues.items():
            ready = classes[(0 if queue.begun else 4) + (2 if queue.internal else 0) + (0 if queue.leads else 1)]
            if queue.pipe is None:
                ready.at_once.append(waiting)
            elif queue.pipe.destination not in shut:
                ready.pipes.append(waiting)
                ready.several |= queue.pipe.copies > 1
        return classes

    def _take_at_once(self, ready: _Ready) -> None:
        """Take calls that only P and L limit: the largest partitions first."""
        for tp in merge(*ready.at_once, key=self._ready.order):
            if not self._admits_partition(ready):
                return
            self._send(tp)

    def _take_copying(self, ready: _Ready) -> None:
        """Look at the first of each pipe, and at more where these are not enough to be sure of the choice."""
        if not ready.pipes or not self._admits_partition(ready) or self._most_copies() == 0:
            return
        depths = [_FIRST_LOOK] * len(ready.pipes)
        while any(depth < len(pipe) for depth, pipe in zip(depths, ready.pipes, strict=True)):
            short = self._take_first(ready, depths)
            if not short:
                return
            depths = [depth * 8 if at in short else depth for at, depth in enumerate(depths)]
        self._take_all(ready)

    def _take_first(self, ready: _Ready, depths: Sequence[int]) -> Collection[int]:
        """Take from the first of each pipe, to these ``depths``, if the choice is that from all; else take nothing.

        It is if no pipe that is longer was emptied, and if nothing but the pipe's own end held a partition back: its
        disks, the lists of throttled replicas and the caps of all its new brokers had room to the end. Returns the
        pipes of which more has to be looked at, by number; none: the calls are taken.
        """
        usage, limits, every = self._usage, self.share.limits, range(len(ready.pipes))
        first = sorted(tp for pipe, depth in zip(ready.pipes, depths, strict=True) for tp in pipe[:depth])
        lefts = [left for budget in self._budgets if (left := budget.partitions_left) is not None]
        most = min(lefts, default=len(self.share.statuses))
        if usage.reserved or not self._lists_have_room({tp.topic for tp in first}, most, ready):
            return every
        before = usage.traffic.copy(), usage.internal_leaders, (replace(self._budget), replace(usage.budget))
        chosen, pipes = list[TopicPartition](), self._pipes_of(self._calls_of(first))
        while self._admits_partition(ready) and (tp := pipes.pop(self._most_copies())) is not None:
            chosen.append(tp)
            self._count_call(tp)
        taken, numbered = set(chosen), enumerate(zip(ready.pipes, depths, strict=True))
        emptied = {at for at, (pipe, end) in numbered if len(pipe) > end and taken.issuperset(pipe[:end])}
        largest, kept = max(self.share.sizes.get(pipe[0], 0) for pipe in ready.pipes), self.share.kept_free
        full = any(room - kept.get(broker, 0) < largest for broker, room in usage.traffic.room.items())
        held_back = full or (ready.several and usage.traffic.shut(limits.per_broker_in))
        if emptied or held_back:
            usage.traffic, usage.internal_leaders, (self._budget, usage.budget) = before
            return every if held_back else emptied
        for tp in chosen:
            self._order(tp)
        return ()

    def _lists_have_room(self, topics: Collection[str], most: int, ready: _Ready) -> bool:
        """Whether the lists of these topics certainly have room for ``most`` of the calls."""
        lists = self._usage.lists
        doubted = [topic for topic in topics if not lists.has_ample_room(topic, most)]
        counts = Counter([tp.topic for pipe in ready.pipes for tp in pipe]) if doubted else Counter[str]()
        return all(lists.has_ample_room(topic, min(counts[topic], most)) for topic in doubted)

    def _take_all(self, ready: _Ready) -> None:
        waiting: Mapping[TopicPartition, Alter] = self._calls_of(sorted(chain.from_iterable(ready.pipes)))
        while waiting and self._admits_partition(ready) and self._most_copies() != 0:
            fit = self._fit_the_lists(waiting)
            if not fit:
                # A list that cannot be read is not reported as full here: the reader of the list reports the error.
                self._list_full |= {tp for tp in waiting if tp.topic not in self._usage.lists.unreadable}
                return
            pipes = self._pipes_of(fit)
            while self._admits_partition(ready) and (tp := pipes.pop(self._most_copies())) is not None:
                self._send(tp)
            self._no_room |= pipes.no_room
            waiting = {tp: call for tp, call in waiting.items() if tp not in fit}

    def _calls_of(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, Alter]:
        return {tp: call for tp in tps if isinstance(call := self.share.statuses[tp].call, Alter)}

    def _fit_the_lists(self, waiting: Mapping[TopicPartition, Alter]) -> Mapping[TopicPartition, Alter]:
        """The first of these calls whose entries fit into the lists of throttled replicas together."""
        counts = Counter(tp.topic for tp in waiting)
        lefts = [left for budget in self._budgets if (left := budget.partitions_left) is not None]
        most = min(lefts, default=len(waiting))
        tight = {topic for topic, n in counts.items() if not self._usage.lists.has_ample_room(topic, min(n, most))}
        if not tight:
            return waiting
        trial, states, full = self._usage.lists.copy(), self._cluster.partitions, set[str]()
        fit = {}
        for tp, call in waiting.items():
            if tp.topic in full:
                continue
            if tp.topic not in tight or tp not in states or trial.admits_step(states[tp], call.replicas):
                fit[tp] = call
            else:
                full.add(tp.topic)  # the others of this topic need about as much
        return fit

    def _pipes_of(self, calls: Mapping[TopicPartition, Alter]) -> Pipes:
        share, states, limits = self.share, self._cluster.partitions, self.share.limits
        return Pipes(
            list(calls),
            [call.until_in_sync for call in calls.values()],
            share.sizes,
            states,
            self._usage.traffic,
            limits.per_broker_in,
            limits.per_broker_out,
            self._usage.reserved,
            share.kept_free,
            lambda tp: self.size_and_chain(tp, states.get(tp))[1],
        )

    def _send(self, tp: TopicPartition) -> None:
        self._count_call(tp)
        self._order(tp)

    def _count_call(self, tp: TopicPartition) -> None:
        status = self.share.statuses[tp]
        copies = len(status.call.until_in_sync) if isinstance(status.call, Alter) else 0
        self._count(tp, leads=status.leader_movement, copies=copies)
        self._budget.calls += 1

    def _order(self, tp: TopicPartition) -> None:
        call = self.share.statuses[tp].call
        if isinstance(call, Alter):
            self._alters[tp] = call.replicas
            if call.until_in_sync and tp in self._cluster.partitions:
                self._usage.lists.admits_step(self._cluster.partitions[tp], call.replicas)
        elif isinstance(call, Elect):
            self._elections.append(tp)

    def _count(self, tp: TopicPartition, *, leads: bool, copies: int = 0) -> None:
        for budget in self._budgets:
            budget.partitions += 1
            budget.leader_movements += leads
            budget.replicas += copies
        self._usage.internal_leaders += leads and tp.internal

    def _admits_partition(self, ready: _Ready) -> bool:
        if ready.internal and ready.leads and self._usage.internal_leaders >= _INTERNAL_LEADERS:
            return False
        if self._budget.calls >= MOST_CALLS:
            return False
        return all(budget.admits_partition(leads=ready.leads) for budget in self._budgets)

    def _most_copies(self) -> int | None:
        """How many new replicas the next step may add; None: any number."""
        return min((most for budget in self._budgets if (most := budget.most_copies) is not None), default=None)
