"""Changes by other tools during a running rebalance: reassignments, topics, partitions, replicas."""

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from e2e.bench.judge import Key
from e2e.bench.load import create_topics
from e2e.bench.waiting import wait_until
from e2e.rebalance import condition, state
from e2e.world import BIG, FAST, FINE, ON_THREE, SMALL, World, targets

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

NO_MORE_THAN_4 = {"brokers": {"include": [1, 2, 3, 4]}, "execution": {"parallelPartitionCount": 1}}
"""The plan does not use broker 5, and one partition is in flight while the others wait."""
STANDSTILL = "4096"
"""A copy of a BIG partition takes eight minutes."""


class TestReassignments:
    """Another user runs Kafka's own tool at the same time."""

    def test_left_alone(self, world: World) -> None:
        """A pending partition that another tool moves is skipped later; partitions outside the plan are ignored."""
        # Throttled on broker 5 to stay in flight: one as follower, the other as leader.
        outside = world.topic("outside", [[5, 2, 3]], batch_bytes=FINE, leader_replication_throttled_replicas="0:5")
        on_5 = ",".join(f"{partition}:5" for partition in range(6))
        topic = world.skewed("foreign", *[BIG] * 6, batch_bytes=FINE, follower_replication_throttled_replicas=on_5)
        before = world.judge.describe_topics(topic)
        with world.broker_config("--entity-name", "5", leader_replication_throttled_rate=STANDSTILL):
            throttles = world.judge.throttles()
            rebalance = world.rebalance("foreign", topic, approval={"driftBudget": 100}, **NO_MORE_THAN_4)
            plan = world.planned(rebalance, before)
            with world.broker_config("--entity-name", "5", follower_replication_throttled_rate=STANDSTILL):
                theirs = _waiting(world, plan)
                replicas = tuple(5 if broker == 2 else broker for broker in before[theirs].replicas)
                world.reassign({theirs: replicas, (outside, 0): (5, 1, 3)})
                told = f"ForeignReassignment (1, e.g. {theirs[0]}-{theirs[1]}: "
                rebalance.until("theirs is named", lambda status: told in state(status)[1])
                rebalance.patch(throttle=FAST)
                rebalance.until("all others have arrived", _only_one_is_left)
                assert world.in_flight(topic, outside) == {theirs: (5,), (outside, 0): (1,)}
            rebalance.wait_for("Succeeded")
            assert rebalance.skipped() == {theirs: "Drifted"}
            assert world.judge.list_reassignments().keys() == {(outside, 0)}
            assert world.judge.throttles() == throttles
        # A broker may still describe the former replicas when the controller lists the reassignment no more.
        arrived = {(outside, 0): (5, 1, 3), theirs: replicas}
        wait_until("both of theirs arrive", lambda: _are_at(world, arrived), every=0.5)
        ends = world.judge.describe_topics(topic, outside)
        expected = {**targets(plan), **arrived}
        assert {key: ends[key].replicas for key in expected} == expected
        assert all(ends[key].leader == ends[key].replicas[0] for key in targets(plan).keys() - {theirs})
        assert rebalance.status["plan"]["hash"] == plan["summary"]["hash"]
        assert "Drifted" not in rebalance.events()

    @pytest.mark.campaign
    def test_beyond_the_drift_budget(self, world: World) -> None:
        """More drift than driftBudget: a new plan from the current state, including the moved partition."""
        topic = world.skewed("budget", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("budget", topic, approval={"driftBudget": 0}, **NO_MORE_THAN_4)
        plan = world.planned(rebalance, before)
        theirs = _waiting(world, plan)
        world.reassign({theirs: tuple(5 if broker == 2 else broker for broker in before[theirs].replicas)})
        first = plan["summary"]["hash"]
        rebalance.until("another plan", lambda status: status["plan"]["hash"] != first)
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        found = world.judge.describe_topics(topic)
        held = [broker for partition in found.values() for broker in partition.replicas]
        assert {broker: held.count(broker) for broker in set(held)} == {1: 3, 2: 6, 3: 6, 4: 3}
        assert all(partition.leader == partition.replicas[0] for partition in found.values())
        assert rebalance.skipped() == {}
        assert "Drifted" in rebalance.events()
        world.assert_tidy()


class TestTopics:
    """Topics and partitions are created and deleted."""

    def test_deleted_and_created_again(self, world: World) -> None:
        """The partitions are skipped, the new topic of that name is not touched, the other moves complete."""
        doomed, kept = world.skewed("doomed", *[BIG] * 6), world.skewed("kept", *[BIG] * 6)
        before = world.judge.describe_topics(doomed, kept)
        rebalance = world.rebalance("again", doomed, kept)
        plan = world.planned(rebalance, before)
        wait_until("both in flight", lambda: {topic for topic, _ in world.in_flight(doomed, kept)} == {doomed, kept})
        admin = world.kafka.admin()
        admin.delete_topics([doomed])[doomed].result(timeout=60)
        create_topics(world.kafka, {doomed: ON_THREE * 2})
        gone = {key for key in targets(plan) if key[0] == doomed}
        assert gone
        rebalance.until("all are skipped", lambda status: status["skippedCount"] == len(gone))
        assert rebalance.skipped() == dict.fromkeys(gone, "TopicRecreated")
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        assert rebalance.skipped() == dict.fromkeys(gone, "TopicRecreated")
        world.assert_reached({key: replicas for key, replicas in targets(plan).items() if key[0] == kept})
        new = world.judge.describe_topics(doomed)
        assert [new[doomed, at].replicas for at in range(6)] == list(ON_THREE * 2)

    @pytest.mark.campaign
    def test_partitions_added_and_replicas_removed(self, world: World) -> None:
        """New partitions are not touched; one whose replication factor was lowered meanwhile keeps it."""
        topic = world.skewed("resized", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("resized", topic, approval={"driftBudget": 100}, **NO_MORE_THAN_4)
        plan = world.planned(rebalance, before)
        theirs = _waiting(world, plan)
        fewer = before[theirs].replicas[:2]
        admin = world.kafka.admin()
        admin.create_partitions([NewPartitions(topic, 8, [[2, 1, 3], [1, 2, 3]])])[topic].result(timeout=60)
        world.reassign({theirs: fewer})
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        assert rebalance.skipped() == {theirs: "Drifted"}
        world.assert_reached({key: replicas for key, replicas in targets(plan).items() if key != theirs})
        after = world.judge.describe_topics(topic)
        assert [after[key].replicas for key in (theirs, (topic, 6), (topic, 7))] == [fewer, (2, 1, 3), (1, 2, 3)]

    def test_new_topic_on_a_leaving_broker(self, world: World) -> None:
        """Replicas that were placed on the broker after planning are planned too, before Drained is True."""
        early = world.topic("leaving-early", [[5, 1, 3], [4, 5, 3], [1, 5, 3]])
        rebalance = world.rebalance("leave", brokers={"decommission": [5]})  # all topics, also of other tests
        status = rebalance.until("copies in flight", lambda status: status.get("currentBatchSize"))
        first = status["plan"]["hash"]
        late = world.topic("leaving-late", [[2, 5, 3], [5, 4, 3]], SMALL)
        assert condition(rebalance.status, "Drained") != "True"
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Drained")
        found = world.judge.describe_topics()
        assert [key for key, partition in found.items() if 5 in partition.replicas] == []
        assert rebalance.status["plan"]["hash"] != first
        rebalance.wait_for("Succeeded")
        ours = {key: partition for key, partition in found.items() if key[0] in {early, late}}
        assert all(len(partition.replicas) == 3 for partition in ours.values())
        assert all(partition.leader == partition.replicas[0] for partition in ours.values())
        world.assert_tidy()


def _waiting(world: World, plan: Mapping[str, Any]) -> Key:
    """A partition that the plan moves to broker 4 and that is still pending: another one is in flight."""
    keys = sorted(key for key, replicas in targets(plan).items() if 4 in replicas)
    topic = keys[0][0]
    flying = wait_until("a copy in flight", lambda: world.in_flight(topic))
    return next(
        key for key in reversed(keys) if key not in flying and 4 not in world.partitions(topic)[key[1]].replicas
    )


def _only_one_is_left(status: Mapping[str, Any]) -> bool:
    found = status["progress"]["partitions"]
    return bool(found["completed"] == found["total"] - 1)


def _are_at(world: World, wanted: Mapping[Key, tuple[int, ...]]) -> bool:
    found = world.judge.describe_topics(*{topic for topic, _ in wanted})
    return all(found[key].replicas == replicas for key, replicas in wanted.items())
