"""Removes the cordons of runs that have ended before these could be removed, because the brokers were dead.

A run does not wait for dead brokers, and its record may be deleted. So its cordons go to the ledger, which outlives it,
before it ends. They are removed when the brokers are back.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, KafkaAdmin, is_denied
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.backoff import Backoff
from kafka_rebalance.reconcile.act.cordoning import CONFIG, cordoned_by_others, is_unset
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache


class LeftCordons:
    """The cordons in the ledger of one cluster."""

    def __init__(self, admin: KafkaAdmin, cache: LedgerCache, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._cache = cache
        self._backoff = Backoff[BrokerId](monotonic)

    async def take(self, brokers: Collection[BrokerId]) -> None:
        """Record that these cordons are to be removed. The run that has set them ends after this."""
        ledger = self._cache.ledger
        await self._cache.save(replace(ledger, cordons=ledger.cordons | set(brokers)))

    async def remove(
        self, alive: Collection[BrokerId], of_runs: Collection[BrokerId], in_doubt: Collection[BrokerId]
    ) -> None:
        """Remove those of brokers that are back, except cordons ``of_runs`` that are open, which care for their own.

        ``in_doubt``: of runs that may have ended, as their records are to be read again. These cordons stay on record.
        One that may not be removed, and is not there, is struck off: others may set it later. A broker that has just
        come back may not show its cordon, so that counts from the second try on.
        """
        left = self._cache.ledger.cordons.difference(in_doubt)
        done = left.intersection(of_runs)
        due = self._backoff.due(left.intersection(alive) - done)
        if due:
            found = await self._admin.broker_configs(due, [CONFIG])
            done |= {broker for broker, values in found.items() if cordoned_by_others(values.get(CONFIG))}
            changes = {b: [ConfigChange(CONFIG, ConfigOp.DELETE)] for b in due if b in found and b not in done}
            answers = await self._admin.alter_broker_configs(changes) if changes else {}
            absent = {broker for broker in changes if is_unset(found[broker]) and self._backoff.has_failed(broker)}
            done |= {b for b, wrong in answers.items() if wrong is None or (is_denied(wrong) and b in absent)}
            for broker in due:
                self._note(broker, None if broker in done else answers.get(broker) or "no answer")
        if done:
            ledger = self._cache.ledger
            await self._cache.save(replace(ledger, cordons=ledger.cordons - done))

    def _note(self, broker: BrokerId, problem: str | None) -> None:
        where = f"broker {broker} (cordon)"
        if problem is None:
            self._backoff.succeeded(broker)
            self._cache.solved(where)
        else:
            self._backoff.failed(broker)
            self._cache.note(where, f"the cordon of a run that has ended is not removed yet: {problem}")


def cordons_of(rebalances: Iterable[Rebalance]) -> tuple[set[BrokerId], set[BrokerId]]:
    """The brokers that open runs have cordoned, and those of runs whose end may have been stored without an answer."""
    open_now, in_doubt = set[BrokerId](), set[BrokerId]()
    for record in (rebalance.record for rebalance in rebalances):
        if record.open_run is not None:
            (open_now if record.was_read else in_doubt).update(record.open_run.cordoned)
    return open_now - in_doubt, in_doubt
