"""How fast brokers send and fetch, derived from the growth of new replicas between two readings."""

import pytest

from kafka_rebalance.execution.reassignment_throttle import Side
from kafka_rebalance.execution.traffic import Reading, read, traffic
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

ONE, TWO, THREE, FOUR = replicas_of(1, 2, 3, 4)
ALL = frozenset((ONE, TWO, THREE, FOUR))


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def reading(at: float, held: dict[int, dict[BrokerId, int]], answered: frozenset[BrokerId] = ALL) -> Reading:
    return Reading(at, {tp(number): sizes for number, sizes in held.items()}, answered)


class TestTraffic:
    """A copy counts on both sides: its leader sends, its destination fetches."""

    def test_both_sides(self) -> None:
        """The leader's side carries every copy of its partitions, each destination only its own."""
        before = reading(10.0, {0: {THREE: 1000, FOUR: 0}, 1: {THREE: 500}})
        after = reading(12.0, {0: {THREE: 1400, FOUR: 200}, 1: {THREE: 900}})
        assert traffic(before, after, {tp(0): ONE, tp(1): TWO}) == {
            (ONE, Side.LEADER): 300,
            (TWO, Side.LEADER): 200,
            (THREE, Side.FOLLOWER): 400,
            (FOUR, Side.FOLLOWER): 100,
        }

    def test_standing_still_is_known(self) -> None:
        """A shrinking log (truncated) is no traffic."""
        before, after = reading(0.0, {0: {THREE: 10}, 1: {FOUR: 10}}), reading(1.0, {0: {THREE: 10}, 1: {FOUR: 5}})
        found = traffic(before, after, {tp(0): ONE, tp(1): ONE})
        assert found == {(ONE, Side.LEADER): 0, (THREE, Side.FOLLOWER): 0, (FOUR, Side.FOLLOWER): 0}

    def test_a_copy_that_began_in_between(self) -> None:
        """It starts from nothing, unless its broker did not answer before: then its earlier size is unknown."""
        after = reading(2.0, {0: {THREE: 100}})
        assert traffic(reading(0.0, {}), after, {tp(0): ONE})[THREE, Side.FOLLOWER] == 50
        assert traffic(reading(0.0, {}, answered=frozenset((ONE,))), after, {tp(0): ONE}) == {}

    def test_a_copy_that_ended_in_between(self) -> None:
        """Left out: the bytes fetched last are in no reading."""
        assert traffic(reading(0.0, {0: {THREE: 100}}), reading(1.0, {}), {tp(0): ONE}) == {}

    @pytest.mark.parametrize("leaders", [{}, {tp(0): None}])
    def test_without_a_leader(self, leaders: dict[TopicPartition, BrokerId | None]) -> None:
        """The fetched bytes are still known."""
        before, after = reading(0.0, {0: {THREE: 0}}), reading(1.0, {0: {THREE: 7}})
        assert traffic(before, after, leaders) == {(THREE, Side.FOLLOWER): 7}

    def test_a_new_replica_that_leads_fetches_from_nobody(self) -> None:
        """It grows by what producers write."""
        before, after = reading(0.0, {0: {THREE: 0, FOUR: 0}}), reading(1.0, {0: {THREE: 9, FOUR: 5}})
        assert traffic(before, after, {tp(0): THREE}) == {(THREE, Side.LEADER): 5, (FOUR, Side.FOLLOWER): 5}

    @pytest.mark.parametrize("at", [1.0, 0.5])
    def test_no_time_has_passed(self, at: float) -> None:
        assert traffic(reading(1.0, {0: {THREE: 0}}), reading(at, {0: {THREE: 9}}), {tp(0): ONE}) == {}


class TestRead:
    def test_only_what_is_being_added(self) -> None:
        """Sizes of the replicas being added, where the broker answered; and which brokers answered."""
        moving = PartitionState(tp(0), "", replicas_of(3, 4, 1), frozenset(replicas_of(1)), ONE, adding=(THREE, FOUR))
        resting = PartitionState(tp(1), "", replicas_of(1), frozenset(replicas_of(1)), ONE)
        sizes = {(tp(0), ONE): 100, (tp(0), THREE): 40, (tp(1), ONE): 7}
        answered = frozenset((ONE, THREE))
        assert read(5.0, [moving, resting], sizes, answered) == Reading(5.0, {tp(0): {THREE: 40}}, answered)
