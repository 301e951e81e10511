"""Which topics a rebalance may touch: RE2 expressions over whole names, as the CRD's CEL rules understand them.

Pure. Internal topics are topics: a broker is not empty before they have left it, so an empty include means them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_rebalance.api.fields import compile_re2
from kafka_rebalance.api.rebalance_spec import Topics


class TopicFilter:
    """Decides by name. ``exclude`` wins over ``include``; an empty ``include`` takes every topic.

    Raises ValueError where an expression is not valid RE2.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include = [compile_re2(pattern) for pattern in include]
        self._exclude = [compile_re2(pattern) for pattern in exclude]

    @classmethod
    def of(cls, topics: Topics) -> TopicFilter:
        """The filter that a spec asks for."""
        return cls(topics.include, topics.exclude)

    def matches(self, topic: str) -> bool:
        """Whether the topic may be touched."""
        if any(pattern.fullmatch(topic) for pattern in self._exclude):
            return False
        return not self._include or any(pattern.fullmatch(topic) for pattern in self._include)

    def select(self, topics: Iterable[str]) -> list[str]:
        """Those that may be touched, in the order given."""
        return [topic for topic in topics if self.matches(topic)]
