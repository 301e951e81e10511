"""What the engine remembers of one rebalance between rounds. It may be forgotten at any time: a restart does."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self

from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile.state.assessment import ContinuedCopies


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that is stored, the run that is to be opened with it, and the load model that it was made with.

    ``origins``: those that the run begins with, of what it or a run that it has taken over has sent; ``inherited_from``
    are those runs that it has taken over.
    """

    run: Run
    plan: Plan
    ref: str
    origins: Mapping[TopicPartition, Origin]
    model: LoadModel | None
    inherited_from: Sequence[Run] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """The error and its stage: it is reported until that stage has succeeded or has nothing to do any more."""

    stage: str
    error: RebalanceError


@dataclass(frozen=True, slots=True)
class Memory:
    """Times are seconds of a monotonic clock.

    ``prepared``: the change key of the resource when it was last prepared. ``terminating``: the namespace or the CRD is
    being deleted, as seen at ``terminating_checked_at``. ``cordons_done``: brokers that need no cordon any more.
    ``expected_rates``: bytes per second produced to the partitions of the open run; None: not asked for yet.
    ``empty_since``: when the brokers to be emptied were first seen empty. ``uncordoning_since`` and ``unseen_since``:
    since when a run waits before it ends: a rollback until its cordons are removed, any run until its calls show
    effect. ``led_back``: partitions whose last call of this process was accepted by Kafka and leads to their origin.
    ``written``: the last status that was written, at ``written_at``; ``built``: the last one at all, whose figures may
    not have been written yet. ``marked_completed``: the annotation that was written at the end of the run.
    """

    planning: asyncio.Task[Planned | ContinuedCopies] | None = None
    prepared: tuple[str, ...] = ()
    problem: Problem | None = None
    retry_at: float = float("-inf")
    terminating: bool = False
    terminating_checked_at: float = float("-inf")
    cordons_done: frozenset[BrokerId] = frozenset()
    expected_rates: Mapping[TopicPartition, float] | None = None
    empty_since: float | None = None
    uncordoning_since: float | None = None
    unseen_since: float | None = None
    led_back: frozenset[TopicPartition] = frozenset()
    written: KafkaRebalanceStatus | None = None
    written_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    built: KafkaRebalanceStatus | None = None
    marked_completed: str = ""

    @property
    def error(self) -> RebalanceError | None:
        """The error of the present problem."""
        return self.problem.error if self.problem is not None else None

    def blocked(self, now: float) -> bool:
        """Whether a problem is left alone for now. It stays on the status until a retry has succeeded."""
        return self.problem is not None and now < self.retry_at

    def done_with(self, stage: str) -> Self:
        """Without the problem of this stage, if there is one."""
        return self if self.problem is None or self.problem.stage != stage else replace(self, problem=None)
