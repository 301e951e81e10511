"""KIP-542's reassignment throttle on stock brokers: which configs to write, and how to undo exactly that.

Pure. The ledger says, per broker and topic config that we touch, what was there before and where it came from, and
which list entries may be ours. It is written before each change, so it always covers at least what is set. Undoing is
by source: a value that was set dynamically is set again, anything else (static, dynamic default, none) is a delete.
Lists are appended to and subtracted from, so entries of others survive; never ``*``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
RATE_NAMES = (LEADER_RATE, FOLLOWER_RATE)
LIST_NAMES = (LEADER_LIST, FOLLOWER_LIST)


@dataclass(frozen=True, slots=True)
class Before:
    """What a config was before we touched it. ``dynamic``: set on this very broker or topic, so set again to undo."""

    value: str | None
    dynamic: bool


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes per second per broker; None: that side is not throttled."""

    leader: int | None = None
    follower: int | None = None

    def by_name(self) -> dict[str, int]:
        """The rates that are set, by config name."""
        pairs = ((LEADER_RATE, self.leader), (FOLLOWER_RATE, self.follower))
        return {name: rate for name, rate in pairs if rate is not None}


@dataclass(frozen=True, slots=True)
class Claim:
    """What one rebalance needs throttled: its rates, the brokers that take part, the replicas that move now.

    Entries are ``partition:broker`` strings per topic.
    """

    rates: Rates
    brokers: frozenset[BrokerId] = frozenset()
    leader_entries: Mapping[str, frozenset[str]] = field(default_factory=dict)
    follower_entries: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What we may have changed. ``brokers`` and ``topics``: config name -> what was before; ``entries``: ours."""

    brokers: Mapping[BrokerId, Mapping[str, Before]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, Before]] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is left to undo."""
        return not (self.brokers or self.topics or self.entries)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The throttle as all claims together want it: rate per broker and config, entries per topic and config."""

    rates: Mapping[BrokerId, Mapping[str, int]] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)


def combine(claims: Mapping[str, Claim]) -> Wanted:
    """All claims together: on each broker the minimum of the rates that claim it, of the entries all."""
    rates: dict[BrokerId, dict[str, int]] = {}
    entries: dict[str, dict[str, frozenset[str]]] = {}
    for _, claim in sorted(claims.items()):
        by_name = claim.rates.by_name()
        for broker in claim.brokers:
            mine = rates.setdefault(broker, {})
            for name, rate in by_name.items():
                mine[name] = min(rate, mine.get(name, rate))
        sides = (
            (LEADER_RATE, LEADER_LIST, claim.leader_entries),
            (FOLLOWER_RATE, FOLLOWER_LIST, claim.follower_entries),
        )
        for rate_name, list_name, by_topic in sides:
            if rate_name not in by_name:
                continue
            for topic, wanted in by_topic.items():
                if wanted:
                    lists = entries.setdefault(topic, {})
                    lists[list_name] = lists.get(list_name, frozenset()) | wanted
    return Wanted({b: r for b, r in rates.items() if r}, entries)


def protect(wanted: Wanted, ledger: Ledger, moving: Mapping[TopicPartition, Replicas]) -> Wanted:
    """``wanted`` plus what the ledger has for partitions that are in flight, given with their present replicas.

    After a start the resources come in one by one; what is in flight for those not seen yet stays throttled.
    """
    rates = {broker: dict(names) for broker, names in wanted.rates.items()}
    entries = {topic: dict(lists) for topic, lists in wanted.entries.items()}
    for tp, replicas in moving.items():
        possible = {f"{tp.partition}:{broker}" for broker in replicas}
        ours = {name: items & possible for name, items in ledger.entries.get(tp.topic, {}).items()}
        if not any(ours.values()):
            continue
        lists = entries.setdefault(tp.topic, {})
        for name, items in ours.items():
            lists[name] = lists.get(name, frozenset()) | items
        for broker in replicas:
            for name in ledger.brokers.get(broker, {}):
                rates.setdefault(broker, {}).setdefault(name, 0)
    return Wanted(rates, entries)


def brokers_of(entries: Iterable[str]) -> frozenset[BrokerId]:
    """The brokers of ``partition:broker`` entries."""
    return frozenset(BrokerId(int(entry.rpartition(":")[2])) for entry in entries)


def entries_of(
    tp: TopicPartition, leaders: frozenset[BrokerId], followers: frozenset[BrokerId]
) -> tuple[frozenset[str], frozenset[str]]:
    """``partition:broker`` on the leader side and on the follower side."""
    return (
        frozenset(f"{tp.partition}:{b}" for b in leaders),
        frozenset(f"{tp.partition}:{b}" for b in followers),
    )


def effective_rate(wanted: int, before: Before) -> int:
    """What is written for a wanted reassignment rate: alone, or on top of what throttled replication already had.

    KIP-542: with both set the total is the sum; a stock broker cannot split it.
    """
    return wanted + int(before.value) if before.value not in (None, "", "-1") else wanted


def covers(ledger: Ledger, wanted: Wanted) -> bool:
    """Whether everything wanted is on record, so that it may be applied."""
    return all(set(names) <= set(ledger.brokers.get(broker, {})) for broker, names in wanted.rates.items()) and all(
        name in ledger.topics.get(topic, {}) and entries <= ledger.entries.get(topic, {}).get(name, frozenset())
        for topic, lists in wanted.entries.items()
        for name, entries in lists.items()
    )


def record(
    ledger: Ledger,
    wanted: Wanted,
    brokers_before: Mapping[BrokerId, Mapping[str, Before]],
    topics_before: Mapping[str, Mapping[str, Before]],
) -> Ledger:
    """The ledger that covers ``wanted`` too. What is on record stays: the first reading is the one to restore."""
    brokers = {b: dict(names) for b, names in ledger.brokers.items()}
    for broker, names in wanted.rates.items():
        for name in names:
            if name in brokers_before.get(broker, {}):
                brokers.setdefault(broker, {}).setdefault(name, brokers_before[broker][name])
    topics = {t: dict(names) for t, names in ledger.topics.items()}
    entries = {t: dict(lists) for t, lists in ledger.entries.items()}
    for topic, lists in wanted.entries.items():
        for name, items in lists.items():
            known = topics.get(topic, {}).get(name) or topics_before.get(topic, {}).get(name)
            if known is None:
                continue
            topics.setdefault(topic, {})[name] = known
            mine = entries.setdefault(topic, {})
            mine[name] = mine.get(name, frozenset()) | items
    return Ledger(brokers, topics, entries)


def ours_to_subtract(ledger: Ledger, wanted: Wanted) -> dict[str, dict[str, frozenset[str]]]:
    """Entries that are on record but no longer wanted, and were not there before us; by topic and config name."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for topic, lists in ledger.entries.items():
        for name, items in lists.items():
            before = ledger.topics.get(topic, {}).get(name)
            stale = items - wanted.entries.get(topic, {}).get(name, frozenset())
            if before is not None:
                stale -= _split(before.value)
            if stale:
                found.setdefault(topic, {})[name] = stale
    return found


def finished_topics(ledger: Ledger, wanted: Wanted) -> frozenset[str]:
    """Topics on record of which nothing is wanted any more: to be restored and struck off."""
    return frozenset(topic for topic in {*ledger.topics, *ledger.entries} if not wanted.entries.get(topic))


def finished_brokers(ledger: Ledger, wanted: Wanted) -> dict[BrokerId, dict[str, Before]]:
    """Rates on record that no claim wants any more, with what to restore."""
    found: dict[BrokerId, dict[str, Before]] = {}
    for broker, names in ledger.brokers.items():
        over = {name: before for name, before in names.items() if name not in wanted.rates.get(broker, {})}
        if over:
            found[broker] = over
    return found


def strike_topics(ledger: Ledger, topics: frozenset[str]) -> Ledger:
    """The ledger without these topics: they are as they were."""
    return replace(
        ledger,
        topics={t: names for t, names in ledger.topics.items() if t not in topics},
        entries={t: lists for t, lists in ledger.entries.items() if t not in topics},
    )


def strike_entries(ledger: Ledger, subtracted: Mapping[str, Mapping[str, frozenset[str]]]) -> Ledger:
    """The ledger without list entries that have been taken out again."""
    entries = {
        topic: {name: items - subtracted.get(topic, {}).get(name, frozenset()) for name, items in lists.items()}
        for topic, lists in ledger.entries.items()
    }
    return replace(ledger, entries=entries)


def strike_brokers(ledger: Ledger, restored: Mapping[BrokerId, Mapping[str, Before]]) -> Ledger:
    """The ledger without these brokers' rates: they are as they were."""
    brokers = {
        broker: {name: before for name, before in names.items() if name not in restored.get(broker, {})}
        for broker, names in ledger.brokers.items()
    }
    return replace(ledger, brokers={b: names for b, names in brokers.items() if names})


def remaining_after(before: Before, value: str | None, ours: frozenset[str]) -> str | None:
    """What a list shall be in the end, given what it is now: None deletes it, else the value to set.

    Where nothing was set before and nobody else added an entry meanwhile, the config goes away again: subtracting the
    last entry alone would leave an empty dynamic value.
    """
    left = [item for item in (value or "").split(",") if item and (item not in ours or item in _split(before.value))]
    if not left and not before.dynamic:
        return None
    return ",".join(left)


def _split(value: str | None) -> frozenset[str]:
    return frozenset(item for item in (value or "").split(",") if item)


def moving_brokers(origin: Replicas, target: Replicas) -> frozenset[BrokerId]:
    """Brokers between which a partition moves: sources and destinations; none when no copy is made."""
    return frozenset(origin) | frozenset(target) if set(target) - set(origin) else frozenset()


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """For the store; sorted, so that equal ledgers are equal texts."""
    return {
        "version": 1,
        "brokers": {
            str(b): {n: {"value": x.value, "dynamic": x.dynamic} for n, x in sorted(names.items())}
            for b, names in sorted(ledger.brokers.items())
        },
        "topics": {
            t: {n: {"value": x.value, "dynamic": x.dynamic} for n, x in sorted(names.items())}
            for t, names in sorted(ledger.topics.items())
        },
        "entries": {
            t: {n: sorted(items) for n, items in sorted(lists.items())} for t, lists in sorted(ledger.entries.items())
        },
    }


def ledger_from_json(data: Any) -> Ledger:
    """Raises KeyError or ValueError when someone changed its shape: never guess what to restore."""
    if _mapping(data)["version"] != 1:
        raise ValueError(f"unknown version {data['version']!r}")
    return Ledger(
        {BrokerId(int(b)): _names(names) for b, names in _mapping(data["brokers"]).items()},
        {t: _names(names) for t, names in _mapping(data["topics"]).items()},
        {
            t: {n: frozenset(_texts(items)) for n, items in _mapping(lists).items()}
            for t, lists in _mapping(data["entries"]).items()
        },
    )


def _names(names: Any) -> dict[str, Before]:
    return {n: _one(x) for n, x in _mapping(names).items()}


def _one(before: Any) -> Before:
    value, dynamic = _mapping(before)["value"], before["dynamic"]
    if not isinstance(dynamic, bool) or not (value is None or isinstance(value, str)):
        raise ValueError(f"{before!r} is not a value and whether it was dynamic")
    return Before(value, dynamic)


def _mapping(data: Any) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ValueError(f"{data!r} is not an object")
    return data


def _texts(items: Any) -> list[str]:
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"{items!r} is not a list of entries")
    return items
