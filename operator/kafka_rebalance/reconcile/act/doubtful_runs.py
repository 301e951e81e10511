"""Runs that may have started at a server which only claimed the id of the cluster, before another owner got it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

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
    can be undone with this KafkaConnection only, as spec.kafka of their resource cannot change; the next owner doubts
    what is opened again, because later servers of the KafkaConnection may be those of a cluster in which the run has
    never been. Runs are listed until no other is found: one may just be made of others (``HandedOverRuns.rebuilt``).
    """
    await _doubt(runs, partial(_is_doubtful, cluster_id=cluster_id, owner=owner))
    listed = await runs.list_all(on_record=True)
    ended = [r for r in listed if r.cluster_id == cluster_id and r.undoable and r != r.to_doubt_later]
    await _each(ended, partial(runs.doubt, later=True))


async def doubt_runs_again(runs: RunStore, cluster_id: str) -> None:
    """The same with the runs that were ``unproved`` once, for an owner that is known to lead to the same cluster.

    With permission of the former owner they may have gone on, but nothing shows where they started. One that is still
    ``unproved`` may just go on: this request is refused.
    """
    listed = await runs.list_all(on_record=True)
    await _each([run for run in listed if run.cluster_id == cluster_id and run.unproved], runs.doubt)
    await _doubt(runs, partial(_was_doubtful, cluster_id=cluster_id))


async def _doubt(runs: RunStore, is_doubtful: Callable[[Run], bool]) -> None:
    while doubtful := list(filter(is_doubtful, await runs.list_all(on_record=True))):
        await _each(doubtful, runs.doubt)
        for run in doubtful:
            if run.cordoned:
                which = f"{run.namespace}/{run.name}", ", ".join(map(str, run.cordoned))
                log.warning("%s: its cluster has another owner; brokers %s stay cordoned", *which)


async def _each(found: Sequence[Run], write: Callable[[Run], Awaitable[None]]) -> None:
    for first in range(0, len(found), _AT_ONCE):
        await asyncio.gather(*map(write, found[first : first + _AT_ONCE]))


def _was_doubtful(run: Run, cluster_id: str) -> bool:
    """Whether the run was ``unproved`` once, and could still change this cluster."""
    if run.cluster_id != cluster_id or run == run.doubted or not run.was_unproved:
        return False
    return run.open or bool(run.successor) or run.undoable


def _is_doubtful(run: Run, cluster_id: str, owner: Owner) -> bool:
    """Whether the run could still change this cluster, although it may have started in another one."""
    if run.cluster_id != cluster_id or run == run.doubted:
        return False
    began = run.to_undo.owner
    of_others = began is not None and began != owner and (not began.connection or run.was_unproved)
    return run.open or bool(run.successor) or (run.undoable and of_others)
