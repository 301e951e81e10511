"""The problem and the state of the search, as arrays, and the steps that both passes share.

Use is normalised: 1 is a broker's share of a resource. A broker's *value* is how far it is above its bands and limits,
squared and weighted; 0 is within all of them. Slots are those of the target lists.
"""

from typing import NamedTuple

import numpy as np

from kafka_rebalance.planning.load.array_types import (
    Bools,
    Floats,
    FloatTable,
    IndexTable,
    Indices,
    Ints,
    IntTable,
    Words,
)
from kafka_rebalance.planning.load.compiled import compiled

HARD = 1e6
"""Weight of use above a capacity limit, compared with use above a band."""

TINY = 1e-12
"""Differences of values below this are rounding."""


class LoadArrays(NamedTuple):
    """P partitions with N target slots on B brokers; R resources.

    ``start`` [P + 1] and ``partition`` [N] the target lists; ``home_start`` [P + 1], ``homes`` and ``home_bytes`` the
    present ones. ``size`` [P] bytes of a new copy, ``mean_size`` their mean (1 if all are 0); ``follows`` and ``leads``
    [P, R] what each replica uses, and what the leader uses besides; ``disk`` the number of the resource Disk, or -1.
    ``inverse`` [B, R] is 1 / share; ``band`` [R] and ``limit`` [B, R] are normalised. ``room`` [K, G] is the rack rule,
    as in Instance.
    ``keep_counts``: a replica moves alone only where counts stay as even; ``keep_leaders``: leaderships are exchanged
    only for others. ``weight`` [R] of a resource in the value; of a ``locked`` [R] one no broker may be further above
    its band.
    """

    start: Ints
    partition: Indices
    home_start: Ints
    homes: Indices
    home_bytes: Floats
    size: Floats
    mean_size: float
    follows: FloatTable
    leads: FloatTable
    disk: int
    inverse: FloatTable
    band: Floats
    limit: FloatTable
    weight: Floats
    locked: Bools
    eligible: Bools
    group: Ints
    kind: Ints
    room: IntTable
    topic: Ints
    topic_start: Ints
    by_topic: bool
    keep_leaders: bool
    keep_counts: bool
    most_bytes: float
    most_moves: int


class LoadState(NamedTuple):
    """``lists`` [N] the broker of each slot; ``use`` [B, R]; ``value`` [B]; ``member`` [B, most] the slots of each
    broker, ``held`` [B] of them, each at ``place`` [N]; ``replicas`` [B], pinned ones included; ``spent`` the
    bytes and moves so far; ``luck`` the state of the random numbers."""

    lists: Indices
    use: FloatTable
    value: Floats
    member: IndexTable
    held: Ints
    place: Indices
    replicas: Ints
    spent: Floats
    luck: Words


@compiled
def draw(luck: Words, below: int) -> int:
    """A number in 0..below - 1 (xorshift)."""
    x = luck[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    luck[0] = x
    return int(np.int64(x >> np.uint64(33)) % below)


@compiled
def home_of(a: LoadArrays, p: int, b: int) -> int:
    """The present slot of the partition on this broker, or -1."""
    for h in range(a.home_start[p], a.home_start[p + 1]):
        if a.homes[h] == b:
            return h
    return -1


@compiled
def at_home(a: LoadArrays, lists: Indices) -> Bools:
    """Which of these copies [N] are on brokers that held the partition."""
    found = np.zeros(len(lists), dtype=np.bool_)
    for slot in range(len(lists)):
        found[slot] = home_of(a, a.partition[slot], lists[slot]) >= 0
    return found


@compiled
def disk_of(a: LoadArrays, lists: Indices) -> Floats:
    """What each of these copies [N] takes: at home what it takes now, elsewhere the size of the partition."""
    found = np.empty(len(lists))
    for slot in range(len(lists)):
        h = home_of(a, a.partition[slot], lists[slot])
        found[slot] = a.home_bytes[h] if h >= 0 else a.size[a.partition[slot]]
    return found


@compiled
def new_bytes(a: LoadArrays, p: int, b: int) -> float:
    """What a copy of the partition on this broker has to fetch."""
    return 0.0 if home_of(a, p, b) >= 0 else a.size[p]


@compiled
def add_use(a: LoadArrays, p: int, b: int, leads: bool, sign: float, to: Floats) -> None:
    """Add what a replica uses of this broker."""
    for r in range(len(to)):
        used = a.follows[p, r]
        if leads:
            used += a.leads[p, r]
        if r == a.disk:
            h = home_of(a, p, b)
            if h >= 0:
                used = a.home_bytes[h]
        to[r] += sign * used * a.inverse[b, r]


@compiled
def value_with(a: LoadArrays, use: FloatTable, b: int, change: Floats) -> float:
    """The broker's value after this change of its use.

    Infinite where it would break a limit, or break it more, or be further above a locked band.
    """
    total = 0.0
    for r in range(len(change)):
        u = use[b, r] + change[r]
        over = u - a.band[r]
        if over > 0:
            if a.locked[r] and change[r] > TINY:
                return np.inf
            total += a.weight[r] * over * over
        over = u - a.limit[b, r]
        if over > 0:
            if change[r] > TINY:
                return np.inf
            total += HARD * over * over
    return total


@compiled
def fits(a: LoadArrays, s: LoadState, slot: int, b: int) -> bool:
    """Whether the slot's copy may be on b: it holds no other copy, and the rack rule allows it."""
    p = a.partition[slot]
    group = a.group[b]
    same = 0
    for x in range(a.start[p], a.start[p + 1]):
        if s.lists[x] == b:
            return False
        if x != slot and a.group[s.lists[x]] == group:
            same += 1
    return bool(a.group[s.lists[slot]] == group) or bool(same < a.room[a.kind[p], group])


@compiled
def is_leader(a: LoadArrays, slot: int) -> bool:
    """Whether the slot is the first of its list."""
    return bool(a.start[a.partition[slot]] == slot)


@compiled
def relocate(a: LoadArrays, s: LoadState, slot: int, b: int) -> None:
    """Move the slot's copy to b. The values of the brokers are not updated."""
    p, before = a.partition[slot], s.lists[slot]
    leads = is_leader(a, slot)
    add_use(a, p, before, leads, -1.0, s.use[before])
    add_use(a, p, b, leads, 1.0, s.use[b])
    fetched = new_bytes(a, p, b) - new_bytes(a, p, before)
    s.spent[0] += fetched
    s.spent[1] += (home_of(a, p, b) < 0) * 1.0 - (home_of(a, p, before) < 0) * 1.0
    s.lists[slot] = b
    hole, last = s.place[slot], s.member[before, s.held[before] - 1]
    s.member[before, hole] = last
    s.place[last] = hole
    s.held[before] -= 1
    s.member[b, s.held[b]] = slot
    s.place[slot] = s.held[b]
    s.held[b] += 1
    s.replicas[before] -= 1
    s.replicas[b] += 1


@compiled
def hand_over(a: LoadArrays, s: LoadState, slot: int) -> None:
    """Make the follower at this slot the leader."""
    p = a.partition[slot]
    first = a.start[p]
    one, other = s.lists[first], s.lists[slot]
    for r in range(s.use.shape[1]):
        s.use[one, r] -= a.leads[p, r] * a.inverse[one, r]
        s.use[other, r] += a.leads[p, r] * a.inverse[other, r]
    i, j = s.place[first], s.place[slot]
    s.lists[first], s.lists[slot] = other, one
    s.member[one, i], s.member[other, j] = slot, first
    s.place[slot], s.place[first] = i, j


@compiled
def revalue(a: LoadArrays, s: LoadState, b: int) -> None:
    """Update the broker's value."""
    s.value[b] = value_with(a, s.use, b, np.zeros(s.use.shape[1]))
