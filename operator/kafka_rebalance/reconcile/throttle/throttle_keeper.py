"""Keeps the throttle of one Kafka cluster: saves the ledger, changes the configs, restores them exactly in the end.

``execution`` decides what to write; brokers and topics have a module each. A broker that does not answer stays in the
ledger and is restored when it returns; nothing waits for it.
"""

import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import (
    Ledger,
    RateRecord,
    finished_rates,
    finished_topics,
    protected,
    stale_entries,
    with_foreign,
)
from kafka_rebalance.execution.list_budget import LeftOut, ListBudget, fitting
from kafka_rebalance.execution.reassignment_throttle import (
    LIST_NAMES,
    LOG_DIR_RATE,
    RATE_NAMES,
    RATE_OF,
    Claim,
    Entries,
    Mode,
    WantedThrottle,
    broker_of,
    combine,
    refusals_told,
)
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.throttle.broker_rates import BrokerRates, RateKey
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache
from kafka_rebalance.reconcile.throttle.left_cordons import LeftCordons
from kafka_rebalance.reconcile.throttle.reverts import Reverts
from kafka_rebalance.reconcile.throttle.slices import are_many
from kafka_rebalance.reconcile.throttle.topic_lists import TopicLists

READ_BACK_SECONDS = 1.0
_READ_BACK_SECONDS_PER_BROKER = 0.17
_READ_BACK_SECONDS_AT_MOST = 20.0
"""Each broker is read on its own: six of them every second, sixty every ten, all the others every twenty."""
_SHRINK_SECONDS_PER_TOPIC = 0.02
_SHRINK_SECONDS_AT_MOST = 3.0
"""Of many listed topics, some partitions arrive in each round: the entries of several rounds are taken out together."""
_NAMED = 3


BrokersOfLists = Mapping[tuple[str, bool], frozenset[BrokerId]]
"""By list, and whether a claim that asks for a rate wants the entry."""


_NO_LISTS: Mapping[str, frozenset[str]] = {}


class _ToList(NamedTuple):
    """The entries ``listed`` of one topic, and what they were found from."""

    of: Mapping[str, frozenset[str]]
    limited: Mapping[str, frozenset[str]]
    listed: Mapping[str, frozenset[str]]


class ThrottleKeeper:
    """The throttle of one cluster. ``most``: as of `LedgerCache`."""

    def __init__(
        self,
        cluster_id: str,
        admin: KafkaAdmin,
        store: LedgerStore,
        monotonic: Callable[[], float] = time.monotonic,
        most: int | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._cache = LedgerCache(cluster_id, store, most)
        self._reverts = Reverts()
        self._rates = BrokerRates(admin, self._cache, self._reverts, monotonic)
        self._lists = TopicLists(admin, self._cache, self._reverts, monotonic)
        self._cordons = LeftCordons(admin, self._cache, monotonic)
        self._wanted = WantedThrottle()
        self._entries: Entries = {}
        self._found: Mapping[str, _ToList] = {}
        """What ``_to_list`` found last, by topic, with these brokers."""
        self._found_on: BrokersOfLists = {}
        self.left_out = LeftOut()
        """Partitions of the last ``apply_claims`` that are not throttled, because a list has no room for them."""
        self._log_dirs_busy: frozenset[BrokerId] = frozenset()
        self._unaccounted: Mapping[TopicPartition, Replicas] = {}
        self._rates_read_at = float("-inf")
        self._lists_read_at = float("-inf")
        self._shrunk_at = float("-inf")

    async def load(self) -> None:
        """Read the ledger once. Permanent("ThrottleLedgerDamaged") where it cannot be read: never guess."""
        await self._cache.load()

    async def apply_claims(
        self,
        claims: Mapping[str, Claim],
        alive: Collection[BrokerId],
        mode: Mode = Mode.ADDITIVE,
        foreign: Collection[TopicPartition] = (),
        unaccounted: Mapping[TopicPartition, Replicas] | None = None,
    ) -> frozenset[tuple[str, str]]:
        """Apply all claims, by name, after checking that what was applied before is still there.

        ``foreign``: the partitions among them that are claimed only because another tool is reassigning them.
        ``unaccounted``: partitions in flight that no claim names; no rate is raised on their brokers. Returns the topic
        and entry of each replica that is not throttled yet: its partition must not be submitted.
        """
        many = are_many(claims)
        self._wanted = await computed(combine, claims, many=many)
        _, kept = protected({}, self._cache.ledger, unaccounted or {})
        await self._rates.set_targets(self._wanted, alive, mode, kept)
        wanted = await computed(self._to_list, many=many)
        await self._read_back(alive, wanted)
        appendable, ledger = await computed(self._appendable, wanted, foreign, many=many)
        await self._cache.save(ledger)
        await self._rates.write(alive)
        await self._lists.append(appendable)
        return await computed(self._uncovered, wanted, alive, many=many)

    def _appendable(self, wanted: Entries, foreign: Collection[TopicPartition]) -> tuple[Entries, Ledger]:
        """The wanted entries for which the lists have room, and the ledger to save before they are appended."""
        known = self._lists.ready(wanted)
        appendable, self.left_out = fitting(known, self.list_budget, foreign)
        unread = {topic: lists for topic, lists in wanted.items() if topic not in known}
        self._entries = {**appendable, **self._lists.on_record(unread)}
        ledger = self._lists.ledger_to_append(self._rates.ledger_to_write(), self._entries)
        return appendable, with_foreign(ledger, self._entries, foreign)

    async def restore_finished(
        self,
        alive: Collection[BrokerId],
        unaccounted: Mapping[TopicPartition, Replicas] | None = None,
        *,
        release_foreign: bool = True,
        log_dirs_busy: Collection[BrokerId] = (),
    ) -> None:
        """Restore what the claims of the last ``apply_claims`` no longer want.

        ``unaccounted``: partitions in flight that no claim names, with their replicas: their resource was not seen yet,
        or cannot be read. They keep their throttle, except those that were claimed only because another tool reassigns
        them, if ``release_foreign``. ``log_dirs_busy``: brokers that still copy between their log dirs, and keep the
        rate of that.
        """
        released = self._cache.ledger.foreign if release_foreign else frozenset[TopicPartition]()
        self._unaccounted = {tp: replicas for tp, replicas in (unaccounted or {}).items() if tp not in released}
        keep, kept = protected(self._entries, self._cache.ledger, self._unaccounted)
        now, pause = self._monotonic(), min(_SHRINK_SECONDS_PER_TOPIC * len(self._entries), _SHRINK_SECONDS_AT_MOST)
        shrinks = now - self._shrunk_at >= pause
        if shrinks:
            self._shrunk_at = now
            await self._lists.subtract(keep)
        self._log_dirs_busy = frozenset(log_dirs_busy)
        await self._rates.restore(self._finished_rates(kept), alive)
        if shrinks:
            await self._lists.restore(keep)
        if self.ledger_empty:
            self._reverts.forget()

    async def establish(self, brokers: Collection[BrokerId], topics: Collection[str], *, under_way: bool) -> None:
        """Store an empty ledger before the first run is opened.

        Permanent("ThrottleLedgerMissing") where there is none although runs are ``under_way``, and these brokers or
        topics have throttles: the original values are lost.
        """
        if under_way and not self._cache.exists:
            found = [*await self._rates.describe_set(brokers), *await self._lists.describe_set(topics)]
            if found:
                raise Permanent(
                    Reason.THROTTLE_LEDGER_MISSING,
                    f"somebody deleted the throttle ledger while a run was open, and {_some(found)} may be ours: "
                    "restore the ledger, or delete these configs and set your own values again later",
                )
        await self._cache.establish()

    async def take_cordons(self, brokers: Collection[BrokerId]) -> None:
        """Record cordons of a run that is about to end, to be removed when the brokers are back."""
        await self._cordons.take(brokers)

    async def remove_cordons(
        self, alive: Collection[BrokerId], of_runs: Collection[BrokerId], in_doubt: Collection[BrokerId]
    ) -> None:
        """Remove such cordons of live brokers, except those ``of_runs`` that are open or ``in_doubt``."""
        await self._cordons.remove(alive, of_runs, in_doubt)

    @property
    def left_cordons(self) -> frozenset[BrokerId]:
        """The brokers with such cordons."""
        return frozenset() if self._cache.empty else self._cache.ledger.cordons

    @property
    def ledger_counts(self) -> Mapping[str, int]:
        """How many entries the ledger has, by kind."""
        return (Ledger() if self._cache.empty else self._cache.ledger).counts

    @property
    def list_budget(self) -> ListBudget:
        """The contents of the lists, and the brokers and sides with listed replicas."""
        ledger = Ledger() if self._cache.empty else self._cache.ledger
        stored, unreadable = self._lists.stored, self._lists.unreadable
        return ListBudget(stored, ledger, lambda broker, rate: self._rates.is_listed((broker, rate)), unreadable)

    @property
    def trouble(self) -> str:
        """What could not be read or written lately, for the status; empty where all went well."""
        return self._cache.trouble

    def trouble_with(self, topics: Container[str], brokers: Container[BrokerId]) -> str:
        """The trouble with these topics and brokers; empty where there is none."""
        return self._cache.trouble_with(topics, brokers)

    @property
    def ledger_empty(self) -> bool:
        """Whether nothing of ours is left on any broker or topic."""
        return self._cache.empty

    def waits_for_absent_brokers(self, alive: Collection[BrokerId]) -> bool:
        """Whether the ledger has only configs of brokers that are not live: nothing to do before one returns."""
        ledger = self._cache.ledger
        back = (ledger.brokers.keys() | ledger.cordons) & set(alive)
        return not (self._wanted.brokers or ledger.topics or ledger.entries or back)

    def all_restored(self, alive: Collection[BrokerId]) -> bool:
        """Whether nothing that has to be restored is left on these brokers and on any topic."""
        ledger = self._cache.ledger
        keep, kept = protected(self._entries, ledger, self._unaccounted)
        if finished_topics(ledger, keep) or stale_entries(ledger, keep):
            return False
        return not set(self._finished_rates(kept)) & set(alive)

    @property
    def reverts(self) -> int:
        """How often somebody undid the throttle, since the start."""
        return self._reverts.count

    @property
    def contested(self) -> str:
        """The writer that may keep undoing the throttle; empty if there is none."""
        return self._reverts.contested(self._monotonic())

    @property
    def brakes(self) -> str:
        """Rates that somebody set below ours, which hold; empty where there are none."""
        if self._cache.empty:
            return ""
        return _some([f"broker {b}: {name} = {rate}" for (b, name), rate in sorted(self._rates.brakes().items())])

    @property
    def replicas(self) -> int:
        """How many replicas are listed, on either side."""
        return sum(len(frozenset().union(*lists.values())) for lists in self._entries.values())

    def restored(self, topics: Collection[str], brokers: Collection[BrokerId]) -> bool:
        """Whether nothing that has to be restored is left on these topics and on these brokers, which must be live.

        Topics that only wait for an append that may be late count as restored: the ledger outlives the run.
        """
        keep, kept = protected(self._entries, self._cache.ledger, self._unaccounted)
        over, stale = finished_topics(self._cache.ledger, keep), stale_entries(self._cache.ledger, keep).keys()
        left = ((over - self._lists.read_restored) | (stale - over)) & set(topics)
        return not left and not (set(self._finished_rates(kept)) | self._log_dirs_busy) & set(brokers)

    @property
    def unclaimed_log_dir_rates(self) -> frozenset[BrokerId]:
        """The brokers with a rate of copies between log dirs that no claim asks for any more."""
        rows = {} if self._cache.empty else self._cache.ledger.brokers
        return frozenset(
            broker
            for broker, names in rows.items()
            if LOG_DIR_RATE in names and not self._wanted.asked(broker, LOG_DIR_RATE)
        )

    def log_dirs_throttled(self, brokers: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """Those of the brokers that may copy between their log dirs: a rate that is claimed is in place."""
        limited = {broker: bool(self._wanted.asked(broker, LOG_DIR_RATE)) for broker in brokers}
        return frozenset(b for b, is_ in limited.items() if self._rates.allows((b, LOG_DIR_RATE), limited=is_))

    def _finished_rates(self, kept: Collection[BrokerId]) -> dict[BrokerId, dict[str, RateRecord]]:
        """The rates to restore now."""
        found = finished_rates(self._cache.ledger, self._wanted, kept)
        for broker in self._log_dirs_busy & found.keys():
            found[broker] = {name: row for name, row in found[broker].items() if name != LOG_DIR_RATE}
        return {broker: rows for broker, rows in found.items() if rows}

    def in_place(self, broker: BrokerId) -> dict[str, tuple[int, str]]:
        """Rates in force on the broker because of us, by config name: bytes per second, and the claim that binds."""
        return self._rates.in_place(broker)

    def brokers_in_place(self, brokers: Iterable[BrokerId]) -> int:
        """How many of the brokers have every rate that they should have, or a lower one."""
        return sum(bool(self._rates.in_place(broker)) and self._rates.is_ready(broker) for broker in brokers)

    def brokers_pending(self, brokers: Iterable[BrokerId], alive: Collection[BrokerId]) -> int:
        """How many of the brokers that are live should have a rate and have not accepted it yet."""
        asked = [b for b in brokers if b in alive and any(self._wanted.asked(b, name) for name in RATE_NAMES)]
        return len(asked) - self.brokers_in_place(asked)

    def refusals(self, brokers: Collection[BrokerId] | None = None) -> str:
        """KIP-542's configuration errors, on these brokers or on all; empty where there are none."""
        found = self._rates.refusals()
        return _some(refusals_told({key: row for key, row in found.items() if brokers is None or key[0] in brokers}))

    def not_allowed(self, brokers: Collection[BrokerId] | None = None) -> str:
        """Which of the brokers, or of all, do not let us set a rate; empty: all do."""
        answers = self._rates.not_allowed()
        found = {b: answer for b, answer in answers.items() if brokers is None or b in brokers}
        if not found:
            return ""
        some = ", ".join(str(broker) for broker in list(found)[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        who = f"broker {some} does" if len(found) == 1 else f"brokers {some}{more} do"
        return f"{who} not allow to set a throttle rate ({next(iter(found.values()))})"

    def _to_list(self) -> Entries:
        """The wanted entries on brokers whose side has a rate. Found again only for topics that have changed."""
        wanted = self._wanted
        on = self._brokers_where(wanted.brokers, self._rates.is_listed)
        before = self._found if on == self._found_on else {}
        rows: dict[str, _ToList] = {}
        for topic, lists in wanted.entries.items():
            limited, known = wanted.limited.get(topic, _NO_LISTS), before.get(topic)
            if known is None or known.of is not lists or known.limited is not limited:
                known = _ToList(lists, limited, _on_brokers(lists, limited, on))
            rows[topic] = known
        self._found, self._found_on = rows, on
        return {topic: row.listed for topic, row in rows.items() if row.listed}

    def _uncovered(self, wanted: Entries, alive: Collection[BrokerId]) -> frozenset[tuple[str, str]]:
        return frozenset(self._each_uncovered(wanted, alive))

    def _each_uncovered(self, wanted: Entries, alive: Collection[BrokerId]) -> Iterable[tuple[str, str]]:
        def is_unready(key: RateKey, *, limited: bool) -> bool:
            return not self._rates.allows(key, limited=limited)

        # A broker that is not live gets its rate when it returns.
        unready = self._brokers_where(alive, is_unready)
        all_ready = not any(unready.values())
        for topic, lists in wanted.items():
            for name, items in lists.items():
                for item in items - self._lists.listed(topic, name):
                    yield topic, item
                limited = self._wanted.limited_entries(topic, name)
                for item in () if all_ready else items:
                    if broker_of(item) in unready[name, item in limited]:
                        yield topic, item

    @staticmethod
    def _brokers_where(brokers: Iterable[BrokerId], holds: Callable[..., bool]) -> BrokersOfLists:
        """The brokers for which that holds, by list and ``limited``: thousands of entries are on a few brokers."""
        return {
            (name, limited): frozenset(b for b in brokers if holds((b, RATE_OF[name]), limited=limited))
            for name in LIST_NAMES
            for limited in (True, False)
        }

    async def _read_back(self, alive: Collection[BrokerId], wanted: Entries) -> None:
        now = self._monotonic()
        if self._cache.empty:
            await self._lists.read(wanted, back=False)
            return
        pause = min(_READ_BACK_SECONDS_PER_BROKER * len(self._cache.ledger.brokers), _READ_BACK_SECONDS_AT_MOST)
        pause = max(READ_BACK_SECONDS, pause)
        all_brokers = now - self._rates_read_at >= pause
        if all_brokers:
            self._rates_read_at = now
        await self._rates.read_back(alive, all_brokers=all_brokers)
        back = now - self._lists_read_at >= READ_BACK_SECONDS
        if back:
            self._lists_read_at = now
        await self._lists.read(wanted, back=back)


def _on_brokers(
    lists: Mapping[str, frozenset[str]], limited: Mapping[str, frozenset[str]], on: BrokersOfLists
) -> dict[str, frozenset[str]]:
    """The entries of these lists on these brokers."""
    found = {
        name: frozenset(item for item in items if broker_of(item) in on[name, item in limited.get(name, ())])
        for name, items in lists.items()
    }
    return {name: items for name, items in found.items() if items}


def _some(found: Sequence[str]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(found[:_NAMED]) + more
