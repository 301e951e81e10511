"""What the engine remembers of one rebalance between rounds. A restart loses it, so nothing may depend on it."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    """A stored plan, the run to open with it, and the load model that it was made with.

    ``inherited_from``: the runs that this run takes over. ``origins``: of the partitions for which this run, or one of
    those, has already sent calls. ``dirs_of_others``: the brokers on which others have moved a replica of a partition
    to another log dir since: what these origins say of that is given up.
    """

    run: Run
    plan: Plan
    ref: str
    origins: Mapping[TopicPartition, Origin]
    model: LoadModel | None
    inherited_from: Sequence[Run] = ()
    dirs_of_others: Mapping[TopicPartition, Collection[BrokerId]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """The error and its stage: it is reported until that stage has succeeded or has nothing to do any more."""

    stage: str
    error: RebalanceError


_OFTEN = 3
"""Failed attempts to plan. One may fail for a reason that passes, such as metadata that is not up to date."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Times are seconds of a monotonic clock, except ``written_at``."""

    planning: asyncio.Task[Planned | ContinuedCopies] | None = None
    planned_spec: str = ""
    """The planning hash of the spec that ``planning`` is for; empty: that plan must not be opened."""
    failed_spec: str = ""
    """The planning hash of the spec for which the last attempts to plan have failed; empty: the last one has not."""
    failed_plans: int = 0
    """How many attempts for ``failed_spec`` have failed one after the other."""
    prepared: tuple[str, ...] = ()
    """The change key of the resource when it was last prepared."""
    problem: Problem | None = None
    retry_at: float = float("-inf")
    terminating: bool = False
    """The namespace or the CRD is being deleted, as first seen at ``terminating_checked_at``."""
    terminating_checked_at: float = float("-inf")
    timed_out_at: float | None = None
    """When it was first seen that ``spec.rollback.timeout`` was over; None: it is not over."""
    heir_sought_until: float | None = None
    """Until when a run that is let go may wait to be loaded, so that its heir is found; None: it was not let go."""
    cordons_done: frozenset[BrokerId] = frozenset()
    """Brokers that need no further call to cordon them."""
    cordons_denied: frozenset[BrokerId] = frozenset()
    """Brokers that have not permitted to set their cordon, until they are struck off the record."""
    cordons_doubtful: frozenset[BrokerId] = frozenset()
    """Brokers that have not permitted it again: an earlier call may have set their cordon, or set it late."""
    cordons_unanswered: Mapping[BrokerId, float] = field(default_factory=dict)
    """When a call to cordon the broker last failed.

    Separate from ``unanswered_at``, because a run that leaves the cordon of the broker does not wait for these calls.
    """
    expected_rates: Mapping[TopicPartition, float] | None = None
    """Bytes per second produced to the partitions of the open run; None: not asked for yet."""
    empty_since: float | None = None
    """When the brokers to be emptied were first seen empty."""
    uncordoning_since: float | None = None
    """Since when a run waits until the cordons that it does not leave are removed, before it ends."""
    resting_since: float | None = None
    """Since when a run is at rest without a place in the queue, while that is not recorded."""
    unseen_since: float | None = None
    """Since when a run waits until its calls show effect, before it ends."""
    led_back: frozenset[TopicPartition] = frozenset()
    """Partitions whose last call of this process was accepted by Kafka and leads to their origin."""
    unanswered_at: float = float("-inf")
    """When a call of the run last failed without an answer, so that Kafka may execute it late.

    After a restart, the time when the run was loaded: the earlier process may have ended before it got an answer.
    Later, while a broker may hang that has such a call.
    """
    list_unanswered_at: float = float("-inf")
    """As ``unanswered_at``, of calls that name brokers. Those between log dirs put no replica on another broker."""
    failed_at: float = float("-inf")
    """When a call last failed without an answer, whatever happened to the brokers since."""
    called: frozenset[BrokerId] = frozenset()
    """The brokers that were live before such calls: each may have one, and pass it on when it continues."""
    written: KafkaRebalanceStatus | None = None
    """The last status that was written; None: not known."""
    written_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    """When ``written`` was written, by the wall clock."""
    status_in_doubt: bool = True
    """Whether a write of a status that got no answer may be executed after ``written`` was written.

    After a start it may: the earlier process may have ended before it got an answer.
    """
    built: KafkaRebalanceStatus | None = None
    """The last status that was built. Its figures may not have been written yet."""
    marked_completed: str = ""
    """The annotation that was written at the end of the run."""

    @property
    def error(self) -> RebalanceError | None:
        """The error of the present problem."""
        return self.problem.error if self.problem is not None else None

    def often_failed(self, planning_hash: str) -> bool:
        """Whether no plan could be made for this spec several times in a row. It does not change by itself soon."""
        return self.failed_spec == planning_hash and self.failed_plans >= _OFTEN

    def blocked(self, now: float) -> bool:
        """Whether a problem is left alone for now. It stays on the status until a retry has succeeded."""
        return self.problem is not None and now < self.retry_at

    def done_with(self, stage: str) -> Self:
        """Without the problem of this stage, if there is one."""
        return self if self.problem is None or self.problem.stage != stage else replace(self, problem=None)
