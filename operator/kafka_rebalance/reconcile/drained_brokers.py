"""Which brokers rebalances empty, and when a status that says so is not true any more.

Administrators stop a broker when `Drained` is True. So the condition becomes False before a rebalance sends replicas to
the broker. It also becomes False if readings show replicas there that came from another tool, or from a rebalance while
the engine did not know yet which one had drained the broker.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.topology import BrokerId, ClusterState
from kafka_rebalance.reconcile.act.closing import drain_reported
from kafka_rebalance.reconcile.act.judges import MANY
from kafka_rebalance.reconcile.act.status_writes import StatusWrites
from kafka_rebalance.reconcile.decide.arrival_proof import late_list_possible
from kafka_rebalance.reconcile.decide.direction import going_back
from kafka_rebalance.reconcile.decide.leaving_brokers import (
    Drains,
    drain_of,
    drained_at,
    filled_again,
    filling,
    held_again,
    leaving_brokers,
    on_drained,
)
from kafka_rebalance.reconcile.observe.observer import Observer
from kafka_rebalance.reconcile.state.assessment import Drain, LeavingBroker
from kafka_rebalance.reconcile.state.pauses import with_pauses
from kafka_rebalance.reconcile.state.rebalance import Rebalance, RebalanceView
from kafka_rebalance.reconcile.state.round_thread import computed

_LAG_SECONDS = 10.0
"""How long readings must show replicas on a drained broker: one broker may answer with older metadata."""

_HOLD_AGAIN_SECONDS = 60.0
_WRITE_SECONDS = 5.0
"""How long such writes are begun in a round."""
_MAY_BE_FILLED = (
    "the resource has lost its connection to the cluster, so other rebalances may fill the brokers: "
    "drain them with another resource before you stop them"
)


class DrainedBrokers:
    """Of one cluster."""

    def __init__(self, observer: Observer, statuses: StatusWrites, clock: Clock) -> None:
        self._observer = observer
        self._statuses = statuses
        self._clock = clock
        self._drained: list[Rebalance] = []
        """Those that have ended and say that their brokers are drained, as of the beginning of the round."""
        self._drains: Drains = []
        self._leaving: Mapping[BrokerId, LeavingBroker] = {}
        self._looked_at = 0
        self._held_since: dict[BrokerId, float] = {}
        """When readings of everything began to show a replica on a broker that a status calls drained."""
        self._may_hold_at = float("-inf")
        """When a list may wait again until it is written that its broker is not drained any more."""

    async def note(self, rebalances: Collection[Rebalance]) -> None:
        """Note which brokers rebalances empty, before anything is planned or sent.

        A namespace may drain hundreds of thousands of brokers that its server claims: all rebalances share one mapping,
        which is made again only after a change.
        """
        drains, drained = list[tuple[Sequence[int], LeavingBroker]](), list[Rebalance]()
        async for rebalance in with_pauses(rebalances):
            if (row := drain_of(rebalance)) is None:
                continue
            drains.append((rebalance.desired.spec.brokers.decommission, row))
            if row.drained is not None and rebalance.record.open_run is None:
                drained.append(rebalance)
        self._drained = drained
        if drains != self._drains:
            many = sum(len(brokers) for brokers, _ in drains) >= MANY
            self._drains, self._leaving = drains, await computed(leaving_brokers, drains, many=many)
        async for rebalance in with_pauses(rebalances):
            if rebalance.assessment.leaving is not self._leaving:
                rebalance.assessment = replace(rebalance.assessment, leaving=self._leaving)

    async def look(self, cluster: ClusterState) -> None:
        """Take `Drained` back if the last readings of everything have shown replicas on the broker for a while."""
        readings = self._observer.full_readings
        if not self._drained or readings == self._looked_at:
            return
        self._looked_at, now = readings, self._clock.monotonic()
        many = len(cluster.partitions) + len(self._leaving) >= MANY
        found = await computed(on_drained, self._leaving, cluster.partitions, many=many)
        self._held_since = {broker: self._held_since.get(broker, now) for broker in found}
        lasting = {broker: found[broker] for broker, since in self._held_since.items() if now - since >= _LAG_SECONDS}
        async for rebalance in with_pauses(self._drained if lasting else ()):
            if not _says_filled(rebalance) and (drain := held_again(rebalance, lasting)) is not None:
                rebalance.assessment = replace(rebalance.assessment, drain=drain)

    async def before_filling(
        self, running: Collection[Rebalance], orders: Mapping[str, Orders], cluster: ClusterState
    ) -> Collection[BrokerId]:
        """Take `Drained` back if these orders, by uid, put replicas on the broker; returns brokers that wait a round.

        After a kill nothing else might say it, so it is written before the call. This holds up nothing but the lists
        with that broker, and at most once a minute: users may drain brokers, and delay the writes, again and again.
        """
        fill = filling(running, orders) if self._drained else {}
        filled, held = list[Rebalance](), set[BrokerId]()
        async for rebalance in with_pauses(self._drained if fill else ()):
            drain = filled_again(rebalance, fill) if not _says_filled(rebalance) else None
            if drain is not None:
                rebalance.assessment = replace(rebalance.assessment, drain=drain)
                filled.append(rebalance)
                held |= drain.brokers & fill.keys()
        now = self._clock.monotonic()
        if not filled or now < self._may_hold_at:
            return ()
        self._may_hold_at = now + _HOLD_AGAIN_SECONDS
        for rebalance, in_time in self._statuses.in_turn("not drained", filled, _WRITE_SECONDS):
            await self._statuses.report(rebalance, cluster, in_time=in_time)
        return held

    def may_be_filled_late(self, rebalance: RebalanceView, others: Iterable[RebalanceView]) -> bool:
        """Whether Kafka may still carry out calls of others, which may fill brokers that are to be proved empty."""
        now = self._clock.monotonic()
        draining = bool(rebalance.desired.spec.brokers.decommission) and not going_back(rebalance)
        return draining and any(late_list_possible(other, now) for other in others if other is not rebalance)

    async def report(self, rebalance: Rebalance, cluster: ClusterState) -> None:
        """Write what was just found out about brokers to be emptied.

        The next calls may put replicas there, so what cannot be written before these is proved again.
        """
        if not drain_reported(rebalance):
            await self._statuses.report_judged(rebalance, cluster)
        if not drain_reported(rebalance):
            rebalance.assessment = replace(rebalance.assessment, drain=None)


def _says_filled(rebalance: RebalanceView) -> bool:
    """Whether it has been found out already. The status may still say otherwise, if it could not be written."""
    drain = rebalance.assessment.drain
    return drain is not None and drain.empty is False


def take_back_drained(rebalance: Rebalance) -> bool:
    """Make `Drained` Unknown for a rebalance that is not served any more. Returns whether it was True."""
    if drained_at(rebalance) is None:
        return False
    leaving = frozenset(map(BrokerId, rebalance.desired.spec.brokers.decommission))
    drain = Drain(leaving, empty=None, message=_MAY_BE_FILLED)
    rebalance.assessment = replace(rebalance.assessment, drain=drain)
    return True
