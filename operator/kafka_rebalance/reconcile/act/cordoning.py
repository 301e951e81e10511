"""Cordons the brokers that a rebalance empties, so that Kafka places nothing new on them meanwhile (KIP-1066, 4.3 on).

A cordon stops only what Kafka places by itself: explicit assignments still go there, so being empty is proved by
reading (``closing``). A cordon is in the run's record before it is in Kafka. Nothing is cordoned for a run that may
start no step, for instance before its approval. After a success the cordon stays, since the broker is about to be
removed. A rollback removes it, but does not wait for dead brokers: the throttle ledger keeps their cordons
(``throttle.left_cordons``). If a call that sets a cordon got no answer, Kafka may execute it late. Until that time is
over, the cordon stays on record and is removed again in each round. If a broker answers that the cordon is not
permitted, it is taken off the record: a cordon that is there later was set by others, and must not be removed. If an
earlier call may have set it, that waits until no call can be late any more, and the cordon must not be there then.
Brokers that refuse are asked again after a pause (``refused_cordons``).
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from structlog.contextvars import bound_contextvars

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin, is_denied
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.refused_cordons import RefusedCordons
from kafka_rebalance.reconcile.decide.arrival_proof import may_be_executed_late
from kafka_rebalance.reconcile.decide.direction import direction_of, end_unknown
from kafka_rebalance.reconcile.state.memory import Memory
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.units import few

log = logging.getLogger(__name__)

CONFIG = "cordoned.log.dirs"
ALL_DIRS = "*"
_UNSET = ConfigValue("", ConfigSource.DEFAULT)
"""Recorded on 4.3."""
_DENIED = "denied"
"""Removals that are not permitted, of cordons that are not there but may be set late."""


class Cordons:
    """The cordons of one cluster's rebalances."""

    def __init__(self, admin: KafkaAdmin, stores: Stores, clock: Clock) -> None:
        self._admin = admin
        self._stores = stores
        self._clock = clock
        self._refused: WeakKeyDictionary[Rebalance, RefusedCordons] = WeakKeyDictionary()

    async def keep(
        self,
        rebalance: Rebalance,
        alive: Collection[BrokerId],
        rebalances: Iterable[Rebalance] = (),
        *,
        may_start: bool = True,
    ) -> None:
        """Cordon the brokers being emptied, unless somebody has; remove cordons no longer wanted.

        ``rebalances``: those of the cluster with an open run. The last one that wants a cordon removes it.
        ``may_start`` False: the run may not start now. What is on record is kept, or removed, all the same.
        Does nothing if Kafka does not support cordons, or if it is not known which brokers are to be emptied.
        """
        run, desired = rebalance.record.run, rebalance.desired
        if run is None or rebalance.record.loaded_run is None or end_unknown(rebalance):
            return
        if rebalance.memory.cordons_denied:  # striking them off has failed
            await self._strike(rebalance)
        await self._settle(rebalance, alive)
        others = [other.record.open_run for other in rebalances if other is not rebalance]
        of_others = {broker for other in others if other is not None for broker in other.cordoned}
        leaving = {BrokerId(b) for b in desired.spec.brokers.decommission} & set(alive)
        wanted = leaving if direction_of(rebalance) is Direction.FORWARD else set[BrokerId]()
        if run.planning_hash != desired.planning_hash:
            wanted &= _cordoned(rebalance)  # what an edit adds has no plan yet, and may need another approval
        may_begin = may_start and rebalance.assessment.step_block is None
        # A cordon on record was begun before the run was blocked: Kafka may not have been reached.
        await self._cordon_new(rebalance, wanted if may_begin else wanted & _cordoned(rebalance), of_others)
        if back := (_cordoned(rebalance) - wanted) & set(alive):
            await self._uncordon(rebalance, back, of_others)

    async def _cordon_new(self, rebalance: Rebalance, wanted: set[BrokerId], of_others: Collection[BrokerId]) -> None:
        """Cordon those of the wanted brokers that still need it, and that the run may cordon now."""
        if rebalance.held_by is not None:
            return  # a resource that may start nothing new changes no broker
        done = rebalance.memory.cordons_done
        new = self._refused_by(rebalance).due(ConfigOp.SET, wanted - done)
        if not new:
            return
        try:
            done |= await self._cordon(rebalance, new, of_others)
        except Permanent as error:
            # Without the right to alter brokers a decommission goes on: a cordon is a help, not a condition.
            log.warning("%s: brokers %s are not cordoned: %s", rebalance.name, few(sorted(new)), error.message)
            done |= new
        rebalance.memory = replace(rebalance.memory, cordons_done=done)
        await self._strike(rebalance)

    async def _uncordon(self, rebalance: Rebalance, back: set[BrokerId], of_others: Collection[BrokerId]) -> None:
        """Remove the cordons of the run on these brokers, except where somebody has changed them or a run needs them.

        A broker that Kafka may still cordon by a late call of this run stays on record until that time is over. The run
        does not end before (``closing``), and a new plan of it takes over the record.
        """
        # Before the call: if the record cannot be written after it, a spec that empties them again cordons them again.
        rebalance.memory = replace(rebalance.memory, cordons_done=rebalance.memory.cordons_done - back)
        now, refused, done = self._clock.monotonic(), self._refused_by(rebalance), back.intersection(of_others)
        late = _late_cordons(rebalance.memory, back, now)
        due = (refused.due(ConfigOp.DELETE, back) - (late - refused.due(_DENIED, late))) | done
        if not due:
            return
        found = await self._admin.broker_configs(due, [CONFIG])
        theirs = {broker for broker, values in found.items() if cordoned_by_others(values.get(CONFIG))}
        answers = await self._change(rebalance, found.keys() - theirs - done, ConfigChange(CONFIG, ConfigOp.DELETE))
        denied = {b for b, wrong in answers.items() if wrong is not None and is_denied(wrong) and is_unset(found[b])}
        removed = {broker for broker, wrong in answers.items() if wrong is None}
        refused.answered(ConfigOp.DELETE, answers.keys() - denied - removed, denied | removed)
        refused.answered(_DENIED, denied & late, removed)
        done |= denied | removed
        late = _late_cordons(rebalance.memory, done, now)
        await self._record(rebalance, _cordoned(rebalance) - (done - late) - theirs)

    async def _cordon(
        self, rebalance: Rebalance, brokers: set[BrokerId], of_others: Collection[BrokerId]
    ) -> set[BrokerId]:
        """Cordon these brokers, after recording it. Returns those that need no further call.

        These are cordoned by us, or not ours to cordon. A broker that is already on record is cordoned again, because
        the earlier call may not have reached it, unless somebody has changed the cordon. If the API server refuses the
        record, none is cordoned now; that is tried again after a pause.
        """
        recorded = _cordoned(rebalance)
        found = await self._admin.broker_configs(brokers, [CONFIG])
        ours = {broker for broker, values in found.items() if is_unset(values)}
        ours |= (brokers & recorded) | brokers.intersection(of_others, found)
        ours -= {broker for broker, values in found.items() if cordoned_by_others(values.get(CONFIG))}
        try:
            await self._record(rebalance, recorded | ours)
        except Permanent as error:
            log.warning("%s: cordons of brokers %s not recorded: %s", rebalance.name, few(sorted(ours)), error.message)
            self._refused_by(rebalance).answered(ConfigOp.SET, ours, ())
            return (set(found) - ours) | found.errors.keys()
        done, denied = set[BrokerId](), set[BrokerId]()
        try:
            answers = await self._change(rebalance, ours, ConfigChange(CONFIG, ConfigOp.SET, ALL_DIRS))
            done = {broker for broker, wrong in answers.items() if wrong is None}
            denied = {broker for broker, wrong in answers.items() if wrong is not None and is_denied(wrong)}
            self._refused_by(rebalance).answered(ConfigOp.SET, answers.keys() - done - denied, done | denied)
        finally:
            unanswered = dict.fromkeys(ours - done - denied, self._clock.monotonic())
            known = {**rebalance.memory.cordons_unanswered, **unanswered}
            doubtful = (rebalance.memory.cordons_doubtful - ours) | (denied & recorded)
            memory = replace(rebalance.memory, cordons_denied=frozenset(denied - recorded), cordons_doubtful=doubtful)
            rebalance.memory = replace(memory, cordons_unanswered=known)
        # Without the permission to read or alter brokers a decommission goes on: a cordon is a help, not a condition.
        return done | denied | (set(found) - ours) | found.errors.keys()

    async def _strike(self, rebalance: Rebalance) -> None:
        """Take the brokers off the record that did not permit to set their cordon."""
        await self._record(rebalance, _cordoned(rebalance) - rebalance.memory.cordons_denied)
        rebalance.memory = replace(rebalance.memory, cordons_denied=frozenset())

    async def _settle(self, rebalance: Rebalance, alive: Collection[BrokerId]) -> None:
        """Take brokers off the record on which an earlier call has not set the cordon, and cannot set it any more."""
        doubtful = rebalance.memory.cordons_doubtful
        asked = doubtful.intersection(alive) - _late_cordons(rebalance.memory, doubtful, self._clock.monotonic())
        if not asked:
            return
        found = await self._admin.broker_configs(asked, [CONFIG])
        await self._record(rebalance, _cordoned(rebalance) - {b for b in found if is_unset(found[b])})
        settled = found.keys() | {b for b, error in found.errors.items() if isinstance(error, Permanent)}
        rebalance.memory = replace(rebalance.memory, cordons_doubtful=doubtful - settled)

    async def _record(self, rebalance: Rebalance, cordoned: Collection[BrokerId]) -> None:
        if rebalance.record.run is None or _cordoned(rebalance) == set(cordoned):
            return
        run = replace(rebalance.record.run, cordoned=tuple(sorted(cordoned)))
        await self._stores.runs.save(run)
        rebalance.record = replace(rebalance.record, run=run)

    async def _change(
        self, rebalance: Rebalance, brokers: Collection[BrokerId], change: ConfigChange
    ) -> Mapping[BrokerId, str | None]:
        """The answer of each broker: None if the change was made."""
        if not brokers:
            return {}
        with bound_contextvars(**rebalance.log_fields):
            answers = await self._admin.alter_broker_configs({broker: [change] for broker in sorted(brokers)})
            if news := self._refused_by(rebalance).news(f"{change.op} of {CONFIG}", answers):
                log.warning("%s: %s", rebalance.name, news)
        return answers

    def _refused_by(self, rebalance: Rebalance) -> RefusedCordons:
        return self._refused.setdefault(rebalance, RefusedCordons(self._clock.monotonic))


def _cordoned(rebalance: Rebalance) -> set[BrokerId]:
    """The brokers that are on record as cordoned by the run."""
    return set(rebalance.record.run.cordoned) if rebalance.record.run is not None else set()


def _late_cordons(memory: Memory, brokers: Iterable[BrokerId], now: float) -> set[BrokerId]:
    """The brokers that Kafka may still cordon by a call that failed without an answer."""
    failed_at = {b: max(memory.unanswered_at, memory.cordons_unanswered.get(b, float("-inf"))) for b in brokers}
    return {broker for broker, at in failed_at.items() if may_be_executed_late(at, now)}


def is_unset(values: Mapping[str, ConfigValue]) -> bool:
    """Whether the broker offers the config, and has no cordon."""
    return values.get(CONFIG) == _UNSET


def cordoned_by_others(value: ConfigValue | None) -> bool:
    """Whether somebody has cordoned other log dirs of the broker since. Outdated metadata may show no cordon."""
    return value is not None and value.value not in {None, "", ALL_DIRS}
