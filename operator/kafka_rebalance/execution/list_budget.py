"""How much of each list of throttled replicas may be used: Kafka stores at most 32,767 bytes in one config value.

Pure. The limit applies to the stored value after an append. It contains entries of others, duplicates, and our entries
that were sent but not read back yet. A longer value is never sent, because Kafka refuses it, and before 4.1 its
controller resigns (``docs/kafka-behaviour.md``). A wildcard would throttle ordinary replication too, so a full list
stays full until partitions that are listed have arrived.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kafka_rebalance.execution.ledger import Ledger, split
from kafka_rebalance.execution.list_state import WILDCARD
from kafka_rebalance.execution.reassignment_throttle import (
    FOLLOWER_LIST,
    LIST_NAMES,
    RATE_OF,
    Entries,
    broker_of,
    brokers_to_throttle,
    entries_of,
)
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition

LONGEST_BYTES = 32_767
"""The longest config value that Kafka stores, and the longest string that it reads."""
MOST_BYTES = 30_000
"""The part that we use. The rest is for entries that others add between our reading and our append."""
_STEP_BYTES = 200
"""Larger than the entries of one step with eight replicas or ids of five digits. With this space, none are counted."""
REQUEST_BYTES = 2_000_000
"""How much all lists of one request may hold: the controller writes whole lists, at most 8 MiB at once."""
REQUEST_CHANGES = 1_000
"""How many topics may be in one request: the controller writes at most 10,000 records at once."""
ListKey = tuple[str, str]
"""Topic and config name."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredList:
    """A list as last read: its entries, and its length in bytes with duplicates."""

    entries: frozenset[str] = frozenset()
    length: int = 0

    @classmethod
    def of(cls, value: str | None) -> "StoredList":
        """The list that this value holds."""
        return cls(split(value), len(value or ""))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Partitions whose replicas are not all listed: ``wholly``, or only on the leader's side."""

    wholly: frozenset[TopicPartition] = frozenset()
    leader_side: frozenset[TopicPartition] = frozenset()

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """All of them."""
        return self.wholly | self.leader_side


@dataclass(frozen=True, slots=True)
class ListBudget:
    """The current and possible contents of the lists, and the brokers and sides with listed replicas.

    ``stored`` has the lists that were read lately. Other lists count as empty except for our entries in ``ledger``:
    steps may be chosen on that basis, but nothing is appended to a list that was not read. ``unreadable``: topics whose
    last reading failed.
    """

    stored: Mapping[ListKey, StoredList] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    is_listed: Callable[[BrokerId, str], bool] = lambda _broker, _rate: True
    unreadable: Collection[str] = ()


class ListRoom:
    """What is free in each list. It only shrinks, with each admission."""

    def __init__(self, budget: ListBudget) -> None:
        self._budget = budget
        self._lists: dict[ListKey, _List] = {}

    @property
    def unreadable(self) -> Collection[str]:
        """Topics whose lists may or may not have room: they cannot be read."""
        return self._budget.unreadable

    def admits(self, topic: str, entries: Mapping[str, Collection[str]]) -> bool:
        """Whether the entries fit into all these lists of the topic; if so, they count from now on."""
        if not all(self._list((topic, name)).admits(items) for name, items in entries.items()):
            return False
        for name, items in entries.items():
            self._list((topic, name)).add(items)
        return True

    def admits_step(self, state: PartitionState, submitted: Replicas) -> bool:
        """Whether the entries that this step needs fit; if so, they count from now on."""
        by_name = entries_of(state.tp, *brokers_to_throttle(state, submitted))[state.tp.topic]
        is_listed = self._budget.is_listed
        return self.admits(
            state.tp.topic,
            {name: [i for i in items if is_listed(broker_of(i), RATE_OF[name])] for name, items in by_name.items()},
        )

    def has_ample_room(self, topic: str, steps: int) -> bool:
        """Whether this number of steps certainly fits, without counting their entries.

        The entries are counted when they are appended.
        """
        return all(self._free((topic, name)) >= steps * _STEP_BYTES for name in LIST_NAMES)

    def copy(self) -> "ListRoom":
        """The same room, to try what would fit."""
        copied = ListRoom(self._budget)
        copied._lists = {key: replace(found, counted=set(found.counted)) for key, found in self._lists.items()}
        return copied

    def _free(self, key: ListKey) -> int:
        known = key in self._lists or key in self._budget.stored or key[0] in self._budget.ledger.entries
        return self._list(key).free if known else MOST_BYTES

    def _list(self, key: ListKey) -> "_List":
        found = self._lists.get(key)
        if found is None:
            stored, ours = self._budget.stored.get(key, StoredList()), self._budget.ledger.listed(*key)
            free = MOST_BYTES - stored.length - bytes_of(ours - stored.entries)
            found = self._lists[key] = _List(stored.entries, {*stored.entries, *ours}, free)
        return found


@dataclass(slots=True)
class _List:
    """``stored``: entries last read; ``counted``: these, those that may come, and those admitted since."""

    stored: frozenset[str]
    counted: set[str]
    free: int

    def admits(self, items: Collection[str]) -> bool:
        if WILDCARD in self.stored or self.stored.issuperset(items):
            return True
        # Entries that may still be appended are already counted. If they alone exceed the limit, none of them may be
        # sent.
        return bytes_of(set(items) - self.counted) <= self.free

    def add(self, items: Collection[str]) -> None:
        new = set(items) - self.counted
        self.counted |= new
        self.free -= bytes_of(new)


def fitting(wanted: Entries, budget: ListBudget, foreign: Collection[TopicPartition] = ()) -> tuple[Entries, LeftOut]:
    """The wanted entries that may be listed, and the partitions whose entries do not all fit.

    Stored entries stay. Among new entries, partitions of rebalances come before partitions that other tools move
    (``foreign``). If a partition does not fit, its followers' side comes before its leader's side.
    """
    room, chosen = ListRoom(budget), dict[str, Mapping[str, frozenset[str]]]()
    wholly, leader_side = set[TopicPartition](), set[TopicPartition]()
    for topic, lists in wanted.items():
        stored = {name: items & budget.stored.get((topic, name), StoredList()).entries for name, items in lists.items()}
        if stored == lists or room.admits(topic, lists):
            chosen[topic] = lists
            continue
        admitted = {name: set(items) for name, items in stored.items()}
        for tp, sides in sorted(_by_partition(topic, lists).items(), key=lambda row: (row[0] in foreign, row[0])):
            followers = {name: items for name, items in sides.items() if name == FOLLOWER_LIST}
            fits = sides if room.admits(topic, sides) else followers if room.admits(topic, followers) else {}
            for name, items in fits.items():
                admitted[name] |= items
            if not all(items <= admitted[name] for name, items in followers.items()):
                wholly.add(tp)
            elif not all(items <= admitted[name] for name, items in sides.items()):
                leader_side.add(tp)
        chosen[topic] = {name: frozenset(items) for name, items in admitted.items() if items}
    found = {topic: lists for topic, lists in chosen.items() if lists}
    return found, LeftOut(frozenset(wholly), frozenset(leader_side))


def longest_part(items: Collection[str]) -> frozenset[str]:
    """As many of the entries as one string may hold: all of them, or else the first ones."""
    total = 0
    if bytes_of(items) <= MOST_BYTES:
        return frozenset(items)
    return frozenset(item for item in sorted(items) if (total := total + bytes_of((item,))) <= MOST_BYTES)


def batches(sizes: Mapping[T, int], most: int = REQUEST_BYTES) -> Iterator[list[T]]:
    """The keys of ``sizes``, in groups that fit into one request. A key above the limit of bytes is alone."""
    batch: list[T] = []
    total = 0
    for key, size in sizes.items():
        if batch and (total + size > most or len(batch) == REQUEST_CHANGES):
            yield batch
            batch, total = [], 0
        batch.append(key)
        total += size
    if batch:
        yield batch


def bytes_of(items: Collection[str]) -> int:
    """The bytes that the entries take in a list, with a comma for each."""
    return sum(map(len, items)) + len(items)


def _by_partition(topic: str, lists: Mapping[str, Iterable[str]]) -> dict[TopicPartition, dict[str, frozenset[str]]]:
    found: dict[TopicPartition, dict[str, frozenset[str]]] = {}
    for name, items in lists.items():
        for item in items:
            sides = found.setdefault(TopicPartition(topic, int(item.partition(":")[0])), {})
            sides[name] = sides.get(name, frozenset()) | {item}
    return found
