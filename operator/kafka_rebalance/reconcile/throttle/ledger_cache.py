"""The throttle ledger of one Kafka cluster in memory: read once, saved before each change.

It is stored, if empty, before a run begins. If it is missing later, somebody deleted it.
"""

import json
import logging
from collections.abc import Container, Mapping, Sequence
from typing import Any

from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.execution.ledger import Before, Ledger
from kafka_rebalance.execution.ledger_json import ledger_from_json, ledger_to_json
from kafka_rebalance.kafka.ports import ConfigSource, ConfigValue
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.throttle.slices import MANY

log = logging.getLogger(__name__)

INLINE_BYTES = 4 * 2**20
"""Of the JSON of the ledger of an inline connection: for 10,000 topics that are reassigned at once. Its servers may
show other brokers and topics in each round, and what does not answer any more stays in the ledger."""
_MOST_TROUBLES = 1000
"""A server may refuse another topic in each round."""
_MOST_LOGGED = 100
"""While there are more at the same time, further ones have no line in the log."""
_LONGEST_TROUBLE = 500
"""Characters: the text of a server may have 100,000."""


async def stored_ledger(store: LedgerStore, cluster_id: str) -> Ledger | None:
    """The ledger of this cluster; None if none was ever saved. Permanent("ThrottleLedgerDamaged") if it is damaged."""
    try:
        data = await store.load(cluster_id)
        return None if data is None else ledger_from_json(data)
    except (KeyError, TypeError, ValueError, StoredStateCorrupt) as error:
        why = error.message if isinstance(error, StoredStateCorrupt) else error
        raise Permanent(
            Reason.THROTTLE_LEDGER_DAMAGED,
            f"the throttle ledger of cluster {cluster_id} cannot be read ({why}); restore it, or delete it "
            "after undoing the throttles by hand",
        ) from error


class LedgerCache:
    """The stored ledger covers at least what this one does, and this one at least what we set in Kafka.

    ``most``: bytes of its JSON; None: no limit.
    """

    def __init__(self, cluster_id: str, store: LedgerStore, most: int | None = None) -> None:
        self._cluster_id = cluster_id
        self._store = store
        self._most = most
        self._size = 0
        self._ledger: Ledger | None = None
        self._in_doubt = False
        """Whether what is stored may be another ledger: the last save, or one of an earlier process, got no answer, or
        rows were struck off since."""
        self._established = False
        """Whether it has entries on record, or this process has stored it."""
        self.exists = False
        """Whether it is stored, empty or not."""
        self.topics_at_start: frozenset[str] = frozenset()
        """The topics that were on record when it was read."""
        self._troubles: dict[str, str] = {}

    async def load(self) -> None:
        """Read the ledger once. Permanent("ThrottleLedgerDamaged") where it cannot be read: never guess."""
        if self._ledger is not None:
            return
        stored = await stored_ledger(self._store, self._cluster_id)
        self._ledger = stored or Ledger()
        _, self._size = await computed(_written, self._ledger, many=_is_large(self._ledger))
        self.exists = stored is not None
        self._established = not self._ledger.empty
        # A write of an earlier process that got no answer may still be carried out: the first save is not left out.
        self._in_doubt = self._established
        self.topics_at_start = frozenset({*self._ledger.topics, *self._ledger.entries})

    @property
    def ledger(self) -> Ledger:
        """The ledger as last saved, without what was struck off since."""
        if self._ledger is None:
            raise RuntimeError("load() comes first")
        return self._ledger

    @property
    def empty(self) -> bool:
        """Whether the ledger is empty, or was not read yet."""
        return self._ledger is None or self._ledger.empty

    async def save(self, ledger: Ledger) -> None:
        """Store this ledger. Refused("InlineConnectionRefused") if it would grow above the limit."""
        large = _is_large(ledger)
        if not self._in_doubt and await computed(_equal, ledger, self._ledger, many=large):
            return
        data, size = await computed(_written, ledger, many=large)
        if self._most is not None and size > max(self._most, self._size):
            raise Refused(
                Reason.INLINE_CONNECTION_REFUSED,
                f"the throttle ledger of Kafka cluster {self._cluster_id} would have more than "
                f"{self._most >> 20} MiB, the limit for an inline connection: reassign fewer partitions at once, or "
                "use a KafkaConnection",
            )
        self._in_doubt = True
        await self._store.save(self._cluster_id, data)
        self._ledger, self._size, self._in_doubt = ledger, size, False
        self.exists = self._established = True

    async def establish(self) -> None:
        """Store it before the first run, also if it is on record, but empty.

        Such a ledger is deleted when nothing names its cluster, and the deletion may have got no answer: if the API
        server carries it out later, it must fail.
        """
        if not self._established:
            await self._store.save(self._cluster_id, ledger_to_json(self.ledger))
            self.exists = self._established = True

    def strike(self, ledger: Ledger) -> None:
        """Replace the ledger in memory by one with fewer rows. The next save stores it, also if it changes nothing.

        Others may set what was struck off: after a restart, it must not count as ours.
        """
        self._ledger, self._in_doubt = ledger, True

    @property
    def trouble(self) -> str:
        """What cannot be read or written now, for the status; empty where all is well."""
        return _some(list(self._troubles.values()))

    def trouble_with(self, topics: Container[str], brokers: Container[BrokerId]) -> str:
        """The part that concerns one of these; empty where there is none."""
        found = []
        for where, trouble in self._troubles.items():
            kind, name = where.split(" ")[:2]
            if name in topics if kind == "topic" else BrokerId(int(name)) in brokers:
                found.append(trouble)
        return _some(found)

    def note(self, where: str, problem: str) -> None:
        """``where``, ``broker ID`` or ``topic NAME`` and maybe a third word, could not be read or written."""
        trouble = f"{where}: {problem}"[:_LONGEST_TROUBLE]
        known = self._troubles.get(where) == trouble
        self._troubles[where] = trouble
        if not known and len(self._troubles) <= _MOST_LOGGED:
            log.warning("%s", trouble)
        if len(self._troubles) > _MOST_TROUBLES:
            del self._troubles[next(iter(self._troubles))]

    def solved(self, where: str) -> None:
        """The broker or topic could be read or written again."""
        self._troubles.pop(where, None)


def _is_large(ledger: Ledger) -> bool:
    return len(ledger.topics) + len(ledger.brokers) > MANY


def _equal(one: Ledger, other: Ledger | None) -> bool:
    return one == other


def _written(ledger: Ledger) -> tuple[dict[str, Any], int]:
    """The ledger as JSON values, and the length of the text."""
    data = ledger_to_json(ledger)
    return data, len(json.dumps(data, separators=(",", ":")))


def _some(troubles: Sequence[str]) -> str:
    more = f" and {len(troubles) - 1} more" if len(troubles) > 1 else ""
    return next(iter(troubles), "") + more


def originals(values: Mapping[str, ConfigValue], dynamic: ConfigSource) -> dict[str, Before]:
    """What to restore, as read before our first write. Kafka's built-in default (2^63 - 1 for rates) is unset."""
    return {
        name: Before(None if read.source is ConfigSource.DEFAULT else read.value, read.source is dynamic)
        for name, read in values.items()
    }
