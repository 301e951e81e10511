"""Cordons the brokers that a rebalance empties, so that Kafka places nothing new on them meanwhile (KIP-1066, 4.3 on).

A cordon stops only what Kafka places by itself: explicit assignments still go there, which is why being empty is proved
by reading (``opening``). Who is cordoned by us is in the run's record before it is in Kafka. Nothing is cordoned for a
run that may start no step, one that nobody has approved for instance. After a success the cordon stays, the broker is
about to go; any way back takes it away.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.kafka.ports import ConfigChange, ConfigOp, ConfigSource, ConfigValue, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.state.rebalance_state import RebalanceState
from kafka_rebalance.reconcile.state.records import Stores

log = logging.getLogger(__name__)

CONFIG = "cordoned.log.dirs"
_ALL_DIRS = "*"


class Cordons:
    """The cordons of one cluster's rebalances."""

    def __init__(self, admin: KafkaAdmin, stores: Stores) -> None:
        self._admin = admin
        self._stores = stores

    async def keep(self, work: RebalanceState, alive: Collection[BrokerId]) -> None:
        """Cordon what is being emptied, where Kafka offers it and nobody has; take away what is not wanted any more."""
        if work.run is None or work.open is None:
            return
        leaving = {BrokerId(b) for b in work.rebalance.spec.brokers.decommission} & set(alive)
        wanted = leaving if work.heading is Direction.FORWARD else set()
        # One that is on record was begun before the run was held back: it may not have been reached.
        may_begin = wanted if work.hold is None else wanted.intersection(work.run.cordoned)
        new = may_begin - work.cordon_seen
        if new:
            try:
                work.cordon_seen |= await self._cordon(work, new)
            except Permanent as error:
                # It is a help, not a condition: without the right to alter brokers a decommission goes on.
                log.warning("%s: brokers %s are not cordoned: %s", work.name, sorted(new), error.message)
                work.cordon_seen |= new
        back = (set(work.run.cordoned) - wanted) & set(alive)
        if back:
            done = await self._change(back, ConfigChange(CONFIG, ConfigOp.DELETE))
            await self._record(work, set(work.run.cordoned) - done)
            work.cordon_seen -= back

    async def _cordon(self, work: RebalanceState, brokers: set[BrokerId]) -> set[BrokerId]:
        """The brokers that are settled: cordoned by us, or not ours to cordon. The others are asked again.

        Recorded first. One that is recorded already may not have been reached: it is set again. Offered and unset, the
        config is described as an empty default (recorded on 4.3).
        """
        recorded = set(work.run.cordoned) if work.run else set()
        found = await self._admin.broker_configs(brokers, [CONFIG])
        unset = ConfigValue("", ConfigSource.DEFAULT)
        ours = {broker for broker, values in found.items() if values.get(CONFIG) == unset} | (brokers & recorded)
        await self._record(work, recorded | ours)
        done = await self._change(ours, ConfigChange(CONFIG, ConfigOp.SET, _ALL_DIRS))
        return done | (set(found) - ours)

    async def _record(self, work: RebalanceState, cordoned: Collection[BrokerId]) -> None:
        if work.run is None or set(work.run.cordoned) == set(cordoned):
            return
        run = replace(work.run, cordoned=tuple(sorted(cordoned)))
        await self._stores.runs.save(run)
        work.run = run

    async def _change(self, brokers: Collection[BrokerId], change: ConfigChange) -> set[BrokerId]:
        """The brokers of which it is done; of the others the next tick tries again."""
        if not brokers:
            return set()
        answers = await self._admin.alter_broker_configs({broker: [change] for broker in sorted(brokers)})
        for broker, wrong in answers.items():
            if wrong is not None:
                log.warning("%s of %s on broker %d: %s", change.op, CONFIG, broker, wrong)
        return {broker for broker, wrong in answers.items() if wrong is None}
