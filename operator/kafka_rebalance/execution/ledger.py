"""The throttle ledger: what every config was before we touched it, and what on it may be ours.

Pure. It is written before each change, so it always covers at least what is set. Undoing is by source: a value that
was set dynamically on this very broker or topic is set again, anything else (static, dynamic default, none) is a
delete. What its owner makes of a config meanwhile is what is restored instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kafka_rebalance.execution.reassignment_throttle import Entries, RequestedRate, WantedThrottle, rate_in
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


@dataclass(frozen=True, slots=True)
class Before:
    """What a config was before we touched it. ``dynamic``: set on this very broker or topic, so set again to undo."""

    value: str | None
    dynamic: bool


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A rate that somebody set below ours, and what the claims asked for then: it holds until one asks otherwise."""

    rate: int
    asked: Mapping[str, int]

    def holds(self, asked: Mapping[str, RequestedRate]) -> bool:
        """Whether no claim that was there then asks for another rate now. That one comes or goes changes nothing."""
        return all(asked[claim].rate == rate for claim, rate in self.asked.items() if claim in asked)


@dataclass(frozen=True, slots=True)
class RateRecord:
    """One rate of one broker.

    ``before``: what it was; ``written``: every value that we may have set; ``applied``: the one of them that shall be
    there; ``owner``: what its owner made of it since; ``basis``: of that, what counts as the replication throttle.
    """

    before: Before
    written: frozenset[int] = frozenset()
    applied: int | None = None
    owner: Before | None = None
    basis: Before | None = None
    ceiling: Ceiling | None = None

    @property
    def to_restore(self) -> Before:
        """What it shall be in the end."""
        return self.owner or self.before

    @property
    def replication(self) -> int | None:
        """The replication throttle that is there besides ours."""
        return rate_in((self.basis or self.before).value)

    @property
    def clean(self) -> int | None:
        """What reads on this very broker when nothing of ours is there; None: nothing is set on it."""
        return rate_in(self.to_restore.value) if self.to_restore.dynamic else None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What we may have changed. ``topics``: what each list was before; ``entries``: those of ours.

    ``others``: partitions that are listed only because a throttle resource holds for what other people reassign.
    """

    brokers: Mapping[BrokerId, Mapping[str, RateRecord]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, Before]] = field(default_factory=dict)
    entries: Entries = field(default_factory=dict)
    others: frozenset[TopicPartition] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether nothing is left to undo."""
        return not (self.brokers or self.topics or self.entries)

    def rate(self, broker: BrokerId, name: str) -> RateRecord | None:
        """The record of one rate, if there is one."""
        return self.brokers.get(broker, {}).get(name)

    def listed(self, topic: str, name: str) -> frozenset[str]:
        """The entries of one list that may be ours."""
        return self.entries.get(topic, {}).get(name, frozenset())


def with_rates(ledger: Ledger, records: Mapping[tuple[BrokerId, str], RateRecord]) -> Ledger:
    """The ledger with these records in place of what it has for them."""
    brokers = {broker: dict(names) for broker, names in ledger.brokers.items()}
    for (broker, name), record in records.items():
        brokers.setdefault(broker, {})[name] = record
    return replace(ledger, brokers=brokers)


def with_entries(ledger: Ledger, entries: Entries, before: Mapping[str, Mapping[str, Before]]) -> Ledger:
    """The ledger that covers these entries too; a list of which nothing is known is left out.

    What is on record of a list stays: the first reading is the one to restore.
    """
    topics = {topic: dict(names) for topic, names in ledger.topics.items()}
    listed = {topic: dict(lists) for topic, lists in ledger.entries.items()}
    for topic, lists in entries.items():
        for name, items in lists.items():
            known = topics.get(topic, {}).get(name) or before.get(topic, {}).get(name)
            if known is not None:
                topics.setdefault(topic, {})[name] = known
                mine = listed.setdefault(topic, {})
                mine[name] = mine.get(name, frozenset()) | items
    return replace(ledger, topics=topics, entries=listed)


def with_list(ledger: Ledger, topic: str, name: str, before: Before) -> Ledger:
    """The ledger with another state of this list to be restored."""
    return replace(ledger, topics={**ledger.topics, topic: {**ledger.topics.get(topic, {}), name: before}})


def with_others(ledger: Ledger, entries: Entries, others: Collection[TopicPartition]) -> Ledger:
    """The ledger that tells which of these entries are there for the sake of what other people reassign."""
    # Most often nothing has changed, and then the entries, many thousands perhaps, are not looked at.
    changed = ledger.others.symmetric_difference(others)
    listed = {
        TopicPartition(topic, int(item.partition(":")[0]))
        for topic in {tp.topic for tp in changed}
        for items in entries.get(topic, {}).values()
        for item in items
    }
    listed &= changed
    return replace(ledger, others=(ledger.others - listed) | listed.intersection(others)) if listed else ledger


def covers_entries(ledger: Ledger, entries: Entries) -> bool:
    """Whether all of these are on record, so that they may be listed."""
    return all(items <= ledger.listed(topic, name) for topic, lists in entries.items() for name, items in lists.items())


def protected(
    wanted: Entries, ledger: Ledger, elsewhere: Mapping[TopicPartition, Replicas]
) -> tuple[Entries, frozenset[BrokerId]]:
    """Entries to be kept besides those wanted, and brokers whose rates are, for partitions no claim speaks for.

    After a start the resources come in one by one; what is in flight for those not seen yet stays throttled.
    """
    entries = {topic: dict(lists) for topic, lists in wanted.items()}
    brokers: set[BrokerId] = set()
    for tp, replicas in elsewhere.items():
        possible = {f"{tp.partition}:{broker}" for broker in replicas}
        ours = {name: items & possible for name, items in ledger.entries.get(tp.topic, {}).items()}
        if any(ours.values()):
            lists = entries.setdefault(tp.topic, {})
            for name, items in ours.items():
                lists[name] = lists.get(name, frozenset()) | items
            brokers |= set(replicas)
    return entries, frozenset(brokers)


def stale_entries(ledger: Ledger, keep: Entries) -> dict[str, dict[str, frozenset[str]]]:
    """Entries on record that are no longer wanted, and were not there before us; by topic and config name."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for topic, lists in ledger.entries.items():
        for name, items in lists.items():
            before = ledger.topics.get(topic, {}).get(name)
            stale = items - keep.get(topic, {}).get(name, frozenset())
            if before is not None:
                stale -= split(before.value)
            if stale:
                found.setdefault(topic, {})[name] = stale
    return found


def finished_topics(ledger: Ledger, keep: Entries) -> frozenset[str]:
    """Topics on record of which nothing is to be kept: to be restored and struck off."""
    return frozenset(t for t in {*ledger.topics, *ledger.entries} if not any(keep.get(t, {}).values()))


def finished_rates(
    ledger: Ledger, wanted: WantedThrottle, kept: Collection[BrokerId]
) -> dict[BrokerId, dict[str, RateRecord]]:
    """Rates on record that no claim asks for any more, except those of brokers to be kept."""
    found: dict[BrokerId, dict[str, RateRecord]] = {}
    for broker, names in ledger.brokers.items():
        over = {name: record for name, record in names.items() if not wanted.asked(broker, name)}
        if over and broker not in kept:
            found[broker] = over
    return found


def strike_topics(ledger: Ledger, topics: Collection[str]) -> Ledger:
    """The ledger without these topics: they are as they were."""
    return replace(
        ledger,
        topics={t: names for t, names in ledger.topics.items() if t not in topics},
        entries={t: lists for t, lists in ledger.entries.items() if t not in topics},
        others=frozenset(tp for tp in ledger.others if tp.topic not in topics),
    )


def strike_entries(ledger: Ledger, subtracted: Entries) -> Ledger:
    """The ledger without list entries that have been taken out again."""
    entries = {
        topic: {name: items - subtracted.get(topic, {}).get(name, frozenset()) for name, items in lists.items()}
        for topic, lists in ledger.entries.items()
    }
    return replace(ledger, entries=entries)


def strike_rates(ledger: Ledger, restored: Mapping[BrokerId, Collection[str]]) -> Ledger:
    """The ledger without these brokers' rates: they are as they were."""
    brokers = {
        broker: {name: record for name, record in names.items() if name not in restored.get(broker, ())}
        for broker, names in ledger.brokers.items()
    }
    return replace(ledger, brokers={b: names for b, names in brokers.items() if names})


def remaining_after(before: Before, value: str | None, ours: frozenset[str]) -> str | None:
    """What a list shall be in the end, given what it is now: None deletes it, else the value to set.

    Where nothing was set before and nobody else added an entry meanwhile, the config goes away again: subtracting the
    last entry alone would leave an empty dynamic value.
    """
    left = [item for item in (value or "").split(",") if item and (item not in ours or item in split(before.value))]
    if not left and not before.dynamic:
        return None
    return ",".join(left)


def split(value: str | None) -> frozenset[str]:
    """The entries of a list config."""
    return frozenset(item for item in (value or "").split(",") if item)
