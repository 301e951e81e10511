"""KafkaRebalances that `run` has rolled back, or that a command has cancelled, as the directory still has them.

The operator deletes the records of a run after a complete rollback. Only the last state of its resource is left.
"""

from datetime import datetime

from kafka_rebalance.api.conditions import ConditionType, ReadySummary, find_condition, set_condition, summarise
from kafka_rebalance.api.v1alpha1 import REBALANCES, parse_rebalance
from kafka_rebalance.cli.options.resource_lookup import find, stores
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.directory_objects import GONE_AT, DirectoryObjects
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.model.run import RunOutcome

_BACK = {RunOutcome.ROLLED_BACK, RunOutcome.UNDONE}
_MESSAGES = {
    RunOutcome.ROLLED_BACK: "replicas and throttles are as before the run",
    RunOutcome.ROLLED_BACK_PARTIALLY: "not everything was restored: undo --print --uid shows the rest",
    RunOutcome.REVERTED: "reassignments in flight were cancelled; completed moves stayed",
    RunOutcome.ABANDONED: "nothing was moved back",
    RunOutcome.TAKEN_OVER: "another rebalance continued from there",
}


async def find_or_gone(kube: KubeObjects, namespace: str, name: str) -> Json:
    """The resource. If it is gone: its last state, with its outcome as the state. NotFound if there was none."""
    try:
        return await find(kube, namespace, name)
    except NotFound:
        body = await kube.get_gone(REBALANCES, namespace, name) if isinstance(kube, DirectoryObjects) else None
        if body is None:
            raise
        return await _ended(kube, body)


async def all_gone(kube: KubeObjects) -> list[Json]:
    """The last state of each resource that is gone, with its outcome as the state. Empty for the API server."""
    if not isinstance(kube, DirectoryObjects):
        return []
    return [await _ended(kube, body) for body in await kube.list_gone(REBALANCES)]


async def _ended(kube: KubeObjects, body: Json) -> Json:
    """A resource that had ended before its deletion keeps its state, although the deletion raised its generation."""
    generation = body["metadata"]["generation"]
    status = parse_rebalance(body).status
    ready = find_condition(status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "True":
        return {**body, "status": {**body["status"], "observedGeneration": generation}}
    run = await stores(kube).runs.load(body["metadata"]["uid"])
    # A run that is still open was released with damaged records: nothing was moved back.
    outcome = RunOutcome.ROLLED_BACK if run is None else run.outcome or RunOutcome.ABANDONED
    at = datetime.fromisoformat(body[GONE_AT])
    summary = ReadySummary.DONE if outcome in _BACK else ReadySummary.STUCK
    message = _MESSAGES.get(outcome, "")
    conditions = summarise(status.conditions, summary, outcome, message, generation=generation, now=at)
    conditions = set_condition(
        conditions, ConditionType.REBALANCING, False, outcome, message, generation=generation, now=at
    )
    update = {"conditions": conditions, "completed_at": at, "current_batch": (), "current_batch_size": 0}
    return {
        **body,
        "status": status.model_copy(update={**update, "observed_generation": generation}).as_patch()["status"],
    }
