"""In which order moves fit where room is limited, and what each leaves free for those before it."""

from collections import Counter
from random import Random

from kafka_rebalance.execution.room_order import Shift, reservations, room_order
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
    found = room_order(shifts(*rows), room(**free))
    return [s.tp.partition for s in found.first], [s.tp.partition for s in found.stuck]


class TestOrder:
    def test_where_everything_fits(self):
        """No order is needed; a broker that does not report its free bytes is not limited."""
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
        assert room_order([whole, back], room(b1=0, b2=50, b3=49)).stuck == (whole, back)
        assert room_order([whole, back], room(b1=0, b2=50, b3=50)).first == (back,)

    def test_what_is_left_when_nothing_fits_any_more(self):
        """For the message: what could move has moved."""
        rows = [(1, 2, 60), (2, 1, 60), (1, 3, 20)]
        assert room_order(shifts(*rows), room(b1=10, b2=10)).room == {1: 30, 2: 10}


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


class Compared(dict):
    """What a partition takes; counts how often it is compared with the room at a place."""

    count = 0

    def __getitem__(self, place):
        Compared.count += 1
        return super().__getitem__(place)


class TestEffort:
    def test_pairs_of_partitions(self, monkeypatch):
        """A server may claim that these disks are full: 1,500 small copies have room at 1 and none at 2, and 1,500
        larger ones have room at 1. Each of those must not cost a look at all small ones."""
        monkeypatch.setattr(Compared, "count", 0)
        small = [Shift(tp(i), Compared({BrokerId(1): 1, BrokerId(2): 10}), {BrokerId(3): 1}) for i in range(1500)]
        large = [Shift(tp(i), Compared({BrokerId(1): 2}), {BrokerId(3): 2}) for i in range(1500, 3000)]
        ends = [Shift(tp(3000), {BrokerId(3): 10**9}), Shift(tp(3001), {BrokerId(1): 10**9})]
        found = room_order([*small, *large, *ends], room(b1=10_000, b2=5, b3=0))
        assert Compared.count < 500_000
        assert len(found.first) + len(found.stuck) == 3002


class Moved(dict):
    """What a partition frees; counts how often a search moves it on paper or back, or looks at it."""

    count = 0

    def items(self):
        Moved.count += 1
        assert Moved.count < 50_000
        return super().items()


class TestEffortOfAllOrders:
    def test_two_full_brokers_without_an_order(self, monkeypatch):
        """40 partitions: 19 small ones each way, of which two fit at a time, and a large one each way that never fits.
        The small ones that have moved can be combined in millions of ways, of which 1,000 are tried."""
        monkeypatch.setattr(Moved, "count", 0)
        rows = [*((1, 2, 10), (2, 1, 10)) * 19, (1, 2, 1000), (2, 1, 1000)]
        waiting = [Shift(s.tp, s.takes, Moved(s.frees)) for s in shifts(*rows)]
        assert len(room_order(waiting, room(b1=20, b2=20)).stuck) == 2
        assert Moved.count > 1_000


def has_an_order(waiting, free):
    """Whether these fit one after the other, in any order; tried one by one."""

    def fits(shift, free):
        return all(size <= free[broker] for broker, size in shift.takes.items())

    def after(shift, free):
        moved = Counter(free)
        moved.subtract(shift.takes)
        moved.update(shift.frees)
        return moved

    def complete(left, free):
        if left not in dead and left:
            dead.add(left)
            return any(complete(left - {i}, after(waiting[i], free)) for i in left if fits(waiting[i], free))
        return not left

    dead = set()
    return complete(frozenset(range(len(waiting))), free)


def crowded(seed):
    """Up to seven partitions of one or two replicas, and brokers without much room."""
    random = Random(seed)
    brokers = [BrokerId(b) for b in range(random.randint(2, 5))]
    waiting = []
    for number in range(random.randint(2, 7)):
        copies = 2 if len(brokers) > 3 and random.random() < 0.25 else 1
        there = random.sample(brokers, 2 * copies)
        size = random.randint(1, random.choice([20, 100]))
        takes, frees = dict.fromkeys(there[:copies], size), dict.fromkeys(there[copies:], size)
        waiting.append(Shift(tp(number), takes, frees))
    return waiting, {broker: random.randint(0, 60) for broker in brokers}


class TestAgainstAllOrders:
    def test_an_order_is_found_wherever_there_is_one(self):
        """And each of its copies fits. Without the search among all orders, some of these are missed."""
        found = 0
        for seed in range(1500):
            waiting, free = crowded(seed)
            made = room_order(waiting, free)
            assert bool(made.stuck) != has_an_order(waiting, free)
            found += bool(made.first) and not made.stuck
            now = Counter(free)
            done = [s for s in waiting if made.room.keys().isdisjoint(s.takes)]
            for shift in () if made.stuck else (*done, *made.first):
                assert all(size <= now[broker] for broker, size in shift.takes.items() if broker in made.room)
                now.subtract(shift.takes)
                now.update(shift.frees)
        assert found > 50
