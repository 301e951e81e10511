"""Keeps the throttle of one Kafka cluster: ledger first, then the change, in the end exactly what was there before.

What to write is decided in ``execution.reassignment_throttle`` and ``execution.throttle_drift``; brokers and topics
have a module each. A broker that does not answer stays in the ledger and is settled later; nothing waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import finished_rates, finished_topics, protected, stale_entries, with_others
from kafka_rebalance.execution.reassignment_throttle import (
    RATE_OF,
    Claim,
    Entries,
    Mode,
    WantedThrottle,
    broker_of,
    combine,
)
from kafka_rebalance.execution.throttle_drift import Reverts
from kafka_rebalance.kafka.ports import KafkaAdmin
from kafka_rebalance.kube.store import LedgerStore
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.throttle.broker_rates import BrokerRates
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache
from kafka_rebalance.reconcile.throttle.topic_lists import TopicLists

READ_BACK_SECONDS = 1.0
READ_BACK_SECONDS_PER_BROKER = 0.02
"""Each broker is asked by itself: of a thousand, every twenty seconds."""
_NAMED = 3


class ThrottleKeeper:
    """The throttle of one cluster."""

    def __init__(
        self, cluster_id: str, admin: KafkaAdmin, store: LedgerStore, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._book = LedgerCache(cluster_id, store)
        self._reverts = Reverts()
        self._rates = BrokerRates(admin, self._book, self._reverts, monotonic)
        self._lists = TopicLists(admin, self._book, self._reverts, monotonic)
        self._wanted = WantedThrottle()
        self._entries: Entries = {}
        self._elsewhere: Mapping[TopicPartition, Replicas] = {}
        self._rates_read_at = float("-inf")
        self._lists_read_at = float("-inf")

    async def load(self) -> None:
        """Read the ledger once. Permanent("ThrottleLedgerDamaged") where it cannot be read: never guess."""
        await self._book.load()

    async def extend(
        self,
        claims: Mapping[str, Claim],
        alive: Collection[BrokerId],
        mode: Mode = Mode.ADDITIVE,
        others: Collection[TopicPartition] = (),
        elsewhere: Mapping[TopicPartition, Replicas] | None = None,
    ) -> frozenset[tuple[str, str]]:
        """Put in place what the claims, by name, want; first look whether what was put in place before still is.

        ``others``: the partitions among them that are claimed only because other people are reassigning them.
        ``elsewhere``: partitions in flight that no claim speaks for; where we throttle them no rate is raised.
        Returns the topic and entry of each replica whose throttle is not in place: its partition may not be submitted.
        """
        self._wanted = combine(claims)
        _, kept = protected({}, self._book.ledger, elsewhere or {})
        await self._rates.aim(self._wanted, alive, mode, kept)
        self._entries = self._to_list()
        await self._look_again(alive)
        ledger = await self._lists.on_record(self._rates.on_record(), self._entries)
        await self._book.save(with_others(ledger, self._entries, others))
        await self._rates.set(alive)
        await self._lists.append(self._entries)
        return frozenset(self._uncovered(alive))

    async def shrink(
        self,
        alive: Collection[BrokerId],
        elsewhere: Mapping[TopicPartition, Replicas] | None = None,
        *,
        let_others_go: bool = True,
    ) -> None:
        """Take away what the claims of the last ``extend`` do not want any more.

        ``elsewhere``: partitions in flight that no claim speaks for, with their replicas; what is ours there stays,
        unless it was only claimed for other people's sake and they may be let go.
        """
        gone = self._book.ledger.others if let_others_go else frozenset[TopicPartition]()
        self._elsewhere = {tp: replicas for tp, replicas in (elsewhere or {}).items() if tp not in gone}
        keep, kept = protected(self._entries, self._book.ledger, self._elsewhere)
        await self._lists.subtract(keep)
        await self._rates.restore(finished_rates(self._book.ledger, self._wanted, kept), alive)
        await self._lists.restore(keep)
        if self.ledger_empty:
            self._reverts.forget()

    async def establish(self, brokers: Collection[BrokerId], topics: Collection[str], *, under_way: bool) -> None:
        """Have a ledger stored before a run is opened.

        Permanent("ThrottleLedgerMissing") where there is none although runs are ``under_way``, and these brokers or
        topics have throttles: whose they are, and what was there before, nobody knows.
        """
        if self._book.exists:
            return
        if under_way and (found := [*await self._rates.set_there(brokers), *await self._lists.set_there(topics)]):
            raise Permanent(
                Reason.THROTTLE_LEDGER_MISSING,
                f"somebody deleted the throttle ledger while a run was open, and {_some(found)} may be ours; "
                "nothing is guessed: restore the ledger, or delete these configs and set again what is yours later",
            )
        await self._book.establish()

    @property
    def trouble(self) -> str:
        """What could not be written lately, for the status; empty where all went well."""
        return self._book.trouble

    @property
    def ledger_empty(self) -> bool:
        """Whether nothing of ours is left on any broker or topic."""
        return self._book.empty

    def left_for_later(self, alive: Collection[BrokerId]) -> bool:
        """Whether all that is on record is on brokers that are not there: nothing to do before one returns."""
        book = self._book.ledger
        return not (self._wanted.brokers or book.topics or book.entries or set(book.brokers) & set(alive))

    def given_back(self, alive: Collection[BrokerId]) -> bool:
        """Whether nothing is left of what is no longer claimed, on these brokers and on any topic."""
        keep, kept = protected(self._entries, self._book.ledger, self._elsewhere)
        book = self._book.ledger
        if finished_topics(book, keep) or stale_entries(book, keep):
            return False
        return not set(finished_rates(book, self._wanted, kept)) & set(alive)

    @property
    def reverts(self) -> int:
        """How often somebody undid what was set, since the start."""
        return self._reverts.count

    @property
    def contested(self) -> str:
        """Who may be undoing it again and again; empty where nobody is."""
        return self._reverts.contested(self._monotonic())

    @property
    def ceilings(self) -> str:
        """Rates that somebody set below ours by hand, which hold; empty where none are on record or read."""
        if self._book.empty:
            return ""
        return _some([f"broker {b}: {name} = {rate}" for (b, name), rate in sorted(self._rates.ceilings().items())])

    @property
    def replicas(self) -> int:
        """How many replicas are listed, on either side."""
        return sum(len(frozenset().union(*lists.values())) for lists in self._entries.values())

    def restored(self, topics: Collection[str], brokers: Collection[BrokerId]) -> bool:
        """Whether nothing but what is claimed is left on these topics and brokers (those that can be asked)."""
        keep, kept = protected(self._entries, self._book.ledger, self._elsewhere)
        left = finished_topics(self._book.ledger, keep) & set(topics)
        return not left and not set(finished_rates(self._book.ledger, self._wanted, kept)) & set(brokers)

    def in_place(self, broker: BrokerId) -> dict[str, tuple[int, str]]:
        """Rates in force on the broker by our doing, by config name: bytes per second, and the claim that binds."""
        return self._rates.in_place(broker)

    def brokers_in_place(self, brokers: Iterable[BrokerId]) -> int:
        """How many of the brokers have every rate that they shall have, or a lower one."""
        return sum(bool(self._rates.in_place(broker)) and self._rates.is_ready(broker) for broker in brokers)

    def refusals(self, brokers: Collection[BrokerId] | None = None) -> str:
        """KIP-542's configuration errors, on these brokers only where they are given; empty where there are none."""
        found = [
            f"broker {broker}: {target.refused} of its {name}"
            for (broker, name), target in self._rates.refusals().items()
            if brokers is None or broker in brokers
        ]
        return _some(found)

    def _to_list(self) -> Entries:
        """The wanted entries on brokers whose side has a rate."""
        found: dict[str, dict[str, frozenset[str]]] = {}
        for topic, lists in self._wanted.entries.items():
            for name, items in lists.items():
                listed = frozenset(i for i in items if self._rates.is_listed((broker_of(i), RATE_OF[name])))
                if listed:
                    found.setdefault(topic, {})[name] = listed
        return found

    def _uncovered(self, alive: Collection[BrokerId]) -> Iterable[tuple[str, str]]:
        for topic, lists in self._entries.items():
            for name, items in lists.items():
                for item in items:
                    key = (broker_of(item), RATE_OF[name])
                    # A broker that is away gets its rate on its return.
                    unready = key[0] in alive and not self._rates.allows(key)
                    if unready or not self._lists.has(topic, name, item):
                        yield topic, item

    async def _look_again(self, alive: Collection[BrokerId]) -> None:
        now = self._monotonic()
        if self._book.empty:
            return
        pause = max(READ_BACK_SECONDS, READ_BACK_SECONDS_PER_BROKER * len(self._book.ledger.brokers))
        all_of_them = now - self._rates_read_at >= pause
        if all_of_them:
            self._rates_read_at = now
        await self._rates.look_again(alive, all_of_them=all_of_them)
        if now - self._lists_read_at >= READ_BACK_SECONDS:
            self._lists_read_at = now
            await self._lists.look_again(self._entries)


def _some(found: Sequence[str]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(found[:_NAMED]) + more
