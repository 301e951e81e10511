"""What is stored beside the plan: the run, and each partition as it was before the run first changed it.

A *run* opens when its plan is stored, and starts when its first order is about to be sent. It closes at success, after
a rollback or undo, when abandoned, or when taken over. A new plan within a run that has started keeps the origins of
what was sent; before that it is a new run.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition


class RunOutcome(StrEnum):
    """How a run ended."""

    SUCCEEDED = "Succeeded"
    ROLLED_BACK = "RolledBack"
    ROLLED_BACK_PARTIALLY = "RolledBackPartially"
    REVERTED = "Reverted"
    ABANDONED = "Abandoned"
    UNDONE = "Undone"
    TAKEN_OVER = "TakenOver"


@dataclass(frozen=True, slots=True)
class Origin:
    """One partition as it was before the run first changed it. The preferred leader is the first of ``replicas``.

    ``leader`` led the partition when this was recorded; None: no leader, or not known. A rollback elects the preferred
    leader only if it led before. ``first_call``: the list that the first call asks for, until it is on record that
    Kafka has carried it out (``execution.first_call``); empty from then on. ``log_dirs``: by broker, the log dir that a
    replica was in before the run first asked for another one; only these replicas return to their log dirs. None:
    unknown, because an earlier version recorded the partition.
    """

    tp: TopicPartition
    topic_id: str
    replicas: Replicas
    leader: BrokerId | None = None
    first_call: Replicas = ()
    log_dirs: tuple[tuple[BrokerId, str], ...] | None = ()

    def with_log_dirs(self, asked: Iterable[tuple[BrokerId, str]]) -> "Origin":
        """The origin with these log dirs added. Log dirs that are already recorded stay."""
        if self.log_dirs is None:
            return self
        joined = dict(asked) | dict(self.log_dirs)
        return self if len(joined) == len(self.log_dirs) else replace(self, log_dirs=tuple(sorted(joined.items())))

    def reordered(self, replicas: Replicas, leader: BrokerId | None) -> "Origin":
        """The origin with the order that others have given the list since, and their leader.

        A broker that leads because the run has elected it is not theirs: the recorded leader stays.
        """
        elected = leader == self.replicas[0]
        return replace(self, replicas=replicas, leader=self.leader if elected else leader, first_call=replicas)

    def without_log_dirs(self, brokers: Collection[BrokerId]) -> "Origin":
        """The origin without the log dirs of these brokers, to which the replicas do not return any more."""
        if not self.log_dirs or not brokers:
            return self
        return replace(self, log_dirs=tuple(at for at in self.log_dirs if at[0] not in brokers))


@dataclass(frozen=True, slots=True)
class Spent:
    """The used part of a run's movement budget: replica moves, and the bytes that their copies fetched."""

    replica_moves: int = 0
    data_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One resource's current or last run.

    ``planning_hash`` is the hash of the part of the spec that decides what is planned; ``plan_hash`` the plan made
    from it. ``closed_at`` None: open. ``undo``: the run had succeeded and is being moved back to its origins.
    ``successor``: uid of the resource that took the run over, until a run of that one has begun with its origins.
    ``cordoned``: brokers that this run cordoned. ``spent``: what the plans before the present one have moved.
    ``started_at``: when its first order was about to be sent; None: none was, so that all that moves or has moved was
    moved by others. ``last_success``: the last run of the resource that has sent something and has succeeded: an undo
    leads to before that, unless this one has sent something when it ends. ``disk_peak``: where disks are a load goal
    and the run has succeeded, the highest use of a broker at its end, in percent of its share; None: not measured.
    ``unproved``: another owner has got the cluster, and the run may have started at a server that only claimed its id.
    ``was_unproved``: it was once, or a run was whose origins or cordons it has; the next owner doubts it again.
    ``owner``: whose connection its last plan was made with; None: not known, as of an earlier version. ``rested``: its
    connection was refused, it has come to rest since, and has sent nothing more: what moves now is moved by others.
    ``place_given_up``: it has come to rest and lets others move its partitions first. It has sent nothing since but
    cancellations, and drops in the ``unsettled`` topics: those with copies of it that could not be cancelled then, or
    that could not be read.
    """

    uid: str
    namespace: str
    name: str
    cluster_id: str
    run_id: str
    planning_hash: str
    plan_hash: str
    opened_at: datetime
    closed_at: datetime | None = None
    outcome: RunOutcome | None = None
    undo: bool = False
    successor: str | None = None
    cordoned: tuple[BrokerId, ...] = ()
    spent: Spent = field(default_factory=Spent)
    started_at: datetime | None = None
    last_success: "Run | None" = None
    disk_peak: int | None = None
    unproved: bool = False
    was_unproved: bool = False
    owner: Owner | None = None
    rested: bool = False
    place_given_up: bool = False
    unsettled: tuple[str, ...] = ()

    @property
    def doubted(self) -> "Run":
        """The run as it is on record if it may have started in another cluster: ``unproved``, and without cordons."""
        last = self.last_success and self.last_success.doubted
        return replace(self, cordoned=(), unproved=True, was_unproved=True, last_success=last)

    @property
    def to_doubt_later(self) -> "Run":
        """The run as it is on record if only the next owner of its cluster has to doubt it (``was_unproved``)."""
        return replace(self, was_unproved=True, last_success=self.last_success and self.last_success.to_doubt_later)

    @property
    def to_undo(self) -> "Run":
        """The run that an undo moves back: this one, or if it has sent nothing the last success."""
        return self.last_success or self

    @property
    def undoable(self) -> bool:
        """Whether it has ended, and an undo may open it or the last success again."""
        return not self.open and self.to_undo.started

    @property
    def last_to_undo(self) -> "Run | None":
        """The last success of a run that follows this one and has sent nothing."""
        if self.last_success is None and self.started_at is not None and self.outcome is RunOutcome.SUCCEEDED:
            return self
        return self.last_success

    @property
    def started(self) -> bool:
        """Whether the run may have changed anything in Kafka."""
        return self.started_at is not None or bool(self.cordoned)

    @property
    def restored(self) -> bool:
        """Whether the run is known only from the annotation of a resource that was restored without its records."""
        return not self.run_id

    @property
    def open(self) -> bool:
        """Whether the run has not been closed; it may not have started."""
        return self.closed_at is None
