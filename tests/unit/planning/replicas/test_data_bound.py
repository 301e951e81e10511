"""The lower bound on bytes."""

import numpy as np
from tests.unit.planning.replicas.test_fewer_bytes import instance

from kafka_rebalance.planning.problem.copies import Copies
from kafka_rebalance.planning.replicas.data_bound import data_bound


def test_the_smallest_copies_of_the_broker_that_has_too_many() -> None:
    """Three of broker 0's four copies are above the highest fair count, 1: two are sure to leave, the smallest."""
    given = instance([[0], [0], [0], [0], [1]], [8, 4, 2, 9, 1], [True] * 4)
    copies = Copies.of_lists(given, np.array([2, 3, 2, 0, 1], dtype=np.int32))
    assert data_bound(copies, 3) == 2 + 4 + 1
    assert data_bound(copies, 3, fair_totals=False) == 1 + 2 + 4


def test_copies_of_departing_brokers_are_certain() -> None:
    given = instance([[0], [1]], [7, 3], [False, True])
    assert data_bound(Copies.of_lists(given, np.array([1, 1], dtype=np.int32)), 1) == 7


def test_equal_sizes_have_no_bound() -> None:
    given = instance([[0], [0]], [7, 7], [True, True])
    assert data_bound(Copies.of_lists(given, np.array([1, 0], dtype=np.int32)), 1) == 0
