"""The brokers' side of the throttle: rates are learnt, set, read back and restored, each broker by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.execution.ledger import Before, Ledger, RateRecord, strike_rates, with_rates
from kafka_rebalance.execution.reassignment_throttle import RATE_NAMES, Mode, Target, WantedThrottle, rate_in, target_of
from kafka_rebalance.execution.throttle_drift import (
    RateFinding,
    Reverts,
    Suspicion,
    after_finding,
    in_force,
    rate_found,
)
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.throttle.backoff import Backoff
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache

log = logging.getLogger(__name__)

RateKey = tuple[BrokerId, str]
"""Broker and config name."""
_KNOWN_SECONDS = 30.0
_LATE_SECONDS = 30.0
"""How long a write that nobody answered may still be on its way: a broker that hung carries out what it was sent."""


class BrokerRates:
    """``_there`` is what is known to be in place, by an answer or by reading: empty after a start."""

    def __init__(self, admin: KafkaAdmin, book: LedgerCache, reverts: Reverts, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._book = book
        self._reverts = reverts
        self._monotonic = monotonic
        self._backoff = Backoff(monotonic)
        self._wanted = WantedThrottle()
        self.targets: dict[RateKey, Target] = {}
        """What each rate shall be; of a broker that has not told what it is there is none."""
        self._known: dict[BrokerId, tuple[float, Mapping[str, Before]]] = {}
        self._there: dict[RateKey, int] = {}
        self._read_back: set[RateKey] = set()
        self._odd: Suspicion[RateKey, int | None] = Suspicion()
        self._doubted: dict[RateKey, int | None] = {}
        """What somebody else may have changed, and what was to be there: read once more before it is written over."""
        self._undone: set[RateKey] = set()
        self._unanswered: dict[RateKey, float] = {}
        """When rates were last written without an answer. An operator that was killed may have left some, too."""
        self._began = monotonic()

    async def aim(
        self, wanted: WantedThrottle, alive: Collection[BrokerId], mode: Mode, kept: Collection[BrokerId] = ()
    ) -> None:
        """Find out what each rate shall be. On brokers that are ``kept`` for copies nobody claims none is raised."""
        self._wanted = wanted
        await self._learn(wanted.brokers.intersection(alive))
        self.targets = {}
        for broker in wanted.brokers:
            for name in RATE_NAMES:
                record = self._book.ledger.rate(broker, name)
                before = self._known.get(broker, (0.0, {}))[1].get(name)
                if record is None and before is None:
                    continue
                replication = record.replication if record is not None else rate_in(before.value if before else None)
                target = target_of(replication, wanted.asked(broker, name), mode)
                if broker in kept and record is not None and record.applied is not None and target.rate is not None:
                    target = replace(target, rate=min(target.rate, record.applied))
                self.targets[broker, name] = target

    def is_listed(self, key: RateKey) -> bool:
        """Whether moving replicas join the list of this broker and side; of a silent one, where a rate is asked for."""
        target = self.targets.get(key)
        return target.listed if target is not None else bool(self._wanted.asked(*key))

    def on_record(self) -> Ledger:
        """The ledger that covers what is to be set."""
        records: dict[RateKey, RateRecord] = {}
        for key, target in self.targets.items():
            if target.rate is None:
                continue
            known = self._book.ledger.rate(*key) or RateRecord(self._known[key[0]][1][key[1]])
            record, rate = in_force(known, target.rate, self._wanted.asked(*key))
            if rate not in record.written:
                # Of what was written before, only what was read back since can still be there.
                still = {self._there[key]} if key in self._read_back and key in self._there else record.written
                record = replace(record, written=frozenset({rate, *(still & record.written)}))
            records[key] = replace(record, applied=rate)
        return with_rates(self._book.ledger, records)

    async def set(self, alive: Collection[BrokerId]) -> None:
        """Write the rates that are on record and not in place."""
        changes: dict[BrokerId, list[ConfigChange]] = {}
        for broker in self._backoff.to_ask({b for b, _ in self.targets if b in alive}):
            for name in RATE_NAMES:
                key = (broker, name)
                shall_be = self._shall_be(key)
                doubted = key in self._doubted and self._doubted[key] == shall_be
                if shall_be is not None and self._lacks(key) and not doubted:
                    changes.setdefault(broker, []).append(ConfigChange(name, ConfigOp.SET, str(shall_be)))
        answers = await self._admin.alter_broker_configs(changes) if changes else {}
        for broker, wanted in changes.items():
            problem = answers.get(broker, "no answer")
            for change in wanted:
                self._forget((broker, change.name))
                self._undone.discard((broker, change.name))
                if problem is None:
                    self._there[broker, change.name] = int(change.value)
                else:
                    self._unanswered[broker, change.name] = self._monotonic()
            self._answered(broker, problem, "set")

    async def look_again(self, alive: Collection[BrokerId], *, all_of_them: bool) -> None:
        """Read back what was set, and take in what somebody else made of it; what was odd is read again at once."""
        brokers = {b for b, _ in self.targets if b in alive and b in self._book.ledger.brokers}
        odd = {broker for broker, _ in self._doubted}
        asked = self._backoff.to_ask(brokers if all_of_them else brokers & odd)
        for broker, values in (await self._ask(asked)).items():
            for name in self._book.ledger.brokers[broker]:
                if name in values:
                    await self._compare((broker, name), values[name])

    async def restore(self, over: Mapping[BrokerId, Mapping[str, RateRecord]], alive: Collection[BrokerId]) -> None:
        """Make these rates what they shall be in the end, and strike them off the record once they read so."""
        there = await self._ask(self._backoff.to_ask(b for b in over if b in alive))
        changes: dict[BrokerId, list[ConfigChange]] = {}
        done: dict[BrokerId, set[str]] = {}
        for broker, values in there.items():
            for name, record in over[broker].items():
                if name in values and self._is_over((broker, name), record, _set_here(values[name])):
                    done.setdefault(broker, set()).add(name)
                else:
                    changes.setdefault(broker, []).append(_undo(name, record.to_restore))
        answers = await self._admin.alter_broker_configs(changes) if changes else {}
        for broker, undone in changes.items():
            problem = answers.get(broker, "no answer")
            self._answered(broker, problem, "restored")
            for change in undone:
                self._forget((broker, change.name))
                if problem is None:
                    self._undone.add((broker, change.name))
        for broker, names in done.items():
            self._known.pop(broker, None)
            for name in names:
                self._forget((broker, name))
                self._undone.discard((broker, name))
                self._unanswered.pop((broker, name), None)
        if done:
            await self._book.save(strike_rates(self._book.ledger, done))

    async def set_there(self, brokers: Collection[BrokerId]) -> list[str]:
        """The rates that are set on these very brokers, for people; one that does not tell may have any."""
        found = await self._ask(sorted(brokers))
        told = [
            f"{name} of broker {broker}"
            for broker, values in sorted(found.items())
            for name, value in sorted(values.items())
            if _set_here(value) is not None
        ]
        return told + [
            f"any rate of broker {broker}, which does not tell" for broker in sorted(set(brokers) - set(found))
        ]

    def in_place(self, broker: BrokerId) -> dict[str, tuple[int, str]]:
        """Rates in force on the broker by our doing, by config name: bytes per second, and the claim that binds."""
        found = {}
        for name in RATE_NAMES:
            target, rate = self.targets.get((broker, name)), self._there.get((broker, name))
            if target is not None and rate is not None:
                record = self._book.ledger.rate(broker, name)
                by_hand = record is not None and record.ceiling is not None and record.ceiling.rate == rate
                found[name] = rate, "set by hand" if by_hand else target.claim
        return found

    def is_ready(self, broker: BrokerId) -> bool:
        """Whether the broker has told its rates, and has those that it shall have, or lower ones."""
        return all((broker, name) in self.targets and not self._lacks((broker, name)) for name in RATE_NAMES)

    def allows(self, key: RateKey) -> bool:
        """Whether a copy may use this side of the broker now: its rate is in place and not refused."""
        target = self.targets.get(key)
        return target is not None and not target.refused and not self._lacks(key)

    def refusals(self) -> dict[RateKey, Target]:
        """KIP-542's configuration errors."""
        return {key: target for key, target in sorted(self.targets.items()) if target.refused}

    def ceilings(self) -> dict[RateKey, int]:
        """Rates that somebody set below ours, which hold."""
        return {
            (broker, name): record.ceiling.rate
            for broker, names in self._book.ledger.brokers.items()
            for name, record in names.items()
            if record.ceiling is not None
        }

    def _shall_be(self, key: RateKey) -> int | None:
        """The rate that shall be in place: what is on record, while it is asked for. A refused one leaves the last."""
        record, target = self._book.ledger.rate(*key), self.targets.get(key)
        return record.applied if record is not None and target is not None and self._wanted.asked(*key) else None

    def _lacks(self, key: RateKey) -> bool:
        """Whether the rate that shall be in place is not, as far as is known."""
        shall_be = self._shall_be(key)
        return shall_be is not None and self._there.get(key) != shall_be

    def _forget(self, key: RateKey) -> None:
        self._there.pop(key, None)
        self._read_back.discard(key)
        self._doubted.pop(key, None)
        self._odd.clear(key)

    def _answered(self, broker: BrokerId, problem: str | None, done: str) -> None:
        if problem is None:
            self._backoff.answered(broker)
            self._book.solved(f"broker {broker}")
        else:
            self._backoff.silent(broker)
            self._book.note(f"broker {broker}", f"throttle rate not {done} yet: {problem}")

    async def _learn(self, brokers: Iterable[BrokerId]) -> None:
        """What the rates are on brokers of which it is not on record: anew where it is about to be."""
        now = self._monotonic()
        unknown = []
        for broker in self._backoff.to_ask(brokers):
            unrecorded = set(RATE_NAMES) - set(self._book.ledger.brokers.get(broker, {}))
            to_be_recorded = any(self._wanted.asked(broker, name) for name in unrecorded)
            old = now - self._known.get(broker, (float("-inf"),))[0] > _KNOWN_SECONDS
            if to_be_recorded or (unrecorded and old):
                unknown.append(broker)
        for broker, values in (await self._ask(unknown)).items():
            self._known[broker] = now, _before(values)

    async def _ask(self, brokers: Collection[BrokerId]) -> dict[BrokerId, dict[str, ConfigValue]]:
        found = await self._admin.broker_configs(brokers, RATE_NAMES) if brokers else {}
        for broker in brokers:
            self._answered(broker, None if broker in found else "it does not tell what it is", "known")
        return {broker: values for broker, values in found.items() if broker in brokers}

    async def _compare(self, key: RateKey, seen: ConfigValue) -> None:
        shall_be, record = self._shall_be(key), self._book.ledger.rate(*key)
        if shall_be is None or record is None:
            return
        value = _set_here(seen)
        finding = rate_found(value, record, self._there.get(key, shall_be), was_read=key in self._read_back)
        if finding is RateFinding.IN_PLACE and value is not None:
            self._forget(key)
            self._there[key] = value
            self._read_back.add(key)
        elif self._odd.confirmed(key, value):
            was_read = key in self._read_back
            self._forget(key)
            if finding is not RateFinding.STALE:
                await self._take_in(key, finding, value, record)
            elif was_read:
                self._read_back.add(key)
        elif finding is not RateFinding.STALE:
            self._doubted[key] = shall_be

    async def _take_in(self, key: RateKey, finding: RateFinding, value: int | None, record: RateRecord) -> None:
        broker, name = key
        if finding is RateFinding.LOWERED and value is not None:
            log.warning("broker %d: somebody set %s to %d; it holds until the spec changes", broker, name, value)
            self._there[key] = value
            self._read_back.add(key)
        else:
            self._reverts.note(self._monotonic(), f"broker {broker}: {name} was {finding.lower()}")
        changed = after_finding(record, finding, value, self._wanted.asked(broker, name))
        await self._book.save(with_rates(self._book.ledger, {key: changed}))

    def _is_over(self, key: RateKey, record: RateRecord, value: int | None) -> bool:
        """Whether nothing of ours is there: what reads is somebody's, or is as before us and ours is not on its way."""
        if value == record.clean:
            late = self._monotonic() - self._unanswered.get(key, self._began) < _LATE_SECONDS
            return key in self._undone or (key not in self._there and not late)
        return value not in record.written


def _set_here(seen: ConfigValue) -> int | None:
    """The rate set on this very broker; None where it comes from elsewhere."""
    return rate_in(seen.value) if seen.source is ConfigSource.DYNAMIC_BROKER else None


def _before(values: Mapping[str, ConfigValue]) -> dict[str, Before]:
    """Kafka's built-in default (2^63 - 1) counts as unset."""
    return {
        name: Before(
            None if value.source is ConfigSource.DEFAULT else value.value, value.source is ConfigSource.DYNAMIC_BROKER
        )
        for name, value in values.items()
    }


def _undo(name: str, before: Before) -> ConfigChange:
    if before.dynamic and before.value is not None:
        return ConfigChange(name, ConfigOp.SET, before.value)
    return ConfigChange(name, ConfigOp.DELETE)
