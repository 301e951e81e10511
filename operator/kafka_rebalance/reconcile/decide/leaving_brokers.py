"""Which brokers other rebalances empty: no plan fills them meanwhile or afterwards, unless its spec names them. Pure.

A drained broker is about to be stopped. All of this is known from resources, their status and the records of their
runs, so a restart does not change it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.assessment import Drain, LeavingBroker
from kafka_rebalance.reconcile.state.rebalance import RebalanceView


def leaving_brokers(rebalances: Iterable[RebalanceView]) -> dict[BrokerId, LeavingBroker]:
    """The brokers that the rebalances have drained, and those that they are draining."""
    drained, being_drained = dict[BrokerId, LeavingBroker](), dict[BrokerId, LeavingBroker]()
    for rebalance in rebalances:
        leaving, name = map(BrokerId, rebalance.desired.spec.brokers.decommission), rebalance.desired.name
        if (at := drained_at(rebalance)) is not None:
            drained |= dict.fromkeys(leaving, LeavingBroker(name, at))
        elif _is_draining(rebalance):
            being_drained |= dict.fromkeys(leaving, LeavingBroker(name))
    return drained | being_drained


def drained_at(rebalance: RebalanceView) -> datetime | None:
    """When its last status said that the brokers which its spec names now are drained; None: it does not say that."""
    desired = rebalance.desired
    if not desired.spec.brokers.decommission or desired.deleting:
        return None
    if rebalance.record.was_read and not _goes_by_its_spec(rebalance):
        return None
    status = rebalance.memory.written or desired.status
    said = find_condition(status.conditions, ConditionType.DRAINED)
    return said.last_transition_time if said is not None and said.status == "True" else None


def _is_draining(rebalance: RebalanceView) -> bool:
    """Whether its run has begun to empty brokers of everything. A spec that selects topics may keep the brokers."""
    topics, run = rebalance.desired.spec.topics, rebalance.record.open_run
    if topics.include or topics.exclude or rebalance.desired.deleting or rebalance.held_by is not None:
        return False
    return run is not None and run.started and _goes_by_its_spec(rebalance)


def _goes_by_its_spec(rebalance: RebalanceView) -> bool:
    run = rebalance.record.run
    return run is not None and not run.undo and run.planning_hash == rebalance.desired.planning_hash


def not_named(rebalance: RebalanceView, leaving: Mapping[BrokerId, LeavingBroker]) -> dict[BrokerId, LeavingBroker]:
    """Those that the spec, as far as it is known, does not name.

    One that names a broker, or gives the lists, may fill it all the same, and so may one that was created after the
    broker was drained: it is a newer order.
    """
    spec, created = rebalance.desired.spec, rebalance.desired.metadata.creation_timestamp
    if not leaving or spec.assignment is not None or rebalance.desired.never_read:
        return {}
    named = {*spec.brokers.include, *spec.brokers.decommission}

    def is_older(drained: datetime | None) -> bool:
        return drained is None or created is None or created <= drained

    return {broker: row for broker, row in leaving.items() if broker not in named and is_older(row.drained)}


def to_avoid(
    leaving: Mapping[BrokerId, LeavingBroker], partitions: Mapping[TopicPartition, PartitionState]
) -> set[BrokerId]:
    """Those that are to get no replicas.

    A drained broker that holds a replica is in use again, and its id may be that of another server now.
    """
    drained = {broker for broker, row in leaving.items() if row.drained is not None}
    empty = set(drained)
    for state in partitions.values():
        if not empty:
            break
        empty.difference_update(state.replicas)
    return leaving.keys() - (drained - empty)


def filled_again(rebalance: RebalanceView, others: Iterable[RebalanceView]) -> Drain | None:
    """What is to be said of the brokers that it has drained if one of the ``others`` sends replicas there now."""
    leaving = frozenset(map(BrokerId, rebalance.desired.spec.brokers.decommission))
    for other in others:
        sent, run, direction = other.assessment.sent, other.record.loaded_run, other.assessment.judgement.direction
        if other is rebalance or run is None or not sent or direction is Direction.REVERT:
            continue
        goals = run.goals if direction is Direction.FORWARD else run.starts
        filled = {broker for tp in sent for broker in leaving.intersection(goals[tp])}
        if filled:
            names = ", ".join(str(broker) for broker in sorted(filled))
            return Drain(leaving, empty=False, message=f"{other.desired.name} moves replicas to brokers {names} again")
    return None
