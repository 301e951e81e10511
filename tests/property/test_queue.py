"""Any rebalances on any partitions: they never collide, never deadlock, and all of them get their turn."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.execution import queue_order
from kafka_rebalance.execution.queue_order import Claimant, Place, line_up
from kafka_rebalance.model.topology import TopicPartition

START = datetime(2026, 1, 1, tzinfo=UTC)
LOOK = timedelta(minutes=20)
PARTITIONS = [TopicPartition(topic, number) for topic in "ab" for number in range(3)]
A, B = PARTITIONS[0], PARTITIONS[3]
SELECTIONS = st.frozensets(st.sampled_from(PARTITIONS), min_size=1, max_size=4)
PRIORITIES = st.integers(-2, 5)


@st.composite
def claimants(draw):
    """In any state that the operator may find, also after a start: several may hold the same partitions."""
    found = []
    for key in draw(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7)):
        since = START - timedelta(hours=draw(st.integers(0, 9)))
        tearing_down, holds, at_rest, asks = (draw(st.booleans()) for _ in range(4))
        selection = draw(SELECTIONS)
        one = Claimant(key, key, selection, draw(PRIORITIES), since, tearing_down, holds, at_rest, asks)
        planning = holds and not at_rest and draw(st.booleans())
        found.append(replace(one, planning=planning, failed=not holds and draw(st.booleans())))
    return found


PLACES = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.builds(
        lambda told, hours, known: Place(
            runs=told == "runs",
            yields=told == "yields",
            waited=timedelta(hours=hours),
            at=START - LOOK if known else None,
        ),
        st.sampled_from(["runs", "yields", "waits"]),
        st.integers(0, 9),
        st.booleans(),
    ),
)


def overlap(one, other):
    return one.key != other.key and not one.partitions.isdisjoint(other.partitions)


def assert_no_collision(found, places, before):
    """No rebalance runs on partitions of another running one, nor starts before an overlapping one is at rest."""
    for one in found:
        for other in found:
            if not overlap(one, other) or not places[one.key].runs:
                continue
            assert not places[other.key].runs, f"{one.key} and {other.key} run on the same partitions"
            was_there = one.holds or not one.at_rest or before.get(one.key, Place(runs=False)).yields
            assert other.at_rest or was_there, f"{one.key} starts while {other.key} is not at rest"


def assert_no_circle(places):
    """Every chain of waiting rebalances ends at one that runs or drains."""
    for key in places:
        seen = set()
        while not (places[key].runs or places[key].yields):
            assert key not in seen, f"{key} waits for itself"
            seen.add(key)
            key = places[key].behind


class TestOneLook:
    @given(claimants(), PLACES)
    def test_nobody_collides_and_nobody_waits_in_a_circle(self, found, before):
        """The two guarantees of the queue."""
        places = line_up(found, before, START)
        assert_no_collision(found, places, before)
        assert_no_circle(places)

    @given(claimants(), PLACES, st.randoms())
    def test_the_order_in_which_they_are_listed_does_not_matter(self, found, before, random):
        """Deterministic: the same input gives the same places."""
        shuffled = random.sample(found, len(found))
        assert line_up(found, before, START) == line_up(shuffled, before, START)

    @given(claimants(), PLACES)
    def test_positions_have_no_gaps(self, found, before):
        """0 while it runs; position 3 implies another at position 2 with common partitions."""
        places = line_up(found, before, START)
        for one in found:
            place = places[one.key]
            assert (place.position == 0) == place.runs == (place.behind is None)
            assert not (place.runs and place.yields)
            if place.position > 1:
                assert any(overlap(one, o) and places[o.key].position == place.position - 1 for o in found)

    @given(claimants(), PLACES)
    def test_who_waits_overlaps_whom_it_waits_for(self, found, before):
        """The message names a rebalance that really needs the same partitions."""
        places = line_up(found, before, START)
        by_name = {one.name: one for one in found}
        for one in found:
            if not places[one.key].runs:
                assert overlap(one, by_name[places[one.key].behind])

    @given(claimants(), PLACES)
    def test_when_the_first_is_gone_the_next_one_runs(self, found, before):
        """At position 1, if no other overlapping rebalance runs or has to come to rest."""
        places = line_up(found, before, START)
        for winner in found:
            left = [one for one in found if one is not winner]
            after = line_up(left, places, START + LOOK)
            for one in left:
                others = [o for o in left if overlap(one, o)]
                free = all(o.at_rest and not places[o.key].runs for o in others)
                if places[winner.key].runs and overlap(one, winner) and places[one.key].position == 1 and free:
                    assert after[one.key].runs


BLOCKS = [frozenset(TopicPartition(topic, block * 40 + n) for n in range(40)) for topic in "ab" for block in range(2)]
LARGE = st.builds(
    lambda blocks, single: frozenset(single).union(*blocks),
    st.lists(st.sampled_from(BLOCKS), max_size=2),
    st.sets(st.sampled_from([min(block) for block in BLOCKS]), max_size=2),
)


@st.composite
def wanting(draw):
    """Claimants that want two sets each, of more partitions than are tried first. Some share the same object."""
    pool = draw(st.lists(LARGE, min_size=1, max_size=6))
    some = st.sampled_from(pool)
    keys = draw(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7))
    return [replace(claimant_of(draw(some)), key=key, name=key, selected=draw(some)) for key in keys]


class TestOverlaps:
    @given(wanting())
    def test_those_that_want_a_common_partition(self, found):
        """As each pair of claimants compared in full."""
        wanted = {one.key: one.partitions | one.selected for one in found}
        assert queue_order._overlapping(found) == {
            one: {other for other in wanted if other != one and wanted[one] & wanted[other]} for one in wanted
        }


@dataclass
class Rebalance:
    """A resource over time: it asks for its place, has work to do, and needs some rounds to come to rest."""

    claimant: Claimant
    arrives: int
    work: int
    drain: int
    suspended: range = range(0)
    opened: bool = False
    flying: int = 0
    ended: int | None = None


def claimant_of(partitions, priority=0, since=START, *, tearing_down=False):
    return Claimant("", "", frozenset(partitions), priority, since, tearing_down, holds=False, at_rest=True, asks=True)


@st.composite
def rebalances(draw):
    arrives = draw(st.integers(0, 12))
    claimant = claimant_of(
        draw(SELECTIONS), draw(PRIORITIES), START + arrives * LOOK, tearing_down=draw(st.integers(0, 5)) == 0
    )
    begin = draw(st.integers(0, 20))
    suspended = range(begin, begin + draw(st.sampled_from([0, 0, 5])))
    return Rebalance(claimant, arrives, draw(st.integers(1, 12)), draw(st.integers(0, 3)), suspended)


def endless(stream, every, looks):
    """The stream repeated, one rebalance every ``every`` looks."""
    for number, look in enumerate(range(0, looks, every)):
        one = stream[number % len(stream)]
        claimant = replace(one.claimant, since=START + look * LOOK, tearing_down=False)
        yield Rebalance(claimant, arrives=look, work=one.work, drain=one.drain)


@dataclass
class Cluster:
    """The operator's successive looks at its rebalances."""

    rebalances: list[Rebalance]
    forgets_at: int = -1
    look: int = 0
    places: dict[str, Place] = field(default_factory=dict)

    def __post_init__(self):
        for number, one in enumerate(self.rebalances):
            one.claimant = replace(one.claimant, key=f"{number:03}", name=f"{number:03}")

    def there(self):
        return [one for one in self.rebalances if one.arrives <= self.look and one.ended is None]

    def tick(self):
        """One look with its checks, and the changes until the next one."""
        before = {} if self.look == self.forgets_at else self.places
        there = self.there()
        for one in there:
            asks = self.look not in one.suspended
            one.claimant = replace(one.claimant, holds=one.opened, at_rest=not one.flying, asks=asks)
        found = [one.claimant for one in there]
        self.places = line_up(found, before, START + self.look * LOOK)
        assert_no_collision(found, self.places, before)
        assert_no_circle(self.places)
        self._assert_displaced_for_a_reason(found, before)
        for one in there:
            if self.places[one.claimant.key].runs and one.claimant.asks:
                one.opened, one.flying = True, one.drain
                one.work -= 1
                one.ended = self.look if one.work <= 0 else None
            else:
                one.flying = max(0, one.flying - 1)
        self.look += 1

    def _assert_displaced_for_a_reason(self, found, before):
        """A rebalance that still asks loses its place only to a rollback or to a higher priority."""
        for one in found:
            had_it = before.get(one.key, Place(runs=False)).runs and one.holds and one.asks
            if had_it and not self.places[one.key].runs:
                rank = (one.tearing_down, one.priority)
                assert any(overlap(one, o) and (o.tearing_down, o.priority) > rank for o in found), f"{one.key} lost it"


class TestOverTime:
    @given(st.lists(rebalances(), min_size=1, max_size=7), st.integers(0, 30))
    def test_everybody_comes_to_the_end(self, them, forgets_at):
        """No deadlock and no starvation, with a restart of the operator; places change hands only a few times.

        Bound: all of them in sequence, with a drain for each of the few times that a place changes hands.
        """
        cluster = Cluster(them, forgets_at)
        total = sum(one.work for one in them) + 4 * (len(them) + 1) * len(them) + 60
        while any(one.ended is None for one in them):
            assert cluster.look < total, "somebody waits for ever"
            cluster.tick()

    @given(st.lists(rebalances(), min_size=2, max_size=7))
    def test_while_nothing_ends_the_places_settle(self, them):
        """No flapping: if all are present and none is suspended or ends, none regains a place that it lost."""
        for one in them:
            one.arrives, one.work, one.suspended = 0, 10**6, range(0)
        cluster = Cluster(them)
        began: dict[str, int] = {}
        for _ in range(150):
            before = {key for key, place in cluster.places.items() if place.runs}
            cluster.tick()
            for key in {key for key, place in cluster.places.items() if place.runs} - before:
                began[key] = began.get(key, 0) + 1
        assert max(began.values()) == 1

    @given(st.lists(rebalances(), min_size=5, max_size=5), st.integers(1, 4), SELECTIONS)
    def test_an_old_one_is_not_starved_by_an_endless_stream(self, stream, every, wanted):
        """New rebalances of higher priority keep arriving, and one could always run: age decides in the end."""
        old = claimant_of(wanted, priority=-2)
        cluster = Cluster([Rebalance(old, arrives=0, work=6, drain=1), *endless(stream, every, looks=250)])
        while cluster.rebalances[0].ended is None:
            assert cluster.look < 200, "it starves"
            cluster.tick()

    def test_a_wide_one_is_not_starved_by_narrow_ones(self):
        """One of its two partitions is always taken in turn: those that need only the other one do not pass it."""
        narrow = [Rebalance(claimant_of({partition}), arrives=0, work=4, drain=1) for partition in (A, B)]
        wide = Rebalance(claimant_of({A, B}, since=START + LOOK), arrives=1, work=1, drain=1)
        cluster = Cluster([wide, *endless(narrow, every=2, looks=80)])
        while wide.ended is None:
            assert cluster.look < 40, "it starves"
            cluster.tick()
