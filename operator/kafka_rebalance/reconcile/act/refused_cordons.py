"""When brokers that have refused a change of their cordon are asked again, and what the log says of it.

A server may refuse all changes, in each round and with another text. So the brokers of a rebalance that have refused
are asked again together, after a pause that grows with each refusal. A broker that has not refused is asked at once.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.backoff import Backoff
from kafka_rebalance.units import few

_LONGEST_ANSWER = 300
"""Characters of an answer in the log."""


class RefusedCordons:
    """Those of one rebalance. ``kind``: what was refused."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._backoff = Backoff[str](monotonic)
        self._brokers: defaultdict[str, frozenset[BrokerId]] = defaultdict(frozenset)
        self._said = ""

    def due(self, kind: str, brokers: Collection[BrokerId]) -> set[BrokerId]:
        """Those that may be asked now."""
        return set(brokers) if self._backoff.due([kind]) else set(brokers) - self._brokers[kind]

    def answered(self, kind: str, refused: Collection[BrokerId], settled: Collection[BrokerId]) -> None:
        """``settled``: those that need no further call."""
        self._brokers[kind] = (self._brokers[kind] | frozenset(refused)).difference(settled)
        if refused:
            self._backoff.failed(kind)
        elif not self._brokers[kind]:
            self._backoff.succeeded(kind)

    def news(self, change: str, answers: Mapping[BrokerId, str | None]) -> str:
        """Which brokers refused this change, and what the first one said. Empty if there is nothing new to say."""
        wrong = {broker: answer for broker, answer in answers.items() if answer is not None}
        said = f"{change} on brokers {few(list(wrong))}: {next(iter(wrong.values()), '')[:_LONGEST_ANSWER]}"
        if not wrong or said == self._said:
            return ""
        self._said = said
        return said
