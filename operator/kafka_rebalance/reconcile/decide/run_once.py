"""A resource is carried out once, also if it is restored from a backup, which has no status and no records. Pure.

The resource itself carries the key: an annotation, which a backup keeps and Git does not have. It counts for the spec,
the name and the Kafka cluster of the run only, so that a copy of the resource for something else is carried out.
"""

import json
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic_core import from_json

from kafka_rebalance.api.fields import ApiModel, Timestamp, format_time
from kafka_rebalance.api.v1alpha1 import COMPLETED_ANNOTATION
from kafka_rebalance.api.validation import validate
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.rebalance import RebalanceView


class _Completed(ApiModel):
    """The content of the annotation ``completed_key``.

    Every user who may edit the resource can write something else there.
    """

    model_config = ConfigDict(extra="ignore")

    name: str
    cluster_id: Annotated[str, Field(max_length=128)]
    planning_hash: str
    plan_hash: Annotated[str, Field(max_length=80)]
    outcome: RunOutcome
    completed_at: Timestamp


_ENDED_WELL = {RunOutcome.SUCCEEDED, RunOutcome.UNDONE}


def completed_key(rebalance: RebalanceView) -> str | None:
    """The annotation of a resource whose run has ended; None: nothing to write."""
    run, desired = rebalance.record.run, rebalance.desired
    if run is None or run.open or run.closed_at is None or run.outcome is None or run.restored:
        return None
    key = _key_of(desired, run.cluster_id) | {
        "planHash": run.plan_hash,
        "outcome": run.outcome.value,
        "completedAt": format_time(run.closed_at),
    }
    text = json.dumps(key)
    return None if desired.metadata.annotations.get(COMPLETED_ANNOTATION) == text else text


def restored_run(desired: Desired, cluster_id: str) -> Run | None:
    """The run of a resource that ended before it was restored without records; None: execute the resource.

    ``cluster_id``: of the Kafka cluster of the resource. Empty: not known, so the annotation does not count.
    """
    metadata = desired.metadata
    try:
        # Where the standard library raises RecursionError, this parser raises ValueError.
        found = validate(_Completed, from_json(metadata.annotations.get(COMPLETED_ANNOTATION, "null")), "")
    except (Refused, ValueError):
        return None
    expected = _key_of(desired, cluster_id)
    if not cluster_id or _key(found.name, found.cluster_id, found.planning_hash) != expected:
        return None
    at, outcome = found.completed_at, found.outcome
    return Run(
        uid=desired.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        cluster_id=found.cluster_id,
        run_id="",
        planning_hash=desired.planning_hash,
        plan_hash=found.plan_hash,
        opened_at=at,
        closed_at=at,
        outcome=outcome,
        started_at=at,
        undo=outcome is not RunOutcome.SUCCEEDED,
    )


def outlived(rebalance: RebalanceView, now: datetime) -> bool:
    """Whether the resource has succeeded or was undone, longer ago than spec.ttlSecondsAfterFinished.

    False with an invalid spec, because the corrected spec may request another run.
    """
    run, seconds = rebalance.record.run, rebalance.desired.spec.ttl_seconds_after_finished
    if seconds is None or rebalance.desired.spec_problem is not None:
        return False
    if run is None or run.closed_at is None or run.outcome not in _ENDED_WELL:
        return False
    return now - run.closed_at >= timedelta(seconds=seconds)


def _key_of(desired: Desired, cluster_id: str) -> dict[str, str]:
    return _key(desired.name, cluster_id, desired.planning_hash)


def _key(name: str, cluster_id: str, planning_hash: str) -> dict[str, str]:
    return {"name": name, "clusterId": cluster_id, "planningHash": planning_hash}
