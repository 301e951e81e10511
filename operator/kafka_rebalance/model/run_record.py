"""The record of a run that has ended: its steps and their limits. It may be lost: no decision depends on it."""

from dataclasses import dataclass, field
from datetime import datetime

from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition

_STEP_BYTES, _BROKER_BYTES = 200, 36
"""About what a step and a destination need in memory."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A call that copied replicas of one partition: from when it was sent until its copies were seen to be in sync.

    Times are those of the rounds, about a second apart. ``bytes_copied``: of all its copies. ``source``: the leader.
    Rates are bytes per second, the lowest of the brokers of that side; None: not throttled. ``rate_changed``: while it
    was in flight. ``copies_in`` and ``copies_out``: those in flight at its start, itself included, into the busiest of
    its destinations and out of its source.
    """

    tp: TopicPartition
    started_at: datetime
    ended_at: datetime
    bytes_copied: int
    source: BrokerId | None
    destinations: Replicas
    leader_rate: int | None
    follower_rate: int | None
    rate_changed: bool
    copies_in: int
    copies_out: int

    @property
    def weight(self) -> int:
        """How many steps of one copy need as much memory: servers may claim long names and lists."""
        return 1 + (len(self.tp.topic) + _BROKER_BYTES * len(self.destinations)) // _STEP_BYTES


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run with its steps, sorted by their ends.

    ``outcome``: how it ended, ``Unknown`` if that was not seen. ``complete``: this operator has seen all of it; of a
    run that began before the operator started, the steps before that are missing. ``active_seconds``: from the first
    call on, without the time in which a pause, a window or the health gate held it at rest. ``limits_changed``: R, P or
    L were another at some time than those given, which are the last ones. ``weight``: of all steps; 0: not known.
    """

    cluster_id: str
    namespace: str
    name: str
    run_id: str
    plan_hash: str
    outcome: str
    complete: bool
    started_at: datetime
    ended_at: datetime
    active_seconds: float
    parallel_replicas: int
    parallel_partitions: int
    parallel_leader_movements: int
    limits_changed: bool
    steps: tuple[StepRecord, ...]
    weight: int = field(default=0, compare=False)
