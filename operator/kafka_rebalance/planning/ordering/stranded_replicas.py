"""The order within lists when a movement budget leaves replicas on brokers that are not eligible.

Such a stranded replica leads only if its partition has no other replica, or if the goals keep leaders. The rest of the
list is ordered without it. It keeps its position if the goals keep the follower order, else it goes last.
"""

from dataclasses import replace

import numpy as np

from kafka_rebalance.planning.ordering.arranging import arranged
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Indices, Instance
from kafka_rebalance.planning.problem.request import Goals


def order_around_stranded(copies: Copies, goals: Goals) -> Indices:
    """The flat lists [N]."""
    instance = copies.instance
    stays = instance.eligible[copies.broker_of_slot]
    if stays.all():
        return arranged(instance, copies, goals)
    lists = copies.broker_of_slot.copy()
    if not stays.any():
        return lists
    rest = _without_stranded(instance, stays)
    part = Copies(rest, np.zeros(0, dtype=np.int64))
    part.broker_of_slot = copies.broker_of_slot[stays]
    lists[stays] = arranged(rest, part, goals)
    for p in np.unique(instance.partition_of_slot[~stays]).tolist():
        slots = np.arange(int(instance.start[p]), int(instance.start[p] + instance.rf[p]))
        lists[slots] = _woven(lists[slots].tolist(), stays[slots].tolist(), goals)
    return lists


def _without_stranded(instance: Instance, stays: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Instance:
    """The instance with only these slots."""
    rf = np.bincount(instance.partition_of_slot[stays], minlength=len(instance.rf))
    alive = rf > 0
    kinds, kind = np.unique(rf[alive], return_inverse=True)
    return replace(
        instance,
        rf=rf[alive],
        list_length=rf[alive],
        broker_of_slot=instance.broker_of_slot[stays],
        kind=kind.astype(np.int64),
        kinds=kinds,
        rack_capacity=np.minimum(kinds[:, None], instance.group_size[None, :]),
        rack_excess=np.zeros(len(kinds), dtype=np.int64),
        topic=instance.topic[alive],
        size=instance.size[alive],
    )


def _woven(row: list[int], stays: list[bool], goals: Goals) -> list[int]:
    """The row with its stranded replicas in their positions; the other positions have the ordered rest."""
    rest = [b for b, here in zip(row, stays, strict=True) if here]
    for place, (b, here) in enumerate(zip(row, stays, strict=True)):
        if here:
            continue
        if place == 0 and not goals.leaders:
            rest.insert(0, b)
        elif goals.follower_order:
            rest.append(b)
        else:
            rest.insert(max(place, 1), b)
    return rest
