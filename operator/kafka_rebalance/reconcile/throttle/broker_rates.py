"""The throttle rates of the brokers: reads them, writes them, restores them, each broker on its own.

``execution.rate_state`` decides what follows from each answer and reading; here the calls are made. The ledger is
saved before each write.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import product

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.ledger import Before, Ledger, RateRecord, strike_rates, strike_unset_rates, with_rates
from kafka_rebalance.execution.rate_state import (
    RateAction,
    RateRead,
    RateState,
    RateUnread,
    RateWritten,
    Transition,
    row_to_write,
    transition,
)
from kafka_rebalance.execution.reassignment_throttle import (
    LOG_DIR_RATE,
    RATE_NAMES,
    Mode,
    Refusal,
    Target,
    WantedThrottle,
    rate_in,
    target_of,
)
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin, is_denied
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.backoff import Backoff
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache, originals
from kafka_rebalance.reconcile.throttle.reverts import Reverts
from kafka_rebalance.reconcile.throttle.unsent import Unsent

log = logging.getLogger(__name__)

RateKey = tuple[BrokerId, str]
"""Broker and config name."""
Changes = dict[BrokerId, list[ConfigChange]]
UNCLAIMED = "reassignments in flight that no resource claims yet"
"""The limiting throttle if a rate is not raised because copies of a resource not seen yet may depend on it."""
_ORIGINALS_SECONDS = 30.0
"""How long the rates of a broker without a ledger row are taken as read."""
_FRESH_SECONDS = 1.0
"""How long the brokers may take to answer together, so that a rate is restored by what they answered."""


class BrokerRates:
    """Holds one ``RateState`` per rate. ``targets``: what each rate should be; none of a broker not read yet."""

    def __init__(self, admin: KafkaAdmin, cache: LedgerCache, reverts: Reverts, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._cache = cache
        self._reverts = reverts
        self._monotonic = monotonic
        self._backoff = Backoff[BrokerId](monotonic)
        self._wanted = WantedThrottle()
        self.targets: dict[RateKey, Target] = {}
        self._originals: dict[BrokerId, tuple[float, Mapping[str, Before]]] = {}
        """What was read of brokers before they had a ledger row, and when."""
        self._states: dict[RateKey, RateState] = {}
        self._unsent = Unsent[RateKey, int]()
        self._due = frozenset[BrokerId]()
        """The brokers whose rates may be recorded in this round: what is there before us was read at its beginning."""
        self._started_at = monotonic()
        self._not_allowed: dict[BrokerId, str] = {}
        """The answers of brokers that refuse any change of their rates."""
        self._unreadable: dict[BrokerId, str] = {}
        """The answers of brokers whose rates we may not even read."""

    async def set_targets(
        self, wanted: WantedThrottle, alive: Collection[BrokerId], mode: Mode, kept: Collection[BrokerId] = ()
    ) -> None:
        """Find out what each rate should be. No rate is raised on ``kept`` brokers, with copies that no claim names."""
        self._wanted = wanted
        self._forget_all_but({*wanted.brokers, *self._cache.ledger.brokers})
        due = self._backoff.due(wanted.brokers.intersection(alive))
        self._due = frozenset(due) - await self._read_originals(due)
        self.targets = {}
        for broker in wanted.brokers:
            for name in RATE_NAMES:
                row = self._cache.ledger.rate(broker, name)
                before = self._originals.get(broker, (0.0, {}))[1].get(name)
                if row is None and before is None:
                    continue
                replication = row.replication if row is not None else rate_in(before.value if before else None)
                # A broker has one rate for its log dirs: what somebody set there is never exceeded.
                of_rate = Mode.LOWEST if name == LOG_DIR_RATE else mode
                target = target_of(replication, wanted.asked(broker, name), of_rate)
                intended = row.intended if row is not None and broker in kept else None
                if intended is not None and target.rate is not None and intended < target.rate:
                    target = replace(target, rate=intended, claim=UNCLAIMED)
                self.targets[broker, name] = target

    def is_listed(self, key: RateKey, *, limited: bool = True) -> bool:
        """Whether moving replicas of this broker and side are listed; before it was read, where a rate is claimed.

        ``limited``: whether a claim on that replica asks for a rate.
        """
        target = self.targets.get(key)
        if target is not None:
            return target.listed
        return bool(self._wanted.asked(*key)) and (limited or not self._denies(key[0]))

    def ledger_to_write(self) -> Ledger:
        """The ledger with a row for each rate that is to be set, as soon as it is tried."""
        rows = {}
        for key, target in self.targets.items():
            row = self._cache.ledger.rate(*key)
            if target.rate is not None and (row is not None or key[0] in self._due):
                row = row or RateRecord(self._originals[key[0]][1][key[1]])
                asked, claims = self._wanted.asked(*key), self._wanted.claims.get(key[0], frozenset())
                rows[key] = row_to_write(row, target.rate, self._state(key), asked, claims)
                self._unsent.recorded(key, rows[key].possibly_ours - row.possibly_ours)
        return with_rates(self._cache.ledger, rows)

    async def write(self, alive: Collection[BrokerId]) -> None:
        """Set the rates that are in the ledger and not in place."""
        changes: Changes = {}
        for broker in self._backoff.due({b for b, _ in self.targets if b in alive}):
            for name in RATE_NAMES:
                rate = self._rate_on_record((broker, name))
                if self._state((broker, name)).must_write(rate):
                    changes.setdefault(broker, []).append(ConfigChange(name, ConfigOp.SET, str(rate)))
        try:
            await self._alter(changes, restoring=False)
        finally:
            if self._unsent.to_strike:
                await self._cache.save(strike_unset_rates(self._cache.ledger, self._unsent.to_strike))
                self._unsent.struck()

    async def read_back(self, alive: Collection[BrokerId], *, all_brokers: bool) -> None:
        """Read the claimed rates: of all brokers, or only of those where an unexpected value was read once."""
        brokers = {b for b, _ in self.targets if b in alive and b in self._cache.ledger.brokers}
        doubted = {b for (b, _), state in self._states.items() if state.doubt and state.doubt.blocks is not None}
        read: dict[RateKey, int | None] = {}
        for broker, values in (
            await self._ask(self._backoff.due(brokers if all_brokers else brokers & doubted))
        ).items():
            for name in self._cache.ledger.brokers[broker]:
                if name in values and self._wanted.asked(broker, name):
                    read[broker, name] = _set_here(values[name])
        await self._take_readings(read)

    async def restore(self, over: Mapping[BrokerId, Mapping[str, RateRecord]], alive: Collection[BrokerId]) -> None:
        """Write the original values of these rates, and strike them off the ledger once they read so."""
        asked_at = self._monotonic()
        found = await self._ask(self._backoff.due(b for b in over if b in alive))
        changes, done = self._to_restore(over, found)
        if changes and self._monotonic() - asked_at > _FRESH_SECONDS:
            # One that hangs has delayed the answers of all: others may have set a rate meanwhile.
            found = {b: values for b, values in found.items() if b not in changes} | await self._ask(list(changes))
            changes, done = self._to_restore(over, found)
        await self._alter(changes, restoring=True)
        for broker, names in done.items():
            self._originals.pop(broker, None)
            for name in names:
                self._states.pop((broker, name), None)
        if done:
            await self._cache.save(strike_rates(self._cache.ledger, done))

    async def describe_set(self, brokers: Collection[BrokerId]) -> list[str]:
        """The rates that are set on these very brokers, for messages; a broker that does not answer may have any."""
        found = await self._ask(sorted(brokers))
        read = [
            f"{name} of broker {broker}"
            for broker, values in sorted(found.items())
            for name, value in sorted(values.items())
            if _set_here(value) is not None
        ]
        silent = sorted(set(brokers) - set(found))
        return read + [f"any rate of broker {broker}, which does not answer" for broker in silent]

    def in_place(self, broker: BrokerId) -> dict[str, tuple[int, str]]:
        """Rates in force on the broker because of us, by config name: bytes per second, and the claim that binds."""
        found = {}
        for name in RATE_NAMES:
            target, rate = self.targets.get((broker, name)), self._state((broker, name)).rate
            if target is not None and rate is not None:
                row = self._cache.ledger.rate(broker, name)
                by_hand = row is not None and row.brake is not None and row.brake.rate == rate
                found[name] = rate, "set by hand" if by_hand else target.claim
        return found

    def is_ready(self, broker: BrokerId) -> bool:
        """Whether the broker's rates were read, and those that it should have, or lower ones, are in place."""
        return all((broker, name) in self.targets and not self._lacks((broker, name)) for name in RATE_NAMES)

    def allows(self, key: RateKey, *, limited: bool) -> bool:
        """Whether a copy may use this side of the broker now: its rate is in place and not refused.

        A copy that no claim limits does not wait for the rate of another claim that the broker does not let us set.
        """
        target = self.targets.get(key)
        if target is not None and target.refused:
            return False
        if not limited and self._denies(key[0]):
            return True
        return target is not None and not self._lacks(key)

    def refusals(self) -> dict[RateKey, Refusal]:
        """KIP-542's configuration errors."""
        return {key: target.refused for key, target in self.targets.items() if target.refused is not None}

    def not_allowed(self) -> dict[BrokerId, str]:
        """The answers of brokers that do not let us read or set a rate which a claim asks for."""
        asked = {broker for broker, rates in self._wanted.rates.items() if rates}
        answers = self._unreadable | self._not_allowed
        return {broker: answer for broker, answer in sorted(answers.items()) if broker in asked}

    def brakes(self) -> dict[RateKey, int]:
        """Rates that somebody set below ours, which hold."""
        return {
            (broker, name): row.brake.rate
            for broker, names in self._cache.ledger.brokers.items()
            for name, row in names.items()
            if row.brake is not None
        }

    def _forget_all_but(self, brokers: Collection[BrokerId]) -> None:
        """Nothing of ours is on the others. A server may show other brokers in each round."""
        self._states = {key: state for key, state in self._states.items() if key[0] in brokers}
        self._originals = {broker: read for broker, read in self._originals.items() if broker in brokers}
        self._unsent.forget([key for key in self._unsent.keys if key[0] not in brokers])
        self._not_allowed = {broker: answer for broker, answer in self._not_allowed.items() if broker in brokers}
        self._unreadable = {broker: answer for broker, answer in self._unreadable.items() if broker in brokers}
        self._backoff.forget_all_but(brokers)

    def _denies(self, broker: BrokerId) -> bool:
        return broker in self._not_allowed or broker in self._unreadable

    def _state(self, key: RateKey) -> RateState:
        return self._states.get(key) or RateState(self._started_at)

    def _next(self, key: RateKey, event: RateWritten | RateUnread | RateRead) -> Transition:
        found = transition(self._state(key), event, self._monotonic())
        self._states[key] = found.state
        return found

    async def _take_readings(self, read: Mapping[RateKey, int | None]) -> None:
        """Save what readings say first: an emergency brake that is only in memory would be written over."""
        now, rows = self._monotonic(), self._cache.ledger.brokers
        found = {
            key: transition(self._state(key), RateRead(value, rows[key[0]][key[1]], self._wanted.asked(*key)), now)
            for key, value in read.items()
        }
        # In one write: a server may show other rates of all brokers each time.
        if changed := {key: step.row for key, step in found.items() if step.row is not None}:
            await self._cache.save(with_rates(self._cache.ledger, changed))
        for (broker, name), step in found.items():
            value = read[broker, name]
            self._states[broker, name] = step.state
            if step.action is RateAction.SAVE_BRAKE:
                log.warning("broker %d: somebody set %s to %d; it holds until the spec changes", broker, name, value)
            elif step.action is RateAction.SAVE_REVERT:
                done = "deleted" if value is None else "raised"
                self._reverts.note(now, f"broker {broker}: {name} was {done}")

    def _to_restore(
        self,
        over: Mapping[BrokerId, Mapping[str, RateRecord]],
        found: Mapping[BrokerId, Mapping[str, ConfigValue]],
    ) -> tuple[Changes, dict[BrokerId, set[str]]]:
        """What to write, given a reading of these brokers, and the names of the rates that are over with."""
        changes: Changes = {}
        done: dict[BrokerId, set[str]] = {}
        for broker, values in found.items():
            for name, row in over[broker].items():
                read = RateRead(_set_here(values[name]), row, {}) if name in values else None
                action = RateAction.RESTORE if read is None else self._next((broker, name), read).action
                if action is RateAction.FORGET:
                    done.setdefault(broker, set()).add(name)
                elif action is RateAction.RESTORE:
                    changes.setdefault(broker, []).append(_restoring(name, row.to_restore))
        return changes, done

    def _rate_on_record(self, key: RateKey) -> int | None:
        """The rate that should be in place: the ledger's, while claimed. After a refusal that is the last one."""
        row = self._cache.ledger.rate(*key)
        return row.intended if row is not None and self._wanted.asked(*key) else None

    def _lacks(self, key: RateKey) -> bool:
        if self._cache.ledger.rate(*key) is None:  # not tried now: its broker has not permitted it, or does not answer
            return key in self.targets and self.targets[key].rate is not None
        return self._state(key).lacks(self._rate_on_record(key))

    async def _read_originals(self, brokers: Iterable[BrokerId]) -> set[BrokerId]:
        """Read the rates that have no ledger row: again where one is about to be recorded, else now and then.

        Returns the brokers that did not answer.
        """
        now = self._monotonic()
        unknown = []
        for broker in brokers:
            unrecorded = set(RATE_NAMES) - set(self._cache.ledger.brokers.get(broker, {}))
            to_be_recorded = any(self._wanted.asked(broker, name) for name in unrecorded)
            old = now - self._originals.get(broker, (float("-inf"),))[0] > _ORIGINALS_SECONDS
            if to_be_recorded or (unrecorded and old):
                unknown.append(broker)
        found = await self._ask(unknown)
        for broker, values in found.items():
            self._originals[broker] = now, originals(values, ConfigSource.DYNAMIC_BROKER)
        return set(unknown) - found.keys()

    async def _ask(self, brokers: Collection[BrokerId]) -> dict[BrokerId, dict[str, ConfigValue]]:
        if not brokers:
            return {}
        try:
            found = await self._admin.broker_configs(brokers, RATE_NAMES)
        except RebalanceError:
            self._note_unread(brokers)
            raise
        self._note_unread(set(brokers) - found.keys())
        for broker in brokers:
            error = found.errors.get(broker)
            why = f"throttle rate not read yet: {error.message if error is not None else 'no answer'}"
            self._note_answer(broker, None if broker in found else why)
            self._unreadable.pop(broker, None)
            if error is not None and error.reason == Reason.KAFKA_AUTHORIZATION_FAILED:
                self._unreadable[broker] = error.message
        return {broker: values for broker, values in found.items() if broker in brokers}

    def _note_unread(self, brokers: Iterable[BrokerId]) -> None:
        for broker, name in product(brokers, RATE_NAMES):
            self._next((broker, name), RateUnread())

    async def _alter(self, changes: Changes, *, restoring: bool) -> None:
        if not changes:
            return
        answers: Mapping[BrokerId, str | None] = {}
        try:
            answers = await self._admin.alter_broker_configs(changes)
        finally:  # if the client ends, no broker has answered
            self._note_answers(changes, answers, restoring=restoring)

    def _note_answers(self, changes: Changes, answers: Mapping[BrokerId, str | None], *, restoring: bool) -> None:
        for broker, sent in changes.items():
            problem = answers.get(broker, "no answer")
            what = f"throttle rate not {'restored' if restoring else 'set'} yet: {problem}"
            self._note_answer(broker, None if problem is None else what)
            self._not_allowed.pop(broker, None)
            denied = problem is not None and is_denied(problem)
            if problem is not None and denied:
                self._not_allowed[broker] = problem  # nothing was written, and nothing will be
            for change in sent:
                key, rate = (broker, change.name), None if restoring else int(change.value)
                never_set = self._unsent.sent(key, {rate} if rate is not None else ())
                if denied:
                    self._unsent.denied(key, never_set)
                else:
                    self._next(key, RateWritten(rate, accepted=problem is None))

    def _note_answer(self, broker: BrokerId, problem: str | None) -> None:
        if problem is None:
            self._backoff.succeeded(broker)
            self._cache.solved(f"broker {broker}")
        else:
            self._backoff.failed(broker)
            self._cache.note(f"broker {broker}", problem)


def _set_here(read: ConfigValue) -> int | None:
    """The rate set on this very broker; None where it comes from elsewhere."""
    return rate_in(read.value) if read.source is ConfigSource.DYNAMIC_BROKER else None


def _restoring(name: str, before: Before) -> ConfigChange:
    if before.dynamic and before.value is not None:
        return ConfigChange(name, ConfigOp.SET, before.value)
    return ConfigChange(name, ConfigOp.DELETE)
