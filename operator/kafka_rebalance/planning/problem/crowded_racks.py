"""Sentences about brokers that end with much more than they have, because others of their rack leave.

The rack rule gives each rack its share of every partition, so the brokers that stay in a rack take over the replicas of
those that leave, even if other racks have more room.
"""

from collections import Counter
from itertools import compress

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.problem.encoding import NOWHERE, Encoded
from kafka_rebalance.planning.problem.instance import Bools, Indices, Ints
from kafka_rebalance.planning.problem.request import PlanRequest
from kafka_rebalance.units import format_bytes

_MUCH = 1.5
"""Times what a broker has, beyond the growth of the whole cluster."""
_NAMED = 5


def crowded_racks(request: PlanRequest, encoded: Encoded, lists: Indices) -> tuple[str, ...]:
    """At most six sentences; ``lists`` are the flat lists [N] of the plan."""
    instance = encoded.instance
    if request.goals.rack_awareness is RackAwareness.DISABLED or instance.eligible.all():
        return ()
    known = {b.id: b.rack for b in request.brokers}
    racks = [known.get(b) for b in encoded.brokers]
    replicas, data = _held(encoded, instance.broker_of_slot, instance.list_length)
    staying, leaving = (
        Counter(compress(racks, instance.eligible)),
        Counter(compress(racks, ~instance.eligible & (replicas > 0))),
    )
    if not {rack for rack in leaving if rack is not None} & staying.keys():
        return ()
    replicas_after, data_after = _held(encoded, lists, instance.rf)
    found = [
        f"{_broker(encoded.brokers[at], (replicas[at], replicas_after[at]), (data[at], data_after[at]))}: "
        + _why(rack, staying[rack], leaving[rack])
        for at in np.flatnonzero(
            instance.eligible & (_much(replicas, replicas_after) | _much(data, data_after))
        ).tolist()
        if (rack := racks[at]) is not None and leaving[rack]
    ]
    if (more := len(found) - _NAMED) <= 0:
        return tuple(found)
    return (*found[:_NAMED], f"{more} more brokers end with much more, because others of their racks leave")


def _held(encoded: Encoded, broker_of: Indices, lengths: Ints) -> tuple[Ints, Ints]:
    """The replicas and the bytes [B] of each broker. Brokers that do not exist hold nothing."""
    instance, exist = encoded.instance, np.array(encoded.brokers) < NOWHERE
    replicas = instance.fixed_replicas + np.bincount(broker_of, minlength=instance.brokers)
    data = np.bincount(broker_of, np.repeat(instance.size, lengths), instance.brokers).astype(np.int64)
    return replicas * exist, data * exist


def _much(before: Ints, after: Ints) -> Bools:
    """Whether a broker [B] that has replicas gets much more."""
    growth = float(after.sum()) / max(1.0, float(before.sum()))
    return (before > 0) & (after >= before * growth * _MUCH)


def _broker(broker: BrokerId, replicas: tuple[int, int], data: tuple[int, int]) -> str:
    sized = f" and {format_bytes(int(data[1]))} instead of {format_bytes(int(data[0]))}" if data[0] else ""
    return f"broker {broker} ends with {replicas[1]} replicas instead of {replicas[0]}{sized}"


def _why(rack: str, staying: int, leaving: int) -> str:
    if staying == 1:
        return f"it is the last broker of rack {rack}, and takes over what the others there had"
    return f"rack {rack} keeps {staying} of {staying + leaving} brokers, which take over what the others there had"
