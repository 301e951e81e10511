"""Runs whose origins are recorded, for the tests of rollbacks and undos."""

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.kube.blobs import BlobStore
from kafka_rebalance.kube.codec import encode_origins
from kafka_rebalance.kube.store import OriginStore
from kafka_rebalance.model.run import Origin

FAST = {"unlimited": True}
ONE = {"parallelPartitionCount": 1}
OTHERS = {"include": [4, 5, 6]}


async def undone(operator):
    """Order an undo, and wait until it has ended."""
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.until("Undone", "RolledBackPartially", "NothingToUndo")


async def deleted(operator):
    """Delete the resource, and wait until it is gone."""
    operator.delete()
    await operator.until_true(lambda: not operator.kube.resources)


async def recorded(operator):
    """The origins on record, by a store that remembers nothing."""
    found = await OriginStore(operator.kube).load("u-1", operator.run.run_id) or {}
    return {str(tp): list(origin.replicas) for tp, origin in found.items()}


async def by_an_earlier_version(operator):
    """Replace the record by one with all origins as of the plan, as an earlier version wrote it."""
    partitions = operator.rebalance.record.loaded_run.plan.partitions
    blobs = BlobStore(operator.kube, "origins")
    rows = [Origin(p.tp, p.topic_id, p.current, p.current[0]) for p in partitions]
    await blobs.write(blobs.name("u-1", operator.run.run_id), "u-1", encode_origins(rows), {"runId": "r"})
    operator.restart()
