"""Has the partitions of the rebalances judged, with everything that their statuses depend on.

Replaces the moves of an open run when its direction changes; assessments are returned, ``reconcile.rounds`` sets them.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.model.bulk import LARGE, kept_for_long
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.decide.direction import direction_of
from kafka_rebalance.reconcile.decide.judging import judge_again, judge_inputs
from kafka_rebalance.reconcile.decide.queue_places import ahead_of
from kafka_rebalance.reconcile.observe.observer import Look, Observer
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.judgement import Judgement
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import LoadedRun


class Judges:
    """Of the rebalances of one cluster, by uid."""

    def __init__(
        self, lifecycle: Lifecycle, observer: Observer, rebalances: Mapping[str, Rebalance], clock: Clock
    ) -> None:
        self._lifecycle = lifecycle
        self._observer = observer
        self._rebalances = rebalances
        self._clock = clock

    def in_direction(self, rebalance: Rebalance, direction: Direction | None) -> Assessment:
        """Select the run's moves for this direction: in a rollback, those with an origin. Judged statuses stay."""
        if direction is None:
            return rebalance.assessment
        self._lifecycle.set_direction(rebalance, back=direction is not Direction.FORWARD)
        return replace(rebalance.assessment, run=rebalance.record.loaded_run)

    def judged(self, rebalance: Rebalance, direction: Direction | None, look: Look) -> Assessment:
        """The assessment with the statuses by this look."""
        assessment, run = self.in_direction(rebalance, direction), rebalance.record.loaded_run
        if run is None or direction is None:
            return assessment
        return replace(assessment, judgement=self._question(rebalance, run, direction, look)())

    async def judged_at_first(self, rebalance: Rebalance, look: Look) -> Assessment:
        """All partitions of a large run that has just begun, off the event loop: that takes seconds.

        If an input changes meanwhile, ``judged`` judges again what that concerns.
        """
        direction = direction_of(rebalance)
        assessment, run = self.in_direction(rebalance, direction), rebalance.record.loaded_run
        if assessment.statuses.judged or run is None or direction is None or len(run.moves) < LARGE:
            return assessment
        judgement = await asyncio.to_thread(_for_long, len(run.moves), self._question(rebalance, run, direction, look))
        return replace(rebalance.assessment, run=run, judgement=judgement)

    def _question(
        self, rebalance: Rebalance, run: LoadedRun, direction: Direction, look: Look
    ) -> Callable[[], Judgement]:
        restarting = self._observer.away(rebalance.desired.spec.execution.broker_settle_seconds)
        ahead = ahead_of(rebalance, self._rebalances.values())
        inputs = judge_inputs(rebalance, run, direction, look.observation, restarting, ahead)
        before, now = rebalance.assessment.judgement, self._clock.now()
        return partial(judge_again, before, inputs, look.observation, look.changes, now)


def _for_long(moves: int, question: Callable[[], Judgement]) -> Judgement:
    with kept_for_long(moves):
        return question()
