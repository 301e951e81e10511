"""The rates of the brokers after a run, to be compared with what its plan has predicted. Pure."""

from collections.abc import Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import LoadGoal, LoadResource
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import PartitionState, Replicas, TopicPartition
from kafka_rebalance.planning import PartitionInput
from kafka_rebalance.planning.problem.goal_loads import with_loads
from kafka_rebalance.reasons import Reason


def refuse_earlier(model: LoadModel, run: Run) -> None:
    """Refused(LoadModelStale) if the model is of another cluster, or of a time before the end of the run."""
    if model.cluster_id != run.cluster_id:
        message = f"the load model belongs to cluster {model.cluster_id}, the run to {run.cluster_id}"
        raise Refused(Reason.LOAD_MODEL_STALE, message)
    if run.closed_at is None or model.window_start is None or model.window_start < run.closed_at:
        raise Refused(
            Reason.LOAD_MODEL_STALE,
            f"the oldest sample of the load model is of {model.window_start}, before the end of the run "
            f"({run.closed_at}): take samples, and make a model of these alone (kafka-rebalance pipeline load-model "
            "--window)",
        )


def rate_peaks(
    outcome: LoadOutcome,
    goals: tuple[LoadGoal, ...],
    partitions: Mapping[TopicPartition, PartitionState],
    model: LoadModel,
) -> dict[LoadResource, int]:
    """By resource, all but Disk: the highest use of a target broker in percent of its share.

    ``partitions`` are the selected ones as they are now. Raises Refused(RatesUnknown) as planning does.
    """
    from kafka_rebalance.planning.load.replica_use import use_in_place  # imports numpy

    rates = tuple(goal for goal in goals if goal.resource is not LoadResource.DISK)
    resources = tuple(goal.resource for goal in rates)
    placed = [
        PartitionInput(tp, _leader_first(state), state.topic_id, has_leader=state.leader is not None)
        for tp, state in sorted(partitions.items())
    ]
    use = use_in_place(with_loads(placed, rates, model), resources, outcome.brokers)
    found = {
        row.resource: row.peak_of(use[:, resources.index(row.resource)].tolist())
        for row in outcome.resources
        if row.resource in resources
    }
    return {resource: peak for resource, peak in found.items() if peak is not None}


def _leader_first(state: PartitionState) -> Replicas:
    return tuple(sorted(state.replicas, key=lambda broker: broker != state.leader))
