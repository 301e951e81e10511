"""Selects topics by RE2 expressions that match whole names, in the dialect of the CRD's CEL rules.

An empty include selects internal topics too: a broker is not drained while it holds replicas of them.
"""

from collections.abc import Iterable, Sequence
from typing import Self

from kafka_rebalance.api.fields import compile_re2
from kafka_rebalance.api.rebalance_spec import Topics


class TopicFilter:
    """Selects by name. ``exclude`` wins over ``include``; an empty ``include`` selects every topic.

    Raises ValueError where an expression is not valid RE2.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include = [compile_re2(pattern) for pattern in include]
        self._exclude = [compile_re2(pattern) for pattern in exclude]

    @classmethod
    def of(cls, topics: Topics) -> Self:
        """The filter of a spec."""
        return cls(topics.include, topics.exclude)

    def matches(self, topic: str) -> bool:
        """Whether the topic is selected."""
        if any(pattern.fullmatch(topic) for pattern in self._exclude):
            return False
        return not self._include or any(pattern.fullmatch(topic) for pattern in self._include)

    def select(self, topics: Iterable[str]) -> list[str]:
        """The selected topics, in the order given."""
        return [topic for topic in topics if self.matches(topic)]
