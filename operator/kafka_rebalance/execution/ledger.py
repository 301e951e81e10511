"""The throttle ledger: what every config was before we touched it, and what on it may be ours.

Pure. It is written before each change, so it always covers at least what is set. Undoing is by source: a value that
was set dynamically on this very broker or topic is set again, anything else (static, dynamic default, none) is a
delete. What its owner makes of a config meanwhile is what is restored instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_rebalance.execution.throttle import Asked, Entries, Wanted, rate_in
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

    def holds(self, asked: Mapping[str, Asked]) -> bool:
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


def finished_rates(ledger: Ledger, wanted: Wanted, kept: Collection[BrokerId]) -> dict[BrokerId, dict[str, RateRecord]]:
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


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """For the store; sorted, so that equal ledgers are equal texts."""
    return {
        "version": 2,
        "brokers": {
            str(broker): {name: _record_to_json(record) for name, record in sorted(names.items())}
            for broker, names in sorted(ledger.brokers.items())
        },
        "topics": {
            topic: {name: _before_to_json(before) for name, before in sorted(names.items())}
            for topic, names in sorted(ledger.topics.items())
        },
        "entries": {
            topic: {name: sorted(items) for name, items in sorted(lists.items())}
            for topic, lists in sorted(ledger.entries.items())
        },
        "others": [[tp.topic, tp.partition] for tp in sorted(ledger.others)],
    }


def ledger_from_json(data: Any) -> Ledger:
    """Raises KeyError, TypeError or ValueError when someone changed its shape: never guess what to restore."""
    if _mapping(data)["version"] != 2:
        raise ValueError(f"unknown version {data['version']!r}")
    return Ledger(
        {
            BrokerId(int(broker)): {name: _record(record) for name, record in _mapping(names).items()}
            for broker, names in _mapping(data["brokers"]).items()
        },
        {
            topic: {name: _before(before) for name, before in _mapping(names).items()}
            for topic, names in _mapping(data["topics"]).items()
        },
        {
            topic: {name: frozenset(_texts(items)) for name, items in _mapping(lists).items()}
            for topic, lists in _mapping(data["entries"]).items()
        },
        frozenset(_partition(row) for row in _list(data["others"])),
    )


def _record_to_json(record: RateRecord) -> dict[str, Any]:
    row: dict[str, Any] = {"before": _before_to_json(record.before), "written": sorted(record.written)}
    if record.applied is not None:
        row["applied"] = record.applied
    if record.owner is not None:
        row["owner"] = _before_to_json(record.owner)
    if record.basis is not None:
        row["basis"] = _before_to_json(record.basis)
    if record.ceiling is not None:
        row["ceiling"] = {"rate": record.ceiling.rate, "asked": dict(sorted(record.ceiling.asked.items()))}
    return row


def _before_to_json(before: Before) -> dict[str, Any]:
    return {"value": before.value, "dynamic": before.dynamic}


def _record(row: Any) -> RateRecord:
    fields = _mapping(row)
    ceiling = _mapping(fields["ceiling"]) if "ceiling" in fields else None
    return RateRecord(
        _before(fields["before"]),
        frozenset(_number(rate) for rate in _list(fields["written"])),
        _number(fields["applied"]) if "applied" in fields else None,
        _before(fields["owner"]) if "owner" in fields else None,
        _before(fields["basis"]) if "basis" in fields else None,
        None if ceiling is None else _ceiling(ceiling),
    )


def _ceiling(row: Mapping[str, Any]) -> Ceiling:
    return Ceiling(_number(row["rate"]), {claim: _number(rate) for claim, rate in _mapping(row["asked"]).items()})


def _before(row: Any) -> Before:
    value, dynamic = _mapping(row)["value"], row["dynamic"]
    if not isinstance(dynamic, bool) or not (value is None or isinstance(value, str)):
        raise ValueError(f"{row!r} is not a value and whether it was dynamic")
    return Before(value, dynamic)


def _partition(row: Any) -> TopicPartition:
    topic, partition = _list(row)
    if not isinstance(topic, str):
        raise TypeError(f"{row!r} is not a topic and a partition")
    return TopicPartition(topic, _number(partition))


def _mapping(data: Any) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise TypeError(f"{data!r} is not an object")
    return data


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError(f"{data!r} is not a list")
    return data


def _number(data: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise TypeError(f"{data!r} is not a number")
    return data


def _texts(items: Any) -> list[str]:
    if not all(isinstance(item, str) for item in _list(items)):
        raise ValueError(f"{items!r} is not a list of entries")
    return items  # type: ignore[no-any-return]
