"""The lists of throttled replicas of the topics: appends our entries, reads them back, takes them out again.

``execution.list_state`` decides what a reading means, ``execution.list_budget`` how many entries fit. Entries of others
stay. The ledger is saved before each append.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

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
from kafka_rebalance.execution.list_budget import LONGEST_BYTES, ListKey, StoredList, batches, longest_part
from kafka_rebalance.execution.list_state import WILDCARD, ListState
from kafka_rebalance.execution.rate_state import LATE_SECONDS
from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, Entries
from kafka_rebalance.kafka.ports import Answers, ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache, originals
from kafka_rebalance.reconcile.throttle.reverts import Reverts

log = logging.getLogger(__name__)

Changes = dict[str, list[ConfigChange]]
_DELETED_AFTER_READINGS = 5
_FRESH_SECONDS = 1.0
"""How old the reading may be that an append is measured by; it is the pause between two readings of what is listed."""
_KNOWN_SECONDS = 5.0
"""How old the reading may be that new copies are chosen by. After that, a full list is tried again."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The lists of one topic, and when they were read."""

    at: float
    values: Mapping[str, ConfigValue]
    stored: Mapping[str, StoredList]

    @classmethod
    def of(cls, at: float, values: Mapping[str, ConfigValue]) -> "_Reading":
        """This reading."""
        return cls(at, values, {name: StoredList.of(read.value) for name, read in values.items()})


class TopicLists:
    """Holds one ``ListState`` per list; none after a start. The controller keeps the lists, so all answer together."""

    def __init__(self, admin: KafkaAdmin, cache: LedgerCache, reverts: Reverts, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._cache = cache
        self._reverts = reverts
        self._monotonic = monotonic
        self._states: dict[ListKey, ListState] = {}
        self._readings: dict[str, _Reading] = {}
        self.unreadable: frozenset[str] = frozenset()
        """Topics whose last reading failed."""
        self._started_at = monotonic()
        self._unanswered_at: dict[str, float] = {}
        """When a change of a topic's lists last got no answer. Without an entry the start of the process counts."""
        self._restored: set[str] = set()
        """Topics whose restoring change was accepted after that."""
        self._absent: Counter[str] = Counter()
        """How many readings in a row did not show a topic that is to be restored."""

    def has(self, topic: str, name: str, entry: str) -> bool:
        """Whether the entry is listed."""
        return entry in self._state((topic, name)).listed

    @property
    def stored(self) -> dict[ListKey, StoredList]:
        """The lists that were read lately."""
        now = self._monotonic()
        return {
            (topic, name): found
            for topic, reading in self._readings.items()
            if now - reading.at <= _KNOWN_SECONDS
            for name, found in reading.stored.items()
        }

    def is_read(self, topic: str) -> bool:
        """Whether the last reading of the topic's lists succeeded. Without it, their free room is not known."""
        return topic in self._readings

    def on_record(self, entries: Entries) -> Entries:
        """The entries that are in the ledger: they stay, listed or not."""
        ledger = self._cache.ledger
        kept = {
            t: {name: items & ledger.listed(t, name) for name, items in lists.items()} for t, lists in entries.items()
        }
        return {topic: lists for topic, lists in kept.items() if any(lists.values())}

    async def read_first(self, entries: Entries) -> None:
        """Read the lists that entries may be added to: those not read a moment ago, and those not on record yet."""
        now, recorded = self._monotonic(), self._cache.ledger.topics
        fresh = {topic for topic, reading in self._readings.items() if now - reading.at <= _FRESH_SECONDS}
        new = [t for t, lists in entries.items() if t not in fresh or not set(lists) <= set(recorded.get(t, {}))]
        await self._read(new)

    def ledger_to_append(self, ledger: Ledger, entries: Entries) -> Ledger:
        """The ledger that covers these entries too. Their lists were read before."""
        if covers_entries(ledger, entries):
            return ledger
        new = [topic for topic, lists in entries.items() if not set(lists) <= set(ledger.topics.get(topic, {}))]
        found = {topic: self._readings[topic].values for topic in new if topic in self._readings}
        before = {topic: originals(lists, ConfigSource.DYNAMIC_TOPIC) for topic, lists in found.items()}
        return with_entries(ledger, entries, before)

    async def append(self, entries: Entries) -> None:
        """Append the entries that are in the ledger and not listed."""
        changes: Changes = {}
        for topic, lists in entries.items():
            for name, items in lists.items():
                state, before = self._state((topic, name)), self._cache.ledger.topics.get(topic, {}).get(name)
                missing = (items & self._cache.ledger.listed(topic, name)) - state.listed
                if missing and (state.wildcard or (before is not None and before.value == WILDCARD)):
                    self._states[topic, name] = replace(state, listed=items)  # the wildcard covers them
                elif missing:
                    changes.setdefault(topic, []).append(_change(name, ConfigOp.APPEND, missing))
        self._restored -= changes.keys()
        accepted = await self._alter(changes, "listed")
        self._note_unanswered(changes.keys() - set(accepted))
        for topic in accepted:
            for change in changes[topic]:
                key = (topic, change.name)
                self._states[key] = self._state(key).after_append(split(change.value))

    async def read_back(self, entries: Entries) -> None:
        """Read the lists of these topics; entries that somebody took out come back with the next ``append``."""
        for topic, lists in (await self._read([t for t in entries if t in self._cache.ledger.topics])).items():
            for name, read in lists.items():
                await self._take_reading((topic, name), read, entries[topic].get(name, frozenset()))

    async def subtract(self, keep: Entries) -> None:
        """Take out what is no longer wanted, from the lists of topics that still have wanted entries."""
        stale = stale_entries(self._cache.ledger, keep)
        still_used = {
            topic: {name: longest_part(items) for name, items in lists.items()}
            for topic, lists in stale.items()
            if any(keep.get(topic, {}).values())
        }
        changes = {
            topic: [_change(name, ConfigOp.SUBTRACT, items) for name, items in lists.items()]
            for topic, lists in still_used.items()
        }
        answers = await self._send(changes)
        done = {topic: still_used[topic] for topic in changes if answers.get(topic, "no answer") is None}
        for topic, lists in done.items():
            for name, items in lists.items():
                self._states[topic, name] = self._state((topic, name)).after_subtract(items)
        self._cache.strike(strike_entries(self._cache.ledger, done))

    async def restore(self, keep: Entries) -> None:
        """Write the original lists of finished topics, and strike them off the ledger once they read so."""
        over = finished_topics(self._cache.ledger, keep)
        if not over:
            return
        seen = await self._read(sorted(over))
        changes = {topic: found for topic in over if (found := self._to_restore(topic, seen.get(topic, {})))}
        self._restored |= set(await self._alter(changes, "restored"))
        self._states = {key: state for key, state in self._states.items() if key[0] not in over}
        self._absent = Counter({topic: self._absent[topic] + 1 for topic in over - seen.keys() - seen.errors.keys()})
        deleted = {topic for topic, readings in self._absent.items() if readings >= _DELETED_AFTER_READINGS}
        for topic in deleted:
            log.info("topic %s was deleted: no throttle to restore", topic)
        if clean := deleted | {topic for topic in over if topic in seen and topic not in changes}:
            for topic in clean:
                self._absent.pop(topic, None)
                self._restored.discard(topic)
                self._cache.solved(f"topic {topic}")
            await self._cache.save(strike_topics(self._cache.ledger, clean))

    async def describe_set(self, topics: Collection[str]) -> list[str]:
        """The lists that are set on these topics, for messages."""
        return [
            f"{name} of topic {topic}"
            for topic, values in sorted((await self._read(sorted(topics))).items())
            for name, value in sorted(values.items())
            if value.source is ConfigSource.DYNAMIC_TOPIC
        ]

    def _state(self, key: ListKey) -> ListState:
        return self._states.get(key, ListState())

    async def _read(self, topics: Collection[str]) -> Answers[str, dict[str, ConfigValue], str]:
        """Topics that we may not read wait; all others go on."""
        if not topics:
            return Answers()
        now = self._monotonic()
        found = await self._admin.topic_configs(topics, LIST_NAMES)
        for topic in topics:
            if (error := found.errors.get(topic)) is not None:
                self._cache.note(f"topic {topic} (reading)", error.message)
            else:
                self._cache.solved(f"topic {topic} (reading)")
        self.unreadable = (self.unreadable - set(topics)) | found.errors.keys()
        self._readings = {t: r for t, r in self._readings.items() if t not in topics and now - r.at <= _KNOWN_SECONDS}
        self._readings |= {topic: _Reading.of(now, values) for topic, values in found.items()}
        return found

    async def _send(self, changes: Changes) -> dict[str, str | None]:
        """Alter the lists, in requests that the controller can write: it writes each list as a whole."""
        stored = self.stored
        sizes = {
            topic: sum(
                len(change.value) + (found.length if (found := stored.get((topic, change.name))) else LONGEST_BYTES)
                for change in wanted
            )
            for topic, wanted in changes.items()
        }
        answers: dict[str, str | None] = {}
        try:
            for batch in batches(sizes):
                answers |= await self._admin.alter_topic_configs({topic: changes[topic] for topic in batch})
        except BaseException:
            self._note_unanswered(changes)
            raise
        return answers

    def _note_unanswered(self, topics: Iterable[str]) -> None:
        unanswered = dict.fromkeys(topics, self._monotonic())
        self._unanswered_at |= unanswered
        self._restored -= unanswered.keys()

    def _may_still_change(self, topic: str) -> bool:
        """Whether an append that got no answer may still be carried out, here or by a controller that hangs."""
        since = self._unanswered_at.get(topic, self._started_at)
        return topic not in self._restored and self._monotonic() - since < LATE_SECONDS

    async def _alter(self, changes: Changes, done: str) -> list[str]:
        """Send these changes; the topics whose changes were accepted."""
        answers = await self._send(changes)
        accepted = []
        for topic in changes:
            problem = answers.get(topic, "no answer")
            if problem is None:
                accepted.append(topic)
                self._cache.solved(f"topic {topic}")
            else:
                self._cache.note(f"topic {topic}", f"throttled replicas not {done} yet: {problem}")
        return accepted

    async def _take_reading(self, key: ListKey, read: ConfigValue, wanted: frozenset[str]) -> None:
        topic, name = key
        state, gone = self._state(key).after_reading(read.value, wanted)
        if gone:
            before = self._cache.ledger.topics.get(topic, {}).get(name)
            dynamic = read.source is ConfigSource.DYNAMIC_TOPIC
            if before is not None and (not dynamic or before.value == WILDCARD):
                # Somebody deleted the whole list, or the wildcard: what is left is what to restore in the end.
                left = Before(read.value if dynamic else None, dynamic)
                await self._cache.save(with_list(self._cache.ledger, topic, name, left))
            self._reverts.note(self._monotonic(), f"topic {topic}: {len(gone)} entries of {name} were removed")
        self._states[key] = state

    def _to_restore(self, topic: str, seen: Mapping[str, ConfigValue]) -> list[ConfigChange]:
        """What to write so that the lists are as before; nothing once they read so."""
        changes = []
        for name, before in self._cache.ledger.topics.get(topic, {}).items():
            value = seen.get(name)
            mine = self._state((topic, name)).listed
            if value is None or WILDCARD in split(value.value) or before.value == WILDCARD:
                continue
            ours = self._cache.ledger.listed(topic, name)
            if self._may_still_change(topic):
                mine |= ours
            if value.source is not ConfigSource.DYNAMIC_TOPIC and not mine:
                continue
            # Entries that we appended may be there although the reading does not show them yet.
            listed = ",".join(filter(None, [value.value, *sorted(mine - split(value.value))]))
            left = remaining_after(before, listed, ours)
            if left is None:
                changes.append(ConfigChange(name, ConfigOp.DELETE))
            elif gone := split(listed) - split(left):
                changes.append(_change(name, ConfigOp.SUBTRACT, longest_part(gone)))
        return changes


def _change(name: str, op: ConfigOp, entries: Collection[str]) -> ConfigChange:
    return ConfigChange(name, op, ",".join(sorted(entries)))
