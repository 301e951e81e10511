"""The lists that a spec refers to (strategy Assignment), compared with the cluster. Pure.

They are read before every plan of a run, and the run itself may have changed the cluster since the lists were made. Its
own moves are no reason to refuse the rest. Later changes by others are no reason either: a topic that they deleted, or
a partition that they moved.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.model.plan import SkippedPartition
from kafka_rebalance.model.reassignment_file import Reassigned, read_reassignment
from kafka_rebalance.model.topology import PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class AssignmentLists:
    """The list that each partition is to have, and the partitions left out, with the reason."""

    wanted: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    skipped: tuple[SkippedPartition, ...] = ()


def read_assignment(text: str, source: str) -> tuple[Reassigned, ...]:
    """The rows of Kafka's reassignment JSON. Refused("AssignmentInvalid") names ``source`` and the place in it."""
    try:
        return read_reassignment(text.encode())
    except ValueError as wrong:
        raise Refused(Reason.ASSIGNMENT_INVALID, f"{source}: {wrong}") from wrong
    except Refused as wrong:
        raise Refused(Reason.ASSIGNMENT_INVALID, f"{source}: {wrong.message}") from wrong


def lists_for(
    rows: Iterable[Reassigned],
    partitions: Mapping[TopicPartition, PartitionState],
    earlier: Iterable[PartitionMove] = (),
    planned_before: Container[TopicPartition] | None = None,
) -> AssignmentLists:
    """The rows, without topics that are gone and partitions that others have moved.

    ``partitions`` are all that the cluster has. ``earlier``: the moves of the run so far.
    ``planned_before``: the partitions that the earlier plan of the run named, which existed then; None: no such plan.
    Refused("OriginalReplicasDiffer") if a partition without an earlier move does not have the replicas that the row
    expects. Refused("UnknownPartition") if a partition does not exist and did not exist then: the row is misspelt.
    """
    before = {move.tp: move for move in earlier}
    again = planned_before is not None
    known: Container[TopicPartition] = planned_before if planned_before is not None else ()
    wanted: dict[TopicPartition, Replicas] = {}
    skipped: list[SkippedPartition] = []
    for row in rows:
        state, move = partitions.get(row.tp), before.get(row.tp)
        if state is None and (row.tp in known or move is not None):
            skipped.append(SkippedPartition(row.tp, Reason.TOPIC_DELETED))
        elif state is None:
            since = ", nor had when this run was planned before: correct the row, or take it out" if again else ""
            message = f"the assignment names topic-partition {row.tp}, which the cluster does not have{since}"
            raise Refused(Reason.UNKNOWN_PARTITION, message)
        elif move is not None and _another_topic(state, move):
            skipped.append(SkippedPartition(row.tp, Reason.TOPIC_RECREATED))
        elif state.in_flight or _made_for(row, state, move):
            wanted[row.tp] = row.replicas
        elif again and (move is not None or row.tp in known):
            skipped.append(SkippedPartition(row.tp, Reason.DRIFTED))
        else:
            raise Refused(
                Reason.ORIGINAL_REPLICAS_DIFFER,
                f"topic-partition {row.tp} has replicas {list(state.replicas)}, its original_replicas in the "
                f"assignment are {list(row.original or ())}: it was made for another state; write it again",
            )
    return AssignmentLists(wanted, tuple(skipped))


def _another_topic(state: PartitionState, move: PartitionMove) -> bool:
    return bool(state.topic_id and move.topic_id) and state.topic_id != move.topic_id


def _made_for(row: Reassigned, state: PartitionState, move: PartitionMove | None) -> bool:
    """KIP-236: original_replicas are what the partition has now. Or had before this run, which has moved it since."""
    if row.original is None or state.replicas in (row.original, row.replicas):
        return True
    on_its_way = move is not None and set(state.replicas) <= move.known | set(row.replicas)
    return move is not None and on_its_way and row.original in (move.origin, move.planned_from)
