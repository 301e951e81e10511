"""Chooses the calls of a round and sends them. Each call is based on a reading of this round.

Calls without a copy are sent first, and their effects are read at once, so that an election, the drop after it and the
next copy do not take three rounds. Copies are chosen and sent last, once their throttle is in place. While very many
partitions are in flight, some rounds send no copies (``decide.copy_pace``).
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from kafka_rebalance.clock import Clock
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaAdmin
from kafka_rebalance.model.topology import BrokerId, ClusterState, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.cordoning import Cordons
from kafka_rebalance.reconcile.act.judges import MANY, Judges, moves_many_in_dirs
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.log_dir_calls import LogDirCalls
from kafka_rebalance.reconcile.act.submitting import Submitting, at_once, copies
from kafka_rebalance.reconcile.act.turns import Turns
from kafka_rebalance.reconcile.decide.copy_pace import LastCopies
from kafka_rebalance.reconcile.decide.direction import direction_of
from kafka_rebalance.reconcile.decide.given_up_places import begins_with
from kafka_rebalance.reconcile.decide.replanning import lost_and_all, replanning_for_drains, replanning_for_drift
from kafka_rebalance.reconcile.decide.step_orders import (
    choice_for,
    further_called,
    may_lessen_isr,
    named_by,
    orders_where,
    orders_within,
    orders_without,
    unchanged_orders,
)
from kafka_rebalance.reconcile.drained_brokers import DrainedBrokers
from kafka_rebalance.reconcile.observe.observer import Look, Observer
from kafka_rebalance.reconcile.state.pauses import with_pauses
from kafka_rebalance.reconcile.state.rebalance import Rebalance, is_served, opened_of
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.state.round_thread import computed
from kafka_rebalance.reconcile.throttle.cluster_throttle import ClusterThrottle

log = logging.getLogger(__name__)

_SLOW_SECONDS = 1.0
"""A reading that takes longer makes the readings before it too old for a call that lessens the ISR."""
_FURTHER_CALLS = 1
"""How many calls without a copy may follow the first one of a partition: after an election the leader is dropped."""


def _without_brokers(orders: Orders, brokers: Collection[BrokerId]) -> Orders:
    """These orders but for the lists that name one of the brokers."""
    return orders_where(orders, lambda tp: not set(orders.alters.get(tp, ())).intersection(brokers))


class Sending:
    """The calls of one cluster's engine. ``rebalances``: all of the cluster, by uid."""

    def __init__(
        self,
        admin: KafkaAdmin,
        rebalances: Mapping[str, Rebalance],
        throttle: ClusterThrottle,
        lifecycle: Lifecycle,
        stores: Stores,
        observer: Observer,
        judges: Judges,
        log_dirs: LogDirCalls,
        turns: Turns,
        drained: DrainedBrokers,
        clock: Clock,
    ) -> None:
        self._rebalances = rebalances
        self._throttle = throttle
        self._lifecycle = lifecycle
        self._observer = observer
        self._judges = judges
        self._log_dirs = log_dirs
        self._turns = turns
        self._drained = drained
        self._clock = clock
        self._cordons = Cordons(admin, stores, clock)
        self._submitting = Submitting(admin, rebalances, lifecycle, stores, clock)
        self.sent_at = float("-inf")
        """When something was sent last, by the monotonic clock."""
        self._last_copies: LastCopies | None = None

    async def judge(self, rebalance: Rebalance, look: Look) -> None:
        """Judge the partitions, and plan again if others have made the plan void, or empty a broker of it."""
        rebalance.assessment = await self._judges.judged(rebalance, direction_of(rebalance), look)
        replanning = replanning_for_drift(rebalance)
        if replanning is rebalance.assessment.replanning:
            replanning = replanning_for_drains(rebalance, look.observation.cluster.partitions)
        if replanning is not rebalance.assessment.replanning and replanning is not None:
            if replanning.reason is Reason.DRAINED:
                log.info("%s: another rebalance empties a broker of the plan: planning again", rebalance.name)
            else:
                lost, total = lost_and_all(rebalance)
                log.info("%s: others made %d of %d replica moves void: planning again", rebalance.name, lost, total)
            # Nothing more of a plan that is given up may be sent.
            rebalance.assessment = replace(rebalance.assessment, replanning=replanning)
            rebalance.assessment = await self._judges.judged(rebalance, direction_of(rebalance), look)

    async def _chosen(self, running: list[Rebalance], look: Look, *, copying: bool) -> dict[str, Orders]:
        """The calls within all limits, by the statuses as they are now; all, or only those that copy nothing."""
        lists, ruling, disks = self._throttle.list_budget, self._throttle.ruling, self._observer.on_disks
        choice = choice_for(running, look.observation.cluster, ruling, disks, lists, copying=copying)
        # Copies to tight disks need an order, and the search for one takes up to a few seconds.
        long = copying or sum(len(r.record.moves) for r in running) >= MANY
        return await computed(choice, many=long)

    async def _choose(self, running: list[Rebalance], look: Look, *, copying: bool) -> dict[str, Orders]:
        """The calls, as in ``_chosen``; note which copies are held back, if these are chosen."""
        orders = await self._chosen(running, look, copying=copying)
        many = moves_many_in_dirs(running)
        for rebalance in running:
            found = orders[rebalance.uid]
            if copying:
                rebalance.assessment = replace(
                    rebalance.assessment, no_room=found.no_room, list_full=found.list_full, at_limit=found.at_limit
                )
            rebalance.assessment = await self._judges.log_dirs_judged(rebalance, look.log_dirs, many=many)
        return orders

    async def act(self, running: list[Rebalance], look: Look, info: ClusterInfo) -> bool:
        """Cordon brokers and send calls; returns whether anything was sent.

        A rebalance for which there is no time waits for its turn. Calls without a copy (nulls, drops, new orders,
        elections) are sent at once, while the last reading is still valid, and so is what follows them: they end at
        once, so they take no room from copies. Copies are chosen after that, and sent once throttled.
        """
        cluster, acting = look.observation.cluster, []
        self._submitting.begin_round(look.read_at)
        await self._drained.look(cluster)
        may_cordon = [r for r in self._rebalances.values() if r.record.open_run is not None]
        async for rebalance in with_pauses(self._turns.of("cordon", running)):
            if not is_served(rebalance, self._rebalances):
                continue
            async with self._lifecycle.problems_of(rebalance, "cordon"):
                alive = info.brokers.keys() - self._throttle.left_cordons
                served, may_start = self._served(may_cordon), self._throttle.may_send(rebalance)
                await self._cordons.keep(rebalance, alive, served, may_start=may_start)
            acting.append(rebalance)
        for rebalance in running:
            rebalance.assessment = replace(rebalance.assessment, sent=frozenset())
        acting, orders, look, sent = await self._act_at_once(running, acting, look)
        await asyncio.sleep(0)  # the throttle is a slice of its own
        acting = self._served(acting)  # one that comes back later in the round has no throttle yet
        uncovered = await self._throttle_before_copies({r.uid: orders[r.uid] for r in acting}, look)
        sent = await self._send_copies(acting, orders, cluster, uncovered) or sent
        for rebalance in running:
            doubted, refused = self._submitting.doubted(rebalance), self._submitting.refusals(rebalance)
            rebalance.assessment = replace(rebalance.assessment, doubted=doubted, refused=refused)
        in_turn = self._turns.of("log dirs", self._served(acting))
        return await self._log_dirs.move(in_turn, running, look.log_dirs, cluster, self._throttle) or sent

    async def _act_at_once(
        self, running: list[Rebalance], acting: list[Rebalance], look: Look
    ) -> tuple[list[Rebalance], dict[str, Orders], Look, bool]:
        """Send the calls without a copy and those that follow them, then choose copies, unless they may wait.

        Returns the rebalances that may go on, their orders, the last reading, and whether anything was sent.
        """
        cluster, sent = look.observation.cluster, False
        chosen = await self._chosen(running, look, copying=False)
        asked = {r.uid: found for r in acting if named_by(found := chosen[r.uid])}
        orders, look = await self._confirm(running, asked, look)
        acting = [r for r in acting if r.uid in orders or r.uid not in asked]
        acting, called = await self._send_at_once(acting, orders, cluster)
        copying = not self._copies_may_wait(len(cluster.brokers))
        for further in range(_FURTHER_CALLS, -1, -1):
            sent = sent or bool(called)
            ended = not any(further_called(r, orders[r.uid], called[r.uid]) for r in acting if r.uid in called)
            if ended and not copying:
                return acting, {r.uid: Orders() for r in acting}, look, sent
            orders, look = await self._follow(running, acting, orders, look, called, copying=copying)
            acting = [r for r in acting if r.uid in orders]
            following = [r for r in acting if r.uid in called] if further else []
            now = {r.uid: orders_within(orders[r.uid], called[r.uid]) for r in following}
            _, called = await self._send_at_once(following, now, cluster)
            if not called:
                break
        return acting, orders, look, sent

    def _copies_may_wait(self, brokers: int) -> bool:
        now, in_flight = self._clock.monotonic(), len(self._observer.in_flight)
        return self._last_copies is not None and self._last_copies.may_wait(now, in_flight, brokers)

    async def _send_copies(
        self,
        acting: list[Rebalance],
        orders: Mapping[str, Orders],
        cluster: ClusterState,
        uncovered: frozenset[tuple[str, str]] | None,
    ) -> bool:
        """Send the copies that are throttled; whether there were any. ``uncovered``: as for ``copies``."""
        waiting = 0
        for rebalance in acting:
            await asyncio.sleep(0)  # each is a slice of its own
            waiting += len(copies(orders[rebalance.uid], cluster, ()).alters)
        last, self._last_copies = self._last_copies, None
        before, sent = len(self._observer.in_flight), 0
        for rebalance in self._turns.of("copies", acting):
            if self._submitting.refused(rebalance):
                continue
            covered = copies(orders[rebalance.uid], cluster, uncovered)
            await self._log_dirs.place(rebalance, covered, cluster)
            if await self._submitting.submit(rebalance, covered, cluster):
                sent, self.sent_at = sent + len(covered.alters), self._clock.monotonic()
        if sent == waiting and not any(orders[r.uid].more for r in acting):
            self._last_copies = LastCopies(self._clock.monotonic(), before + sent) if sent else last
        return sent > 0

    async def _send_at_once(
        self, confirmed: list[Rebalance], orders: dict[str, Orders], cluster: ClusterState
    ) -> tuple[list[Rebalance], dict[str, set[TopicPartition]]]:
        """Send the calls without a copy.

        Returns the rebalances that had their turn, and by uid the partitions called, where Kafka permits that.
        """
        acting, called = [], dict[str, set[TopicPartition]]()
        for rebalance in self._turns.of("at once", confirmed):
            calls = at_once(orders.get(rebalance.uid, Orders()), cluster)
            if await self._submitting.submit(rebalance, calls, cluster):
                self.sent_at = self._clock.monotonic()
                if not self._submitting.refused(rebalance):
                    called[rebalance.uid] = set(named_by(calls))
            acting.append(rebalance)
        return acting, called

    async def _follow(
        self,
        running: list[Rebalance],
        acting: list[Rebalance],
        orders: dict[str, Orders],
        look: Look,
        called: dict[str, set[TopicPartition]],
        *,
        copying: bool,
    ) -> tuple[dict[str, Orders], Look]:
        """Read the effects of these calls, and choose again. A partition without an effect yet gets no further call."""
        before = {r.uid: r.assessment.statuses.by_partition for r in running}
        chosen = {tp for found in orders.values() for tp in named_by(found)}
        again = (chosen - look.fresh).union(*called.values())
        look = replace(look, listed=None) if called else look
        look = await self._look_again(running, again, look)
        for rebalance in running:
            await asyncio.sleep(0)  # each is a slice of its own
            await self.judge(rebalance, look)
        await asyncio.sleep(0)  # to judge and to choose are two slices
        orders = await self._choose(running, look, copying=copying)
        for rebalance in acting:
            now, then = rebalance.assessment.statuses.by_partition, before[rebalance.uid]
            same = {tp for tp in called.get(rebalance.uid, ()) if now.get(tp) == then[tp]}
            orders[rebalance.uid] = orders_without(orders[rebalance.uid], same)
        return await self._confirm(running, {r.uid: orders[r.uid] for r in acting}, look)

    async def _look_again(self, running: list[Rebalance], tps: Collection[TopicPartition], look: Look) -> Look:
        """Read these partitions now, and judge by that."""
        look = await self._observer.look_again(look, tps)
        for rebalance in running:
            await asyncio.sleep(0)  # each is a slice of its own
            direction = rebalance.assessment.judgement.direction or Direction.FORWARD
            rebalance.assessment = await self._judges.judged(rebalance, direction, look)
        return look

    async def _confirm(
        self, running: list[Rebalance], orders: dict[str, Orders], look: Look
    ) -> tuple[dict[str, Orders], Look]:
        """Read again the partitions whose orders were chosen on an older reading, and keep all orders still meant.

        Only what moves is read in every round: the others may have been changed since the older reading. So may
        min.insync.replicas, which is read once a minute: it is read again before a null or a list that may leave fewer
        replicas in sync. The start of the run is recorded before its first order is sent; without that record, without
        a throttle ledger, and for a resource that is gone by now, there are no orders.
        """
        stale = {tp for found in orders.values() for tp in named_by(found)} - look.fresh
        before, confirmed = {r.uid: r.assessment.statuses.by_partition for r in running}, {}
        partitions = look.observation.cluster.partitions
        if risky := {tp for found in orders.values() for tp in may_lessen_isr(found, partitions)}:
            begun = self._clock.monotonic()
            look = await self._observer.read_min_insync(look, {tp.topic for tp in risky})
            slow = self._clock.monotonic() - begun >= _SLOW_SECONDS
            # The in-sync replicas may have changed while it was read.
            stale |= risky if slow else {tp for found in orders.values() for tp in found.cancels}
        look = await self._look_again(running, stale, look)
        after = {r.uid: r.assessment.statuses.by_partition for r in running}
        meant = {uid: unchanged_orders(found, before[uid], after[uid]) for uid, found in orders.items()}
        if held := await self._drained.before_filling(running, meant, look.observation.cluster):
            meant = {uid: _without_brokers(found, held) for uid, found in meant.items()}
            look = await self._look_again(running, {tp for found in meant.values() for tp in named_by(found)}, look)
            later = {r.uid: r.assessment.statuses.by_partition for r in running}
            meant = {uid: unchanged_orders(found, after[uid], later[uid]) for uid, found in meant.items()}
        for rebalance in self._turns.of("start", self._served(r for r in running if r.uid in orders)):
            orders_now = meant[rebalance.uid]
            more = begins_with(rebalance, (*orders_now.alters, *orders_now.elections))
            if not (named := named_by(orders_now)):
                self._lifecycle.no_start(rebalance)
            elif not (
                self._throttle.may_send(rebalance) and await self._lifecycle.record_start(rebalance, begins=more)
            ):
                continue
            confirmed[rebalance.uid] = meant[rebalance.uid]
            sent = rebalance.assessment.sent.union(named)
            rebalance.assessment = replace(rebalance.assessment, sent=sent)
        return confirmed, look

    def _served(self, rebalances: Iterable[Rebalance]) -> list[Rebalance]:
        return [r for r in rebalances if is_served(r, self._rebalances)]

    async def _throttle_before_copies(self, orders: dict[str, Orders], look: Look) -> frozenset[tuple[str, str]] | None:
        """Extend the throttle to what is about to be copied; returns the replicas that it does not cover yet.

        For that, reassignments are listed again: the throttle must cover everything in flight right before a copy is
        sent, also what other tools have started. The listing of the last reading is enough where nothing limits these.
        """
        opened, cluster = opened_of(self._rebalances), look.observation.cluster
        await self._throttle.look(opened, cluster, look.listed)
        submitted = {uid: order.alters for uid, order in orders.items()}
        extended = await self._throttle.apply_claims(opened, cluster, submitted)
        for rebalance in opened:
            full = rebalance.assessment.list_full | (extended.left_out & submitted.get(rebalance.uid, {}).keys())
            throttle = extended.findings[rebalance.uid]
            rebalance.assessment = replace(rebalance.assessment, throttle=throttle, list_full=full)
        return extended.uncovered
