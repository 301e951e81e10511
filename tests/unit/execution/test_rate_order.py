"""In which order partitions move within the limits of rates, and which of them may not begin now."""

import pytest

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution import room_order
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.rate_order import held_back, rate_order, refuse_unordered
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.rate_room import RateKey, RateRoom
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

BYTES_IN, LEADER, OUT = LoadResource.BYTES_IN, LoadResource.LEADER_BYTES_IN, LoadResource.BYTES_OUT


def tp(number):
    return TopicPartition("t", number)


def key(broker, resource=BYTES_IN):
    return RateKey(BrokerId(broker), resource)


def plan(*rows, resource=BYTES_IN, **free):
    """Rows (list now, list then, bytes per second): partition i. ``free`` by broker: b1=..."""
    planned = tuple(
        PlannedPartition(tp(i), replicas_of(*now), replicas_of(*then)) for i, (now, then, _) in enumerate(rows)
    )
    room = RateRoom(
        {key(int(name[1:]), resource): rate for name, rate in free.items()},
        {tp(i): {resource: rate} for i, (_, _, rate) in enumerate(rows)},
    )
    return Plan(planned, Certificate(0, optimal=True), rate_room=room)


def numbers(made):
    """The partitions in order, and those that are stuck."""
    order = rate_order(made)
    return [p.tp.partition for p in order.paths], [p.tp.partition for p in order.stuck]


def state(number, replicas, leader=None, adding=()):
    held = replicas_of(*replicas)
    leader = BrokerId(leader if leader is not None else held[0])
    return PartitionState(tp(number), "", held, frozenset(held), leader, replicas_of(*adding))


def held(made, states, phases=None, direction=Direction.FORWARD, **more):
    """What may not begin: partition -> broker. Statuses: ready, unless ``phases`` has another one."""
    found = {s.tp: PartitionStatus((phases or {}).get(s.tp.partition, MovePhase.READY)) for s in states}
    rows = held_back(rate_order(made), found, {s.tp: s for s in states}, direction, **more)
    return {row.partition: rate.broker for row, rate in rows.items()}


SWAP = plan(([2], [1], 40), ([1], [2], 60), b1=0, b2=60)
"""Broker 1 has no room before partition 1 has left it."""


class TestOrder:
    def test_what_makes_room_comes_first(self):
        """The two exchange brokers: 60 fits on broker 2, and then 40 on broker 1."""
        assert numbers(SWAP) == ([1, 0], [])

    def test_what_only_leaves_comes_first(self):
        """It takes nothing that is tight, but the rollback has to know its place."""
        assert numbers(plan(([2], [1], 40), ([1], [3], 60), b1=0)) == ([1, 0], [])

    def test_a_leader_counts_on_the_old_and_the_new_broker(self):
        """Both lead at some time before the partition arrives. Followers count nothing."""
        made = plan(([2, 1], [1, 2], 40), ([1, 2], [2, 1], 60), resource=LEADER, b1=0, b2=60)
        assert numbers(made) == ([1, 0], [])
        first, _ = rate_order(made).paths
        assert (first.before, first.on_the_way, first.after) == (
            {key(1, LEADER): 60},
            {key(1, LEADER): 60, key(2, LEADER): 60},
            {key(2, LEADER): 60},
        )

    def test_without_tight_rates(self):
        """Any order will do."""
        made = Plan((), Certificate(0, optimal=True))
        assert rate_order(made) is None
        refuse_unordered(made)


class TestRefusal:
    def test_an_order(self):
        refuse_unordered(SWAP)

    def test_no_order(self):
        """Each would have to leave before the other one comes. The message has the broker and the figures."""
        made = plan(([2], [1], 40), ([1], [2], 60), b1=39, b2=59)
        with pytest.raises(Refused, match=r"of BytesIn, broker 1 has 39 B/s free .* t-0 would bring 40 B/s") as refused:
            refuse_unordered(made)
        assert refused.value.reason == "CapacityLimitExceeded"

    def test_an_order_that_was_not_found(self, monkeypatch):
        """The search has a fixed effort. Each of the moves fits, and yet it is not known that all of them do."""
        monkeypatch.setattr(room_order, "_FEWEST", 0)
        monkeypatch.setattr(room_order, "_MOST", 0)
        monkeypatch.setattr(room_order, "_MOST_TRIED", 0)
        made = plan(([2], [1], 40), ([2], [1], 40), ([1], [2], 30), ([1], [2], 30), b1=60, b2=50)
        with pytest.raises(Refused, match="no order of 4 of the moves was found") as refused:
            refuse_unordered(made)
        assert refused.value.reason == "CapacityLimitExceeded"


class TestForward:
    def test_what_comes_later_waits(self):
        """Broker 1 has no room."""
        assert held(SWAP, [state(0, [2]), state(1, [1])]) == {0: 1}

    def test_until_the_old_replica_is_dropped(self):
        """Until then both brokers carry the partition, in flight or between two calls."""
        assert held(SWAP, [state(0, [2]), state(1, [2, 1], 1, adding=[2])], {1: MovePhase.IN_FLIGHT}) == {0: 1}
        assert held(SWAP, [state(0, [2]), state(1, [2, 1])]) == {0: 1}
        assert held(SWAP, [state(0, [2]), state(1, [2])], {1: MovePhase.DONE}) == {}

    def test_until_the_new_leader_leads(self):
        """The list is final, and the old leader still leads."""
        made = plan(([2, 1], [1, 2], 40), ([1, 2], [2, 1], 60), resource=LEADER, b1=0, b2=60)
        assert held(made, [state(0, [2, 1]), state(1, [2, 1], 1)]) == {0: 1}
        assert held(made, [state(0, [2, 1]), state(1, [2, 1], 2)], {1: MovePhase.DONE}) == {}

    def test_what_has_begun_goes_on(self):
        """Whatever is free: it was counted when it began."""
        made = plan(([2], [1], 40), ([1], [2], 60), b1=0, b2=0)
        assert held(made, [state(0, [1, 2]), state(1, [2, 1])]) == {}

    def test_room_is_kept_for_what_comes_before(self):
        """5 would fit on broker 2, and then 60 would not: the exchange could never begin."""
        made = plan(([3], [2], 5), ([1], [2], 60), ([2], [1], 60), b1=0, b2=60)
        states = [state(0, [3]), state(1, [1]), state(2, [2])]
        assert held(made, states) == {0: 2, 2: 1}
        assert held(made, states, {1: MovePhase.WAITING}) == {0: 2, 2: 1}

    def test_no_room_is_kept_for_what_is_left_alone(self):
        made = plan(([3], [2], 5), ([1], [2], 60), ([2], [1], 60), b1=0, b2=60)
        states = [state(0, [3]), state(1, [1]), state(2, [2])]
        assert held(made, states, {1: MovePhase.SKIPPED}) == {2: 1}

    def test_all_that_fit_together_begin_together(self):
        made = plan(([1], [2], 60), ([1], [2], 40), ([2], [1], 50), ([2], [1], 50), b1=0, b2=100)
        assert held(made, [state(0, [1]), state(1, [1]), state(2, [2]), state(3, [2])]) == {2: 1, 3: 1}


class TestBack:
    def test_the_order_is_reversed(self):
        """Both have arrived: what came last leaves first."""
        assert held(SWAP, [state(0, [1]), state(1, [2])], direction=Direction.ROLLBACK) == {1: 1}

    def test_what_only_left_waits_for_its_room(self):
        made = plan(([2], [1], 60), ([1], [3], 60), b1=0)
        assert held(made, [state(0, [1]), state(1, [3])], direction=Direction.ROLLBACK) == {1: 1}

    def test_what_has_not_begun_stays_where_it_counts(self):
        """Only what was sent something goes back; it makes the way back no longer."""
        assert held(SWAP, [state(1, [2])], direction=Direction.ROLLBACK) == {}

    def test_it_never_stops_because_of_a_limit(self):
        """No order of these is known: one after the other begins, as long as nothing else goes on."""
        made = plan(([2], [1], 40), ([1], [2], 60), b1=0, b2=0)
        arrived = [state(0, [1]), state(1, [2])]
        assert held(made, arrived, direction=Direction.ROLLBACK) in ({0: 2}, {1: 1})
        assert held(made, arrived, direction=Direction.FORWARD) == {}

    def test_nor_because_of_a_limit_and_a_full_disk(self):
        """The one that would make room cannot move before the one that is held back has left its new broker."""
        arrived = [state(0, [1]), state(1, [2])]
        assert held(SWAP, arrived, direction=Direction.ROLLBACK, no_room={tp(0)}) == {}
        assert held(SWAP, arrived, {0: MovePhase.IN_FLIGHT}, Direction.ROLLBACK, no_room={tp(0)}) == {1: 1}
        assert held(SWAP, [state(0, [2]), state(1, [1])], no_room={tp(1)}) == {0: 1}

    def test_nor_because_the_first_one_has_no_room_on_a_disk_either(self):
        """The next one is tried then; the first one stays free to begin, so that each is tried in the end."""
        made = plan(([2], [1], 40), ([1], [2], 60), ([1], [2], 70), b1=0, b2=0)
        arrived = [state(0, [1]), state(1, [2]), state(2, [2])]
        assert set(held(made, arrived, direction=Direction.ROLLBACK)) == {0, 1}
        assert set(held(made, arrived, direction=Direction.ROLLBACK, no_room={tp(2)})) == {0}
        assert held(made, arrived, direction=Direction.ROLLBACK, no_room={tp(1), tp(2)}) == {}

    def test_a_revert_begins_nothing(self):
        assert held(SWAP, [state(0, [1]), state(1, [2])], direction=Direction.REVERT) == {}
