"""What is durable about one rebalance: its run, its plan, its origins; and the errands that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_rebalance.errors import Permanent
from kafka_rebalance.execution.partition_status import PartitionMove
from kafka_rebalance.execution.reassignment_throttle import moving_brokers
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Stores:
    """The three stores that a rebalance needs. Plans are kept by their own hash, which the run names."""

    plans: PlanStore
    origins: OriginStore
    runs: RunStore

    async def forget(self, uid: str) -> None:
        """Delete what is stored of a resource. The run goes last: while it is there, this is begun again."""
        await self.plans.delete(uid)
        await self.origins.delete(uid)
        await self.runs.delete(uid)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run with its plan, origins and errands. ``ref`` is the ConfigMap that the plan begins with."""

    run: Run
    plan: Plan
    ref: str
    origins: Mapping[TopicPartition, Origin]
    errands: tuple[PartitionMove, ...]
    errand_of: Mapping[TopicPartition, PartitionMove]
    topics: frozenset[str]
    brokers: frozenset[BrokerId] = frozenset()
    """Between which it copies."""

    @property
    def named(self) -> frozenset[TopicPartition]:
        """Every partition that the run has moved, or that its plan names: all of them were there at some time."""
        return self.plan.about | self.origins.keys()


async def load_open_run(stores: Stores, run: Run) -> OpenRun:
    """Plan and origins of a run. Permanent("StoredPlanMissing") where someone deleted them."""
    stored = await stores.plans.load(run.uid, run.plan_hash)
    if stored is None:
        raise Permanent(
            Reason.STORED_PLAN_MISSING,
            f"the stored plan {run.plan_hash} of {run.namespace}/{run.name} is gone from the operator's namespace; "
            "nothing is submitted without it. Set deletionPolicy to Abandon and delete the resource to let go",
        )
    origins = await stores.origins.load(run.uid, run.run_id)
    return open_run(run, stored.plan, stored.ref, origins)


def open_run(run: Run, plan: Plan, ref: str, origins: Mapping[TopicPartition, Origin]) -> OpenRun:
    """The run with its errands."""
    errands = tuple(
        PartitionMove(
            tp=p.tp,
            topic_id=p.topic_id,
            origin=origins[p.tp].replicas if p.tp in origins else p.current,
            planned_from=p.current,
            target=p.target,
            size_bytes=p.size_bytes,
            origin_leader=origins[p.tp].leader if p.tp in origins else None,
            elects=p.elects,
        )
        for p in plan.partitions
    )
    brokers = {moving_brokers((*e.origin, *e.planned_from), e.target) for e in errands}
    return OpenRun(
        run,
        plan,
        ref,
        origins,
        errands,
        {e.tp: e for e in errands},
        frozenset(e.tp.topic for e in errands),
        frozenset[BrokerId]().union(*brokers),
    )
