"""The exchange of large partitions for small ones."""

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.problem.instance import Instance, encode
from kafka_rebalance.planning.replicas.fewer_bytes import fewer_bytes


def instance(lists: list[list[int]], size: list[int], eligible: list[bool]) -> Instance:
    rf = np.array([len(row) for row in lists], dtype=np.int64)
    return encode(
        [None] * len(eligible),
        np.array(eligible),
        rf,
        np.array([b for row in lists for b in row], dtype=np.int64),
        RackAwareness.ENFORCED,
        size=np.array(size, dtype=np.int64),
    )


def test_a_small_partition_moves_instead_of_a_large_one() -> None:
    """One copy goes from broker 0 to the new broker 1: that of the smallest partition."""
    given = instance([[0], [0], [0]], [9, 1, 5], [True, True])
    copies = Copies.of_lists(given, np.array([1, 0, 0], dtype=np.int32))
    assert fewer_bytes(copies).broker_of_slot.tolist() == [0, 1, 0]


def test_all_copies_of_a_small_partition_move() -> None:
    """Two copies go to new brokers: both of the smallest partition, though one of another moved before."""
    given = instance([[0, 1], [0, 1], [0, 1]], [9, 1, 5], [True] * 4)
    copies = Copies.of_lists(given, np.array([2, 1, 0, 1, 0, 3], dtype=np.int32))
    found = fewer_bytes(copies)
    assert found.data() == 2
    assert found.moves() == copies.moves() == 2
    assert sorted(found.broker_of_slot[2:4].tolist()) == [2, 3]


def test_forced_moves_stay() -> None:
    """Broker 0 departs: its copies of all sizes move."""
    given = instance([[0], [0], [1]], [9, 1, 5], [False, True, True])
    copies = Copies.of_lists(given, np.array([1, 2, 1], dtype=np.int32))
    assert fewer_bytes(copies).broker_of_slot.tolist() == [1, 2, 1]
