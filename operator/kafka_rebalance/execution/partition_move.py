"""The move of one partition in a run, and how changes by other tools are recognised. Pure."""

from dataclasses import dataclass

from kafka_rebalance.execution.first_call import carried_out
from kafka_rebalance.model.bulk import made_in_bulk
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition


@made_in_bulk
@dataclass(frozen=True, slots=True)
class PartitionMove:
    """One partition's replica lists: before the run, when the plan was made, and as planned.

    ``origin`` and ``planned_from`` differ if an earlier plan, or a run that was taken over, moved the partition.
    ``origin_leader`` led the partition when the origin was recorded; None: not known. ``elects``: the list stays and
    its first replica is elected. If the list stays without an election, the partition is only kept for a rollback.
    ``first_call``: of the origin, as there. ``on_record``: there is an origin, as before each call of the run.
    """

    tp: TopicPartition
    topic_id: str
    origin: Replicas
    planned_from: Replicas
    target: Replicas
    size_bytes: int = 0
    origin_leader: BrokerId | None = None
    elects: bool = False
    first_call: Replicas = ()
    on_record: bool = True

    @property
    def fewest(self) -> int:
        """The fewest replicas that a step of ours leaves: a shorter list comes from another tool."""
        return min(len(self.origin), len(self.planned_from), len(self.target))

    @property
    def most(self) -> int:
        """How many replicas the partition may have at a rest point."""
        return max(len(self.origin), len(self.target))

    @property
    def known(self) -> frozenset[BrokerId]:
        """The brokers on which the run can have put the partition: a replica elsewhere comes from another tool."""
        return frozenset((*self.origin, *self.planned_from, *self.target))


def drift(move: PartitionMove, replicas: Replicas) -> str:
    """Why another tool must have changed the partition, which has these replicas at rest; empty: it need not have."""
    if replicas == move.planned_from:
        return ""
    if not move.known.issuperset(replicas):
        return f"another tool changed its replicas: {list(replicas)} are neither original nor planned"
    if len(replicas) < move.fewest:
        return f"another tool removed replicas: {list(replicas)} are fewer than any step leaves"
    return ""


def resized(move: PartitionMove, state: PartitionState) -> str:
    """Why another tool must have changed the replication factor; empty: it need not have."""
    if state.replicas == move.target or len(state.replicas) == len(move.planned_from) or not is_by_others(move, state):
        return ""
    return f"another tool changed its replication factor: {list(state.replicas)}"


def changed_instead(move: PartitionMove, state: PartitionState) -> str:
    """Why another tool must have changed the partition before the run did; empty: it need not have."""
    if not move.first_call or carried_out(move.origin, move.first_call, state) is not None:
        return ""
    if state.in_flight:
        return "another tool is reassigning the partition"
    return f"another tool changed its replicas: {list(state.replicas)} are not what the first call of the run makes"


def is_by_others(move: PartitionMove, state: PartitionState) -> bool:
    """Whether the run has sent the partition nothing, or not what it is now."""
    return not move.on_record or bool(changed_instead(move, state))


def keeps_its_list(move: PartitionMove, state: PartitionState) -> bool:
    """Whether the run has sent nothing that changes the list: if it has another order, others have given it that."""
    return move.first_call == move.origin and not state.in_flight and set(state.replicas) == set(move.origin)
