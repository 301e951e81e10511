"""Leaderships handed over by flows: directly, through a third broker, and to partitions without a leader."""

import numpy as np

from kafka_rebalance.planning.ordering.handover import NOBODY, LeaderShares, needs, one_step, two_steps


def shares(*least: int, spare: int = 0) -> LeaderShares:
    return LeaderShares(np.array(least), np.full(len(least), fill_value=True), spare)


def handovers(*rows: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of (partition, giver, taker)."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


class TestNeeds:
    def test_what_is_above_the_least_and_below_it(self) -> None:
        """4, 1, 1 leaders where each gets two, and none may have three."""
        need = needs(np.array([4, 1, 1]), LeaderShares(np.array([2, 2, 2]), np.zeros(3, dtype=np.bool_), 0))
        assert (need.gives.tolist(), need.takes.tolist(), need.give, need.take) == ([2, 0, 0], [0, 1, 1], 0, 0)

    def test_spare_ones_stay_where_they_are(self) -> None:
        """3, 3, 1 leaders with shares of two and one spare: either of the first two keeps its third."""
        need = needs(np.array([3, 3, 1]), shares(2, 2, 2, spare=1))
        assert need.gives.tolist() == [0, 0, 0]
        assert (need.may_give.tolist(), need.give, need.total) == ([True, True, False], 1, 1)

    def test_a_spare_leadership_goes_to_a_broker_that_may_have_it(self) -> None:
        """4, 2, 2 leaders with shares of two and two spare: one of the others gets the second spare."""
        need = needs(np.array([4, 2, 2]), shares(2, 2, 2, spare=2))
        assert need.gives.tolist() == [1, 0, 0]
        assert (need.may_take.tolist(), need.take, need.total) == ([False, True, True], 1, 1)


class TestOneStep:
    def test_as_many_as_can_be(self) -> None:
        """Partition 0 could go to 1 or 2, partition 1 only to 1: both find a taker."""
        need = needs(np.array([4, 1, 1]), shares(2, 2, 2))
        chosen = one_step(need, *handovers((0, 0, 1), (0, 0, 2), (1, 0, 1)))
        assert chosen.tolist() == [1, 2]

    def test_a_partition_without_a_leader_gets_one(self) -> None:
        need = needs(np.array([2, 1]), shares(2, 2))
        assert one_step(need, *handovers((7, NOBODY, 1))).tolist() == [0]

    def test_nobody_gives_more_than_it_has_too_many(self) -> None:
        need = needs(np.array([3, 0, 0]), shares(2, 1, 1))
        assert len(one_step(need, *handovers((0, 0, 1), (1, 0, 1), (2, 0, 2)))) == 1


class TestTwoSteps:
    def test_by_way_of_a_third(self) -> None:
        """0 leads too many, 2 too few, and they share no partition: 1 takes one and hands over another."""
        need = needs(np.array([3, 2, 1]), shares(2, 2, 2))
        first, second = two_steps(need, handovers((0, 0, 1), (1, 0, 1)), handovers((5, 1, 2), (6, 1, 2)))
        assert len(first) == len(second) == 1
