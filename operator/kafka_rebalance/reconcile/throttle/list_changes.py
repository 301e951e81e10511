"""Sends changes of the lists of throttled replicas, and knows which appends may still be carried out.

The broker that takes a change passes it on to the controller. If that takes long, the answer does not come in time, a
later change goes through another broker, and the two may be carried out in the other order.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from kafka_rebalance.execution.list_budget import LONGEST_BYTES, ListKey, StoredList, batches
from kafka_rebalance.execution.list_state import LateAppend
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, KafkaAdmin, is_silent
from kafka_rebalance.reconcile.throttle.ledger_cache import LedgerCache

Changes = Mapping[str, Sequence[ConfigChange]]
"""By topic."""
_NO_ANSWER = "no answer"


class ListChanges:
    """Keeps a ``LateAppend`` for each topic of which an append may be late."""

    def __init__(self, admin: KafkaAdmin, cache: LedgerCache, monotonic: Callable[[], float]) -> None:
        self._admin = admin
        self._cache = cache
        self._monotonic = monotonic
        self._late: dict[str, LateAppend] | None = None

    async def send(self, changes: Changes, stored: Mapping[ListKey, StoredList]) -> dict[str, str | None]:
        """Alter the lists. Returns the answer of each topic: None if it was accepted. ``stored``: see ``requests``."""
        found: dict[str, str | None] = {}
        for batch in self.requests(changes, stored):
            sent = {topic: changes[topic] for topic in batch}
            answers: Mapping[str, str | None] = {}
            try:
                answers = await self._admin.alter_topic_configs(sent)
            finally:
                found |= {topic: answers.get(topic, _NO_ANSWER) for topic in batch}
                for topic in batch:
                    self._note(topic, sent[topic], found[topic])
        return found

    @staticmethod
    def requests(changes: Changes, stored: Mapping[ListKey, StoredList]) -> Iterator[list[str]]:
        """The topics of each request that the controller can write: it writes each list as a whole.

        ``stored``: the lists that were read lately.
        """
        sizes = {
            topic: sum(
                len(change.value) + (known.length if (known := stored.get((topic, change.name))) else LONGEST_BYTES)
                for change in wanted
            )
            for topic, wanted in changes.items()
        }
        return batches(sizes)

    def may_append_late(self, topic: str) -> bool:
        """Whether an append that got no answer may still be carried out."""
        late = self._late_appends.get(topic)
        return late is not None and late.may_come(self._monotonic())

    def is_unanswered(self, topic: str) -> bool:
        """Whether the controller has not answered since such an append: only a change finds out that it does again."""
        return self._late_appends.get(topic) == LateAppend()

    def forget(self, topic: str) -> None:
        """The topic was struck off the ledger."""
        self._late_appends.pop(topic, None)

    @property
    def _late_appends(self) -> dict[str, LateAppend]:
        if self._late is None:
            # An earlier process may have sent them just before it ended.
            self._late = dict.fromkeys(self._cache.topics_at_start, LateAppend())
        return self._late

    def _note(self, topic: str, wanted: Sequence[ConfigChange], problem: str | None) -> None:
        silent = problem is not None and (problem == _NO_ANSWER or is_silent(problem))
        appends = any(change.op is ConfigOp.APPEND for change in wanted)
        if (appends and problem is not None) or (not silent and self.is_unanswered(topic)):
            self._late_appends[topic] = LateAppend() if silent else LateAppend(self._monotonic())
