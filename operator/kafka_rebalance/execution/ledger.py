"""The throttle ledger: the original value of each config that we changed, and which values in it may be ours.

Pure. It is saved before each change, so it covers at least what is set. Restoring is by source: a value that was set
dynamically on this very broker or topic is set again; any other (static, dynamic default, none) means a delete. A
value that somebody sets meanwhile is restored instead of the original one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kafka_rebalance.execution.reassignment_throttle import Entries, RequestedRate, WantedThrottle, rate_in, united
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


@dataclass(frozen=True, slots=True)
class Before:
    """The value of a config before us. ``dynamic``: set on this very broker or topic, so restoring sets it again."""

    value: str | None
    dynamic: bool


@dataclass(frozen=True, slots=True)
class EmergencyBrake:
    """A rate that somebody set below ours, and what the claims asked for then. It holds until one asks otherwise."""

    rate: int
    asked: Mapping[str, int]

    def holds(self, asked: Mapping[str, RequestedRate], claims: Collection[str]) -> bool:
        """Whether none of those claims asks for another rate now, or for none.

        ``claims``: all claims on the broker now. New and finished claims change nothing.
        """
        still = {claim: rate for claim, rate in self.asked.items() if claim in claims}
        return all(claim in asked and asked[claim].rate == rate for claim, rate in still.items())


@dataclass(frozen=True, slots=True)
class RateRecord:
    """One rate of one broker.

    ``original``: the value before us; ``possibly_ours``: every rate that we may have set; ``intended``: the one that
    should be set; ``set_by_others``: what somebody set since; ``replication_set_by_others``: the part of it that counts
    as the replication throttle.
    """

    original: Before
    possibly_ours: frozenset[int] = frozenset()
    intended: int | None = None
    set_by_others: Before | None = None
    replication_set_by_others: Before | None = None
    brake: EmergencyBrake | None = None

    @property
    def to_restore(self) -> Before:
        """The value to restore."""
        return self.set_by_others or self.original

    @property
    def replication(self) -> int | None:
        """The replication throttle besides ours."""
        return rate_in((self.replication_set_by_others or self.original).value)

    @property
    def value_when_restored(self) -> int | None:
        """The rate that this very broker shows when nothing of ours is set; None: it has none of its own."""
        return rate_in(self.to_restore.value) if self.to_restore.dynamic else None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The configs that we may have changed.

    ``topics``: the original value of each list; ``entries``: the entries that we added.

    ``foreign``: partitions listed only because a KafkaReassignmentThrottle holds for other tools' reassignments too.
    ``cordons``: brokers that runs have cordoned which ended while the brokers were dead.
    """

    brokers: Mapping[BrokerId, Mapping[str, RateRecord]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, Before]] = field(default_factory=dict)
    entries: Entries = field(default_factory=dict)
    foreign: frozenset[TopicPartition] = frozenset()
    cordons: frozenset[BrokerId] = frozenset()

    @property
    def empty(self) -> bool:
        """Whether nothing is left to restore."""
        return not (self.brokers or self.topics or self.entries or self.cordons)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many rates of brokers, lists of topics and cordons there are to restore."""
        rates, lists = (sum(map(len, rows.values())) for rows in (self.brokers, self.topics))
        return {"rate": rates, "list": lists, "cordon": len(self.cordons)}

    def rate(self, broker: BrokerId, name: str) -> RateRecord | None:
        """The row of one rate, if there is one."""
        return self.brokers.get(broker, {}).get(name)

    def listed(self, topic: str, name: str) -> frozenset[str]:
        """The entries of one list that may be ours."""
        return self.entries.get(topic, {}).get(name, frozenset())


def with_rates(ledger: Ledger, rows: Mapping[tuple[BrokerId, str], RateRecord]) -> Ledger:
    """The ledger with these rows added or replaced."""
    brokers = {broker: dict(names) for broker, names in ledger.brokers.items()}
    for (broker, name), row in rows.items():
        brokers.setdefault(broker, {})[name] = row
    return replace(ledger, brokers=brokers)


def with_entries(ledger: Ledger, entries: Entries, before: Mapping[str, Mapping[str, Before]]) -> Ledger:
    """The ledger that covers these entries too, except those of lists that were not read.

    The first reading of a list is the one to restore, so a later one changes nothing.
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


def with_lists(ledger: Ledger, before: Mapping[tuple[str, str], Before]) -> Ledger:
    """The ledger with other values of these lists to restore, by topic and config name."""
    topics = dict(ledger.topics)
    for (topic, name), value in before.items():
        topics[topic] = {**topics.get(topic, {}), name: value}
    return replace(ledger, topics=topics)


def with_foreign(ledger: Ledger, entries: Entries, foreign: Collection[TopicPartition]) -> Ledger:
    """The ledger that says which of these entries are there only for other tools' reassignments."""
    # Usually nothing has changed: then the entries, perhaps many thousands, are not looked at.
    changed = ledger.foreign.symmetric_difference(foreign)
    listed = {
        TopicPartition(topic, int(item.partition(":")[0]))
        for topic in {tp.topic for tp in changed}
        for items in entries.get(topic, {}).values()
        for item in items
    }
    listed &= changed
    return replace(ledger, foreign=(ledger.foreign - listed) | listed.intersection(foreign)) if listed else ledger


def covers_entries(ledger: Ledger, entries: Entries) -> bool:
    """Whether the ledger has all of these entries, so that they may be listed."""
    return all(items <= ledger.listed(topic, name) for topic, lists in entries.items() for name, items in lists.items())


def protected(
    wanted: Entries, ledger: Ledger, unclaimed: Mapping[TopicPartition, Replicas]
) -> tuple[Entries, frozenset[BrokerId]]:
    """The wanted entries with those of ``unclaimed`` partitions in flight, and the brokers whose rates these need.

    After a start the resources arrive one by one; reassignments of those not seen yet stay throttled.
    """
    kept: list[Entries] = []
    brokers: set[BrokerId] = set()
    for tp, replicas in unclaimed.items():
        possible = {f"{tp.partition}:{broker}" for broker in replicas}
        ours = {name: items & possible for name, items in ledger.entries.get(tp.topic, {}).items()}
        if any(ours.values()):
            kept.append({tp.topic: ours})
            brokers |= set(replicas)
    return united([wanted, *kept]) if kept else wanted, frozenset(brokers)


def stale_entries(ledger: Ledger, keep: Entries) -> dict[str, dict[str, frozenset[str]]]:
    """Entries in the ledger that are not to be kept, and were not there before us; by topic and config name."""
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
    """Topics in the ledger without an entry to keep: to be restored and struck off."""
    return frozenset(t for t in {*ledger.topics, *ledger.entries} if not any(keep.get(t, {}).values()))


def finished_rates(
    ledger: Ledger, wanted: WantedThrottle, kept: Collection[BrokerId]
) -> dict[BrokerId, dict[str, RateRecord]]:
    """Rates in the ledger that no claim asks for, except those of the ``kept`` brokers."""
    found: dict[BrokerId, dict[str, RateRecord]] = {}
    for broker, names in ledger.brokers.items():
        over = {name: row for name, row in names.items() if not wanted.asked(broker, name)}
        if over and broker not in kept:
            found[broker] = over
    return found


def strike_topics(ledger: Ledger, topics: Collection[str]) -> Ledger:
    """The ledger without these topics, which are restored."""
    return replace(
        ledger,
        topics={t: names for t, names in ledger.topics.items() if t not in topics},
        entries={t: lists for t, lists in ledger.entries.items() if t not in topics},
        foreign=frozenset(tp for tp in ledger.foreign if tp.topic not in topics),
    )


def strike_entries(ledger: Ledger, subtracted: Mapping[tuple[str, str], frozenset[str]]) -> Ledger:
    """The ledger without these entries, by topic and config name, which were taken out again or never listed."""
    entries = dict(ledger.entries)
    for (topic, name), items in subtracted.items():
        entries[topic] = {**entries[topic], name: ledger.listed(topic, name) - items}
    return replace(ledger, entries=entries)


def strike_unset_rates(ledger: Ledger, unset: Mapping[tuple[BrokerId, str], frozenset[int]]) -> Ledger:
    """The ledger without these rates, by broker and config name, which were recorded and never set.

    A row without a rate that may be set has nothing to restore.
    """
    rows = {key: row for key, rates in unset.items() if (row := ledger.rate(*key)) and rates & row.possibly_ours}
    kept = {key: replace(row, possibly_ours=row.possibly_ours - unset[key]) for key, row in rows.items()}
    gone: dict[BrokerId, set[str]] = {}
    for (broker, name), row in kept.items():
        if not row.possibly_ours:
            gone.setdefault(broker, set()).add(name)
    return strike_rates(with_rates(ledger, kept), gone)


def strike_rates(ledger: Ledger, restored: Mapping[BrokerId, Collection[str]]) -> Ledger:
    """The ledger without these rates, which are restored."""
    brokers = {
        broker: {name: row for name, row in names.items() if name not in restored.get(broker, ())}
        for broker, names in ledger.brokers.items()
    }
    return replace(ledger, brokers={b: names for b, names in brokers.items() if names})


def remaining_after(before: Before, value: str | None, ours: frozenset[str]) -> str | None:
    """The list to restore, given its value now: None deletes the config.

    The config is deleted if it was not set before our first change and no other entries were added since. Subtracting
    the last entry would leave an empty dynamic value.
    """
    added = ours - split(before.value)
    left = [item for item in (value or "").split(",") if item and item not in added]
    if not left and not before.dynamic:
        return None
    return ",".join(left)


def split(value: str | None) -> frozenset[str]:
    """The entries of a list config."""
    return frozenset(item for item in (value or "").split(",") if item)
