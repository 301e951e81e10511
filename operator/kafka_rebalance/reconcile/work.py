"""One KafkaRebalance as the engine knows it: what it asks for, where it is going, and how it stood at the last look.

Everything here can be thrown away: it is read again from the resource, the stores and Kafka after a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kafka_rebalance.api.v1alpha1 import (
    FINALIZER,
    DeletionPolicy,
    KafkaRebalance,
    KafkaRebalanceStatus,
    parse_rebalance,
    planning_hash,
)
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.decide import Direction, Errand, Kind, Verdict
from kafka_rebalance.execution.progress import Pace, Progress
from kafka_rebalance.execution.schedule import Limits
from kafka_rebalance.execution.throttle import Rates
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.records import OpenRun


@dataclass
class Work:
    """One resource. The upper half is set while a tick is prepared, ``verdicts`` and below while it is carried out."""

    rebalance: KafkaRebalance
    run: Run | None = None
    run_loaded: bool = False
    open: OpenRun | None = None
    direction: Direction | None = None
    superseding: bool = False
    queued_behind: str | None = None
    problem: RebalanceError | None = None
    problem_at: str = ""
    retry_at: float = float("-inf")
    prepared: tuple[str, ...] = ()
    verdicts: dict[TopicPartition, Verdict] = field(default_factory=dict)
    since: dict[TopicPartition, datetime] = field(default_factory=dict)
    progress: Progress | None = None
    pace: Pace | None = None
    rates: Rates = field(default_factory=Rates)
    rate_source: str = ""
    throttled_brokers: int = 0
    throttle_trouble: str = ""
    data_source: str = ""
    eta_seconds: float | None = None
    drained: bool | None = None
    drain_message: str = ""
    written: KafkaRebalanceStatus | None = None

    @classmethod
    def of(cls, body: dict[str, Any]) -> Work:
        """The work of a resource as the API server sends it. Refused("InvalidSpec") names the field."""
        return cls(parse_rebalance(body))

    def update(self, body: dict[str, Any]) -> None:
        """Take in a newer state of the resource."""
        self.rebalance = parse_rebalance(body)

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
        return FINALIZER in self.rebalance.metadata.finalizers

    @property
    def asked(self) -> tuple[str, ...]:
        """Changes whenever somebody asks for something else; our own status writes do not change it."""
        metadata = self.rebalance.metadata
        return (str(metadata.generation), str(metadata.deletion_timestamp), *metadata.finalizers)

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
        )

    @property
    def teardown_direction(self) -> Direction | None:
        """Where deletion leads; None: nowhere, Kafka is left as it is (Abandon)."""
        return {
            DeletionPolicy.ROLLBACK: Direction.ROLLBACK,
            DeletionPolicy.REVERT: Direction.REVERT,
            DeletionPolicy.ABANDON: None,
        }[self.rebalance.spec.deletion_policy]

    @property
    def errands(self) -> tuple[Errand, ...]:
        """The partitions of the open run; none where no run is open."""
        return self.open.errands if self.open else ()

    @property
    def finished(self) -> bool:
        """Whether every partition has arrived or is left alone."""
        return all(v.kind in {Kind.DONE, Kind.SKIPPED} for v in self.verdicts.values())

    @property
    def skipped(self) -> dict[TopicPartition, Verdict]:
        """Partitions left alone, by the plan or since."""
        found = {tp: v for tp, v in self.verdicts.items() if v.kind is Kind.SKIPPED}
        for row in self.open.plan.skipped if self.open else ():
            found.setdefault(row.tp, Verdict(Kind.SKIPPED, row.reason))
        return dict(sorted(found.items()))

    def holds(self, tps: set[TopicPartition]) -> bool:
        """Whether this work may still submit steps for one of the partitions."""
        left_alone = {tp for tp, verdict in self.verdicts.items() if verdict.kind is Kind.SKIPPED}
        return any(errand.tp in tps and errand.tp not in left_alone for errand in self.errands)

    def close(self) -> None:
        """Forget what belonged to the open run."""
        self.open = None
        self.direction = None
        self.superseding = False
        self.since.clear()
        self.pace = None
