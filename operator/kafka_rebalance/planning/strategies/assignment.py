"""The strategy Assignment: the user's lists, checked. Partitions without a list do not change."""

from collections.abc import Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.topology import BrokerId, Replicas, TopicPartition
from kafka_rebalance.planning.problem.request import PartitionInput, PlanRequest
from kafka_rebalance.reasons import Reason


def check_assignment(request: PlanRequest) -> Mapping[TopicPartition, Replicas]:
    """The lists of ``request.assignment``. Refused names the first partition, in order, with an invalid list."""
    known = {p.tp: p for p in request.partitions}
    brokers = frozenset(b.id for b in request.brokers)
    for tp, replicas in sorted(request.assignment.items()):
        if tp not in known:
            raise Refused(Reason.UNKNOWN_PARTITION, f"the assignment names topic-partition {tp}, which is not selected")
        _check_list(known[tp], replicas, brokers, request)
    return request.assignment


def _check_list(p: PartitionInput, replicas: Replicas, brokers: frozenset[BrokerId], request: PlanRequest) -> None:
    where = f"the assignment of topic-partition {p.tp}"
    if not replicas:
        raise Refused(Reason.NO_REPLICAS, f"{where} is empty")
    if len(set(replicas)) != len(replicas):
        raise Refused(Reason.DUPLICATE_REPLICA, f"{where} names a broker twice: {list(replicas)}")
    for broker in replicas:
        if broker not in brokers:
            raise Refused(Reason.UNKNOWN_BROKER, f"{where} names broker {broker}; known brokers: {sorted(brokers)}")
    for broker in replicas:
        if broker not in request.targets:
            message = f"{where} names broker {broker}, which is not eligible; eligible: {sorted(request.targets)}"
            raise Refused(Reason.INELIGIBLE_BROKER, message)
    asked = request.replication_factor or len(p.replicas)
    if len(replicas) != asked:
        message = f"{where} has {len(replicas)} replicas instead of {asked}; set replicationFactor to change the number"
        raise Refused(Reason.REPLICATION_FACTOR_CHANGE, message)
    if p.pinned and replicas != p.replicas:
        raise Refused(Reason.PINNED_PARTITION, f"{where} would change it, and its topic is pinned")
