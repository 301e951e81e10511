"""Keeps the throttle of one Kafka cluster: ledger first, then the change, and in the end exactly what was there before.

What to write is decided in ``execution.throttle``; here it is read, written and read back. A broker or topic that does
not answer stays in the ledger and is settled later; nothing waits for it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.throttle import (
    LIST_NAMES,
    RATE_NAMES,
    Before,
    Claim,
    Ledger,
    Wanted,
    brokers_of,
    combine,
    covers,
    effective_rate,
    finished_brokers,
    finished_topics,
    ledger_from_json,
    ledger_to_json,
    ours_to_subtract,
    protect,
    record,
    remaining_after,
    strike_brokers,
    strike_entries,
    strike_topics,
)
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.kube.store import LedgerStore
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition

log = logging.getLogger(__name__)

_DELETED_AFTER_READINGS = 5


class ThrottleKeeper:
    """The throttle of one cluster. ``applied_*`` is what this process has written: empty after a start."""

    def __init__(self, cluster_id: str, admin: KafkaAdmin, store: LedgerStore) -> None:
        self._cluster_id = cluster_id
        self._admin = admin
        self._store = store
        self._ledger: Ledger | None = None
        self._stored = Ledger()
        self._rates_written: dict[BrokerId, dict[str, int]] = {}
        self._entries_written: dict[tuple[str, str], frozenset[str]] = {}
        self._absent: Counter[str] = Counter()
        self._elsewhere: Mapping[TopicPartition, Replicas] = {}
        self.trouble = ""
        """What could not be written lately, for the status; empty where all went well."""

    async def load(self) -> None:
        """Read the ledger once. Permanent("ThrottleLedgerDamaged") where it cannot be read: never guess."""
        if self._ledger is not None:
            return
        data = await self._store.load(self._cluster_id)
        try:
            self._ledger = self._stored = Ledger() if data is None else ledger_from_json(data)
        except (KeyError, ValueError) as error:
            raise Permanent(
                "ThrottleLedgerDamaged",
                f"the throttle ledger of cluster {self._cluster_id} cannot be read ({error}); restore it, or delete it "
                "after undoing the throttles by hand",
            ) from error

    @property
    def settled(self) -> bool:
        """Whether nothing of ours is left on any broker or topic."""
        return self._ledger is None or self._ledger.empty

    def restored(self, claims: Mapping[str, Claim], topics: Collection[str], brokers: Collection[BrokerId]) -> bool:
        """Whether nothing but what the claims want is left on these topics and brokers (those that can be asked)."""
        wanted = protect(combine(claims), self._book, self._elsewhere)
        left = finished_topics(self._book, wanted) & set(topics)
        return not left and not set(finished_brokers(self._book, wanted)) & set(brokers)

    async def extend(self, claims: Mapping[str, Claim], alive: Collection[BrokerId]) -> frozenset[str]:
        """Put in place what the claims want.

        Returns the topics of which every entry is listed and every live broker has its rate: only their partitions may
        be submitted.
        """
        self.trouble = ""
        wanted = _on(alive, combine(claims))
        await self._put_on_record(wanted)
        await self._set_rates(wanted)
        await self._append_entries(wanted)
        unset = set(wanted.rates) - self._with_rates(wanted)
        return frozenset(
            topic
            for topic, lists in wanted.entries.items()
            if all(
                items <= self._entries_written.get((topic, name), frozenset()) and not brokers_of(items) & unset
                for name, items in lists.items()
            )
        )

    def brokers_in_place(self, claim: Claim) -> int:
        """How many of the claim's brokers have their rate."""
        return len(self._with_rates(combine({"": claim}), at_most=True) & claim.brokers)

    def _with_rates(self, wanted: Wanted, *, at_most: bool = False) -> set[BrokerId]:
        """Brokers on which the wanted rates, or with ``at_most`` lower ones, have been written."""
        found = set()
        for broker, names in wanted.rates.items():
            written = self._rates_written.get(broker, {})
            if all(
                n in written and (written[n] == rate or (at_most and written[n] < rate)) for n, rate in names.items()
            ):
                found.add(broker)
        return found

    async def shrink(
        self,
        claims: Mapping[str, Claim],
        alive: Collection[BrokerId],
        elsewhere: Mapping[TopicPartition, Replicas] | None = None,
    ) -> None:
        """Take away what no claim wants any more.

        ``elsewhere``: partitions in flight that no claim speaks for, with their replicas; what is ours there stays.
        """
        self._elsewhere = elsewhere or {}
        wanted = protect(combine(claims), self._book, self._elsewhere)
        await self._subtract(wanted)
        await self._restore_brokers(wanted, alive)
        await self._restore_topics(wanted)

    @property
    def _book(self) -> Ledger:
        if self._ledger is None:
            raise RuntimeError("load() comes first")
        return self._ledger

    def _note(self, trouble: str) -> None:
        self.trouble = trouble
        log.warning("%s", trouble)

    async def _save(self, ledger: Ledger) -> None:
        if ledger.empty:
            await self._store.delete(self._cluster_id)
        else:
            await self._store.save(self._cluster_id, ledger_to_json(ledger))
        self._ledger = self._stored = ledger

    async def _put_on_record(self, wanted: Wanted) -> None:
        # Not the stored one: entries that were subtracted since are ours again only once they are back on record.
        if covers(self._book, wanted):
            return
        new_brokers = [b for b, names in wanted.rates.items() if not set(names) <= set(self._book.brokers.get(b, {}))]
        new_topics = [t for t, lists in wanted.entries.items() if not set(lists) <= set(self._book.topics.get(t, {}))]
        brokers = await self._admin.broker_configs(new_brokers, RATE_NAMES) if new_brokers else {}
        topics = await self._admin.topic_configs(new_topics, LIST_NAMES) if new_topics else {}
        await self._save(
            record(
                self._book,
                wanted,
                {b: _before(values, ConfigSource.DYNAMIC_BROKER) for b, values in brokers.items()},
                {t: _before(values, ConfigSource.DYNAMIC_TOPIC) for t, values in topics.items()},
            )
        )

    async def _set_rates(self, wanted: Wanted) -> None:
        changes: dict[BrokerId, list[ConfigChange]] = {}
        for broker, names in wanted.rates.items():
            for name, rate in names.items():
                before = self._stored.brokers.get(broker, {}).get(name)
                if before is None:
                    self._note(f"broker {broker} did not tell its throttle rate")
                    continue
                if self._rates_written.get(broker, {}).get(name) == rate:
                    continue
                value = str(effective_rate(rate, before))
                changes.setdefault(broker, []).append(ConfigChange(name, ConfigOp.SET, value))
        if not changes:
            return
        answers = await self._admin.alter_broker_configs(changes)
        for broker in changes:
            problem = answers.get(broker, "no answer")
            if problem is None:
                on_record = self._stored.brokers.get(broker, {})
                self._rates_written[broker] = {n: r for n, r in wanted.rates[broker].items() if n in on_record}
            else:
                self._note(f"broker {broker}: throttle rate not set yet: {problem}")

    async def _append_entries(self, wanted: Wanted) -> None:
        changes: dict[str, list[ConfigChange]] = {}
        for topic, lists in wanted.entries.items():
            for name, items in lists.items():
                on_record = self._stored.entries.get(topic, {}).get(name, frozenset())
                missing = (items & on_record) - self._entries_written.get((topic, name), frozenset())
                before = self._stored.topics.get(topic, {}).get(name)
                if missing and before is not None and before.value == "*":
                    # Everything of this topic is throttled already, and a wildcard takes no entries.
                    self._entries_written[topic, name] = items
                elif missing:
                    changes.setdefault(topic, []).append(ConfigChange(name, ConfigOp.APPEND, ",".join(sorted(missing))))
        if not changes:
            return
        answers = await self._admin.alter_topic_configs(changes)
        for topic, operations in changes.items():
            problem = answers.get(topic, "no answer")
            if problem is not None:
                self._note(f"topic {topic}: throttled replicas not listed yet: {problem}")
                continue
            for change in operations:
                key = (topic, change.name)
                self._entries_written[key] = self._entries_written.get(key, frozenset()) | set(change.value.split(","))

    async def _subtract(self, wanted: Wanted) -> None:
        stale = ours_to_subtract(self._book, wanted)
        still_used = {t: lists for t, lists in stale.items() if wanted.entries.get(t)}
        changes = {
            topic: [ConfigChange(name, ConfigOp.SUBTRACT, ",".join(sorted(items))) for name, items in lists.items()]
            for topic, lists in still_used.items()
        }
        if not changes:
            return
        answers = await self._admin.alter_topic_configs(changes)
        done = {topic: still_used[topic] for topic in changes if answers.get(topic, "no answer") is None}
        for topic, lists in done.items():
            for name, items in lists.items():
                key = (topic, name)
                self._entries_written[key] = self._entries_written.get(key, frozenset()) - items
        # The stored ledger may still name them until it is next written: undoing them twice does no harm.
        self._ledger = strike_entries(self._book, done)

    async def _restore_brokers(self, wanted: Wanted, alive: Collection[BrokerId]) -> None:
        over = {b: names for b, names in finished_brokers(self._book, wanted).items() if b in alive}
        if not over:
            return
        changes = {b: [_undo(name, before) for name, before in names.items()] for b, names in over.items()}
        answers = await self._admin.alter_broker_configs(changes)
        restored = {b: over[b] for b in over if answers.get(b, "no answer") is None}
        for broker in over:
            self._rates_written.pop(broker, None)
            if broker not in restored:
                self._note(f"broker {broker}: throttle rate not restored yet: {answers.get(broker, 'no answer')}")
        if restored:
            await self._save(strike_brokers(self._book, restored))

    async def _restore_topics(self, wanted: Wanted) -> None:
        over = finished_topics(self._book, wanted)
        if not over:
            return
        seen = await self._admin.topic_configs(sorted(over), LIST_NAMES)
        changes = {topic: found for topic in over if (found := self._to_restore(topic, seen.get(topic, {})))}
        for topic, problem in (await self._admin.alter_topic_configs(changes) if changes else {}).items():
            if problem is not None:
                self._note(f"topic {topic}: throttled replicas not restored yet: {problem}")
        clean = {topic for topic in over if topic in seen and topic not in changes}
        for topic in over - set(seen):
            self._absent[topic] += 1
            if self._absent[topic] >= _DELETED_AFTER_READINGS:
                log.info("topic %s is gone; nothing of its throttle is left to undo", topic)
                clean.add(topic)
        for key in [key for key in self._entries_written if key[0] in over]:
            del self._entries_written[key]
        if clean:
            for topic in clean:
                self._absent.pop(topic, None)
            await self._save(strike_topics(self._book, frozenset(clean)))

    def _to_restore(self, topic: str, seen: Mapping[str, ConfigValue]) -> list[ConfigChange]:
        """What still has to be written so that the lists are as before; nothing once they read so."""
        changes = []
        for name, before in self._book.topics.get(topic, {}).items():
            value = seen.get(name)
            if value is None or value.source is not ConfigSource.DYNAMIC_TOPIC or before.value == "*":
                continue
            ours = self._book.entries.get(topic, {}).get(name, frozenset())
            left = remaining_after(before, value.value, ours)
            if left is None:
                changes.append(ConfigChange(name, ConfigOp.DELETE))
            elif left != (value.value or ""):
                mine = set((value.value or "").split(",")) - set(left.split(","))
                changes.append(ConfigChange(name, ConfigOp.SUBTRACT, ",".join(sorted(mine))))
        return changes


def _before(values: Mapping[str, ConfigValue], own: ConfigSource) -> dict[str, Before]:
    """Kafka's built-in default (2^63 - 1 for a rate) counts as unset."""
    return {
        name: Before(None if value.source is ConfigSource.DEFAULT else value.value, value.source is own)
        for name, value in values.items()
    }


def _undo(name: str, before: Before) -> ConfigChange:
    if before.dynamic and before.value is not None:
        return ConfigChange(name, ConfigOp.SET, before.value)
    return ConfigChange(name, ConfigOp.DELETE)


def _on(alive: Collection[BrokerId], wanted: Wanted) -> Wanted:
    """Rates only where someone answers; entries are kept by the controller and need no broker."""
    return Wanted({b: names for b, names in wanted.rates.items() if b in alive}, wanted.entries)
