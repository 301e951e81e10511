"""Selects topics by RE2 expressions that match whole names, in the dialect of the CRD's CEL rules.

An empty include selects internal topics too: a broker is not drained while it holds replicas of them. The CPU time is
limited, because expressions and names can be written so that matching takes hours.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Self

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

    ``spent``: counts the time of this filter. The expressions are compiled at the first match. ``fields``: the names of
    both lists, for messages.
    """

    def __init__(
        self,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        spent: MatchingTime | None = None,
        fields: tuple[str, str] = ("include", "exclude"),
    ) -> None:
        self._patterns = tuple(include), tuple(exclude)
        self._fields = fields
        self._spent = spent or MatchingTime()

    @classmethod
    def of(cls, topics: Topics) -> Self:
        """The filter of a spec."""
        return cls(topics.include, topics.exclude, fields=("spec.topics.include", "spec.topics.exclude"))

    @classmethod
    def of_pinned(cls, topics: Topics) -> Self:
        """The filter of the topics that a spec pins, which has at least one expression for them."""
        return cls(topics.pinned, fields=("spec.topics.pinned", ""))

    def matches(self, topic: str) -> bool:
        """Whether the topic is selected. Refused("InvalidSpec") if all calls together take too long.

        The same where an expression is not valid RE2, or too large.
        """
        self._spent.check()
        include, exclude = self._compiled
        if any(pattern.fullmatch(topic) for pattern in exclude):
            return False
        return not include or any(pattern.fullmatch(topic) for pattern in include)

    def select(self, topics: Iterable[str]) -> list[str]:
        """The selected topics, in the order given. Raises as ``matches``, at once if the same took too long before."""
        names = tuple(topics)
        key = hash((self._patterns, frozenset(names)))
        if key in _too_slow:
            raise _too_long()
        try:
            return [topic for topic in names if self.matches(topic)]
        except _TooSlow:
            _too_slow[key] = None
            if len(_too_slow) > _REMEMBERED:
                _too_slow.popitem(last=False)
            raise

    @cached_property
    def _compiled(self) -> tuple[list[Any], list[Any]]:
        include, exclude = (
            [self._compile(f"{field}[{at}]", pattern) for at, pattern in enumerate(patterns)]
            for field, patterns in zip(self._fields, self._patterns, strict=True)
        )
        return include, exclude

    def _compile(self, field: str, pattern: str) -> Any:
        self._spent.check()
        return _checked(field, pattern)


def check_expressions(topics: Topics) -> None:
    """Refused("InvalidSpec") names the first wrong expression of each list."""
    problems = []
    for name, patterns in (("include", topics.include), ("exclude", topics.exclude), ("pinned", topics.pinned)):
        try:
            for at, pattern in enumerate(patterns):
                _checked(f"spec.topics.{name}[{at}]", pattern)
        except Refused as error:
            problems.append(error.message)
    if problems:
        raise Refused(Reason.INVALID_SPEC, "; ".join(problems))


def _checked(field: str, pattern: str) -> Any:
    try:
        return compile_re2(pattern)
    except ValueError as error:
        raise Refused(Reason.INVALID_SPEC, f"{field}: {error}") from error


class _TooSlow(Refused):
    """The expressions take longer than the limit."""


def _too_long() -> Refused:
    return _TooSlow(
        Reason.INVALID_SPEC,
        f"spec.topics: the expressions take more than {_MOST_SECONDS:g} s to match the topics of this cluster: use "
        "fewer or simpler ones",
    )
