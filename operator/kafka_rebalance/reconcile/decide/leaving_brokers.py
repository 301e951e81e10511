"""Which brokers other rebalances empty: no plan fills them meanwhile or afterwards, unless its spec names them. Pure.

A drained broker is about to be stopped. All of this is known from resources, their status and the records of their
runs, so a restart does not change it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reconcile.state.assessment import Drain, LeavingBroker
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.units import few

Drains = Sequence[tuple[Sequence[int], LeavingBroker]]
"""Brokers that rebalances empty, and by which one."""


def drain_of(rebalance: RebalanceView) -> LeavingBroker | None:
    """Whether the rebalance has drained the brokers that its spec names, or is draining them; None: neither."""
    name = rebalance.desired.name
    if (at := drained_at(rebalance)) is not None:
        return LeavingBroker(name, at)
    return LeavingBroker(name) if _is_draining(rebalance) else None


def leaving_brokers(drains: Drains) -> dict[BrokerId, LeavingBroker]:
    """All brokers that rebalances empty. That a broker is being drained counts most, then the latest proof."""
    found = dict[BrokerId, LeavingBroker]()
    for brokers, row in sorted(drains, key=_by_time_of_proof):
        found.update(dict.fromkeys(map(BrokerId, brokers), row))
    return found


def _by_time_of_proof(drain: tuple[Sequence[int], LeavingBroker]) -> tuple[bool, float]:
    at = drain[1].drained
    return at is None, at.timestamp() if at is not None else 0.0


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


def not_named(rebalance: RebalanceView, brokers: Iterable[BrokerId]) -> dict[BrokerId, LeavingBroker]:
    """Those of these brokers that leave, and that the spec, as far as it is known, does not name.

    One that names a broker, or gives the lists, may fill it all the same, and so may one that was created after the
    broker was drained: it is a newer order.
    """
    spec, created = rebalance.desired.spec, rebalance.desired.metadata.creation_timestamp
    leaving = rebalance.assessment.leaving
    if not leaving or spec.assignment is not None or rebalance.desired.never_read:
        return {}
    named = {*spec.brokers.include, *spec.brokers.decommission}

    def is_older(drained: datetime | None) -> bool:
        return drained is None or created is None or created <= drained

    found = {broker: leaving[broker] for broker in brokers if broker in leaving and broker not in named}
    return {broker: row for broker, row in found.items() if is_older(row.drained)}


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


def filling(rebalances: Iterable[RebalanceView], orders: Mapping[str, Orders]) -> dict[BrokerId, dict[str, str]]:
    """By broker in a list of these orders, which are by uid: the uid and the name of the rebalances that send it."""
    found: defaultdict[BrokerId, dict[str, str]] = defaultdict(dict)
    for rebalance in rebalances:
        lists = orders.get(rebalance.desired.uid, Orders()).alters.values()
        for broker in frozenset().union(*lists):
            found[broker][rebalance.desired.uid] = rebalance.desired.name
    return dict(found)


def on_drained(
    leaving: Mapping[BrokerId, LeavingBroker], partitions: Mapping[TopicPartition, PartitionState]
) -> dict[BrokerId, TopicPartition]:
    """The drained brokers that hold a replica, with the first partition of theirs."""
    drained = {broker for broker, row in leaving.items() if row.drained is not None}
    found = dict[BrokerId, TopicPartition]()
    for tp, state in partitions.items() if drained else ():
        for broker in state.replicas:
            if broker in drained:
                found.setdefault(broker, tp)
    return found


def held_again(rebalance: RebalanceView, held: Mapping[BrokerId, TopicPartition]) -> Drain | None:
    """What is to be said of the brokers that it has drained if others hold replicas on them (see ``on_drained``)."""
    leaving = frozenset(map(BrokerId, rebalance.desired.spec.brokers.decommission))
    if not (again := sorted(leaving & held.keys())):
        return None
    message = f"brokers {few(again, 10)} hold replicas again, for example of {held[again[0]]}"
    return Drain(leaving, empty=False, message=message)


def filled_again(rebalance: RebalanceView, fill: Mapping[BrokerId, Mapping[str, str]]) -> Drain | None:
    """What is to be said of the brokers that it has drained if others ``fill`` one of them now (see ``filling``)."""
    leaving = frozenset(map(BrokerId, rebalance.desired.spec.brokers.decommission))
    filled = sorted(leaving & fill.keys())
    for broker in filled:
        other = next((uid for uid in fill[broker] if uid != rebalance.desired.uid), None)
        if other is not None:
            names = few([at for at in filled if other in fill[at]], 10)
            by = fill[broker][other]
            return Drain(leaving, empty=False, message=f"{by} moves replicas to brokers {names} again")
    return None
