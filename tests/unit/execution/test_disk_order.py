"""In which order copies fit on the disks, and what each leaves free for those before it."""

from kafka_rebalance.execution.disk_order import Shift, disk_order, reservations
from kafka_rebalance.model.topology import BrokerId, TopicPartition


def tp(number):
    return TopicPartition("t", number)


def shifts(*rows):
    """Rows (from broker, to broker, bytes): partition i."""
    return [Shift(tp(i), {BrokerId(to): size}, {BrokerId(old): size}) for i, (old, to, size) in enumerate(rows)]


def room(**free):
    return {BrokerId(int(name[1:])): size for name, size in free.items()}


def order(rows, **free):
    """The numbers of the partitions to tight brokers in order, and of those that are stuck."""
    found = disk_order(shifts(*rows), room(**free))
    return [s.tp.partition for s in found.first], [s.tp.partition for s in found.stuck]


class TestOrder:
    def test_where_everything_fits(self):
        """No order is needed; a broker that does not tell its free bytes is not limited."""
        assert order([(1, 2, 60), (1, 2, 40), (2, 3, 999)], b2=100) == ([], [])

    def test_what_makes_room_comes_first(self):
        """A chain: 3 has room, then 2, then 1."""
        assert order([(2, 1, 50), (3, 2, 50), (1, 3, 60)], b1=0, b2=0, b3=60) == ([0, 1], [])

    def test_a_cycle_is_broken_where_there_is_most_room(self):
        """Two brokers swap: the copy to the one with room comes first."""
        assert order([(1, 2, 60), (2, 1, 60)], b1=0, b2=30) == ([], [0, 1])
        rows = [(1, 2, 60), (2, 1, 60), (1, 2, 1), (2, 1, 1)]
        assert order(rows, b1=0, b2=60) == ([2, 3, 0, 1], [])
        assert order(rows, b1=60, b2=0) == ([3, 2, 1, 0], [])

    def test_what_frees_nothing_that_is_needed_waits(self):
        """It would take the room by which the cycle is broken."""
        assert order([(3, 2, 5), (1, 2, 60), (2, 1, 60)], b1=0, b2=60) == ([1, 2, 0], [])

    def test_every_new_broker_needs_room(self):
        """And only then the old ones are freed."""
        whole = Shift(tp(0), {BrokerId(2): 50, BrokerId(3): 50}, {BrokerId(1): 50})
        back = Shift(tp(1), {BrokerId(1): 50}, {BrokerId(3): 50})
        assert disk_order([whole, back], room(b1=0, b2=50, b3=49)).stuck == (whole, back)
        assert disk_order([whole, back], room(b1=0, b2=50, b3=50)).first == (back,)

    def test_what_is_left_when_nothing_fits_any_more(self):
        """For the message: what could move has moved."""
        rows = [(1, 2, 60), (2, 1, 60), (1, 3, 20)]
        assert disk_order(shifts(*rows), room(b1=10, b2=10)).room == {1: 30, 2: 10}


class TestReservations:
    def test_those_before_it(self):
        """In the order of the search; nothing is kept free on brokers where everything fits."""
        held = reservations(shifts((3, 2, 5), (1, 2, 60), (2, 1, 60), (1, 3, 9)), room(b1=0, b2=60, b3=9))
        assert held == {tp(1): {2: 0}, tp(2): {1: 0}, tp(0): {2: 60}}

    def test_what_has_no_order_comes_last(self):
        """It may go on where there is room, and takes none from the others."""
        rows = [(1, 2, 60), (2, 1, 60), (3, 4, 10), (4, 3, 10)]
        assert reservations(shifts(*rows), room(b1=0, b2=0, b3=10, b4=0)) == {
            tp(2): {4: 0},
            tp(0): {2: 0},
            tp(1): {1: 0},
        }

    def test_plenty_of_room(self):
        assert reservations(shifts((1, 2, 60)), room(b2=60)) == {}
