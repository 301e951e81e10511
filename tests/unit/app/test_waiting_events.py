"""Events that the watch thread has read: a flood of them delays neither other namespaces nor the loop's other work."""

import pytest

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.app.waiting_events import WaitingEvents, WatchEvent


class Loop:
    """A loop whose time passes only while events are handled."""

    def __init__(self):
        self.now, self.ordered = 0.0, []

    def time(self):
        return self.now

    def call_soon_threadsafe(self, call):
        self.ordered.append((0.0, call))

    def call_later(self, seconds, call):
        self.ordered.append((seconds, call))

    def turn(self):
        """Call what is ordered; returns how long each call was put off."""
        calls, self.ordered = self.ordered, []
        for _, call in calls:
            call()
        return [seconds for seconds, _ in calls]


class World:
    """Handling an event takes ``seconds``."""

    def __init__(self, seconds=0.0):
        self.seconds, self.handled, self.loop = seconds, [], Loop()
        self.waiting = WaitingEvents(self.loop, self.handle)

    def handle(self, event):
        self.loop.now += self.seconds
        metadata = event.body["metadata"]
        if metadata["uid"] == "defect":
            raise ValueError("a defect")
        self.handled.append((metadata["uid"], event.body["spec"], event.deleted))

    def add(self, uid, spec=0, *, namespace="kafka", deleted=False, plural=REBALANCES):
        body = {"metadata": {"name": uid, "namespace": namespace, "uid": uid}, "spec": spec}
        self.waiting.add(WatchEvent(plural, body, deleted))


class TestOfOneResource:
    def test_a_single_event_is_handled_in_the_next_turn_of_the_loop(self):
        world = World()
        world.add("a")
        assert world.loop.turn() == [0.0]
        assert world.handled == [("a", 0, False)]
        assert world.loop.ordered == []

    def test_only_the_newest_waits(self):
        """However often a user changes a resource, one body of it is in memory, and is handled once."""
        world = World()
        for spec in range(1000):
            world.add("a", spec)
        assert world.loop.turn() == [0.0]
        assert world.handled == [("a", 999, False)]

    def test_its_end_is_never_replaced(self):
        """A late event of a uid that is gone does not bring the resource back."""
        world = World()
        for spec, deleted in enumerate((False, True, False)):
            world.add("a", spec, deleted=deleted)
        world.loop.turn()
        assert world.handled == [("a", 1, True)]

    def test_its_end_comes_before_its_successor(self):
        """It was deleted and created again under the same name."""
        world = World()
        world.add("old")
        world.add("old", deleted=True)
        world.add("new")
        world.add("new", 1)
        world.loop.turn()
        assert world.handled == [("old", 0, True), ("new", 1, False)]

    def test_resources_of_two_kinds_are_two(self):
        world = World()
        world.add("a", 1)
        world.add("a", 2, plural=REASSIGNMENT_THROTTLES)
        world.loop.turn()
        assert world.handled == [("a", 1, False), ("a", 2, False)]


class TestSlices:
    def test_events_that_take_no_time_share_a_slice(self):
        world = World(seconds=0.001)
        for number in range(10):
            world.add(f"a-{number}")
        world.loop.turn()
        assert len(world.handled) == 10

    def test_the_loop_has_as_long_for_other_work(self):
        """An event that takes longer than a slice is the only one of its slice."""
        world = World(seconds=0.03)
        for number in range(3):
            world.add(f"a-{number}")
        assert world.loop.turn() == [0.0]
        for handled in (1, 2):
            assert len(world.handled) == handled
            assert world.loop.turn() == [pytest.approx(0.03)]
        assert (len(world.handled), world.loop.ordered) == (3, [])

    def test_events_that_arrive_meanwhile_order_no_second_slice(self):
        world = World(seconds=0.03)
        for number in range(3):
            world.add(f"a-{number}")
            assert len(world.loop.ordered) == 1
            world.loop.turn()
            world.add("b")
        assert len(world.loop.ordered) == 1

    def test_namespaces_take_turns(self):
        """A namespace with many resources delays another one by one event, also while its resources change again."""
        world = World(seconds=0.03)
        for number in range(5):
            world.add(f"flood-{number}", namespace="flood")
        world.add("other-0", namespace="other")
        world.add("other-1", namespace="other")
        for number in range(4):
            world.loop.turn()
            world.add(f"flood-{number}", namespace="flood")
        assert [uid for uid, *_ in world.handled] == ["flood-0", "other-0", "flood-1", "other-1"]

    def test_each_resource_of_a_namespace_gets_its_turn(self):
        """One that changes all the time does not keep the others of its namespace waiting."""
        world = World(seconds=0.03)
        for number in range(3):
            world.add(f"a-{number}")
        for _ in range(4):
            world.loop.turn()
            world.add("a-0", 1)
        assert [uid for uid, *_ in world.handled] == ["a-0", "a-1", "a-2", "a-0"]

    def test_a_defect_does_not_stop_the_others(self):
        world = World()
        world.add("defect")
        world.add("a")
        with pytest.raises(ValueError, match="a defect"):
            world.loop.turn()
        world.loop.turn()
        assert world.handled == [("a", 0, False)]


async def test_close():
    """What waits is handled without pauses, and nothing after that."""
    world = World(seconds=0.03)
    for number in range(3):
        world.add(f"a-{number}")
    await world.waiting.close()
    assert len(world.handled) == 3
    world.add("late")
    world.loop.turn()
    assert (len(world.handled), world.loop.ordered) == (3, [])
