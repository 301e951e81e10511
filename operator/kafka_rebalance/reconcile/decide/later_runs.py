"""Which partitions a run finds in motion, when it is first judged, because of a run that began after it. Pure.

While the operator runs, the queue keeps two runs off the same partition (``queue_places``). The queue is not stored:
after a restart, a rollback that waited for a decision comes first until it is at rest. It would take what the other run
copies for copies of its own, and cancel them.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

from kafka_rebalance.execution.partition_move import is_by_others
from kafka_rebalance.execution.partition_status import Observation
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reconcile.decide.queue_places import left_alone
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun

NOTHING: Mapping[TopicPartition, str] = {}


def moved_by_later_runs(
    rebalance: RebalanceView, run: LoadedRun, others: Iterable[RebalanceView], seen: Observation
) -> Mapping[TopicPartition, str]:
    """By partition in motion, the uid of the run that began after ``run`` and has an origin of it on record.

    When that one began to move the partition, this one was at rest there. They are found at the first judgement since
    the start, and stay until they are at rest: from then on the queue is known.
    """
    started, inputs = _started_at(rebalance), rebalance.assessment.judgement.inputs
    before = inputs.later_runs if inputs is not None else None
    first = before is None and not rebalance.assessment.judged_before
    if started is None or not (first or before):
        return NOTHING
    found = dict[TopicPartition, str]()
    for other in others:
        begun, uid, skipped = _started_at(other), other.desired.uid, left_alone(other)
        if begun is None or begun <= started:
            continue
        common = [tp for tp, of in before.items() if of == uid] if before else run.partitions & other.own_origins.keys()
        found |= {tp: uid for tp in common if tp not in skipped and _in_motion(other, tp, seen)}
    return found


def open_to_others(rebalance: RebalanceView) -> AbstractSet[TopicPartition]:
    """The partitions that others may move in the turn of the run: skipped, or left to a run that began later."""
    inputs = rebalance.assessment.judgement.inputs
    return left_alone(rebalance).union(inputs.later_runs if inputs is not None else NOTHING)


def _started_at(rebalance: RebalanceView) -> datetime | None:
    return rebalance.record.loaded_run.run.started_at if rebalance.record.loaded_run is not None else None


def _in_motion(rebalance: RebalanceView, tp: TopicPartition, seen: Observation) -> bool:
    """Whether a step of the run can be under way, which it can bring to its end: no copy to a broker that is gone."""
    state = seen.cluster.partitions.get(tp)
    move = rebalance.record.loaded_run.move_of.get(tp) if rebalance.record.loaded_run is not None else None
    if state is None or move is None or not move.known.issuperset(state.replicas) or is_by_others(move, state):
        return False
    if state.in_flight:
        return not state.wedged and all(b in seen.cluster.brokers or b in seen.restarting for b in state.adding)
    return len(state.replicas) > move.most
