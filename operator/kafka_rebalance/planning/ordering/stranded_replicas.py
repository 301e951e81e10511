"""The order within lists when a budget leaves copies on brokers that may hold nothing.

Such a copy leads only where its partition has no other one, or where leaders are to stay; the rest of the list is
ordered as if it was not there. Where followers are to stay in order it keeps its place, else it goes last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Indices, Instance
from kafka_rebalance.planning.problem.request import Goals

Order = Callable[[Copies, Goals], Indices]
"""Gives all lists, one behind the other."""


def order_around_stranded(copies: Copies, goals: Goals, order: Order) -> Indices:
    """All lists [N], one behind the other; ``order`` is asked where no copy is left behind."""
    instance = copies.instance
    stays = instance.eligible[copies.broker_of_slot]
    if stays.all():
        return order(copies, goals)
    lists = copies.broker_of_slot.copy()
    if not stays.any():
        return lists
    rest = _without_stranded(instance, stays)
    part = Copies(rest, np.zeros(0, dtype=np.int64))
    part.broker_of_slot = copies.broker_of_slot[stays]
    lists[stays] = order(part, goals)
    for p in np.unique(instance.partition_of_slot[~stays]).tolist():
        slots = np.arange(int(instance.start[p]), int(instance.start[p] + instance.rf[p]))
        lists[slots] = _woven(lists[slots].tolist(), stays[slots].tolist(), goals)
    return lists


def _without_stranded(instance: Instance, stays: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Instance:
    """The instance as if only these slots existed."""
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
    """The row with what is left behind where it belongs; the ordered rest lies in the other places."""
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
