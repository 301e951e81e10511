"""Selects topics by RE2 expressions that match whole names, in the dialect of the CRD's CEL rules.

An empty include selects internal topics too: a broker is not drained while it holds replicas of them. The CPU time is
limited, because expressions and names can be written so that matching takes hours.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from kafka_rebalance.api.fields import compile_re2
from kafka_rebalance.api.rebalance_spec import Topics
from kafka_rebalance.errors import Refused
from kafka_rebalance.reasons import Reason

_MOST_SECONDS = 5.0
"""Of CPU time. 300 common expressions and 10,000 topics take three seconds."""
_REMEMBERED = 1000

_too_slow: OrderedDict[int, None] = OrderedDict()
"""The hashes of the last selections that took too long. They are refused at once, because plans are tried again.

The topics are part of a hash: the topics of another cluster may take less time.
"""


class MatchingTime:
    """The CPU time of the thread since the first check, which has a limit. ``clock``: in seconds."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._began: float | None = None

    def check(self) -> None:
        """Refused("InvalidSpec") above the limit."""
        now = self._clock()
        if self._began is None:
            self._began = now
        if now - self._began > _MOST_SECONDS:
            raise _too_long()


class TopicFilter:
    """Selects by name. ``exclude`` wins over ``include``; an empty ``include`` selects every topic.

    ``spent``: counts the time of this filter. Raises ValueError where an expression is not valid RE2.
    """

    def __init__(
        self, include: Sequence[str] = (), exclude: Sequence[str] = (), spent: MatchingTime | None = None
    ) -> None:
        self._patterns = tuple(include), tuple(exclude)
        self._include = [compile_re2(pattern) for pattern in include]
        self._exclude = [compile_re2(pattern) for pattern in exclude]
        self._spent = spent or MatchingTime()

    @classmethod
    def of(cls, topics: Topics) -> Self:
        """The filter of a spec."""
        return cls(topics.include, topics.exclude)

    def matches(self, topic: str) -> bool:
        """Whether the topic is selected. Refused("InvalidSpec") if all calls together take too long."""
        self._spent.check()
        if any(pattern.fullmatch(topic) for pattern in self._exclude):
            return False
        return not self._include or any(pattern.fullmatch(topic) for pattern in self._include)

    def select(self, topics: Iterable[str]) -> list[str]:
        """The selected topics, in the order given. Raises as ``matches``, at once if the same took too long before."""
        names = tuple(topics)
        key = hash((self._patterns, frozenset(names)))
        if key in _too_slow:
            raise _too_long()
        try:
            return [topic for topic in names if self.matches(topic)]
        except Refused:
            _too_slow[key] = None
            if len(_too_slow) > _REMEMBERED:
                _too_slow.popitem(last=False)
            raise


def _too_long() -> Refused:
    return Refused(
        Reason.INVALID_SPEC,
        f"spec.topics: the expressions take more than {_MOST_SECONDS:g} s to match the topics of this cluster: use "
        "fewer or simpler ones",
    )
