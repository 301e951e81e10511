"""Runs of deleted resources that were handed over to another resource, which continues with their origins."""

import uuid
from collections.abc import Iterable
from dataclasses import replace

from kafka_rebalance.clock import Clock
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reconcile.decide.inheritance import Inheritance
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.record import Stores, load_open_run
from kafka_rebalance.reconcile.state.round_thread import off_the_loop


class HandedOverRuns:
    """Of one Kafka cluster; ``cluster_id`` empty: no engine has the resources."""

    def __init__(self, stores: Stores, clock: Clock, cluster_id: str) -> None:
        self._stores = stores
        self._clock = clock
        self._cluster_id = cluster_id
        self._heirs: _Heirs | None = None

    def begin_round(self) -> None:
        """From now on, resources without handed-over runs share a list of runs, until the next call.

        Lists are paced: with one for each resource, a round with many deletions would take minutes.
        """
        self._heirs = _Heirs(self._stores.runs)

    async def inheritance(self, uid: str) -> list[Run]:
        """The runs of this cluster that were handed over to the resource since its own was planned, the oldest first.

        The runs of any cluster if no engine has the resource.
        """
        return [run for run in await self._all(uid) if self._cluster_id in {"", run.cluster_id}]

    async def _all(self, uid: str) -> list[Run]:
        """Empty if the resource's own run has started or ended: that run began with the origins of these runs."""
        own = await self._stores.runs.load(uid)
        if own is not None and (own.started_at is not None or not own.open):
            return []
        taken = await self.handed_over_to(uid)
        return [run for run in taken if own is None or run.closed_at is None or run.closed_at >= own.opened_at]

    async def handed_over_to(self, uid: str) -> list[Run]:
        """All runs whose successor is this resource, the oldest first."""
        if self._heirs is not None and not await self._heirs.include(uid):
            return []
        return [run for run in await self._stores.runs.list_all() if run.successor == uid]

    async def own_cordons(self, uid: str) -> tuple[BrokerId, ...]:
        """The brokers that the resource has cordoned for its own run, before others were handed over to it."""
        own = await self._stores.runs.load(uid)
        return own.cordoned if own is not None and own.open and own.cluster_id == self._cluster_id else ()

    async def use_up(self, runs: Iterable[Run]) -> None:
        """Record that the new resource has stored the origins of these runs. Its later runs inherit nothing."""
        for run in runs:
            await self._stores.runs.save(replace(run, successor=None))

    async def rebuilt(self, desired: Desired) -> Run | None:
        """The run to roll back the moves of runs that a new resource took over, if it is deleted before it has a plan.

        A run has one cluster: this one, or if no run was handed over here, the cluster of the first run.
        """
        found = await self._all(desired.uid)
        first = next((run for run in found if run.cluster_id == self._cluster_id), found[0] if found else None)
        taken = [run for run in found if first is not None and run.cluster_id == first.cluster_id]
        partitions: dict[TopicPartition, PlannedPartition] = {}
        inherited = Inheritance()
        for run in taken:
            opened = await load_open_run(self._stores, run)
            back = await off_the_loop(opened.in_direction, opened.origins, back=True)
            inherited = await off_the_loop(inherited.followed_by, opened.origins, back)
            # If the run has sent the partition nothing, it is still as the one before has left it.
            last = (p for p in opened.plan.partitions if p.tp in back.move_of or p.tp not in inherited.moves)
            partitions |= {planned.tp: planned for planned in last}
        if not partitions:
            return None
        dirs = tuple(inherited.log_dirs.values())
        plan = Plan(tuple(sorted(partitions.values())), Certificate(0, optimal=False), log_dirs=dirs)
        run = replace(taken[0], uid=desired.uid, name=desired.metadata.name, run_id=uuid.uuid4().hex, successor=None)
        run = replace(run, plan_hash=plan.hash, planning_hash=desired.planning_hash, closed_at=None, outcome=None)
        # It has sent what any of them has sent, also if the first has sent nothing.
        started = min((run.started_at for run in taken if run.started_at is not None), default=None)
        cordoned = tuple(sorted({*taken[0].cordoned, *await self.own_cordons(desired.uid)}))
        # Unless one of them may have left copies in flight, what moves now was begun by others, as after a rest.
        run = replace(run, started_at=started, last_success=None, cordoned=cordoned, rested=not inherited.left)
        await self._stores.plans.save(desired.uid, plan.hash, run.cluster_id, plan, self._clock.now())
        await self._stores.origins.replace(desired.uid, run.run_id, ())  # a record, even if there are no origins
        await self._stores.origins.append(desired.uid, run.run_id, inherited.origins.values())
        run = _doubted_like(run, taken, self._stores.runs)
        await self._stores.runs.save(run)
        if (doubted := _doubted_like(run, taken, self._stores.runs)) != run:
            run = doubted  # the cluster has got another owner meanwhile
            await self._stores.runs.doubt(run, later=not run.unproved)
        await self.use_up(taken)
        return run


def _doubted_like(run: Run, taken: Iterable[Run], runs: RunStore) -> Run:
    """The run that has taken over others, in doubt if one of them is, as is known by now."""
    now = [runs.doubts.applied_to(one) for one in taken]
    if any(one.unproved for one in now):
        return run.doubted
    return run.to_doubt_later if any(one.was_unproved for one in now) else run


class _Heirs:
    """The resources that runs were handed over to, as of one list; a new one after each run that is handed over.

    Only this process hands over runs, so a resource that is not in the list has none.
    """

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs
        self._uids: set[str | None] | None = None
        self._handovers = 0

    async def include(self, uid: str) -> bool:
        uids, handovers = self._uids, self._runs.handovers
        if uids is None or handovers != self._handovers:
            uids = {run.successor for run in await self._runs.list_all()}
            self._uids, self._handovers = uids, handovers
        return uid in uids
