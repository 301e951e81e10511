"""Has the partitions of the rebalances judged, with everything that their statuses depend on.

Replaces the moves of an open run when its direction changes; assessments are returned, ``reconcile.rounds`` sets them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.log_dir_moves import LogDirReading
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.model.bulk import LARGE, kept_for_long
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.decide.judging import judge_again, judge_inputs, partitions_to_judge
from kafka_rebalance.reconcile.decide.log_dir_decisions import with_log_dirs_judged
from kafka_rebalance.reconcile.decide.queue_places import ahead_of
from kafka_rebalance.reconcile.observe.observer import Look, Observer
from kafka_rebalance.reconcile.state.assessment import Assessment
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.judgement import JudgeInputs, Judgement
from kafka_rebalance.reconcile.state.rebalance import Rebalance, is_served, opened_of
from kafka_rebalance.reconcile.state.record import LoadedRun
from kafka_rebalance.reconcile.state.round_thread import off_the_loop

MANY = 1_000
"""The number of partitions from which they are judged in a thread: some 30 ms."""
_MANY_IN_DIRS = 100
"""Of replicas in log dirs. With 100 log dirs of a broker that have little room, 100 of them take some 30 ms."""


class Judges:
    """Of the rebalances of one cluster, by uid."""

    def __init__(
        self, lifecycle: Lifecycle, observer: Observer, rebalances: Mapping[str, Rebalance], clock: Clock
    ) -> None:
        self._lifecycle = lifecycle
        self._observer = observer
        self._rebalances = rebalances
        self._clock = clock
        self._opened: Collection[Rebalance] = ()
        self._desired: Mapping[str, Desired] = {}

    def begin_round(self) -> None:
        """Note which rebalances have an open run, and what they ask for now: how they are judged until the next round.

        Thousands may have none, and are not gone through for each run. An edit has woken the engine, so the next round
        begins at once. Deletions and freezes are not part of this: they hold back calls as soon as they are known.
        """
        self._opened = opened_of(self._rebalances)
        self._desired = {rebalance.uid: rebalance.desired for rebalance in self._opened}

    async def turn(self, rebalance: Rebalance, direction: Direction | None) -> None:
        """Like ``in_direction``, but in a thread, for a large run whose direction has changed."""
        record, back = rebalance.record, direction is not Direction.FORWARD
        run, origins = record.loaded_run, rebalance.origins_back
        if run is None or direction is None or run.goes(origins, back=back):
            return
        if len(origins if back else run.plan.partitions) < LARGE:
            return
        turned = await off_the_loop(run.turned, origins, back=back)
        if rebalance.record is record:
            rebalance.record = replace(record, loaded_run=turned)

    def in_direction(self, rebalance: Rebalance, direction: Direction | None) -> Assessment:
        """Select the run's moves for this direction: in a rollback, those with an origin. Judged statuses stay."""
        if direction is None:
            return rebalance.assessment
        self._lifecycle.set_direction(rebalance, back=direction is not Direction.FORWARD)
        return replace(rebalance.assessment, run=rebalance.record.loaded_run)

    async def judged(self, rebalance: Rebalance, direction: Direction | None, look: Look) -> Assessment:
        """The assessment with the statuses by this look.

        A thread finds them if many partitions must be judged, because a large run takes seconds: a server may show all
        of them otherwise in each reading, and an edit or a deletion may turn the run round at any time. What changes
        meanwhile is judged the next time.
        """
        await self.turn(rebalance, direction)
        assessment, run = self.in_direction(rebalance, direction), rebalance.record.loaded_run
        if run is None or direction is None:
            return assessment
        before, inputs = assessment.judgement, self._inputs(rebalance, run, direction, look)
        question = partial(judge_again, before, inputs, look.observation, look.changes, self._clock.now())
        if len(run.moves) < MANY:
            return replace(assessment, judgement=question())
        concerned = partitions_to_judge(before, inputs, look.changes)
        if concerned is not None and len(concerned) < MANY:
            return replace(assessment, judgement=question())
        first = not assessment.statuses.judged
        judgement = await off_the_loop(_for_long if first else _asked, len(run.moves), question)
        return replace(rebalance.assessment, run=run, judgement=judgement)

    async def judged_beforehand(self, rebalance: Rebalance, direction: Direction | None, look: Look) -> Assessment:
        """Like ``judged`` if the run is large, so that it does not block the event loop when the round decides.

        A small run is judged once it is decided whether it may start new steps.
        """
        if len(rebalance.record.moves) < MANY:
            return self.in_direction(rebalance, direction)
        return await self.judged(rebalance, direction, look)

    async def log_dirs_judged(self, rebalance: Rebalance, seen: LogDirReading | None, *, many: bool) -> Assessment:
        """The assessment with the log dirs as they were ``seen``, judged in a thread if it is one of ``many``."""
        if not many or not _moves_in_dirs(rebalance):
            return with_log_dirs_judged(rebalance, seen)
        return await off_the_loop(with_log_dirs_judged, rebalance, seen)

    def _inputs(self, rebalance: Rebalance, run: LoadedRun, direction: Direction, look: Look) -> JudgeInputs:
        desired = self._desired.get(rebalance.uid, rebalance.desired)
        restarting = self._observer.members.away(desired.spec.execution.broker_settle_seconds)
        others = [r for r in self._opened if r is not rebalance and is_served(r, self._rebalances)]
        ahead = ahead_of(rebalance, others)
        inputs = judge_inputs(rebalance, run, direction, look.observation, restarting, ahead, others)
        return replace(inputs, parallel_replicas=desired.limits.parallel_replicas)


def moves_many_in_dirs(rebalances: Iterable[Rebalance]) -> bool:
    """Whether a thread judges the replicas that move between log dirs, because there are many of them together."""
    runs = (rebalance.record.loaded_run for rebalance in rebalances)
    return sum(len(run.log_dirs) for run in runs if run is not None) >= _MANY_IN_DIRS


def _moves_in_dirs(rebalance: Rebalance) -> bool:
    return rebalance.record.loaded_run is not None and bool(rebalance.record.loaded_run.log_dirs)


def _asked(_moves: int, question: Callable[[], Judgement]) -> Judgement:
    return question()


def _for_long(moves: int, question: Callable[[], Judgement]) -> Judgement:
    with kept_for_long(moves):
        return question()
