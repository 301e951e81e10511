"""A partition and its readings, for the tests of its status."""

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, Observation, judge
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of

TP = TopicPartition("orders", 0)
MOVE = PartitionMove(TP, "id-1", replicas_of(1, 2, 3), replicas_of(1, 2, 3), replicas_of(4, 5, 6))
FORWARD, ROLLBACK, REVERT = Direction.FORWARD, Direction.ROLLBACK, Direction.REVERT


def state(*ids, isr=None, leader=None, adding=(), removing=(), topic_id="id-1"):
    """The partition with these replicas; by default all but the added ones are in sync."""
    replicas = replicas_of(*ids)
    in_sync = frozenset(replicas if isr is None else isr) - (set(adding) if isr is None else set())
    first = next((b for b in replicas if b in in_sync), None)
    return PartitionState(
        TP, topic_id, replicas, in_sync, leader or first, replicas_of(*adding), replicas_of(*removing)
    )


def seen(partition=None, *, alive=range(1, 7), gone=(), min_insync=1):
    """A reading in which the brokers ``alive`` are live."""
    brokers = {BrokerId(b): Broker(BrokerId(b)) for b in alive}
    partitions = {} if partition is None else {TP: partition}
    return Observation(ClusterState("c", brokers, partitions), {TP.topic: min_insync}, gone)


def status_of(partition, direction=FORWARD, *, move=MOVE, paused=False, r=1, **more):
    """The status of the partition on its way through the move."""
    found = judge(move, seen(partition, **more), direction, r)
    return found.under_pause() if paused else found
