"""The lists of throttled replicas of the topics: appends our entries, reads them back, takes them out again.

``execution.list_state`` decides what a reading means, ``execution.list_budget`` how many entries fit. Entries of others
stay. The ledger is saved before each append, and has every entry of ours that is in a list or may still come into it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

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
    with_lists,
)
from kafka_rebalance.execution.list_budget import ListKey, StoredList, longest_part
from kafka_rebalance.execution.list_state import WILDCARD, ListState, RestoredList
from kafka_rebalance.execution.reassignment_throttle import Entries
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin, is_denied
from kafka_rebalance.reconcile.act.backoff import Backoff
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache, originals
from kafka_rebalance.reconcile.throttle.list_changes import Changes, ListChanges
from kafka_rebalance.reconcile.throttle.list_readings import ListReadings
from kafka_rebalance.reconcile.throttle.reverts import Reverts
from kafka_rebalance.reconcile.throttle.slices import MANY, Slices, length_of
from kafka_rebalance.reconcile.throttle.unsent import Unsent

log = logging.getLogger(__name__)

_CHARACTERS_OF_A_TOPIC = 1_000
"""Longer lists count for several topics when a slice of the event loop is ended."""
_DELETED_AFTER_READINGS = 5


class _Taken(NamedTuple):
    """What the reading of one list says. ``left``: what is to be restored from now on; None: the same as before."""

    state: ListState
    gone: frozenset[str]
    struck: frozenset[str]
    left: Before | None


class TopicLists:
    """Holds one ``ListState`` per list; none after a start. The controller keeps the lists, so all answer together."""

    def __init__(self, admin: KafkaAdmin, cache: LedgerCache, reverts: Reverts, monotonic: Callable[[], float]) -> None:
        self._cache = cache
        self._reverts = reverts
        self._monotonic = monotonic
        self._readings = ListReadings(admin, cache, monotonic)
        self._changes = ListChanges(admin, cache, monotonic)
        self._states: dict[ListKey, ListState] = {}
        self._unsent = Unsent[ListKey, str]()
        self._backoff = Backoff[str](monotonic)
        """Of topics whose lists we may not change."""
        self._reads_restored: set[str] = set()
        """Topics that read as before us, and wait until no append of ours may be late."""
        self._restored: dict[ListKey, RestoredList] = {}
        """Lists that were struck off the ledger lately."""
        self._absent: Counter[str] = Counter()
        """How many readings in a row did not show a topic that is to be restored."""

    def listed(self, topic: str, name: str) -> frozenset[str]:
        """The entries that are listed."""
        return self._state((topic, name)).certain

    @property
    def stored(self) -> Mapping[ListKey, StoredList]:
        """The lists that were read lately."""
        return self._readings.stored

    @property
    def unreadable(self) -> frozenset[str]:
        """Topics whose last reading failed."""
        return self._readings.unreadable

    @property
    def read_restored(self) -> frozenset[str]:
        """Topics that a reading showed as before us. They are on record while an append of ours may be late."""
        return frozenset(self._reads_restored)

    def is_read(self, topic: str) -> bool:
        """Whether the last reading of the topic's lists succeeded. Without it, their free room is not known."""
        return self._readings.values_of(topic) is not None

    def ready(self, wanted: Entries) -> Entries:
        """Those that may be appended now: their lists were read, and not denied a moment ago."""
        self._backoff.forget_all_but(wanted)
        due = set(self._backoff.due(wanted))
        return {topic: lists for topic, lists in wanted.items() if topic in due and self.is_read(topic)}

    def on_record(self, entries: Entries) -> Entries:
        """Those of the entries that are in the ledger: they stay, listed or not."""
        ledger = self._cache.ledger
        kept = {
            t: {name: items & ledger.listed(t, name) for name, items in lists.items()} for t, lists in entries.items()
        }
        return {topic: lists for topic, lists in kept.items() if any(lists.values())}

    async def read(self, entries: Entries, *, back: bool) -> None:
        """Read the lists that entries may be added to: those not read a moment ago, and those not on record yet.

        ``back``: also check what is on record, of these topics and of those with entries that were taken out. Entries
        that somebody took out come back with the next ``append``; ours that are gone are struck off the ledger.
        """
        recorded, is_fresh = self._cache.ledger.topics, self._readings.is_fresh
        subtracted = {topic for (topic, _), state in self._states.items() if state.subtracted} if back else set()
        listed = {*entries, *subtracted} & recorded.keys() if back else set()
        new = {t for t, lists in entries.items() if not is_fresh(t) or not lists.keys() <= recorded.get(t, {}).keys()}
        found = await self._readings.read(sorted(listed | new))
        taken, slices = dict[ListKey, _Taken](), Slices()
        for topic in sorted(listed & found.keys()):
            await slices.next()
            for name, read in found[topic].items():
                wanted = entries.get(topic, {}).get(name, frozenset())
                taken[topic, name] = self._taken((topic, name), read, wanted)
        await self._note_readings(taken)

    def ledger_to_append(self, ledger: Ledger, entries: Entries) -> Ledger:
        """The ledger that covers these entries too. Their lists were read before."""
        if covers_entries(ledger, entries):
            return ledger
        new = [topic for topic, lists in entries.items() if not set(lists) <= set(ledger.topics.get(topic, {}))]
        for topic, lists in entries.items():
            for name, items in lists.items():
                self._unsent.recorded((topic, name), items - ledger.listed(topic, name))
        now = self._monotonic()
        self._restored = {key: restored for key, restored in self._restored.items() if restored.is_recent(now)}
        return with_entries(ledger, entries, {topic: self._originals(topic) for topic in new})

    async def append(self, entries: Entries) -> None:
        """Append the entries that are in the ledger and not listed."""
        changes: dict[str, list[ConfigChange]] = {}
        before_append, never_listed = dict[ListKey, ListState](), dict[ListKey, frozenset[str]]()
        slices = Slices()
        for topic, lists in entries.items():
            await slices.next()
            for name, items in lists.items():
                state = self._state((topic, name))
                if items <= state.certain:
                    continue
                before = self._cache.ledger.topics.get(topic, {}).get(name)
                missing = (items & self._cache.ledger.listed(topic, name)) - state.certain
                if missing and (state.wildcard or (before is not None and before.value == WILDCARD)):
                    self._states[topic, name] = replace(
                        state, listed=items, unsure=frozenset()
                    )  # the wildcard covers them
                elif missing:
                    before_append[topic, name] = state
                    never_listed[topic, name] = self._unsent.sent((topic, name), missing)
                    self._states[topic, name] = state.before_append(missing)
                    changes.setdefault(topic, []).append(_change(name, ConfigOp.APPEND, missing))
        self._reads_restored -= changes.keys()
        for topic, problem in (await self._alter(changes, "listed")).items():
            await slices.next()
            denied = problem is not None and is_denied(problem)
            if denied:
                self._backoff.failed(topic)
            elif problem is None:
                self._backoff.succeeded(topic)
            for change in changes[topic]:
                key = (topic, change.name)
                if denied:
                    self._states[key] = before_append[key]
                    self._unsent.denied(key, never_listed[key])
                elif problem is None:
                    self._states[key] = self._state(key).after_append(split(change.value))
        if self._unsent.to_strike:
            await self._cache.save(strike_entries(self._cache.ledger, self._unsent.to_strike))
            self._unsent.struck()

    async def subtract(self, keep: Entries) -> None:
        """Take out what is no longer wanted, from the lists of topics that still have wanted entries."""
        ledger = self._cache.ledger
        stale = await computed(stale_entries, ledger, keep, many=len(ledger.entries) > MANY)
        still_used = {
            topic: {name: part for name, items in lists.items() if (part := self._to_subtract((topic, name), items))}
            for topic, lists in stale.items()
            if any(keep.get(topic, {}).values())
        }
        changes = {
            topic: [_change(name, ConfigOp.SUBTRACT, items) for name, items in lists.items()]
            for topic, lists in still_used.items()
            if lists
        }
        for topic, lists in still_used.items():
            for name, items in lists.items():
                self._states[topic, name] = self._state((topic, name)).before_removal(items)
        answers = await self._changes.send(changes, self.stored)
        for topic in [topic for topic, problem in answers.items() if problem is None]:
            for name, items in still_used[topic].items():
                self._states[topic, name] = self._state((topic, name)).after_subtract(items)

    async def restore(self, keep: Entries) -> None:
        """Write the original lists of finished topics, and strike them off the ledger once they read so.

        A topic of which an append may be late is read once more when it can no longer come.
        """
        over = finished_topics(self._cache.ledger, keep)
        waiting = {t for t in over if self._changes.may_append_late(t) and not self._changes.is_unanswered(t)}
        to_read = over - (waiting & self._reads_restored)
        if not to_read:
            return
        seen = await self._readings.read(sorted(to_read))
        changes = await self._all_to_restore(to_read, seen)
        unchanged = to_read - changes.keys()
        self._reads_restored |= seen.keys() & unchanged
        self._forget_states(unchanged)
        await self._send_restoring(changes)
        absent = to_read - seen.keys() - seen.errors.keys()
        self._absent = Counter({topic: self._absent[topic] + 1 for topic in absent})
        deleted = {topic for topic, readings in self._absent.items() if readings >= _DELETED_AFTER_READINGS}
        for topic in deleted:
            log.info("topic %s was deleted: no throttle to restore", topic)
        await self._strike(deleted | {topic for topic in to_read - waiting if topic in seen and topic not in changes})

    async def describe_set(self, topics: Collection[str]) -> list[str]:
        """The lists that are set on these topics, for messages."""
        return [
            f"{name} of topic {topic}"
            for topic, values in sorted((await self._readings.read(sorted(topics))).items())
            for name, value in sorted(values.items())
            if value.source is ConfigSource.DYNAMIC_TOPIC
        ]

    def _state(self, key: ListKey) -> ListState:
        return self._states.get(key, ListState())

    def _originals(self, topic: str) -> dict[str, Before]:
        """What to restore, by list. A broker may still show entries of ours that are gone: they are not of others."""
        values = self._readings.values_of(topic)
        return {
            name: restored.original(read) if (restored := self._restored.get((topic, name))) else read
            for name, read in originals(values or {}, ConfigSource.DYNAMIC_TOPIC).items()
        }

    def _to_subtract(self, key: ListKey, stale: frozenset[str]) -> frozenset[str]:
        return longest_part(stale - self._state(key).subtracted)

    async def _strike(self, topics: Collection[str]) -> None:
        """These topics are restored, or gone."""
        if not topics:
            return
        ledger, now = self._cache.ledger, self._monotonic()
        for topic in topics:
            self._absent.pop(topic, None)
            self._reads_restored.discard(topic)
            self._changes.forget(topic)
            self._cache.solved(f"topic {topic}")
            for name, before in ledger.topics.get(topic, {}).items():
                self._restored[topic, name] = RestoredList(now, before, ledger.listed(topic, name))
            self._unsent.forget([(topic, name) for name in ledger.topics.get(topic, {})])
        await self._cache.save(strike_topics(ledger, topics))

    async def _alter(self, changes: Changes, done: str) -> dict[str, str | None]:
        """Send these changes; the answer of each topic, None if it was accepted."""
        answers = await self._changes.send(changes, self.stored)
        slices = Slices()
        for topic, problem in answers.items():
            await slices.next()
            if problem is None:
                self._cache.solved(f"topic {topic}")
            else:
                self._cache.note(f"topic {topic}", f"throttled replicas not {done} yet: {problem}")
        return answers

    async def _send_restoring(self, changes: Changes) -> None:
        """Send these changes, in as many requests as it takes.

        A list in which nobody else has entries is deleted as a whole. Others may add some while an earlier request is
        answered, so each request is chosen from a reading right before it.
        """
        for number, topics in enumerate(self._changes.requests(changes, self.stored)):
            if number == 0 and all(self._readings.is_fresh(topic) for topic in topics):
                chosen: Changes = {topic: changes[topic] for topic in topics}
            else:
                chosen = await self._all_to_restore(topics, await self._readings.read(sorted(topics)))
            for topic, change in ((topic, change) for topic, found in chosen.items() for change in found):
                state = self._state((topic, change.name))
                self._states[topic, change.name] = state.before_removal(state.listed)
            answers = await self._alter(chosen, "restored")
            self._forget_states({topic for topic, problem in answers.items() if problem is None})

    def _forget_states(self, topics: Collection[str]) -> None:
        self._states = {key: state for key, state in self._states.items() if key[0] not in topics}

    def _taken(self, key: ListKey, read: ConfigValue, wanted: frozenset[str]) -> _Taken:
        topic, name = key
        entries = self._readings.entries_of(topic, name)
        state, gone = self._state(key).after_reading(entries, wanted)
        state, struck = state.after_confirming(entries, late=self._changes.may_append_late(topic))
        before = self._cache.ledger.topics.get(topic, {}).get(name)
        dynamic = read.source is ConfigSource.DYNAMIC_TOPIC
        left = None
        if gone and before is not None and (not dynamic or before.value == WILDCARD):
            # Somebody deleted the whole list, or the wildcard: what is left is what to restore in the end.
            left = Before(read.value if dynamic else None, dynamic)
        return _Taken(state, gone, struck, None if left == before else left)

    async def _note_readings(self, taken: Mapping[ListKey, _Taken]) -> None:
        if struck := {key: row.struck for key, row in taken.items() if row.struck}:
            self._cache.strike(strike_entries(self._cache.ledger, struck))
        # In one write: a server may show all lists without our entries at once.
        if left := {key: row.left for key, row in taken.items() if row.left is not None}:
            await self._cache.save(with_lists(self._cache.ledger, left))
        for (topic, name), row in taken.items():
            if row.gone:
                self._reverts.note(self._monotonic(), f"topic {topic}: {len(row.gone)} entries of {name} were removed")
            self._states[topic, name] = row.state

    def _length(self, topic: str, seen: Mapping[str, ConfigValue]) -> int:
        originals = self._cache.ledger.topics.get(topic, {})
        return length_of(read.value for read in seen.values()) + length_of(one.value for one in originals.values())

    async def _all_to_restore(
        self, topics: Collection[str], seen: Mapping[str, Mapping[str, ConfigValue]]
    ) -> dict[str, list[ConfigChange]]:
        """Of each of these topics that does not read as before us."""
        changes, slices = dict[str, list[ConfigChange]](), Slices()
        for topic in topics:
            await slices.next(1 + self._length(topic, seen.get(topic, {})) // _CHARACTERS_OF_A_TOPIC)
            if found := self._to_restore(topic, seen.get(topic, {})):
                changes[topic] = found
        return changes

    def _to_restore(self, topic: str, seen: Mapping[str, ConfigValue]) -> list[ConfigChange]:
        """What to write so that the lists are as before; nothing once they read so."""
        changes = []
        for name, before in self._cache.ledger.topics.get(topic, {}).items():
            value = seen.get(name)
            mine = self._state((topic, name)).listed
            if value is None or WILDCARD in split(value.value) or before.value == WILDCARD:
                continue
            ours = self._cache.ledger.listed(topic, name)
            if self._changes.is_unanswered(topic):
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
