"""The throttle ledger of one Kafka cluster as the operator holds it: read once, saved before each change."""

from __future__ import annotations

import logging

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.ledger import Ledger, ledger_from_json, ledger_to_json
from kafka_rebalance.kube.store import LedgerStore

log = logging.getLogger(__name__)


class ThrottleBook:
    """The stored ledger covers at least what this one does, and this one at least what is set in Kafka."""

    def __init__(self, cluster_id: str, store: LedgerStore) -> None:
        self._cluster_id = cluster_id
        self._store = store
        self._ledger: Ledger | None = None
        self.trouble = ""
        """What could not be written lately, for the status; empty where all went well."""

    async def load(self) -> None:
        """Read the ledger once. Permanent("ThrottleLedgerDamaged") where it cannot be read: never guess."""
        if self._ledger is not None:
            return
        data = await self._store.load(self._cluster_id)
        try:
            self._ledger = Ledger() if data is None else ledger_from_json(data)
        except (KeyError, TypeError, ValueError) as error:
            raise Permanent(
                "ThrottleLedgerDamaged",
                f"the throttle ledger of cluster {self._cluster_id} cannot be read ({error}); restore it, or delete it "
                "after undoing the throttles by hand",
            ) from error

    @property
    def ledger(self) -> Ledger:
        """What is on record."""
        if self._ledger is None:
            raise RuntimeError("load() comes first")
        return self._ledger

    @property
    def empty(self) -> bool:
        """Whether nothing is on record, or nothing was read yet."""
        return self._ledger is None or self._ledger.empty

    async def save(self, ledger: Ledger) -> None:
        """Put this on record; an empty ledger is deleted."""
        if ledger == self._ledger:
            return
        if ledger.empty:
            await self._store.delete(self._cluster_id)
        else:
            await self._store.save(self._cluster_id, ledger_to_json(ledger))
        self._ledger = ledger

    def strike(self, ledger: Ledger) -> None:
        """Hold less than what is stored, until it is next saved: undoing twice does no harm."""
        self._ledger = ledger

    def note(self, trouble: str) -> None:
        """Something could not be read or written."""
        self.trouble = trouble
        log.warning("%s", trouble)
