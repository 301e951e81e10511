"""Which copy to start next: balances bytes over sources and destinations, so that no broker is overloaded or idle.

A pipe leads from a leader to the first new replica of a call; calls with more new replicas have pipes of their own.
The next pipe is the one whose ends have the fewest copies in flight in proportion to the bytes that they still have to
copy, and its largest partition is copied first. So the broker with the most work gets the largest share, and the
longest copy does not start last. The number of copies that share the brokers of a partition with much left to copy, in
one step or in several, is limited, so that it does not end after all others.

Arrays, because hundreds of thousands of copies may be ready; and since traffic only grows while choosing, a copy that
does not fit once is dropped. ``Pipes`` counts in the ``Traffic`` of one call of ``schedule``.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition

_Ints = NDArray[np.int64]
_Flags = NDArray[np.bool_]
BytesInOut = tuple[Mapping[BrokerId, int], Mapping[BrokerId, int]]
"""Bytes into and out of brokers."""
_FINE = 2**50
_NEVER = int(np.iinfo(np.int64).max)
_FEWEST = 4
"""Lower bound of the number of copies that may share a broker."""


def admits(cap: int | None, used: int, more: int) -> bool:
    """Whether a cap on copies admits ``more``: within it, or alone, since a step above the cap would never start."""
    return cap is None or used == 0 or used + more <= cap


def together(waiting: Iterable[BytesInOut | None]) -> BytesInOut | None:
    """The sum of all; None if one of them is not known."""
    into, out_of = Counter[BrokerId](), Counter[BrokerId]()
    for known in waiting:
        if known is None:
            return None
        into.update(known[0])
        out_of.update(known[1])
    return into, out_of


def chain_left(state: PartitionState | None, goal: Replicas, size: int, parallel_replicas: int) -> int:
    """Bytes that a partition copies one after the other: those of one replica for each step that it still needs.

    ``parallel_replicas``: R, how many new replicas one step adds at most; they are copied in parallel.
    """
    if state is None:
        return 0
    lacking = len(goal) - len(state.isr.intersection(goal))
    return size * -(-lacking // parallel_replicas)


def _weight(copies: int, in_flight: int, waiting: int) -> int:
    return copies * _FINE // (in_flight + max(waiting, 0) + 1)


class Traffic:
    """Copies in flight or chosen, by broker: how many, and how many bytes they still lack.

    ``waiting``: bytes into and out of each broker that have to be copied as well; None: not known.
    """

    def __init__(self, free_bytes: Mapping[BrokerId, int], waiting: BytesInOut | None = None) -> None:
        self.copies_into: defaultdict[BrokerId, int] = defaultdict(int)
        self.copies_out_of: defaultdict[BrokerId, int] = defaultdict(int)
        # Bytes, plus one for each copy, so that copies of unknown or no size are spread as well.
        self.load_into: defaultdict[BrokerId, int] = defaultdict(int)
        self.load_out_of: defaultdict[BrokerId, int] = defaultdict(int)
        # Copies of partitions with known chains: their number, and the most bytes that one chain still has to copy.
        self.chained_into: defaultdict[BrokerId, int] = defaultdict(int)
        self.chained_out_of: defaultdict[BrokerId, int] = defaultdict(int)
        self.longest_into: defaultdict[BrokerId, int] = defaultdict(int)
        self.longest_out_of: defaultdict[BrokerId, int] = defaultdict(int)
        self.room = dict(free_bytes)
        self._waiting = waiting
        self._most_work: int | None = None

    def copy(self) -> "Traffic":
        """The same, to try what would fit."""
        copied = Traffic(self.room, self._waiting)
        copied.copies_into.update(self.copies_into)
        copied.copies_out_of.update(self.copies_out_of)
        copied.load_into.update(self.load_into)
        copied.load_out_of.update(self.load_out_of)
        copied.chained_into.update(self.chained_into)
        copied.chained_out_of.update(self.chained_out_of)
        copied.longest_into.update(self.longest_into)
        copied.longest_out_of.update(self.longest_out_of)
        copied._most_work = self._most_work
        return copied

    def shut(self, most_in: int | None) -> set[BrokerId]:
        """Brokers into which a cap admits no further copy."""
        return {broker for broker in self.copies_into if not self.admits_into(broker, most_in)}

    def admits_into(self, broker: BrokerId, most_in: int | None) -> bool:
        """Whether another copy into the broker is within the cap, and leaves the others their share."""
        within = admits(most_in, self.copies_into[broker], 1)
        return within and self.chained_into[broker] < self._most(self.longest_into[broker])

    def left_out_of(self, broker: BrokerId, most_out: int | None) -> int:
        """How many more copies from the broker are within the cap, and leave the others their share."""
        copies = self.copies_out_of[broker]
        cap = _NEVER if most_out is None or not copies else most_out - copies
        chained = self.chained_out_of[broker]
        return min(cap, self._most(self.longest_out_of[broker]) - chained) if chained else cap

    def weight_into(self, broker: BrokerId) -> int:
        """The broker with the lowest weight is next: bytes in flight, or copies in proportion to its bytes to copy."""
        load = self.load_into[broker]
        if self._waiting is None:
            return load
        return _weight(self.copies_into[broker], load, self._waiting[0].get(broker, 0))

    def weight_out_of(self, broker: BrokerId) -> int:
        """As ``weight_into``."""
        load = self.load_out_of[broker]
        if self._waiting is None:
            return load
        return _weight(self.copies_out_of[broker], load, self._waiting[1].get(broker, 0))

    def _most(self, longest: int) -> int:
        """How many copies may share a broker with this chain.

        The copies of a broker share its rate equally. With more of them the chain would outlast the work of the broker
        that has the most, and so the whole run.
        """
        if self._waiting is None or not longest:
            return _NEVER
        if self._most_work is None:  # constant while choosing: bytes only change from waiting to in flight
            into, out_of = Counter(self._waiting[0]), Counter(self._waiting[1])
            into.update(self.load_into)
            out_of.update(self.load_out_of)
            self._most_work = max([*into.values(), *out_of.values()], default=0)
        return max(_FEWEST, self._most_work // longest)

    def add(self, source: BrokerId | None, destination: BrokerId, size: int, chain: int = 0) -> None:
        """Count a copy that still lacks ``size`` bytes; ``chain``: as from ``chain_left``."""
        self.copies_into[destination] += 1
        self.load_into[destination] += size + 1
        if chain > 0:
            self.chained_into[destination] += 1
            if chain > self.longest_into[destination]:
                self.longest_into[destination] = chain
        if source is not None:
            self.copies_out_of[source] += 1
            self.load_out_of[source] += size + 1
            if chain > 0:
                self.chained_out_of[source] += 1
                if chain > self.longest_out_of[source]:
                    self.longest_out_of[source] = chain
        if destination in self.room:
            self.room[destination] -= size


class Pipes:
    """Ready copies of one class: partitions, and the new replicas of each; the first listed wins a tie.

    ``sizes``: bytes of one replica (absent: unknown). ``most_in`` and ``most_out``: copies into and out of one broker
    at the same time, None: any number. ``reserved``: bytes that a copy leaves free for those that come first,
    ``kept_free`` those that it leaves free in any case.
    ``chain_of``: bytes of a partition, as from ``chain_left``.
    ``no_room``: partitions that only a full disk holds back, with its broker.
    """

    def __init__(
        self,
        tps: Sequence[TopicPartition],
        destinations: Sequence[Replicas],
        sizes: Mapping[TopicPartition, int],
        states: Mapping[TopicPartition, PartitionState],
        traffic: Traffic,
        most_in: int | None,
        most_out: int | None,
        reserved: Mapping[TopicPartition, Mapping[BrokerId, int]],
        kept_free: Mapping[BrokerId, int],
        chain_of: Callable[[TopicPartition], int],
    ) -> None:
        self.no_room: dict[TopicPartition, BrokerId] = {}
        self._tps = tps
        self._traffic = traffic
        self._most_in, self._most_out = most_in, most_out
        self._size: _Ints = np.maximum(np.fromiter(map(sizes.get, tps, repeat(0)), np.int64, len(tps)), 0)
        self._chain_of = chain_of
        # Brokers are numbered as they appear; 0 is none: an unknown leader, or no further new replica.
        number: defaultdict[BrokerId | None, int] = defaultdict(count(1).__next__, {None: 0})
        shown = map(states.get, tps)
        self._source: _Ints = np.array([0 if state is None else number[state.leader] for state in shown], np.int64)
        self._to: _Ints = np.zeros((len(tps), max(map(len, destinations))), np.int64)
        for column in range(self._to.shape[1]):
            self._to[:, column] = [number[new[column]] if column < len(new) else 0 for new in destinations]
        self._brokers = list(number)
        kept = np.array([0 if b is None else kept_free.get(b, 0) for b in self._brokers], np.int64)
        self._needs: _Ints = self._size[:, None] + kept[self._to]
        for row, tp in enumerate(tps) if reserved else ():
            if tp in reserved:
                self._needs[row, : len(destinations[row])] += [reserved[tp].get(b, 0) for b in destinations[row]]
        self._look_at_traffic()
        self._lay()

    def pop(self, most_copies: int | None) -> TopicPartition | None:
        """The next partition, counted as in flight; None: nothing fits.

        ``most_copies``: how many new replicas it may have; it never grows.
        """
        if most_copies is not None and most_copies < self._to.shape[1]:
            self._busiest[self._copies > most_copies] = _NEVER
        best: _Ints = np.flatnonzero(self._busiest == self._busiest.min(initial=_NEVER))
        if not len(best) or self._busiest[best[0]] == _NEVER:
            return None
        for key in (self._into, self._out_of, self._smallness, self._head):
            if len(best) == 1:
                break
            best = best[key[best] == key[best].min()]
        return self._take(int(best[0]))

    def _look_at_traffic(self) -> None:
        total = len(self._brokers)
        self._load_into: _Ints = np.zeros(total, np.int64)
        self._load_out_of: _Ints = np.zeros(total, np.int64)
        self._open: _Flags = np.ones(total, np.bool_)
        self._may_send: _Ints = np.full(total, _NEVER)
        self._room: _Ints = np.full(total, _NEVER)
        for number in range(total):
            self._look_at(number)

    def _look_at(self, number: int) -> None:
        broker, traffic = self._brokers[number], self._traffic
        if broker is None:
            return
        self._load_into[number] = traffic.weight_into(broker)
        self._load_out_of[number] = traffic.weight_out_of(broker)
        self._open[number] = traffic.admits_into(broker, self._most_in)
        self._may_send[number] = traffic.left_out_of(broker, self._most_out)
        self._room[number] = traffic.room.get(broker, _NEVER)

    def _lay(self) -> None:
        """Sort what fits now into pipes, each with its largest partition first."""
        rows = self._fitting(np.arange(len(self._tps)))
        copies = np.count_nonzero(self._to, axis=1)
        pipe = (self._source * len(self._brokers) + self._to[:, 0]) * (self._to.shape[1] + 1) + copies
        self._rows: _Ints = rows[np.lexsort((-self._size[rows], pipe[rows]))]
        begins = np.diff(pipe[self._rows], prepend=-1) != 0
        self._next: _Ints = np.flatnonzero(begins)
        self._end: _Ints = np.append(self._next[1:], len(rows)) if len(rows) else self._next.copy()
        self._head: _Ints = self._rows[self._next]
        self._pipe_source: _Ints = self._source[self._head]
        self._copies: _Ints = copies[self._head]
        self._heads_to: _Ints = self._to[self._head]
        self._busiest, self._into, self._out_of, self._smallness = np.zeros((4, len(self._next)), np.int64)
        self._weigh(np.arange(len(self._next)))

    def _take(self, pipe: int) -> TopicPartition:
        row, source = int(self._head[pipe]), int(self._pipe_source[pipe])
        size, chain = int(self._size[row]), self._chain_of(self._tps[row])
        touched = self._pipe_source == source
        for number in self._to[row, : self._copies[pipe]].tolist():
            self._traffic.add(self._brokers[source], self._brokers[number], size, chain)
            self._look_at(number)
            touched |= (self._heads_to == number).any(axis=1)
        self._look_at(source)
        self._next[pipe] += 1
        self._weigh(np.flatnonzero(touched & (self._busiest != _NEVER)))
        return self._tps[row]

    def _weigh(self, pipes: _Ints) -> None:
        """Update the head and the load of pipes whose ends have changed."""
        shut = ~self._open[self._heads_to[pipes, 0]] | (self._copies[pipes] > self._may_send[self._pipe_source[pipes]])
        self._busiest[pipes[shut]] = _NEVER
        pipes = self._not_empty(pipes[~shut])
        full, shut = self._held_back(self._rows[self._next[pipes]])
        for pipe in pipes[full | shut].tolist():
            end = self._end[pipe]
            rows = self._fitting(self._rows[self._next[pipe] : end])
            self._next[pipe] = end - len(rows)
            self._rows[self._next[pipe] : end] = rows
        pipes = self._not_empty(pipes)
        heads = self._rows[self._next[pipes]]
        into, out_of = self._load_into[self._to[heads]].max(axis=1), self._load_out_of[self._pipe_source[pipes]]
        self._head[pipes], self._heads_to[pipes], self._smallness[pipes] = heads, self._to[heads], -self._size[heads]
        self._into[pipes], self._out_of[pipes], self._busiest[pipes] = into, out_of, np.maximum(into, out_of)

    def _not_empty(self, pipes: _Ints) -> _Ints:
        empty = self._next[pipes] == self._end[pipes]
        self._busiest[pipes[empty]] = _NEVER
        left: _Ints = pipes[~empty]
        return left

    def _fitting(self, rows: _Ints) -> _Ints:
        """The rows that no broker holds back; those that only a disk holds back are noted in ``no_room``."""
        full, shut = self._held_back(rows)
        for row in rows[full & ~shut].tolist():
            to = self._to[row]
            self.no_room[self._tps[row]] = self._brokers[to[self._needs[row] > self._room[to]][0]]
        return rows[~(full | shut)]

    def _held_back(self, rows: _Ints) -> tuple[_Flags, _Flags]:
        """Whether the disk of a new replica's broker cannot hold it, and whether its cap admits no further copy."""
        to = self._to[rows]
        full: _Flags = np.any(self._needs[rows] > self._room[to], axis=1)
        shut: _Flags = np.any(~self._open[to], axis=1)
        return full, shut
