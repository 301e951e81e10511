"""Finds out in which cluster an open run started.

Any server can claim a cluster id, and a run must not continue in another cluster.
"""

from enum import Enum, auto

from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.kafka.ports import Answers, KafkaReader
from kafka_rebalance.model.run import Run
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.state.record import Stores


class Started(Enum):
    """Whether a run started in this cluster. ``UNKNOWN``: no topic is left that could prove it."""

    HERE = auto()
    ELSEWHERE = auto()
    UNKNOWN = auto()


async def started_here(stores: Stores, run: Run, reader: KafkaReader) -> Started:
    """Whether the run started in this cluster.

    The run may have started at a server that claimed the cluster id before the cluster's owner connected. Then its
    topics do not exist here, or have other ids. That server may also have shown the ids of this cluster, so they prove
    nothing for an ``unproved`` run. Raises the error if some topics cannot be read. A run whose topics are all gone, or
    that moves none, has nothing left to move; its cordons may be in another cluster.
    """
    stored = await stores.plans.load(run.uid, run.plan_hash)
    if stored is None:
        return Started.ELSEWHERE if run.unproved else Started.HERE  # nothing is sent without it
    moved = [(row.tp.topic, row.topic_id) for row in stored.plan.partitions]
    if not moved:
        # An earlier plan of the run may have moved something.
        origins = await stores.origins.load(run.uid, run.run_id) or {}
        moved = [(tp.topic, origin.topic_id) for tp, origin in origins.items()]
    ids = {topic: topic_id for topic, topic_id in moved if topic_id}
    there = await reader.topic_ids(ids) if ids else Answers()
    if ids.items() & there.items():
        return Started.ELSEWHERE if run.unproved else Started.HERE
    there.or_raise()
    return Started.UNKNOWN if not there and len(ids) == len({topic for topic, _ in moved}) else Started.ELSEWHERE


async def may_move_here(run: Run, stores: Stores, resources: Resources, reader: KafkaReader) -> bool:
    """Whether an open run, whose resource the operator has not seen, may move partitions of this cluster.

    False for a run that started at another server, and for an ``unproved`` one, which may not change this cluster: its
    plan is not read, because that server may have shown topics that cannot be described here. Raises if this cannot be
    decided; plans wait until then.
    """
    if run.unproved:
        return False
    try:
        if not await resources.exists(run.namespace, run.name, run.uid):
            return False
        return await started_here(stores, run, reader) is not Started.ELSEWHERE
    except RebalanceError as error:
        kind = Permanent if isinstance(error, Permanent) else Transient
        raise kind(
            error.reason,
            f"the operator cannot plan, because it cannot read whether the open run of KafkaRebalance "
            f"{run.namespace}/{run.name} has ended: {error.message}. Let the operator read it. If the resource is gone "
            f"permanently, delete its records, which {stores.runs.how_to_see(run.uid)} shows",
        ) from error
