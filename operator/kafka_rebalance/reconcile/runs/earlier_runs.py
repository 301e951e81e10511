"""What a new plan takes over from earlier runs: of other resources, and of the resource itself."""

import asyncio
from collections.abc import Iterable

from kafka_rebalance.execution.partition_status import PartitionMove
from kafka_rebalance.model.plan import LogDirMove, Plan, joined_log_dirs
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import ReplicaKey, TopicPartition
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import Stores, loaded_run_of


async def inherited_from(
    stores: Stores, taken: Iterable[Run]
) -> tuple[dict[TopicPartition, Origin], dict[TopicPartition, PartitionMove], dict[ReplicaKey, LogDirMove]]:
    """The origins of the runs that a resource takes over, and what they have moved.

    A deletion leads back to before them.
    """
    origins: dict[TopicPartition, Origin] = {}
    moves: dict[TopicPartition, PartitionMove] = {}
    dirs: dict[ReplicaKey, LogDirMove] = {}
    for run in taken:
        found = await stores.origins.load(run.uid, run.run_id) or {}
        origins = {**found, **origins}  # the older run was there first
        if (stored := await stores.plans.load(run.uid, run.plan_hash)) is not None:
            opened = loaded_run_of(run, stored.plan, stored.ref, found, back=True)
            moves |= opened.move_of
            dirs = joined_log_dirs(dirs, opened.log_dirs)
    return origins, moves, dirs


async def moves_to_keep(stores: Stores, rebalance: RebalanceView, made: Plan) -> Iterable[PartitionMove]:
    """The moves of the last success, for an undo of it, if the new plan has the hash of its plan."""
    run = rebalance.record.run.last_to_undo if rebalance.record.run is not None else None
    if run is None or run.plan_hash != await asyncio.to_thread(lambda: made.hash):
        return ()
    return moves_of((await stores.origins.load(run.uid, run.run_id) or {}).values())


def moves_of(origins: Iterable[Origin]) -> Iterable[PartitionMove]:
    """Partitions that another run has touched, as it found them."""
    return (PartitionMove(o.tp, o.topic_id, o.replicas, o.replicas, o.replicas) for o in origins)
