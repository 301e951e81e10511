"""Which rebalance goes first when several need the same partitions."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from kafka_rebalance.execution import queue_order
from kafka_rebalance.execution.queue_order import Claimant, Place, line_up
from kafka_rebalance.model.topology import TopicPartition

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def partitions(*names):
    """``a0`` is partition 0 of topic a."""
    return frozenset(TopicPartition(name[0], int(name[1:])) for name in names)


def claimant(key, *names, priority=0, hours=0.0, tearing_down=False, holds=False, at_rest=True, asks=True, **rest):
    """A rebalance that has waited for ``hours``, unless set otherwise."""
    since = NOW - timedelta(hours=hours)
    return Claimant(key, f"ns/{key}", partitions(*names), priority, since, tearing_down, holds, at_rest, asks, **rest)


def running(key, *names, **rest):
    """A rebalance with copies in flight."""
    return claimant(key, *names, holds=True, at_rest=False, **rest)


def look(*claimants, before=None, hours=0.0):
    """The queue as seen ``hours`` after NOW."""
    return line_up(claimants, before or {}, NOW + timedelta(hours=hours))


def shown(places):
    """Per rebalance: that it runs, or the first one that it waits for and its position."""
    return {
        key: "runs" if p.runs else f"{'yields to' if p.yields else 'waits for'} {p.behind}, {p.position}"
        for key, p in places.items()
    }


class TestTogether:
    def test_disjoint_ones_run_together(self):
        """Other topics, or other partitions of the same topic."""
        found = look(running("x", "a0", "a1"), claimant("y", "a2"), claimant("z", "b0"))
        assert shown(found) == {"x": "runs", "y": "runs", "z": "runs"}

    def test_an_overlapping_one_is_queued_behind_the_holder(self):
        """One common partition is enough; the position and the holder are reported."""
        found = look(running("x", "a0", "a1"), claimant("y", "a1", "a2"))
        assert shown(found) == {"x": "runs", "y": "waits for ns/x, 1"}

    def test_nobody_waits_for_itself_or_for_nothing(self):
        """No partitions, no overlap; no claimants, no places."""
        assert shown(look(claimant("x"), claimant("y"))) == {"x": "runs", "y": "runs"}
        assert look() == {}

    def test_positions_count_those_that_go_before(self):
        """Three with the same partitions are first, second and third; the order of the list does not matter."""
        line = [claimant("y", "a0", hours=1), claimant("w", "a0", hours=3), claimant("z", "a0", hours=2)]
        assert shown(look(*line, running("x", "a0"))) == {
            "x": "runs",
            "w": "waits for ns/x, 1",
            "z": "waits for ns/x, 2",
            "y": "waits for ns/x, 3",
        }

    def test_those_that_do_not_overlap_have_the_same_position(self):
        """Both start when the holder is done."""
        found = look(running("x", "a0", "b0"), claimant("y", "a0", hours=1), claimant("z", "b0"))
        assert (found["y"].position, found["z"].position) == (1, 1)

    def test_a_queued_one_is_not_passed_by_a_later_one_that_could_run(self):
        """Otherwise many small rebalances would starve a large one: z could run beside x."""
        found = look(running("x", "a0"), claimant("y", "a0", "b0", hours=1), claimant("z", "b0"))
        assert shown(found) == {"x": "runs", "y": "waits for ns/x, 1", "z": "waits for ns/y, 2"}


class CountedSet(frozenset):
    """Counts the partitions that are taken out of it."""

    taken = 0

    def __iter__(self):
        for partition in super().__iter__():
            self.taken += 1
            yield partition


class TestLargeSets:
    """Many claimants select most of a cluster, or a large part of it that others do not select."""

    def many(self, *selected, count=20):
        """As many claimants as ``count`` for each of these sets."""
        return [
            dataclasses.replace(claimant(f"{number}-{each}"), selected=some)
            for each, some in enumerate(selected)
            for number in range(count)
        ]

    def halves(self):
        return (CountedSet(TopicPartition(f"{half}{number}", 0) for number in range(1000)) for half in "ab")

    def test_each_is_looked_through_once(self):
        """And not for each of the 780 pairs of claimants."""
        one, other = self.halves()
        places = look(*self.many(one, other))
        assert [key for key, place in places.items() if place.runs] == ["0-0", "0-1"]
        assert one.taken + other.taken <= 2000 + queue_order._PROBES

    def test_equal_ones_are_not_looked_through(self):
        """A few partitions show that they overlap."""
        one, _ = self.halves()
        equal = [CountedSet(one) for _ in range(20)]
        assert [key for key, place in look(*self.many(*equal, count=1)).items() if place.runs] == ["0-0"]
        assert sum(some.taken for some in equal) <= 190 * queue_order._PROBES

    def test_both_sets_of_a_claimant_count(self):
        """A run that is planned again still moves its partitions, and its spec selects others."""
        both = dataclasses.replace(running("x", "a0"), selected=partitions("b0"))
        assert shown(look(both, claimant("y", "a0"), claimant("z", "b0"))) == {
            "x": "runs",
            "y": "waits for ns/x, 1",
            "z": "waits for ns/x, 1",
        }


class TestOrderOfThoseThatWait:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (claimant("z", "a0", priority=1), claimant("a", "a0")),
            (claimant("z", "a0", hours=0.5), claimant("a", "a0")),
            (claimant("a", "a0"), claimant("z", "a0")),
            (claimant("z", "a0", tearing_down=True), claimant("a", "a0", priority=1000, hours=99)),
            (claimant("z", "a0", hours=6), claimant("a", "a0", priority=5)),
            (claimant("z", "a0", priority=5), claimant("a", "a0", hours=4.9)),
        ],
        ids=["priority", "the older", "key", "a rollback", "age adds priority", "whole hours only"],
    )
    def test_in_this_order(self, first, second):
        """Teardowns first, then priority plus whole hours waited, then the older, then the key."""
        found = look(second, first)
        assert shown(found) == {first.key: "runs", second.key: f"waits for ns/{first.key}, 1"}

    def test_a_time_to_come_is_no_age(self):
        """The clocks of the API server and the operator differ."""
        found = look(claimant("x", "a0", hours=-50), claimant("y", "a0", priority=-1))
        assert found["x"].runs

    def test_who_has_been_displaced_goes_before_one_that_never_ran(self):
        """At the same priority, a run that has begun is finished first."""
        stands_back = Place(runs=False, behind="ns/gone", position=1, yields=True, at=NOW)
        found = look(claimant("new", "a0", hours=0.5), claimant("old", "a0", holds=True), before={"old": stands_back})
        assert shown(found) == {"old": "runs", "new": "waits for ns/old, 1"}


class TestPreemption:
    def test_a_higher_priority_has_the_holder_drain_first(self):
        """Only at a rest point: until then the new one waits, and the holder starts no new steps."""
        urgent, holder = claimant("u", "a0", priority=1), running("h", "a0")
        found = look(holder, urgent)
        assert shown(found) == {"u": "waits for ns/h, 1", "h": "yields to ns/u, 2"}
        rested = dataclasses.replace(holder, at_rest=True)
        found = look(rested, urgent, before=found)
        assert shown(found) == {"u": "runs", "h": "waits for ns/u, 1"}

    def test_a_rollback_displaces_whatever_the_priority(self):
        """And a rollback is never displaced itself."""
        found = look(running("h", "a0", priority=9), claimant("r", "a0", tearing_down=True))
        assert shown(found) == {"r": "waits for ns/h, 1", "h": "yields to ns/r, 2"}
        found = look(running("r", "a0", tearing_down=True), claimant("u", "a0", priority=9))
        assert shown(found) == {"r": "runs", "u": "waits for ns/r, 1"}

    @pytest.mark.parametrize("priority", [0, -1])
    def test_age_alone_displaces_nobody(self, priority):
        """Age only orders those that wait: otherwise two of the same priority would keep displacing each other."""
        found = look(running("h", "a0"), claimant("w", "a0", priority=priority, hours=500))
        assert shown(found) == {"h": "runs", "w": "waits for ns/h, 1"}

    def test_who_got_in_by_its_age_keeps_the_place(self):
        """The one that it passed has a higher priority and would otherwise take the place back at once."""
        aged, high = claimant("w", "a0", hours=10), claimant("h", "a0", priority=3)
        found = look(aged, high)
        assert found["w"].runs
        found = look(dataclasses.replace(aged, holds=True, at_rest=False), high, before=found, hours=0.1)
        assert shown(found) == {"w": "runs", "h": "waits for ns/w, 1"}

    def test_the_time_in_which_it_runs_makes_no_older(self):
        """A new priority also takes effect on a rebalance that has been running for days."""
        holder = running("h", "a0", priority=1)
        before = look(holder)
        found = look(holder, claimant("u", "a0", priority=2, hours=-100), before=before, hours=100)
        assert found["h"].yields

    def test_a_displaced_one_does_not_come_back_by_its_age(self):
        """It has run for 50 hours, which is not waiting; the place changes hands once."""
        holder, urgent = running("h", "a0", hours=50), claimant("u", "a0", priority=1)
        found = look(holder, urgent)
        for hours in (0.1, 0.2, 20.0):
            rested = dataclasses.replace(holder, at_rest=True)
            found = look(rested, urgent, before=found, hours=hours)
            assert shown(found) == {"u": "runs", "h": "waits for ns/u, 1"}
            urgent = dataclasses.replace(urgent, holds=True, at_rest=False)

    def test_a_displaced_one_waits_like_the_others(self):
        """When u is done, the one that has waited longer goes first: that h held the place before does not count."""
        holder, urgent = claimant("h", "a0", holds=True), claimant("u", "a0", priority=1)
        waiter = claimant("w", "a0", hours=3)
        found = look(holder, urgent, waiter)
        assert shown(found) == {"u": "runs", "w": "waits for ns/u, 1", "h": "waits for ns/u, 2"}
        assert shown(look(holder, waiter, before=found)) == {"w": "runs", "h": "waits for ns/w, 1"}

    def test_nobody_drains_for_one_that_could_not_start(self):
        """One holder has the same priority as the one that waits for both, so the other holder continues."""
        found = look(running("x", "a0"), running("y", "b0", priority=5), claimant("u", "a0", "b0", priority=5))
        assert shown(found) == {"x": "runs", "y": "runs", "u": "waits for ns/y, 1"}

    def test_who_waits_for_a_holder_does_not_shield_it(self):
        """By age w is first among those that wait, but it cannot displace h; u can."""
        line = claimant("w", "a0", hours=20), claimant("u", "a0", priority=10)
        found = look(running("h", "a0"), *line)
        assert shown(found) == {"u": "waits for ns/h, 1", "w": "waits for ns/u, 2", "h": "yields to ns/u, 3"}
        found = look(claimant("h", "a0", holds=True), *line, before=found)
        assert shown(found) == {"u": "runs", "w": "waits for ns/u, 1", "h": "waits for ns/u, 2"}

    def test_a_place_set_free_on_the_way_is_used(self):
        """u displaces h; w also waited for h, does not overlap u, and starts with it."""
        found = look(running("h", "a0", "b0"), claimant("u", "a0", priority=10), claimant("w", "b0", hours=20))
        assert shown(found) == {"u": "waits for ns/h, 1", "w": "waits for ns/h, 1", "h": "yields to ns/u, 2"}


class TestWhilePlansAreMade:
    """A plan is given up when its rebalance is displaced. It would never be made if that happened again and again."""

    HOLDER = running("h", "a0", planning=True)

    def test_a_higher_priority_displaces_it(self):
        assert shown(look(self.HOLDER, claimant("u", "a0", priority=1)))["h"] == "yields to ns/u, 2"

    def test_one_that_could_not_be_planned_waits_for_it(self):
        """And is the first of those that wait, as before."""
        failed = claimant("u", "a0", priority=1, failed=True)
        found = look(self.HOLDER, failed, claimant("w", "a0", hours=0.5))
        assert shown(found) == {"h": "runs", "u": "waits for ns/h, 1", "w": "waits for ns/h, 2"}
        opened = dataclasses.replace(self.HOLDER, planning=False, at_rest=True)
        assert shown(look(opened, failed, before=found)) == {"u": "runs", "h": "waits for ns/u, 1"}

    def test_it_does_not_shield_the_plan_from_others(self):
        """A third one, which was not planned yet, displaces it."""
        failed = claimant("u", "a0", priority=9, failed=True)
        found = look(self.HOLDER, failed, claimant("w", "a0", priority=1))
        assert shown(found) == {"w": "waits for ns/h, 1", "u": "waits for ns/w, 2", "h": "yields to ns/w, 3"}

    def test_a_rollback_displaces_it(self):
        rollback = claimant("r", "a0", tearing_down=True, failed=True)
        assert shown(look(self.HOLDER, rollback))["h"] == "yields to ns/r, 2"

    def test_a_run_is_displaced_by_it(self):
        """Its steps do not begin anew after that."""
        failed = claimant("u", "a0", priority=1, failed=True)
        assert shown(look(running("h", "a0"), failed))["h"] == "yields to ns/u, 2"


class TestRest:
    @pytest.mark.parametrize("holds", [True, False])
    def test_one_at_rest_that_asks_for_nothing_is_passed(self, holds):
        """Suspended, outside its window, awaiting approval, refused: it keeps its place only while it can submit."""
        suspended = claimant("s", "a0", priority=9, holds=holds, asks=False)
        assert shown(look(suspended, claimant("w", "a0"))) == {"w": "runs", "s": "waits for ns/w, 1"}

    def test_it_is_waited_for_until_it_is_at_rest(self):
        """Suspended with copies in flight."""
        found = look(dataclasses.replace(running("s", "a0"), asks=False), claimant("w", "a0"))
        assert shown(found) == {"s": "runs", "w": "waits for ns/s, 1"}

    def test_passed_once_it_takes_its_turn(self):
        """It is resumed while the other runs, has nothing in flight, and waits at the same priority."""
        suspended, other = claimant("s", "a0", holds=True, asks=False, hours=9), claimant("w", "a0")
        found = look(suspended, other)
        resumed, other = dataclasses.replace(suspended, asks=True), dataclasses.replace(other, holds=True)
        found = look(resumed, other, before=found, hours=0.1)
        assert shown(found) == {"w": "runs", "s": "waits for ns/w, 1"}

    def test_not_passed_it_keeps_its_place(self):
        """No other rebalance wanted the partitions while it was suspended; a new one waits."""
        suspended = claimant("s", "a0", holds=True, asks=False)
        found = look(suspended)
        assert found["s"].runs
        resumed = dataclasses.replace(suspended, asks=True)
        assert shown(look(resumed, claimant("w", "a0", hours=9), before=found, hours=0.1))["s"] == "runs"

    def test_being_suspended_is_no_waiting(self):
        """Only the time in which it could run but has to wait adds to its age."""
        waiter, holder = claimant("w", "a0"), running("h", "a0")
        before = look(waiter, holder)
        assert look(waiter, holder, before=before, hours=30)["w"].waited == timedelta(hours=30)
        suspended = dataclasses.replace(waiter, asks=False)
        assert look(suspended, holder, before=before, hours=30)["w"].waited == timedelta(0)


class TestAfterAStart:
    def test_an_open_run_keeps_its_place(self):
        """Between two steps nothing is in flight; a new rebalance of the same priority still waits."""
        found = look(claimant("h", "a0", holds=True), claimant("w", "a0", hours=100))
        assert shown(found) == {"h": "runs", "w": "waits for ns/h, 1"}

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (claimant("z", "a0", holds=True, priority=1), claimant("a", "a0", holds=True)),
            (running("z", "a0"), claimant("a", "a0", holds=True, hours=5)),
            (running("z", "a0"), claimant("a", "a0", holds=True, priority=1)),
            (claimant("z", "a0", holds=True, hours=5), claimant("a", "a0", holds=True)),
            (claimant("z", "a0", holds=True, tearing_down=True), running("a", "a0", priority=5)),
        ],
        ids=["priority", "in flight", "in flight before priority", "the older", "a rollback"],
    )
    def test_of_two_open_runs_one_goes_on(self, first, second):
        """One had been displaced or passed; the other drains if necessary, and the places stay stable afterwards."""
        found = look(second, first)
        assert found[first.key].runs
        assert not found[second.key].runs
        assert found[second.key].yields is not second.at_rest
        swapped = dataclasses.replace(first, at_rest=True), dataclasses.replace(second, at_rest=False)
        assert look(*swapped, before=found, hours=0.1)[first.key].runs

    def test_it_has_waited_since_it_asked(self):
        """A queued rebalance keeps its age when the operator restarts."""
        assert look(claimant("w", "a0", hours=7))["w"].waited == timedelta(hours=7)
