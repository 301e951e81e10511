"""Where an open run was begun. A cluster id is only what a server claims; a run must not go on in another cluster."""

from enum import Enum, auto

from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.kafka.ports import Answers, KafkaReader
from kafka_rebalance.model.run import Run
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.state.record import Stores


class Begun(Enum):
    """Whether a run was begun in the cluster that is looked at. ``UNKNOWN``: no topic is left that could say so."""

    HERE = auto()
    ELSEWHERE = auto()
    UNKNOWN = auto()


async def begun_here(stores: Stores, run: Run, reader: KafkaReader) -> Begun:
    """Whether the run was begun in this cluster.

    A server that claimed the cluster id before the cluster's owner came may have begun it. Then the topics that it
    moves are here, if at all, with other ids. Where some cannot be read, it is not known: raises why. A run whose
    topics are all gone, or that moves none, has nothing left to move; its cordons may be in another cluster.
    """
    stored = await stores.plans.load(run.uid, run.plan_hash)
    if stored is None:
        return Begun.HERE  # nothing is sent without it
    moved = [(row.tp.topic, row.topic_id) for row in stored.plan.partitions]
    if not moved:
        # An earlier plan of the run may have moved something.
        origins = await stores.origins.load(run.uid, run.run_id) or {}
        moved = [(tp.topic, origin.topic_id) for tp, origin in origins.items()]
    ids = {topic: topic_id for topic, topic_id in moved if topic_id}
    there = await reader.topic_ids(ids) if ids else Answers()
    if ids.items() & there.items():
        return Begun.HERE
    there.or_raise()
    return Begun.UNKNOWN if not there and len(ids) == len({topic for topic, _ in moved}) else Begun.ELSEWHERE


async def may_move_here(run: Run, stores: Stores, resources: Resources, reader: KafkaReader) -> bool:
    """Whether an open run whose resource was not seen may move anything in this cluster: not a run of another server.

    Raises if this cannot be decided: plans wait until it can.
    """
    try:
        if not await resources.exists(run.namespace, run.name, run.uid):
            return False
        return await begun_here(stores, run, reader) is not Begun.ELSEWHERE
    except RebalanceError as error:
        kind = Permanent if isinstance(error, Permanent) else Transient
        raise kind(
            error.reason,
            f"nothing is planned before the open run of KafkaRebalance {run.namespace}/{run.name} is known to have "
            f"ended, and it cannot be read: {error.message}. Let the operator read it; if it is gone for good, delete "
            f"its records, which {stores.runs.how_to_see(run.uid)} shows",
        ) from error
