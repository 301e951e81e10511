"""Opening a run when it is its turn: ``plan_maker`` plans it, ``act.lifecycle`` stores it, ``act.closing`` ends it.

Touches Kafka only to read.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, without_traceback
from kafka_rebalance.kafka.ports import KafkaReader
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.started_runs import may_move_here
from kafka_rebalance.reconcile.decide.queue_places import behind
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.report.progress_tracking import expected_rates
from kafka_rebalance.reconcile.runs.plan_maker import PlanMaker
from kafka_rebalance.reconcile.state.assessment import Assessment, ContinuedCopies, QueuePlace, Replanning
from kafka_rebalance.reconcile.state.memory import Planned
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView, is_served
from kafka_rebalance.reconcile.state.record import Record, Stores

log = logging.getLogger(__name__)

Made = TypeVar("Made")

_QUEUE, _PLAN = "queue", "plan"
_QUEUE_SECONDS = 2.0
_MODEL_SECONDS = 1.0
"""How long a round waits for a load model. Its store may hang, and nothing that moves depends on it."""


class Runs:
    """Opens the runs of the cluster with this id. Plans are made beside the rounds: other rebalances go on.

    ``refuse_start`` raises while the throttle ledger is not usable: no run begins then. Open ones may be planned again.
    """

    def __init__(
        self,
        cluster_id: str,
        admin: KafkaReader,
        lifecycle: Lifecycle,
        resources: Resources,
        stores: Stores,
        plans: PlanMaker,
        clock: Clock,
        wake: Callable[[], None],
        refuse_start: Callable[[], None],
    ) -> None:
        self._cluster_id = cluster_id
        self._admin = admin
        self._lifecycle = lifecycle
        self._resources = resources
        self._stores = stores
        self._plans = plans
        self._clock = clock
        self._wake = wake
        self._refuse_start = refuse_start
        self._reading: asyncio.Task[LoadModel | None] | None = None
        """The load model, while it is read for the expected rates."""

    async def start_planning(
        self,
        rebalance: Rebalance,
        rebalances: Collection[Rebalance],
        terminating: Collection[RebalanceView],
    ) -> QueuePlace:
        """Begin to plan if a plan is wanted and the queue allows it. Returns the place in the queue.

        ``terminating``: rollbacks that this one may take over. Only its plan says so, thus it does not wait for them.
        """
        queue = rebalance.assessment.queue
        if queue.place is not None and queue.place.yields and not terminating:
            await self._lifecycle.make_room(rebalance)
        if not wants_plan(rebalance):
            self._lifecycle.nothing_to_do(rebalance, _QUEUE)
            return _without_unseen(rebalance)
        if queue.unseen:
            queue = behind(queue, queue.unseen)
        if queue.waits and not queue.unseen and not terminating:
            self._lifecycle.waits_for_its_turn(rebalance, _PLAN)
            return queue
        if self._clock.monotonic() < rebalance.memory.retry_at:
            return queue
        predecessor = next(
            (r for r in rebalances if r.record.loaded_run is not None and _hands_over(r, rebalance)), None
        )
        if predecessor is not None:
            # Its run has to be closed first: only then is it known what this one inherits.
            return behind(queue, predecessor.name)
        # A stage of its own: what was wrong with the last plan stays on the status until a plan has been made.
        async with self._lifecycle.problems_of(rebalance, _QUEUE):
            if rebalance.record.open_run is None:
                self._refuse_start()
            queue = replace(queue, unseen=await self._unseen(rebalance, rebalances) or "")
        problem = rebalance.memory.problem
        if queue.unseen:
            self._lifecycle.retry_in(rebalance, _QUEUE_SECONDS)
        elif problem is not None and problem.stage == _QUEUE:
            self._lifecycle.note_attempt(rebalance, rebalance.desired.planning_hash)
        else:
            # The spec is read once: the plan is given up if an edit comes in.
            making = self._plans.make(rebalance, rebalance.desired.spec, partial(_going_on, terminating))
            task = asyncio.create_task(_without_traceback(making))
            task.add_done_callback(lambda _: self._wake())
            self._lifecycle.planning_begins(rebalance, task)
        return queue

    async def open_planned_run(self, rebalance: Rebalance, rebalances: Mapping[str, Rebalance]) -> Replanning | None:
        """Begin the run of the plan that has been finished, if any.

        Returns why the rebalance is planned again: unchanged; None, if the plan is the new one; or with the copies that
        the new plan continues, if the others have to be cancelled before it is made. Without effect if the engine, with
        these ``rebalances``, does not have it any more: its engine of now may have begun another run.
        """
        replanning, task = rebalance.assessment.replanning, self._lifecycle.take_plan(rebalance)
        if task is None:
            return replanning
        spec, made = rebalance.memory.planned_spec, False
        async with self._lifecycle.problems_of(rebalance, _PLAN):
            replanning = await self._opened(rebalance, rebalances, await task)
            made = True
        self._lifecycle.note_attempt(rebalance, "" if made else spec)
        return replanning

    async def _opened(
        self, rebalance: Rebalance, rebalances: Mapping[str, Rebalance], made: Planned | ContinuedCopies
    ) -> Replanning | None:
        replanning = rebalance.assessment.replanning
        if not is_served(rebalance, rebalances) or not rebalance.may_begin:
            return replanning
        if isinstance(made, ContinuedCopies):
            return replace(replanning, ready=False, kept=made) if replanning is not None else None
        if rebalance.record.open_run is None:
            self._refuse_start()
        await self._lifecycle.begin(rebalance, made, rebalances)
        plan = made.plan
        log.info(
            "%s: planned %d partitions, %d replica moves (lower bound %d)",
            rebalance.name,
            plan.changed,
            plan.replica_moves,
            plan.certificate.lower_bound,
        )
        return None

    async def _unseen(self, rebalance: Rebalance, rebalances: Collection[Rebalance]) -> str | None:
        """A rebalance whose open run may move anything: not loaded yet, or of a resource not seen since the start.

        A run of another cluster is never loaded here: it holds up its own rebalance only.
        """
        for other in rebalances:
            run = other.record.open_run
            holds_up = run is not None and (run.cluster_id == self._cluster_id or other is rebalance)
            if not other.record.was_read or (other.record.loaded_run is None and holds_up):
                return other.name
        seen = {other.uid for other in rebalances}
        for run in await self._stores.runs.list_all():
            unseen = run.open and run.cluster_id == self._cluster_id and run.uid not in seen
            if unseen and await may_move_here(run, self._stores, self._resources, self._admin):
                return f"{run.namespace}/{run.name}"
        return None

    async def load_expected_rates(self, rebalance: Rebalance) -> None:
        """After a restart, read what is produced to the partitions from the load model: plans are stored without it.

        This goes on beside the rounds if it takes long.
        """
        opened = rebalance.record.loaded_run
        if opened is None or rebalance.memory.expected_rates is not None:
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._plans.load_model(needed=False))
            await asyncio.wait([self._reading], timeout=_MODEL_SECONDS)
        if self._reading.done():
            reading, self._reading = self._reading, None
            self._lifecycle.expect(rebalance, {})  # asked for once, even if that fails
            self._lifecycle.expect(rebalance, expected_rates(opened, reading.result()))


async def _without_traceback(making: Coroutine[Any, Any, Made]) -> Made:
    """The result. The task keeps its error, the rebalance keeps the task, and the calls refer to the rebalance."""
    try:
        return await making
    except BaseException as error:
        if not isinstance(error, RebalanceError | asyncio.CancelledError):
            log.exception("unexpected error while a plan was made")
        raise without_traceback(error) from None


def _going_on(terminating: Collection[RebalanceView]) -> list[tuple[Record, Assessment]]:
    """Of these rollbacks, those that have not ended by now."""
    return [(old.record, old.assessment) for old in terminating if old.record.loaded_run is not None]


def _without_unseen(rebalance: RebalanceView) -> QueuePlace:
    """The place in the queue of a rebalance that plans nothing: it does not wait for runs that are not loaded.

    The queue has given a new place to an open run in this round; without one, the place is gone too.
    """
    queue = rebalance.assessment.queue
    if not queue.unseen:
        return queue
    return replace(queue, unseen="", place=queue.place if rebalance.record.loaded_run is not None else None)


def _hands_over(old: Rebalance, new: Rebalance) -> bool:
    successor = old.assessment.successor
    return successor is not None and successor.uid == new.uid
