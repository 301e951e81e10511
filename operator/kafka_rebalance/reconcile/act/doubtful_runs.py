"""Runs that may have started at a server which only claimed the id of the cluster, before another owner got it."""

import asyncio
import logging

from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.model.run import Run

log = logging.getLogger(__name__)

_AT_ONCE = 10
"""How many records are written at the same time: a namespace may have thousands of runs."""


async def doubt_runs(runs: RunStore, cluster_id: str, owner: Owner) -> None:
    """Keep runs on record from changing this cluster, which ``owner`` gets.

    They lose their cordons on record, and are ``unproved`` until a resource continues them with permission. Those that
    have ended with an inline connection cannot be undone, except those of the same owner. Those of a KafkaConnection
    can be undone with this KafkaConnection only, as spec.kafka of their resource cannot change. Runs are listed until
    no other is found: one may just be made of others (``HandedOverRuns.rebuilt``).
    """
    while doubtful := [run for run in await runs.list_all() if _is_doubtful(run, cluster_id, owner)]:
        for first in range(0, len(doubtful), _AT_ONCE):
            await asyncio.gather(*map(runs.doubt, doubtful[first : first + _AT_ONCE]))
        for run in doubtful:
            if run.cordoned:
                which = f"{run.namespace}/{run.name}", ", ".join(map(str, run.cordoned))
                log.warning("%s: its cluster has another owner; brokers %s stay cordoned", *which)


def _is_doubtful(run: Run, cluster_id: str, owner: Owner) -> bool:
    """Whether the run could still change this cluster, although it may have started in another one."""
    if run.cluster_id != cluster_id or run == run.doubted:
        return False
    began = run.to_undo.owner
    of_others = began is not None and not began.connection and began != owner
    return run.open or bool(run.successor) or (run.undoable and of_others)
