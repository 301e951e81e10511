"""One task per Kafka cluster: round after round until no resource names it and nothing of ours is left there."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, MutableMapping

from structlog.contextvars import bound_contextvars

from kafka_rebalance.api.v1alpha1 import KafkaReassignmentThrottle
from kafka_rebalance.errors import RebalanceError, Transient, without_traceback
from kafka_rebalance.execution.windows import WindowClock
from kafka_rebalance.heartbeat import heard_by
from kafka_rebalance.kafka.least_permissions import MissingPermission
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.bulk import collect_if_due
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import UNEXPECTED
from kafka_rebalance.reconcile.act.run_records import give_up_plan
from kafka_rebalance.reconcile.decide.requeue import IDLE_SECONDS, UNSETTLED_SECONDS
from kafka_rebalance.reconcile.engine_parts import EngineParts
from kafka_rebalance.reconcile.report.engine_samples import ClusterFigures, RoundTotals
from kafka_rebalance.reconcile.rounds import Rounds
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.round_thread import round_of

log = logging.getLogger(__name__)

_FAILURES_BEFORE_REPORT = 3


class ClusterEngine:
    """Carries out all rebalances of one Kafka cluster."""

    def __init__(self, parts: EngineParts) -> None:
        self.cluster_id = parts.info.cluster_id
        self._admin = parts.admin
        self._resources = parts.resources
        self._stores = parts.stores
        self._clock = parts.clock
        self._turn = parts.turns.round if parts.turns else None
        self._woken = asyncio.Event()
        # Not ``self.wake``: nothing here may refer to the engine or its rounds, because the garbage collector never
        # searches the data of a large run (``model.bulk.kept_for_long``), and would not free a reference cycle.
        self._rounds = Rounds(parts, wake=self._woken.set)
        self._failures = 0
        self._totals = RoundTotals()
        self._failed_for = ""
        self._last_beat: float | None = None
        self.between_rounds = asyncio.Lock()
        """While it is held, no round runs and nothing is begun."""
        self.retired = False
        """Whether it ends after this round even if work remains: another engine continues."""
        self.problem: RebalanceError | None = None
        """Why the last round has failed."""

    @property
    def silent_seconds(self) -> float | None:
        """How long no call of the present round has ended; None between two rounds."""
        return None if self._last_beat is None else self._clock.monotonic() - self._last_beat

    @property
    def info(self) -> ClusterInfo:
        """The cluster as last read."""
        return self._rounds.info

    @property
    def missing_permissions(self) -> tuple[MissingPermission, ...]:
        """What the client is not permitted to do, as of the last answer."""
        return self._rounds.missing_permissions

    @property
    def windows(self) -> WindowClock:
        """What the rounds know of maintenance windows."""
        return self._rounds.windows

    @property
    def figures(self) -> ClusterFigures:
        """For the metrics."""
        return ClusterFigures(
            self.cluster_id,
            len(self.info.brokers),
            self._totals,
            self._rounds.throttle.figures,
            self._failed_for,
            len(self.missing_permissions),
        )

    @property
    def rebalances(self) -> dict[str, Rebalance]:
        """The rebalances of the cluster, by uid."""
        return self._rounds.rebalances

    @property
    def throttles(self) -> MutableMapping[str, KafkaReassignmentThrottle]:
        """The throttle resources of the cluster, by uid."""
        return self._rounds.throttle.throttles

    @property
    def holds_throttles(self) -> bool:
        """Whether throttles of ours are in place, or not known to be restored."""
        return not self._rounds.throttle.ledger_empty

    def see_throttles(self, throttles: Mapping[str, KafkaReassignmentThrottle]) -> None:
        """Take in throttle resources of this cluster, by uid."""
        self._rounds.throttle.see(throttles)

    def stop_steps(self) -> None:
        """From the next round on, no new step starts: the process is about to end at a rest point."""
        if not self._rounds.stopped:
            self._rounds.stopped = True
            self.wake()

    def wake(self) -> None:
        """Something changed: begin the next round now."""
        self._woken.set()

    def retire(self) -> None:
        """End after the present round."""
        self.retired = True
        self.wake()

    async def run(self, named: Callable[[], bool]) -> None:
        """Tick until cancelled; or until no resource names the cluster (``named``) and nothing of ours is left there.

        There is no await between the last ``named()`` and the return: the caller sees what that call saw.
        """
        try:
            while not self.retired and (named() or not await self._nothing_left() or named()):
                self._woken.clear()
                pause = await self._heard_round()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._woken.wait()
        finally:
            for rebalance in self.rebalances.values():
                give_up_plan(rebalance)
            self._rounds.forget()

    async def _heard_round(self) -> float:
        def beat() -> None:
            self._last_beat = self._clock.monotonic()

        async with self.between_rounds:
            if self.retired:
                return 0.0
            self._last_beat = self._clock.monotonic()
            with heard_by(beat):
                pause = await self.tick()
            self._last_beat = None
        return pause

    async def close(self) -> None:
        """Close the client."""
        await self._admin.close()

    async def _nothing_left(self) -> bool:
        """Whether no throttle of ours and no open run of a resource is on record; False where that cannot be read.

        A run without a resource does not count, because nothing can end it: others have removed its finalizer.
        """
        try:
            if not await self._rounds.throttle.nothing_left():
                return False
            runs = [run for run in await self._stores.runs.list_all() if run.open and run.cluster_id == self.cluster_id]
            return not any([await self._resources.exists(run.namespace, run.name, run.uid) for run in runs])
        except RebalanceError as error:
            log.warning("cluster %s: what is left there is not known: %s", self.cluster_id, error.message)
            return False
        except Exception:
            log.exception("cluster %s: unexpected error: what is left there is not known", self.cluster_id)
            return False

    async def tick(self) -> float:
        """One round, measured. Returns how many seconds may pass before the next."""
        began, cpu = self._clock.monotonic(), time.thread_time()
        with bound_contextvars(cluster=self.cluster_id), round_of(self._turn):
            pause, failed_for = await self._round()
        took, computed = self._clock.monotonic() - began, time.thread_time() - cpu
        self._totals = self._totals.plus(took, computed, failed=bool(failed_for))
        self._failed_for = failed_for
        await asyncio.sleep(0)  # the search for garbage is a slice of its own
        collect_if_due()
        await asyncio.sleep(0)
        return pause

    async def _round(self) -> tuple[float, str]:
        """The pause after it, and the reason if it failed."""
        try:
            pause = await self._rounds.next_round()
        except RebalanceError as error:
            self._failures += 1
            self.problem = without_traceback(error)
            log.warning("cluster %s: %s: %s", self.cluster_id, error.reason, error.message)
            if not isinstance(error, Transient) or self._failures >= _FAILURES_BEFORE_REPORT:
                await self._rounds.report_problem(error)
            return error.retry_after if isinstance(error, Transient) else IDLE_SECONDS, error.reason
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise
            # A defect of ours in one round must not end the engine of a cluster.
            log.exception("cluster %s: unexpected error in this round", self.cluster_id)
            await self._rounds.report_problem(Transient(Reason.INTERNAL_ERROR, UNEXPECTED))
            return UNSETTLED_SECONDS, Reason.INTERNAL_ERROR
        self._failures, self.problem = 0, None
        return pause, ""


def _is_being_cancelled() -> bool:
    """Whether a CancelledError is for this task. Else the round has awaited something that was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
