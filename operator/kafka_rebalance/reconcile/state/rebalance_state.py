"""One KafkaRebalance as the engine knows it: what it asks for, where it is going, and how it stood at the last look.

Everything here can be thrown away: it is read again from the resource, the stores and Kafka after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from kafka_rebalance.api.deleted import parse_deleted_rebalance
from kafka_rebalance.api.v1alpha1 import (
    LET_GO_ANNOTATION,
    UNDO_ANNOTATION,
    DeletionPolicy,
    KafkaRebalance,
    KafkaRebalanceStatus,
    parse_metadata,
    parse_rebalance,
    planning_hash,
)
from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionMove, PartitionStatus
from kafka_rebalance.execution.progress import Pace, Progress
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.execution.reassignment_throttle import ClusterRates
from kafka_rebalance.execution.schedule import Limits
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.state.records import OpenRun
from kafka_rebalance.reconcile.state.selection import select


@dataclass(frozen=True, slots=True)
class StepBlock:
    """Why no new step starts. ``releases``: at rest it gives its place to others that want the same partitions."""

    reason: Reason
    message: str
    releases: bool = False


class RollbackBarrier(StrEnum):
    """Why a deletion with the policy Rollback only cancels what is in flight."""

    HEIR = "Heir"  # a new resource goes on with the same partitions
    TERMINATING = "Terminating"  # the namespace or the CRD goes: a finalizer never holds it hostage
    TIMED_OUT = "TimedOut"  # spec.rollback.timeout
    TOO_LARGE = "TooLarge"  # spec.rollback.maxData: waits for a word


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What is said of a run whose plan is put away: why that was empty, how many partitions were left alone."""

    why_empty: str
    left_alone: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that is stored and whose run is open, and the loads that it was made with."""

    opened: OpenRun
    loads: LoadModel


@dataclass(frozen=True, slots=True)
class KeptCopies:
    """The copies in flight that a plan for the spec of this hash goes on with; the others are cancelled first."""

    planning_hash: str
    partitions: frozenset[TopicPartition]


@dataclass
class RebalanceState:
    """One resource. The upper half is set while a tick is prepared, ``verdicts`` and below while it is carried out."""

    rebalance: KafkaRebalance
    run: Run | None = None
    run_loaded: bool = False
    open: OpenRun | None = None
    direction: Direction | None = None
    planning: asyncio.Task[Planned | KeptCopies] | None = None
    replanning: Reason | None = None
    settled: bool = False
    kept: KeptCopies | None = None
    place: Place | None = None
    unseen: str = ""
    asks_for: str = ""
    asks_since: datetime | None = None
    hold: StepBlock | None = None
    barrier: RollbackBarrier | None = None
    heir: str = ""
    heir_name: str = ""
    terminating: bool = False
    looked_around_at: float = float("-inf")
    spec_problem: Refused | None = None
    problem: RebalanceError | None = None
    problem_at: str = ""
    retry_at: float = float("-inf")
    prepared: tuple[str, ...] = ()
    verdicts: dict[TopicPartition, PartitionStatus] = field(default_factory=dict)
    judged_in: Any = None
    sent: frozenset[TopicPartition] = frozenset()
    no_room: Mapping[TopicPartition, BrokerId] = field(default_factory=dict)
    bytes_to_move_back: int = 0
    eta: tuple[float, float] | None = None
    expected_rates: Mapping[TopicPartition, float] | None = None
    too_slow: str = ""
    since: dict[TopicPartition, datetime] = field(default_factory=dict)
    progress: Progress | None = None
    steps_completed: int = 0
    pace: Pace | None = None
    rates: ClusterRates = field(default_factory=ClusterRates)
    rate_source: str = ""
    bound_by: str = ""
    throttled_brokers: int = 0
    throttle_trouble: str = ""
    throttle_refused: str = ""
    throttle_problem: RebalanceError | None = None
    relieved: int = 0
    ended: EndedRun | None = None
    eta_seconds: float | None = None
    cordon_seen: set[BrokerId] = field(default_factory=set)
    empty_since: float | None = None
    unrestored_since: float | None = None
    drained: bool | None = None
    drain_message: str = ""
    written: KafkaRebalanceStatus | None = None
    _wanted: frozenset[TopicPartition] = frozenset()
    _wanted_from: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    _wanted_by: str = ""

    @classmethod
    def of(cls, body: dict[str, Any]) -> RebalanceState:
        """The work of a resource as the API server sends it. Refused("InvalidSpec") names the field.

        Of one that is being deleted what cannot be read is left out: it hides no deletion.
        """
        return cls(parse_deleted_rebalance(body) if parse_metadata(body).deleting else parse_rebalance(body))

    def update(self, body: dict[str, Any]) -> None:
        """Take in a newer state of the resource. With a spec that cannot be read the last one holds, and it is said."""
        try:
            self.rebalance, self.spec_problem = parse_rebalance(body), None
        except Refused as error:
            self.rebalance = self.rebalance.model_copy(update={"metadata": parse_metadata(body)})
            self.spec_problem = error

    @property
    def uid(self) -> str:
        """The resource's uid."""
        return self.rebalance.metadata.uid

    @property
    def name(self) -> str:
        """``namespace/name``, for people."""
        return f"{self.rebalance.metadata.namespace}/{self.rebalance.metadata.name}"

    @property
    def age_key(self) -> tuple[str, str]:
        """Sorts the older resource first."""
        created = self.rebalance.metadata.creation_timestamp
        return (created.isoformat() if created else "", self.uid)

    @property
    def held(self) -> bool:
        """Whether our finalizer is on the object as last seen."""
        return self.rebalance.metadata.held

    @property
    def asked(self) -> tuple[str, ...]:
        """Changes whenever somebody asks for something else; our own status writes do not change it."""
        metadata = self.rebalance.metadata
        orders = (metadata.annotations.get(name, "") for name in (UNDO_ANNOTATION, LET_GO_ANNOTATION))
        return (str(metadata.generation), str(metadata.deletion_timestamp), *orders, *metadata.finalizers)

    @property
    def deleted_since(self) -> bool:
        """Whether it is being deleted and was not when it was prepared."""
        metadata = self.rebalance.metadata
        return metadata.deleting and str(metadata.deletion_timestamp) not in self.prepared

    def blocked(self, now: float) -> bool:
        """Whether the problem is to be left alone for now. Until a retry has succeeded it stays on the status."""
        return self.problem is not None and now < self.retry_at

    @property
    def planning_hash(self) -> str:
        """Hash of the part of the spec that decides what is planned."""
        return planning_hash(self.rebalance.spec)

    @property
    def limits(self) -> Limits:
        """KIP-435's limits, as they are in the spec now."""
        execution = self.rebalance.spec.execution
        return Limits(
            execution.parallel_replica_count,
            execution.parallel_partition_count,
            execution.parallel_leader_movements,
            execution.max_concurrent_replica_movements,
            execution.max_per_broker.into,
            execution.max_per_broker.out,
        )

    @property
    def heading(self) -> Direction | None:
        """Where it goes now; None: nowhere, Kafka is left as it is (Abandon)."""
        if self.rebalance.metadata.deleting:
            return {
                DeletionPolicy.ROLLBACK: Direction.REVERT if self.barrier else Direction.ROLLBACK,
                DeletionPolicy.REVERT: Direction.REVERT,
                DeletionPolicy.ABANDON: None,
            }[self.rebalance.spec.deletion_policy]
        if self.replanning:
            return Direction.REVERT
        return Direction.ROLLBACK if self.run is not None and self.run.undo else Direction.FORWARD

    def keeps(self, tp: TopicPartition) -> bool:
        """Whether a copy in flight stays while the plan is superseded: each does until a new plan is known."""
        if self.replanning is not Reason.SUPERSEDED or self.run is None or self.run.undo:
            return False
        return self.kept is None or self.kept.planning_hash != self.planning_hash or tp in self.kept.partitions

    @property
    def copying(self) -> bool:
        """Whether a copy is in flight that is not to be cancelled."""
        return any(v.phase is MovePhase.IN_FLIGHT for v in self.verdicts.values())

    @property
    def rests_but_for_kept(self) -> bool:
        """Whether all is at rest but for copies in flight that stay until the new plan is made."""
        over = {MovePhase.DONE, MovePhase.SKIPPED}
        return self.copying and all(
            v.phase in over or (v.phase is MovePhase.IN_FLIGHT and self.keeps(tp)) for tp, v in self.verdicts.items()
        )

    @property
    def going_back(self) -> bool:
        """Whether it is being deleted or undone."""
        return self.rebalance.metadata.deleting or (self.run is not None and self.run.undo and not self.replanning)

    @property
    def let_go_ordered(self) -> bool:
        """Whether somebody has said that the deletion shall end now, whatever is left."""
        return self.rebalance.metadata.let_go_ordered

    @property
    def undo_ordered(self) -> bool:
        """Whether the run that has succeeded shall be moved back."""
        run = self.run
        if run is None or run.outcome is not RunOutcome.SUCCEEDED or self.planning is not None:
            return False
        ordered = self.rebalance.metadata.annotations.get(UNDO_ANNOTATION)
        return ordered == run.plan_hash and run.planning_hash == self.planning_hash

    @property
    def run_plan_hash(self) -> str:
        """The hash of the run's plan; empty where there is no run."""
        return self.run.plan_hash if self.run is not None else ""

    def timed_out(self, now: datetime) -> bool:
        """Whether the deletion has taken longer than spec.rollback.timeout."""
        begun, timeout = self.rebalance.metadata.deletion_timestamp, self.rebalance.spec.rollback.timeout_seconds
        return begun is not None and timeout is not None and now - begun > timedelta(seconds=timeout)

    @property
    def wants_plan(self) -> bool:
        """Whether a plan is to be made: none was for this spec, or the one there is has been put aside."""
        if not self.held or not self.run_loaded or self.rebalance.metadata.deleting or self.planning is not None:
            return False
        if self.open is not None:
            return self.settled
        run = self.run
        # One-shot: drift after success moves nothing, and what was undone stays so.
        ended_well = {RunOutcome.SUCCEEDED, RunOutcome.UNDONE}
        done = run is not None and (run.outcome in ended_well or (run.undo and not run.open))
        return not (done and run is not None and run.planning_hash == self.planning_hash)

    def wanted(self, everything: Mapping[TopicPartition, PartitionState]) -> frozenset[TopicPartition]:
        """The partitions that the spec selects."""
        if self._wanted_from is not everything or self._wanted_by != self.planning_hash:
            self._wanted = frozenset(select(self.rebalance.spec, everything))
            self._wanted_from, self._wanted_by = everything, self.planning_hash
        return self._wanted

    @property
    def at_rest(self) -> bool:
        """Whether nothing is in flight or above its replication factor, as far as the last look told."""
        if self.planning is not None or self.progress is None:
            return False
        moving = any(v.phase in {MovePhase.IN_FLIGHT, MovePhase.READY} for v in self.verdicts.values())
        return not moving and not self.progress.above_replication_factor

    @property
    def waits_for_a_word(self) -> bool:
        """Whether a deletion stands still until somebody raises its bound or changes its policy."""
        return self.barrier is RollbackBarrier.TOO_LARGE and self.at_rest

    @property
    def queued(self) -> bool:
        """Whether others go first."""
        return self.place is not None and not self.place.runs

    @property
    def queue_message(self) -> str:
        """Whom it waits for, and its place."""
        if self.unseen:
            return f"waits for {self.unseen}, whose open run is not loaded here: what it moves is not known yet"
        if self.place is None:
            return ""
        return f"waits for {self.place.behind}, which moves some of the same partitions; place {self.place.position}"

    @property
    def errands(self) -> tuple[PartitionMove, ...]:
        """The partitions of the open run; none where no run is open."""
        return self.open.errands if self.open else ()

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the open run."""
        return self.open.topics if self.open else frozenset()

    @property
    def finished(self) -> bool:
        """Whether every partition has arrived or is left alone."""
        return all(v.phase in {MovePhase.DONE, MovePhase.SKIPPED} for v in self.verdicts.values())

    @property
    def skipped(self) -> dict[TopicPartition, PartitionStatus]:
        """Partitions left alone, by the plan or since."""
        found = {tp: v for tp, v in self.verdicts.items() if v.phase is MovePhase.SKIPPED}
        for row in self.open.plan.skipped if self.open else ():
            found.setdefault(row.tp, PartitionStatus(MovePhase.SKIPPED, row.reason))
        return dict(sorted(found.items()))

    def close(self) -> None:
        """Forget what belonged to the open run, but for what is said of it afterwards."""
        if self.open is not None:
            plan = self.open.plan
            why_empty = plan.reason or (Reason.BUDGET_REACHED if plan.imbalance is not None else "")
            self.ended = EndedRun(why_empty, len(self.skipped))
        self.open = None
        self.expected_rates = None
        self.direction = None
        self.replanning, self.settled, self.hold, self.barrier = None, False, None, None
        self.kept = None
        self.judged_in, self.sent = None, frozenset()
        self.cordon_seen, self.empty_since, self.unrestored_since = set(), None, None
        self.since.clear()
        self.pace = None
