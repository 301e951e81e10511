"""What a round has found out and decided about one rebalance: frozen parts, each returned by one function.

Only ``reconcile.rounds`` puts them together. Nothing here is stored: after a restart everything is found again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.log_dir_moves import LogDirStatuses
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.progress import Pace, Progress
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.execution.reassignment_throttle import ClusterRates
from kafka_rebalance.kafka.least_permissions import MissingPermission
from kafka_rebalance.model.rate_room import RateKey
from kafka_rebalance.model.topology import BrokerId, ReplicaKey, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.judgement import Judgement, Statuses
from kafka_rebalance.reconcile.state.record import LoadedRun


@dataclass(frozen=True, slots=True)
class StepBlock:
    """Why no new step starts. ``gives_up_place``: at rest the rebalance gives up its place in the queue."""

    reason: Reason
    message: str
    gives_up_place: bool = False


class RollbackBarrier(StrEnum):
    """Why a deletion with the policy Rollback only cancels reassignments in flight."""

    SUCCESSOR = "Successor"  # a new resource goes on with the same partitions
    REFUSED = "Refused"  # its connection may not be used for anything new, see ``Rebalance.refusal``
    TERMINATING = "Terminating"  # the namespace or the CRD is deleted too: a finalizer must not hold it up
    TIMED_OUT = "TimedOut"  # spec.rollback.timeout
    TOO_LARGE = "TooLarge"  # spec.rollback.maxData: requires a change of the spec


@dataclass(frozen=True, slots=True)
class Successor:
    """The new resource that takes over from one that is being deleted."""

    uid: str
    name: str


@dataclass(frozen=True, slots=True)
class Teardown:
    """The bytes that a rollback must copy, and what prevents it.

    ``unknown``: the partitions whose size or current replicas are not known, if that prevents it.
    """

    barrier: RollbackBarrier | None = None
    bytes_to_move_back: int = 0
    unknown: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ContinuedCopies:
    """The copies in flight that a plan for the spec of this hash continues; the others are cancelled first."""

    planning_hash: str
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Replanning:
    """Why the plan of an open run is put aside. ``ready``: what had to be cancelled is, so planning may begin."""

    reason: Reason
    ready: bool = False
    kept: ContinuedCopies | None = None


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Whether it is this rebalance's turn. ``place`` None: it wants nothing, or was never lined up.

    ``unseen``: a rebalance whose open run is not loaded here, so it is unknown what it moves. ``asked_since``: when
    what the spec asks for (``asks_for``, a planning hash) was first asked for.
    """

    place: Place | None = None
    unseen: str = ""
    asks_for: str = ""
    asked_since: datetime | None = None

    @property
    def waits(self) -> bool:
        """Whether others go first."""
        return self.place is not None and not self.place.runs

    @property
    def message(self) -> str:
        """Which rebalance it waits for, and its place."""
        if self.unseen:
            return f"waits for {self.unseen}, whose open run is not loaded here: what it moves is not known yet"
        if self.place is None:
            return ""
        if self.place.no_room:
            return (
                f"{self.place.position} rebalances of this namespace are before it, and no more of a namespace have a "
                f"place in the queue of a cluster; it comes after {self.place.behind}"
            )
        return f"waits for {self.place.behind}, which moves some of the same partitions; place {self.place.position}"


@dataclass(frozen=True, slots=True)
class Advance:
    """How far the run is, how fast it moves, and what keeps it from finishing.

    ``eta``: seconds left, at least and at most. ``plan_seconds``: how long the copies of the whole plan take at least.
    ``stalled`` and ``too_slow`` are sentences, empty where there is nothing to say.
    """

    direction: Direction | None = None
    progress: Progress | None = None
    steps_completed: int = 0
    pace: Pace | None = None
    eta: tuple[float, float] | None = None
    plan_seconds: float | None = None
    expected: "ExpectedDuration | None" = None
    stalled: str = ""
    too_slow: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedDuration:
    """How long the whole plan takes by the runs before it: ``seconds`` at least and at most, of eight in ten.

    ``of``: what it follows from (model, plan, rates, R and P); it is computed again when that changes.
    """

    of: tuple[object, ...]
    seconds: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ThrottleFindings:
    """The throttle of a rebalance: wanted rates and their source, on how many brokers they are set, what is wrong.

    ``brokers_pending``: live brokers that have not accepted their rate yet. ``bound_by``: whose lower rate binds on
    some brokers. ``relieved``: partitions that are throttled at their destinations only. ``left_out``: partitions in
    flight that are not throttled, or only there, because a list of throttled replicas has no room. ``refused``: brokers
    with a replication throttle below the wanted rate. ``not_allowed``: brokers that do not let us set a rate.
    ``trouble``: what could not be written. ``problem``: why nothing can be throttled.
    """

    rates: ClusterRates = field(default_factory=ClusterRates)
    source: str = ""
    bound_by: str = ""
    brokers: int = 0
    brokers_pending: int = 0
    relieved: int = 0
    left_out: int = 0
    trouble: str = ""
    refused: str = ""
    not_allowed: str = ""
    problem: RebalanceError | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """Whether these brokers hold no replica any more. ``empty`` None: that cannot be proved."""

    brokers: frozenset[BrokerId]
    empty: bool | None
    message: str


@dataclass(frozen=True, slots=True)
class LeavingBroker:
    """A broker that the rebalance of this name empties. ``drained``: when its status has said that this is done."""

    by: str
    drained: datetime | None = None


@dataclass(frozen=True, slots=True)
class RefusedOrders:
    """Orders that Kafka has refused. ``example``: one of their partitions and Kafka's answer."""

    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """All of it. ``run``: the open run that it is about.

    ``sent``: partitions for which the last round has sent an order. ``no_room``: partitions held back by nothing but
    the disk of the broker named; ``list_full``: by nothing but a list of throttled replicas without room for them;
    ``at_limit``: by the limit of the rate named; ``doubted``: until a reading shows their last call, or Kafka cannot
    execute it any more. ``refused``: in the last round, and then as long as nothing is sent because of it.
    ``log_dirs``: the replicas that move between log dirs; ``dir_full``: those held back only by a full log dir.
    ``leaving``: the brokers that rebalances of the cluster empty, one mapping for all of them.
    ``full_successor``: would continue instead of a rollback, but has taken over as many runs as it may.
    """

    run: LoadedRun | None = None
    queue: QueuePlace = QueuePlace()
    successor: Successor | None = None
    full_successor: Successor | None = None
    replanning: Replanning | None = None
    teardown: Teardown = Teardown()
    step_block: StepBlock | None = None
    judgement: Judgement = field(default_factory=Judgement)
    sent: frozenset[TopicPartition] = frozenset()
    no_room: Mapping[TopicPartition, BrokerId] = field(default_factory=dict)
    list_full: frozenset[TopicPartition] = frozenset()
    at_limit: Mapping[TopicPartition, RateKey] = field(default_factory=dict)
    doubted: frozenset[TopicPartition] = frozenset()
    refused: RefusedOrders | None = None
    log_dirs: LogDirStatuses = field(default_factory=LogDirStatuses)
    dir_full: frozenset[ReplicaKey] = frozenset()
    advance: Advance = Advance()
    throttle: ThrottleFindings = field(default_factory=ThrottleFindings)
    drain: Drain | None = None
    leaving: Mapping[BrokerId, LeavingBroker] = field(default_factory=dict)
    missing_permissions: tuple[MissingPermission, ...] = ()

    @property
    def statuses(self) -> Statuses:
        """How the partitions stand."""
        return self.judgement.statuses

    @property
    def finished(self) -> bool:
        """Whether every partition has arrived or is skipped, and every replica that moves between log dirs."""
        moves = self.run.log_dirs if self.run is not None else ()
        return self.statuses.finished and self.log_dirs.finished(self.judgement.direction, moves)

    def about(self, run: LoadedRun | None) -> "Assessment":
        """This assessment, if it is about that run; else a new one, without anything that belonged to the other run.

        When a run has ended, what the status still says of it stays.
        """
        if run is self.run:
            return self
        teardown = replace(self.teardown, barrier=None)
        none = frozenset[TopicPartition]()
        kept = replace(self, run=run, replanning=None, teardown=teardown, step_block=None)
        kept = replace(kept, sent=none, list_full=none, doubted=none, refused=None)
        if run is not None:
            kept = replace(kept, log_dirs=LogDirStatuses(), dir_full=frozenset())
            return replace(kept, judgement=Judgement(), no_room={}, at_limit={}, advance=Advance(), drain=None)
        return replace(
            kept,
            queue=replace(self.queue, place=None),
            judgement=Judgement(statuses=self.statuses),
            advance=replace(self.advance, pace=None),
        )
