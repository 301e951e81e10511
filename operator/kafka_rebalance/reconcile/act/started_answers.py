"""Remembers for some seconds whether open runs started in a cluster.

To find out costs the plan of the run, and a question to the brokers about each of its topics. Anyone may edit a refused
resource again and again, and each edit leads to another look at it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kafka_rebalance.errors import RebalanceError, without_traceback
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.run import Run
from kafka_rebalance.reconcile.act.started_runs import Started

_KEPT_SECONDS = 10.0
"""Shorter than the time between two looks at a resource that nobody edits."""
_REST = 4.0
"""The rest after a question, as a multiple of the time that the answer took: questions take a fifth of the time."""
_LONGEST_REST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class StartedAnswer:
    """The answer for a run as it was on record. ``unknown``: why it is not known; it then counts as ``ELSEWHERE``.

    ``at``: when it was given, in monotonic seconds. ``rest``: seconds.
    """

    run: Run
    owner: Owner
    started: Started
    unknown: RebalanceError | None
    at: float
    rest: float

    def too_old(self, now: float) -> bool:
        """Whether it does not count any more for anybody."""
        return now - self.at >= max(self.rest, _KEPT_SECONDS)

    def counts(self, run: Run, owner: Owner, now: float) -> bool:
        """Whether it is too early for another question.

        With another owner the answer may differ, but that of a resource changes with each edit of its connection. That
        the run started here with a connection of one owner is never believed of another one.
        """
        if run != self.run:
            return False
        if owner == self.owner:
            return not self.too_old(now)
        return self.started is not Started.HERE and now - self.at < self.rest


class StartedAnswers:
    """The last answers, by the engine of the cluster and the uid of the run's resource."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: WeakKeyDictionary[object, dict[str, StartedAnswer]] = WeakKeyDictionary()

    async def of(self, run: Run, owner: Owner, engine: object, ask: Callable[[], Awaitable[Started]]) -> StartedAnswer:
        """Whether the run started in the cluster of this engine with a connection of ``owner``; ``ask`` finds out.

        The first question is asked at once, and so is one about a run whose record has changed, or for a new engine.
        """
        kept = self._kept.setdefault(engine, {})
        began = self._monotonic()
        last = kept.get(run.uid)
        if last is not None and last.counts(run, owner, began):
            return last
        started, unknown = Started.ELSEWHERE, None
        try:
            started = await ask()
        except RebalanceError as error:
            unknown = without_traceback(error)
        now = self._monotonic()
        for uid in [uid for uid, other in kept.items() if other.too_old(now)]:
            del kept[uid]
        kept[run.uid] = StartedAnswer(
            run, owner, started, unknown, now, min(_REST * (now - began), _LONGEST_REST_SECONDS)
        )
        return kept[run.uid]
