"""When a run may close, and how even the disks are then.

A decommission closes when its brokers are empty, or when only partitions that the run does not move remain there;
``Drained`` says which.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.execution.partition_status import MovePhase
from kafka_rebalance.kafka.ports import CALL_SECONDS, ClusterInfo, KafkaReader
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.run import RunOutcome
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.decide.arrival_proof import late_call_possible, proof_seconds
from kafka_rebalance.reconcile.decide.direction import end_unknown, going_back
from kafka_rebalance.reconcile.decide.disk_peak import disk_peak
from kafka_rebalance.reconcile.decide.drain_proof import asked_for_proof, drain_of
from kafka_rebalance.reconcile.decide.judging import skipped_partitions
from kafka_rebalance.reconcile.decide.teardown import outcome_of
from kafka_rebalance.reconcile.observe.permission_probe import hidden_topics
from kafka_rebalance.reconcile.state.assessment import Assessment, Drain, Replanning, RollbackBarrier
from kafka_rebalance.reconcile.state.late_matches import LateMatches
from kafka_rebalance.reconcile.state.namespace_turns import Turn
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView

log = logging.getLogger(__name__)

_UNCORDON_SECONDS = 30.0
_PROOF_SECONDS = 2.0
"""Between the two readings that prove a broker empty."""
_DRAINED, _PEAK = "drained", "disk peak"


class _Measured(NamedTuple):
    """``disk_peak``: in percent of a share (`decide.disk_peak`); None: not to be measured, or it could not be."""

    disk_peak: int | None


class Closing:
    """Closes the runs of one cluster.

    ``keep_cordons`` records the cordons that are left, before a run ends. ``read_again`` has the next round read all
    partitions. ``turn``: as for ``in_thread``.
    """

    def __init__(
        self,
        admin: KafkaReader,
        lifecycle: Lifecycle,
        clock: Clock,
        keep_cordons: Callable[[Collection[BrokerId]], Awaitable[None]],
        read_again: Callable[[], None],
        turn: Turn | None,
    ) -> None:
        self._admin = admin
        self._lifecycle = lifecycle
        self._clock = clock
        self._keep_cordons = keep_cordons
        self._read_again = read_again
        self._matches = LateMatches(turn)
        """By uid and purpose. Only names of topics are matched: where their replicas are is read in each round."""

    def begin_round(self, running: Collection[Rebalance]) -> None:
        """These may be closed. What was matched for others is forgotten."""
        self._matches.keep([(r.uid, purpose) for r in running for purpose in (_DRAINED, _PEAK)])
        self._matches.begin_round()

    async def finish(self, rebalance: Rebalance, info: ClusterInfo) -> Assessment:
        """Every partition has arrived or is skipped, and the throttle has been removed: close the run.

        If the plan is put aside, copies in flight may stay: it is planned again beside them. If it is not known which
        brokers are to be empty, the run stays open. Returns the assessment, with what has been found out about brokers
        to be emptied and about planning again.
        """
        assessment = rebalance.assessment
        too_large = assessment.teardown.barrier is RollbackBarrier.TOO_LARGE
        if rebalance.record.loaded_run is None or rebalance.memory.planning is not None or too_large:
            return assessment
        if assessment.replanning is None and end_unknown(rebalance):
            return assessment
        proved = self._proved(rebalance)  # also while cordons are waited for: everything is read again meanwhile
        if assessment.replanning is None and not self._uncordoned(rebalance, info):
            return assessment
        if not proved:
            return assessment
        async with self._lifecycle.problems_of(rebalance, "finish"):
            if going_back(rebalance):
                await self._keep_cordons(_to_uncordon(rebalance))
            if assessment.replanning is not None:
                assessment = replace(assessment, replanning=replace(assessment.replanning, ready=True))
            elif rebalance.desired.deleting:
                successor = assessment.successor.uid if assessment.successor is not None else None
                left = _to_uncordon(rebalance)  # the successor must not remove what others cordon from now on
                await self._lifecycle.close(rebalance, outcome_of(rebalance), successor, uncordoned=left)
                await self._lifecycle.remove_finalizer_and_records(rebalance)
            elif going_back(rebalance):
                skipped = skipped_partitions(rebalance)
                log_dirs = {tp for tp, _ in rebalance.assessment.log_dirs.within(MovePhase.SKIPPED)}
                wholly = not any(move.tp in skipped or move.tp in log_dirs for move in rebalance.record.moves)
                await self._lifecycle.undone(rebalance, wholly=wholly)
            else:
                found = await self._prove_drained(rebalance, info)
                assessment = found or assessment
                reported = found is not None and found.replanning is None and _reported(rebalance, found.drain)
                if reported and (measured := await self._measured(rebalance)) is not None:
                    peak, left = measured.disk_peak, _to_uncordon(rebalance)
                    if left:
                        await self._keep_cordons(left)
                    await self._lifecycle.close(rebalance, RunOutcome.SUCCEEDED, disk_peak=peak, uncordoned=left)
        return assessment

    def wait_anew(self, rebalance: Rebalance) -> None:
        """Restart the waiting time, because not every partition is in its place. Earlier readings prove nothing."""
        rebalance.memory = replace(rebalance.memory, unseen_since=None, empty_since=None)

    def _uncordoned(self, rebalance: Rebalance, info: ClusterInfo) -> bool:
        """Whether the run has removed the cordons that it does not leave, or has waited long enough for that.

        It does not wait for dead brokers, but for calls without an answer that may still set a cordon.
        """
        left, unanswered, now = _to_uncordon(rebalance), rebalance.memory.cordons_unanswered, self._clock.monotonic()
        late = any(now - at < CALL_SECONDS for broker, at in unanswered.items() if broker in left)
        if not left & set(info.brokers) and not late:
            return True
        since = self._first_time(rebalance.memory.uncordoning_since)
        rebalance.memory = replace(rebalance.memory, uncordoning_since=since)
        return now - since >= _UNCORDON_SECONDS and not late

    def _proved(self, rebalance: Rebalance) -> bool:
        """Whether all partitions have been seen in their place for long enough.

        Until then, each round reads everything. A plan that is put aside needs no such proof, but still knows where
        late calls lead: the next plan does not.
        """
        put_aside = rebalance.assessment.replanning is not None and not going_back(rebalance)
        now, seconds = self._clock.monotonic(), 0.0 if put_aside else proof_seconds(rebalance)
        late = late_call_possible(rebalance, now)
        if not seconds and not late:
            return True
        since = self._first_time(rebalance.memory.unseen_since)
        rebalance.memory = replace(rebalance.memory, unseen_since=since)
        self._read_again()
        return now - since >= seconds and not late

    def _first_time(self, since: float | None) -> float:
        """The time at which a wait began: ``since``, or now if it begins with this round."""
        return self._clock.monotonic() if since is None else since

    async def _measured(self, rebalance: Rebalance) -> _Measured | None:
        """How even the disks are; None: not known yet.

        Measured once, only of a run that has moved something; a failure holds up nothing.
        """
        opened, run, name = rebalance.record.loaded_run, rebalance.record.run, (rebalance.uid, _PEAK)
        outcome = opened.plan.load if opened is not None and run is not None and run.started else None
        if run is None or outcome is None or all(row.resource is not LoadResource.DISK for row in outcome.resources):
            return _Measured(None)
        key = run.run_id, run.plan_hash, rebalance.desired.planning_hash
        try:
            if self._matches.key(name) != key:
                dirs = await self._admin.log_dirs(outcome.brokers)
                work = partial(disk_peak, outcome, TopicFilter.of(rebalance.desired.spec.topics), dirs)
                self._matches.begin(name, key, work, rebalance.desired.metadata.namespace)
            if not await self._matches.ended(name) or self._matches.key(name) != key:
                return None
            return _Measured(self._matches.result(name))
        except RebalanceError as error:
            log.warning("%s: how even the disks are was not measured: %s", rebalance.name, error.message)
            return _Measured(None)

    async def _selected(self, rebalance: Rebalance, there: Collection[TopicPartition]) -> Collection[str] | None:
        """Which topics of these partitions the spec selects; None: not known yet. A match of more topics will do."""
        desired, name, topics = rebalance.desired, (rebalance.uid, _DRAINED), frozenset(tp.topic for tp in there)

        def known() -> bool:
            spec_hash, matched = self._matches.key(name) or ("", frozenset())
            return spec_hash == desired.planning_hash and topics <= matched

        if not topics:
            return ()
        if not known():
            work = partial(TopicFilter.of(desired.spec.topics).select, topics)
            self._matches.begin(name, (desired.planning_hash, topics), work, desired.metadata.namespace)
        if not await self._matches.ended(name) or not known():
            return None
        selected: list[str] = self._matches.result(name)
        return selected

    async def _prove_drained(self, rebalance: Rebalance, info: ClusterInfo) -> Assessment | None:
        """Read all topics again: the brokers to be emptied must hold no replica at two readings, some time apart.

        Nothing older proves that. Their log dirs must be empty too: metadata leaves out what we may not describe.
        Returns what the run may close with; with ``replanning`` if the brokers have got new replicas since the plan was
        made; None before that is known.
        """
        assessment = rebalance.assessment
        leaving = frozenset(map(BrokerId, rebalance.desired.spec.brokers.decommission))
        if not leaving:
            return assessment
        partitions = await self._admin.describe_partitions()
        left = {tp for tp, state in partitions.items() if leaving & set(state.replicas)}
        names = ", ".join(str(b) for b in sorted(leaving))
        skipped = skipped_partitions(rebalance)
        known = {move.tp for move in rebalance.record.moves} | skipped.keys()
        known -= {tp for tp, status in skipped.items() if status.reason == Reason.TOPIC_RECREATED}
        if left:
            rebalance.memory = replace(rebalance.memory, empty_since=None)
            selected = await self._selected(rebalance, left - known)
            if selected is None:
                return None
            if any(tp.topic in selected for tp in left - known):
                log.info("%s: brokers %s have got new replicas: planning again", rebalance.name, names)
                return replace(assessment, drain=None, replanning=Replanning(Reason.NOT_DRAINED))
            examples = ", ".join(str(tp) for tp in sorted(left)[:5])
            message = f"brokers {names} still hold replicas of {len(left)} partitions: {examples}"
            return replace(assessment, drain=Drain(leaving, empty=False, message=message + _stay_cordoned(rebalance)))
        now, since = self._clock.monotonic(), rebalance.memory.empty_since
        if since is None:
            since = now
            rebalance.memory = replace(rebalance.memory, empty_since=now)
        if now - since < _PROOF_SECONDS:
            return None
        asked = asked_for_proof(leaving, info.brokers)
        answers = await self._admin.log_dirs(asked)
        hidden = await hidden_topics(self._admin, answers, partitions)
        drain = drain_of(leaving, answers, asked, hidden, now - since)
        if drain is not None and drain.empty:
            drain = replace(drain, message=drain.message + _stay_cordoned(rebalance))
        return replace(assessment, drain=drain) if drain is not None else None


def _to_uncordon(rebalance: RebalanceView) -> set[BrokerId]:
    """The brokers on record whose cordon the run does not leave: all of a rollback, else those that are kept now."""
    run = rebalance.record.run
    leaving = () if going_back(rebalance) else rebalance.desired.spec.brokers.decommission
    return set(run.cordoned).difference(map(BrokerId, leaving)) if run is not None else set()


def _stay_cordoned(rebalance: RebalanceView) -> str:
    """What a success leaves on brokers to be emptied; empty: nothing."""
    cordoned = rebalance.record.run.cordoned if rebalance.record.run is not None else ()
    return f"; {', '.join(map(str, cordoned))} stay cordoned, nothing new is placed there" if cordoned else ""


def drain_reported(rebalance: RebalanceView) -> bool:
    """Whether the last status that was written says what has been found out about brokers to be emptied, if anything.

    A run is closed only after that, because nothing is proved again afterwards.
    """
    return _reported(rebalance, rebalance.assessment.drain)


def _reported(rebalance: RebalanceView, drain: Drain | None) -> bool:
    written = rebalance.memory.written
    said = find_condition(written.conditions, ConditionType.DRAINED) if written is not None else None
    status = {True: "True", False: "False", None: "Unknown"}
    return drain is None or (said is not None and said.status == status[drain.empty])
