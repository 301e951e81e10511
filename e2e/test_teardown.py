"""Deleting a KafkaRebalance cancels copies in flight and rolls back completed moves; nothing remains."""

from collections.abc import Mapping

import pytest

from e2e.bench.judge import Key, PartitionState
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.going_back import OFF_BROKER_1, goes_back, wait_half_way
from e2e.rebalance import Rebalance
from e2e.world import BIG, FAST, SMALL, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

MIXED = (BIG, SMALL, BIG, SMALL, BIG, SMALL)
"""At a low rate the small partitions complete while the big ones are in flight."""


class TestRollback:
    """A running rebalance is deleted."""

    def test_back_to_the_origins(self, world: World) -> None:
        """Deleted half way: every partition has its original replicas, order and leader again; nothing remains."""
        topic = world.skewed("rollback", *MIXED)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("rollback", topic, brokers=OFF_BROKER_1)
        wait_half_way(world, topic, before)
        assert rebalance.records()
        rebalance.delete()
        rebalance.wait_gone()
        assert world.judge.describe_topics(topic) == before
        world.assert_tidy()
        assert rebalance.records() == []
        events = rebalance.events()
        assert [reason for reason in events if reason != "Planning"] == ["Rebalancing", "RollingBack", "RolledBack"]

    def test_after_a_supersede(self, world: World) -> None:
        """A second plan of the same run does not change the target of a rollback: the state before the first plan."""
        topic = world.skewed("twice", *MIXED)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("twice", topic, brokers=OFF_BROKER_1)
        wait_half_way(world, topic, before)
        first = rebalance.status["plan"]["hash"]
        rebalance.patch(brokers={"include": [3, 4, 5]})
        rebalance.until("another plan", lambda status: status["plan"]["hash"] != first)
        wait_half_way(world, topic, before)
        rebalance.delete()
        rebalance.wait_gone()
        assert world.judge.describe_topics(topic) == before
        world.assert_tidy()

    @pytest.mark.campaign
    def test_killed_while_rolling_back(self, world: World, operator: OperatorProcess) -> None:
        """Killed with -9 during the rollback and restarted, it gives the same result."""
        topic = world.skewed("killed", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = _moved_and_crawling(world, topic, before)
        rebalance.delete()
        rebalance.wait_state("RollingBack")
        wait_until("a copy goes back", lambda: goes_back(world, topic, before))
        operator.kill9()
        assert rebalance.records()
        operator.start()
        rebalance.patch(throttle=FAST)
        rebalance.wait_gone()
        assert world.judge.describe_topics(topic) == before
        world.assert_tidy()
        assert rebalance.records() == []

    def test_original_broker_gone(self, world: World) -> None:
        """A dead original broker does not block the deletion; partitions that could not be restored are listed."""
        topic = world.topic("orphans", [[5, 2, 3], [2, 5, 3], [5, 2, 3], [2, 5, 3]], (BIG, BIG, SMALL, SMALL))
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("orphans", topic, brokers={"include": [1, 2, 3]})
        wait_half_way(world, topic, before)
        moved = world.moved(topic, before)
        world.kafka.stop(5)
        try:
            rebalance.delete()
            rebalance.wait_gone()  # a broker that is down for less than a minute may be restarting
            told = rebalance.messages("RolledBackPartially")
            # More may have arrived between the observation and the death of the broker, so the report is taken as the
            # reference.
            lost = {key for key in before if f"{topic}-{key[1]} (OriginalBrokerGone)" in told}
            assert {(topic, partition) for partition in moved} <= lost
            assert world.in_flight(topic) == {}
        finally:
            world.kafka.start_brokers(5)
        world.wait_in_sync(topic)
        after = world.judge.describe_topics(topic)
        restored = before.keys() - lost
        assert {key: after[key].replicas for key in restored} == {key: before[key].replicas for key in restored}
        assert all(5 not in after[key].replicas for key in lost)
        wait_until("the throttles of broker 5 are settled", lambda: world.judge.throttles() == {}, every=1)


class TestAfterSuccess:
    """A finished rebalance is deleted."""

    def test_touches_nothing(self, world: World) -> None:
        """Replicas, leaders and leader epochs do not change: there is not even an election."""
        topic = world.skewed("finished", SMALL, SMALL, SMALL)
        rebalance = world.rebalance("finished", topic, throttle=FAST)
        rebalance.wait_for("Succeeded")
        before = world.judge.describe_topics(topic)
        epochs = world.epochs(topic)
        rebalance.delete()
        rebalance.wait_gone()
        assert world.judge.describe_topics(topic) == before
        assert world.epochs(topic) == epochs
        assert "RollingBack" not in rebalance.events()
        world.assert_tidy()


class TestDeletionPolicy:
    """Deletion policies other than rollback."""

    def test_revert(self, world: World) -> None:
        """Revert cancels reassignments in flight and leaves completed moves."""
        topic = world.skewed("revert", *MIXED)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("revert", topic, brokers=OFF_BROKER_1, deletionPolicy="Revert")
        wait_half_way(world, topic, before)
        arrived = {(topic, partition) for partition in world.moved(topic, before)}
        rebalance.delete()
        rebalance.wait_gone()
        after = world.judge.describe_topics(topic)
        moved = {key for key in before if set(after[key].replicas) != set(before[key].replicas)}
        assert arrived <= moved < before.keys()
        assert {key: after[key] for key in before.keys() - moved} == {key: before[key] for key in before.keys() - moved}
        assert all(len(after[key].replicas) == 3 for key in before)
        world.assert_tidy()

    def test_abandon_while_rolling_back(self, world: World) -> None:
        """Abandon, patched during a rollback, ends it at once; throttles are removed, the origins stay on record."""
        topic = world.skewed("abandon", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = _moved_and_crawling(world, topic, before)
        rebalance.delete()
        rebalance.wait_state("RollingBack")
        wait_until("a copy goes back", lambda: goes_back(world, topic, before))
        rebalance.patch(deletionPolicy="Abandon")
        rebalance.wait_gone()
        assert any(name.startswith("origins-") for name in rebalance.records())
        wait_until("Kafka finishes by itself", lambda: not world.in_flight(topic), every=0.5)
        wait_until("the throttles are taken away", lambda: world.judge.throttles() == {}, every=1)


def _moved_and_crawling(world: World, topic: str, before: Mapping[Key, PartitionState]) -> Rebalance:
    """A rebalance that has moved a big partition, so that its rollback takes long, and continues slowly."""
    rate = {"leaderRate": "2Mi", "followerRate": "2Mi"}
    rebalance = world.rebalance("slow", topic, throttle=rate, execution={"parallelPartitionCount": 1})
    wait_until("a partition has moved", lambda: world.moved(topic, before), every=0.2)
    # 15 seconds per copy: an abandoned copy stays throttled until it completes, and the test waits for it.
    rebalance.patch(throttle={"leaderRate": "128Ki", "followerRate": "128Ki"})
    return rebalance
