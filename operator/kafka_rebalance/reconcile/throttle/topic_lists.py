"""The topics' side of the throttle: entries are listed, read back and taken away; those of others survive."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from kafka_rebalance.execution.ledger import (
    Before,
    Ledger,
    covers_entries,
    finished_topics,
    remaining_after,
    split,
    stale_entries,
    strike_entries,
    strike_topics,
    with_entries,
    with_list,
)
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, Entries
from kafka_rebalance.execution.throttle_drift import Reverts
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache

log = logging.getLogger(__name__)

ListKey = tuple[str, str]
"""Topic and config name."""
_DELETED_AFTER_READINGS = 5


class TopicLists:
    """``_there`` are our entries known to be listed: empty after a start. Lists are kept by the controller."""

    def __init__(self, admin: KafkaAdmin, book: LedgerCache, reverts: Reverts, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._book = book
        self._reverts = reverts
        self._monotonic = monotonic
        self._there: dict[ListKey, frozenset[str]] = {}
        self._missed: dict[ListKey, frozenset[str]] = {}
        """What was missing at the last reading: missing again at the next one, it is gone."""
        self._wild: set[ListKey] = set()
        self._absent: Counter[str] = Counter()

    def has(self, topic: str, name: str, entry: str) -> bool:
        """Whether the entry is listed."""
        return entry in self._there.get((topic, name), frozenset())

    async def on_record(self, ledger: Ledger, entries: Entries) -> Ledger:
        """The ledger that covers these entries too."""
        if covers_entries(ledger, entries):
            return ledger
        new = [topic for topic, lists in entries.items() if not set(lists) <= set(ledger.topics.get(topic, {}))]
        found = await self._admin.topic_configs(new, LIST_NAMES) if new else {}
        before = {topic: {name: _before(value) for name, value in lists.items()} for topic, lists in found.items()}
        return with_entries(ledger, entries, before)

    async def append(self, entries: Entries) -> None:
        """List those that are on record and not there."""
        changes: dict[str, list[ConfigChange]] = {}
        for topic, lists in entries.items():
            for name, items in lists.items():
                missing = (items & self._book.ledger.listed(topic, name)) - self._there.get((topic, name), frozenset())
                before = self._book.ledger.topics.get(topic, {}).get(name)
                wild = (topic, name) in self._wild or (before is not None and before.value == "*")
                if missing and wild:
                    # Everything of this topic is throttled already, and a wildcard takes no entries.
                    self._there[topic, name] = items
                elif missing:
                    changes.setdefault(topic, []).append(ConfigChange(name, ConfigOp.APPEND, ",".join(sorted(missing))))
        answers = await self._admin.alter_topic_configs(changes) if changes else {}
        for topic, operations in changes.items():
            problem = answers.get(topic, "no answer")
            if problem is not None:
                self._book.note(f"topic {topic}", f"throttled replicas not listed yet: {problem}")
                continue
            self._book.solved(f"topic {topic}")
            for change in operations:
                key, added = (topic, change.name), split(change.value)
                self._there[key] = self._there.get(key, frozenset()) | added
                self._missed[key] = self._missed.get(key, frozenset()) - added

    async def look_again(self, entries: Entries) -> None:
        """Read back what was listed; what is gone is not there any more, and comes back with the next ``append``."""
        topics = [topic for topic in entries if topic in self._book.ledger.topics]
        for topic, lists in (await self._admin.topic_configs(topics, LIST_NAMES) if topics else {}).items():
            for name, value in lists.items():
                wanted = self._there.get((topic, name), frozenset()) & entries[topic].get(name, frozenset())
                await self._compare((topic, name), value, wanted)

    async def subtract(self, keep: Entries) -> None:
        """Take away what is no longer wanted, of topics of which something still is."""
        stale = stale_entries(self._book.ledger, keep)
        still_used = {t: lists for t, lists in stale.items() if any(keep.get(t, {}).values())}
        changes = {
            topic: [ConfigChange(name, ConfigOp.SUBTRACT, ",".join(sorted(items))) for name, items in lists.items()]
            for topic, lists in still_used.items()
        }
        answers = await self._admin.alter_topic_configs(changes) if changes else {}
        done = {topic: still_used[topic] for topic in changes if answers.get(topic, "no answer") is None}
        for topic, lists in done.items():
            for name, items in lists.items():
                self._there[topic, name] = self._there.get((topic, name), frozenset()) - items
        self._book.strike(strike_entries(self._book.ledger, done))

    async def restore(self, keep: Entries) -> None:
        """Make the lists of finished topics what they shall be in the end; struck off once they read so."""
        over = finished_topics(self._book.ledger, keep)
        if not over:
            return
        seen = await self._admin.topic_configs(sorted(over), LIST_NAMES)
        changes = {topic: found for topic in over if (found := self._to_restore(topic, seen.get(topic, {})))}
        for topic, problem in (await self._admin.alter_topic_configs(changes) if changes else {}).items():
            if problem is not None:
                self._book.note(f"topic {topic}", f"throttled replicas not restored yet: {problem}")
            else:
                self._book.solved(f"topic {topic}")
        clean = {topic for topic in over if topic in seen and topic not in changes}
        for topic in seen:
            self._absent.pop(topic, None)
        for topic in over - set(seen):
            self._absent[topic] += 1
            if self._absent[topic] >= _DELETED_AFTER_READINGS:
                log.info("topic %s is gone; nothing of its throttle is left to undo", topic)
                clean.add(topic)
        for key in [key for key in self._there if key[0] in over]:
            del self._there[key]
            self._missed.pop(key, None)
            self._wild.discard(key)
        if clean:
            for topic in clean:
                self._absent.pop(topic, None)
                self._book.solved(f"topic {topic}")
            await self._book.save(strike_topics(self._book.ledger, clean))

    async def set_there(self, topics: Collection[str]) -> list[str]:
        """The lists that are set on these topics, for people."""
        found = await self._admin.topic_configs(sorted(topics), LIST_NAMES) if topics else {}
        return [
            f"{name} of topic {topic}"
            for topic, values in sorted(found.items())
            for name, value in sorted(values.items())
            if value.source is ConfigSource.DYNAMIC_TOPIC
        ]

    async def _compare(self, key: ListKey, seen: ConfigValue, wanted: frozenset[str]) -> None:
        topic, name = key
        there = split(seen.value)
        if "*" in there:
            self._wild.add(key)
            self._missed.pop(key, None)
            return
        self._wild.discard(key)
        missing = wanted - there
        gone = missing & self._missed.get(key, frozenset())
        self._missed[key] = missing - gone
        if gone:
            self._there[key] -= gone
            self._reverts.note(self._monotonic(), f"topic {topic}: {len(gone)} entries of {name} were taken away")
            before = self._book.ledger.topics.get(topic, {}).get(name)
            dynamic = seen.source is ConfigSource.DYNAMIC_TOPIC
            if before is not None and (not dynamic or before.value == "*"):
                # Its owner took away all of it, or the wildcard: that is what is restored in the end.
                owned = Before(seen.value if dynamic else None, dynamic)
                await self._book.save(with_list(self._book.ledger, topic, name, owned))

    def _to_restore(self, topic: str, seen: Mapping[str, ConfigValue]) -> list[ConfigChange]:
        """What still has to be written so that the lists are as before; nothing once they read so."""
        changes = []
        for name, before in self._book.ledger.topics.get(topic, {}).items():
            value = seen.get(name)
            mine = self._there.get((topic, name), frozenset())
            if value is None or "*" in split(value.value) or before.value == "*":
                continue
            if value.source is not ConfigSource.DYNAMIC_TOPIC and not mine:
                continue
            # What this process has listed may be there although it does not read so yet.
            listed = ",".join(filter(None, [value.value, *sorted(mine - split(value.value))]))
            left = remaining_after(before, listed, self._book.ledger.listed(topic, name))
            if left is None:
                changes.append(ConfigChange(name, ConfigOp.DELETE))
            elif gone := split(listed) - split(left):
                changes.append(ConfigChange(name, ConfigOp.SUBTRACT, ",".join(sorted(gone))))
        return changes


def _before(value: ConfigValue) -> Before:
    return Before(
        None if value.source is ConfigSource.DEFAULT else value.value, value.source is ConfigSource.DYNAMIC_TOPIC
    )
