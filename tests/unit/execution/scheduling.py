"""Short builders of statuses, shares and limits for the schedule tests."""

from kafka_rebalance.execution.limits import Ceilings, Limits
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.schedule import RebalanceShare, schedule
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of

MANY = 2**31 - 1
NO_CEILINGS = Ceilings()


def copying(*to, source=1, leads=False, started=False):
    """Ready: broker ``source`` leads and will send a copy to each of ``to``."""
    call = Alter(replicas_of(source, *to), until_in_sync=replicas_of(*to))
    return PartitionStatus(MovePhase.READY, call=call, leader_movement=leads, started=started)


def flying(*to, source=1, leads=False):
    """In flight: broker ``source`` leads and sends a copy to each of ``to``."""
    return PartitionStatus(MovePhase.IN_FLIGHT, step=replicas_of(source, *to), leader_movement=leads, started=True)


def stuck(*to, source=1, ours):
    """In flight and not cancellable: one of ours, or a foreign reassignment."""
    return PartitionStatus(MovePhase.WAITING, step=replicas_of(source, *to), started=ours)


CANCEL = PartitionStatus(MovePhase.READY, cancel=True, started=True)
ELECTION = PartitionStatus(MovePhase.READY, call=Elect(BrokerId(1)), leader_movement=True)
DROP = PartitionStatus(MovePhase.READY, call=Alter(replicas_of(1, 2)), started=True)


def tps(*names):
    """Split ``t-3`` into topic and partition number."""
    return [TopicPartition(name.rsplit("-", 1)[0], int(name.rsplit("-", 1)[1])) for name in names]


def by_name(mapping):
    return {tps(name)[0]: value for name, value in mapping.items()}


def limits(p=100, leaders=100, copies=MANY, to=None, out=None, parallel_replicas=1):
    return Limits(parallel_replicas, p, leaders, copies, to, out)


def share(statuses, within=None, sizes=None):
    return RebalanceShare(by_name(statuses), by_name(sizes or {}), within or limits())


def cluster_of(*shares):
    """Cluster metadata that matches these statuses."""
    partitions = {}
    for tp, status in (item for part in shares for item in part.statuses.items()):
        copies = isinstance(status.call, Alter) and status.call.until_in_sync
        replicas = status.call.replicas if copies else status.step or replicas_of(1, 2)
        adding = replicas[1:] if status.step else ()
        leads = replicas[0]
        shown = replicas[:1] if copies else replicas
        partitions[tp] = PartitionState(tp, "", shown, frozenset({leads}), leads, adding)
    return ClusterState("c", {BrokerId(b): Broker(BrokerId(b)) for b in range(30)}, partitions)


def sent(*shares, ceilings=NO_CEILINGS, **more):
    return schedule(shares, cluster_of(*shares), ceilings, **more)


def chosen(statuses, *, sizes=None, **within):
    return sent(share(statuses, limits(**within), sizes))[0]


def names(orders):
    return [str(tp) for tp in orders.alters]
