"""The history of runs: follows the steps of open runs, and has the model learnt from ended ones.

Only `Rounds` calls it. It uses the readings of the round, and looks only at reassignments in flight. Its knowledge is
lost with the process: if a run continues after a restart, its record is marked as incomplete.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.progress import ReplicaBytes
from kafka_rebalance.execution.reassignment_throttle import ClusterRates
from kafka_rebalance.execution.steps import Alter
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.run_record import RunRecord, StepRecord
from kafka_rebalance.model.topology import BrokerId, ClusterState, Replicas, TopicPartition
from kafka_rebalance.reconcile.state.rebalance import RebalanceView

log = logging.getLogger(__name__)

MAX_STEPS = 500_000
"""The maximum weight of the recorded steps of all open runs of a cluster, about 170 MiB. The record of a longer run is
not complete."""
INLINE_STEPS = 20_000
"""The same for the cluster of an inline connection, whose servers can show copies that begin and end in each round."""
_READ_EVERY_SECONDS = 600.0
"""`pipeline history` runs once a day or so."""
_UNKNOWN = "Unknown"


class RunHistory(Protocol):
    """Where the records of ended runs go, and what was learnt from them."""

    def keep(self, record: RunRecord) -> None:
        """Store the record of a run that has ended. Never raises, never waits."""

    async def durations(self, cluster_id: str) -> DurationModel | None:
        """How long runs of the cluster take; None: not known, or not to be had now. Never raises."""


class _NoHistory:
    def keep(self, record: RunRecord) -> None:
        """Forget it."""

    async def durations(self, cluster_id: str) -> DurationModel | None:  # noqa: ARG002 - the protocol's
        """Not known."""
        return None


NO_HISTORY: RunHistory = _NoHistory()


@dataclass(slots=True)
class _OpenStep:
    started_at: datetime
    source: BrokerId | None
    destinations: Replicas
    rates: ClusterRates
    rate_changed: bool = False
    copies_in: int = 0
    copies_out: int = 0
    was_seen: bool = False
    """Kafka has shown it in flight."""


@dataclass(slots=True)
class _Trace:
    rebalance: RebalanceView
    run: Run
    complete: bool
    at: float
    limits: tuple[int, int, int]
    active: float = 0.0
    limits_changed: bool = False
    open: dict[TopicPartition, _OpenStep] = field(default_factory=dict)
    steps: list[StepRecord] = field(default_factory=list)
    weight: int = 0


class RunRecorder:
    """The traces of the open runs of one cluster. A record of each is kept when it has ended.

    ``most``: the weight of the steps of all of them that are kept in memory.
    """

    def __init__(self, cluster_id: str, clock: Clock, history: RunHistory, most: int = MAX_STEPS) -> None:
        self._cluster_id = cluster_id
        self._clock = clock
        self._history = history
        self.most = most
        self._since = clock.now()
        self._traces: dict[str, _Trace] = {}
        self._kept_weight = 0
        self._given_up: set[str] = set()
        self._durations: DurationModel | None = None
        self._reading: asyncio.Task[DurationModel | None] | None = None
        self._read_at = -math.inf

    def follow(self, rebalance: RebalanceView, cluster: ClusterState, replica_bytes: ReplicaBytes) -> None:
        """Take in what a round has found and sent. ``replica_bytes``: sizes on disk, as last read. Never raises."""
        try:
            self._follow(rebalance, cluster, replica_bytes)
        except Exception:
            # A defect of the history must not hold up a run.
            log.exception("%s: its run will not be in the history", rebalance.desired.name)
            run = rebalance.record.run
            self._given_up.add(run.run_id if run is not None else "")

    def _follow(self, rebalance: RebalanceView, cluster: ClusterState, replica_bytes: ReplicaBytes) -> None:
        run, assessment = rebalance.record.open_run, rebalance.assessment
        if run is None or run.started_at is None or rebalance.record.loaded_run is None:
            return
        if run.run_id in self._given_up:
            self._forget(run.run_id)
            return
        now, at, limits = self._clock.now(), self._clock.monotonic(), rebalance.desired.limits
        rpl = limits.parallel_replicas, limits.parallel_partitions, limits.parallel_leader_movements
        trace = self._traces.get(run.run_id)
        if trace is None:
            trace = _Trace(rebalance, run, complete=run.started_at >= self._since, at=at, limits=rpl)
            self._traces[run.run_id] = trace
        flying = assessment.judgement.since.keys()
        if assessment.step_block is None or trace.open or flying:
            trace.active += at - trace.at
        trace.at, trace.run = at, run
        trace.limits_changed |= trace.limits != rpl
        trace.limits = rpl
        for tp in sorted(trace.open.keys() - flying):
            self._end(trace, tp, cluster, replica_bytes, now)
        # Calls that were just sent are visible in flight only in the next round.
        begun = [tp for tp in (flying | assessment.sent) - trace.open.keys() if self._begin(trace, tp, cluster, now)]
        rates = assessment.throttle.rates
        for tp, step in trace.open.items():
            step.rate_changed |= step.rates != rates
            step.was_seen |= tp in flying
        if begun:
            _count_copies(trace.open, begun)

    def durations(self) -> DurationModel | None:
        """What was learnt from earlier runs, as last read. Reads it again from time to time, beside the rounds."""
        if self._reading is not None and self._reading.done():
            failed = self._reading.cancelled() or self._reading.exception()
            self._durations, self._reading = None if failed else self._reading.result(), None
        if self._reading is None and self._clock.monotonic() - self._read_at >= _READ_EVERY_SECONDS:
            self._read_at = self._clock.monotonic()
            self._reading = asyncio.create_task(self._history.durations(self._cluster_id))
        return self._durations

    def keep_ended(self) -> None:
        """Hand over the records of the runs that have ended since the last call, unless they have copied nothing."""
        for run_id in [run_id for run_id, trace in self._traces.items() if not _is_open(trace)]:
            trace = self._traces[run_id]
            try:
                record = self._record(trace)
                if record.steps:
                    self._history.keep(record)
            except Exception:
                log.exception("%s: its run is not in the history", trace.rebalance.desired.name)
            self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        if (trace := self._traces.pop(run_id, None)) is not None:
            self._kept_weight -= trace.weight

    def _begin(self, trace: _Trace, tp: TopicPartition, cluster: ClusterState, now: datetime) -> bool:
        """Whether it is a step that copies."""
        assessment, state = trace.rebalance.assessment, cluster.partitions.get(tp)
        status = assessment.statuses.by_partition.get(tp)
        if state is None or status is None:
            return False
        added = state.adding
        if not state.in_flight and isinstance(status.call, Alter):
            held = frozenset(state.replicas)  # servers may claim 100 replicas of each of 15,000 partitions
            added = tuple(broker for broker in status.call.replicas if broker not in held)
        if not added:
            return False
        trace.open[tp] = _OpenStep(now, state.leader, added, assessment.throttle.rates)
        return True

    def _end(
        self, trace: _Trace, tp: TopicPartition, cluster: ClusterState, replica_bytes: ReplicaBytes, now: datetime
    ) -> None:
        step, state, run = trace.open.pop(tp), cluster.partitions.get(tp), trace.rebalance.record.loaded_run
        planned = run.move_of[tp].size_bytes if run is not None and tp in run.move_of else 0
        copied = 0
        for broker in step.destinations:
            on_disk = replica_bytes.get((tp, broker), 0)
            arrived = state is not None and broker in state.isr
            copied += max(on_disk, planned) if arrived else on_disk  # sizes are read about every two seconds
        if not copied and not step.was_seen:
            return  # the order was not carried out
        into = [rate for b in step.destinations if (rate := step.rates.on(b).follower) is not None]
        ended = StepRecord(
            tp=tp,
            started_at=step.started_at,
            ended_at=now,
            bytes_copied=copied,
            source=step.source,
            destinations=step.destinations,
            leader_rate=step.rates.on(step.source).leader if step.source is not None else None,
            follower_rate=min(into, default=None),
            rate_changed=step.rate_changed,
            copies_in=step.copies_in,
            copies_out=step.copies_out,
        )
        if self._kept_weight + ended.weight > self.most:
            trace.complete = False
            return
        self._kept_weight += ended.weight
        trace.weight += ended.weight
        trace.steps.append(ended)

    def _record(self, trace: _Trace) -> RunRecord:
        now, record = self._clock.now(), trace.rebalance.record
        for tp in list(trace.open):  # abandoned, or the resource is gone
            self._end(trace, tp, ClusterState(self._cluster_id, {}), {}, now)
        # A run that was rolled back is not stored any more.
        candidates = (record.run, record.ended.run if record.ended is not None else None)
        closed = next((run for run in candidates if run is not None and run.run_id == trace.run.run_id), trace.run)
        r, p, leaders = trace.limits
        return RunRecord(
            cluster_id=self._cluster_id,
            namespace=trace.run.namespace,
            name=trace.run.name,
            run_id=trace.run.run_id,
            plan_hash=trace.run.plan_hash,
            outcome=closed.outcome.value if closed.outcome is not None else _UNKNOWN,
            complete=trace.complete,
            started_at=trace.run.started_at or now,
            ended_at=closed.closed_at or now,
            active_seconds=trace.active,
            parallel_replicas=r,
            parallel_partitions=p,
            parallel_leader_movements=leaders,
            limits_changed=trace.limits_changed,
            steps=tuple(trace.steps),
            weight=trace.weight,
        )


def _is_open(trace: _Trace) -> bool:
    run = trace.rebalance.record.run
    return run is not None and run.run_id == trace.run.run_id and run.open


def _count_copies(steps: dict[TopicPartition, _OpenStep], begun: Iterable[TopicPartition]) -> None:
    into = Counter(broker for step in steps.values() for broker in step.destinations)
    out = Counter[BrokerId]()
    for step in steps.values():
        if step.source is not None:
            out[step.source] += len(step.destinations)
    for tp in begun:
        step = steps[tp]
        step.copies_in = max(into[broker] for broker in step.destinations)
        step.copies_out = out[step.source] if step.source is not None else 0
