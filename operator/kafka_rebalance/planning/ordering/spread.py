"""The order within the lists of large clusters: leaders first, then each later position."""

import numpy as np

from kafka_rebalance.planning.ordering.chains import PairChains
from kafka_rebalance.planning.ordering.leaders import Leaders
from kafka_rebalance.planning.ordering.pairs import Pairs
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Indices
from kafka_rebalance.planning.problem.request import Goals


def spread(copies: Copies, goals: Goals) -> Indices:
    """The flat lists of all partitions [N]: the same copies, ordered by the goals."""
    leaders = Leaders(copies, goals)
    leaders.balance()
    if not goals.follower_order:
        return _in_present_order(copies, leaders.lists)
    for place in range(1, int(copies.instance.rf.max(initial=0)) - 1):
        pairs = Pairs(copies.instance, leaders.lists, place)
        pairs.even(leaders.lists)
        PairChains(pairs).run(leaders.lists)
    return leaders.lists


def _in_present_order(copies: Copies, lists: Indices) -> Indices:
    """Keep the leaders; followers stay in their present order, then new ones by id."""
    instance = copies.instance
    lists = lists.copy()
    changed = np.unique(instance.partition_of_slot[np.flatnonzero(lists != instance.broker_of_slot)])
    for piece in instance.chunks(changed):
        p = changed[piece]
        now, homes = instance.rows(lists, p), instance.rows(instance.broker_of_slot, p)
        place = np.where(now >= 0, now.astype(np.int64) + homes.shape[1] + 1, np.iinfo(np.int64).max)
        for column in range(homes.shape[1]):
            place = np.where((now == homes[:, column : column + 1]) & (now >= 0), column, place)
        place[:, 0] = -1
        ordered = np.take_along_axis(now, np.argsort(place, axis=1, kind="stable"), axis=1)
        instance.put(lists, p, ordered)
    return lists
