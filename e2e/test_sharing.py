"""What keeps a rebalance from starting steps: windows, caps, other rebalances, approval, suspension."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.bench.judge import Key, PartitionState, Reassignment
from e2e.bench.waiting import wait_until
from e2e.lane import OPERATOR_NAMESPACE
from e2e.rebalance import NAMESPACE, Rebalance, condition, state
from e2e.world import BIG, FAST, FINE, SLOW, SMALL, THROTTLE_KIND, World, targets

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

ONE_AT_A_TIME = {"parallelPartitionCount": 1}
BATCH = 24
"""Partitions in flight; the status shows only the first 20."""


class TestWindows:
    """spec.execution.windows."""

    def test_shut_then_open(self, world: World) -> None:
        """Outside its windows it drains, stays idle and reports the next window; inside a window it continues."""
        topic = world.skewed("window", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("window", topic, execution=ONE_AT_A_TIME)
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        opens = (datetime.now(UTC) + timedelta(hours=12)).replace(minute=0, second=0)
        shut = {"cron": f"0 {opens.hour} * * *", "duration": "1h"}
        rebalance.patch(execution={"windows": [shut]})
        status = rebalance.wait_state("OutsideWindow")
        assert f"{opens:%Y-%m-%dT%H:%M:%SZ}" in state(status)[1]
        assert (condition(status, "Reconciling"), condition(status, "Stalled")) == ("True", "False")
        rebalance.patch(throttle=FAST)
        _comes_to_rest(world, topic, before)
        assert state(rebalance.status)[0] == "OutsideWindow"
        rebalance.patch(execution={"windows": [shut, {"cron": "* * * * *", "duration": "1h"}]})
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))


class TestCaps:
    """Caps on reassignments in flight, over several rebalances or per broker."""

    def test_copies_into_one_broker(self, world: World) -> None:
        """With maxPerBroker.in 1 no sample has two copies to one broker, while both new brokers receive copies."""
        topic = world.skewed("broker", *[BIG] * 6)
        with world.sampling(topic) as look:
            rebalance = world.rebalance("broker", topic, execution={"maxPerBroker": {"in": 1}})
            wait_until("copies to two brokers", lambda: look.most_partitions == 2)
            look.wait_more(10)
            rebalance.patch(throttle=FAST)
            rebalance.wait_for("Succeeded")
        assert {max(_copies_into(row).values(), default=0) for row in look.seen} == {0, 1}
        assert {broker for row in look.seen for broker in _copies_into(row)} == {4, 5}
        world.assert_tidy()

    def test_partitions_of_all_rebalances(self, world: World) -> None:
        """The throttle resource's limit applies to the sum of two rebalances; a higher limit takes effect at once."""
        one, other = world.skewed("one", *[BIG] * 6), world.skewed("other", *[BIG] * 6)
        throttle = world.throttle("limits", limits={"parallelPartitionCount": 2})
        world.kube.kubectl("wait", "--for=condition=Ready", "--timeout=240s", THROTTLE_KIND, throttle, "-n", NAMESPACE)
        with world.sampling(one, other) as look:
            first = world.rebalance("first", one, execution=ONE_AT_A_TIME)
            second = world.rebalance("second", other)
            wait_until("both have a copy in flight", lambda: _topics(look.seen[-1:]) == {one, other})
            look.wait_more(10)
        assert look.most_partitions == 2

        with world.sampling(one, other) as look:
            higher = '{"spec": {"limits": {"parallelPartitionCount": 4}}}'
            world.kube.kubectl("patch", THROTTLE_KIND, throttle, "-n", NAMESPACE, "--type=merge", "-p", higher)
            wait_until("four partitions in flight", lambda: look.most_partitions == 4)
            look.wait_more(10)
            for rebalance in (first, second):
                rebalance.patch(throttle=FAST)
            for rebalance in (first, second):
                rebalance.wait_for("Succeeded")
        assert look.most_partitions == 4
        assert max(Counter(topic for topic, _ in row)[one] for row in look.seen) == 1
        world.assert_tidy()


class TestQueue:
    """Rebalances of the same partitions."""

    @pytest.mark.campaign
    def test_priority(self, world: World) -> None:
        """Later ones queue and say why; a higher priority runs at the next rest point; then the queue continues."""
        topic = world.skewed("queue", *[BIG] * 6, batch_bytes=FINE)
        before = world.judge.describe_topics(topic)
        first = world.rebalance("first", topic, throttle=SLOW, execution=ONE_AT_A_TIME)
        first.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        last = world.rebalance("last", topic, throttle=FAST, brokers={"include": [1, 2, 3]})
        assert _waits_for(last, first, 1)

        spec = {"brokers": {"include": [3, 4, 5]}, "execution": ONE_AT_A_TIME}
        urgent = world.rebalance("urgent", topic, throttle=SLOW, priority=10, **spec)
        assert f"{NAMESPACE}/{urgent.name} " in state(first.wait_state("Yielding"))[1]
        assert f"{NAMESPACE}/{first.name}, " in state(urgent.wait_state("Queued"))[1]
        first.patch(throttle=FAST)
        urgent.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        found = world.judge.describe_topics(topic)
        assert sum(set(found[key].replicas) != set(before[key].replicas) for key in before) <= 2  # one each
        assert _waits_for(first, urgent, 1)
        assert _waits_for(last, urgent, 2)

        with world.sampling(topic) as look:
            # A copy takes seconds: time enough for the queued rebalances to interfere while their plans become invalid.
            rate = {"leaderRate": "2Mi", "followerRate": "2Mi"}
            urgent.patch(throttle=rate, execution={"parallelPartitionCount": 2})
            urgent.wait_for("Succeeded")
        assert _begun_again(look.seen) == set()
        for rebalance in (first, last):
            rebalance.wait_for("Succeeded")
        found = world.judge.describe_topics(topic)
        assert {broker for state in found.values() for broker in state.replicas} == {1, 2, 3}
        told = _events(world)
        names = _names(urgent, first, last)
        assert [name for name, reason in told if reason == "Succeeded" and name in names] == names
        world.assert_tidy()

    @pytest.mark.campaign
    def test_suspended_lets_others_by(self, world: World) -> None:
        """A suspended, idle rebalance blocks no other one; when resumed, it replans from the current state."""
        topic = world.skewed("aside", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        suspended = world.rebalance("suspended", topic, execution=ONE_AT_A_TIME)
        suspended.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        suspended.patch(execution={"suspend": True})
        other = world.rebalance("other", topic, throttle=FAST, brokers={"include": [3, 4, 5]})
        assert f"{NAMESPACE}/{suspended.name}, " in state(other.wait_state("Queued"))[1]
        suspended.patch(throttle=FAST)
        other.wait_for("Succeeded")
        between = world.judge.describe_topics(topic)
        assert {broker for found in between.values() for broker in found.replicas} == {3, 4, 5}
        assert between.keys() == before.keys()
        with world.sampling(topic) as rest:
            rest.wait_more(20)
        assert rest.most_partitions == 0
        suspended.patch(execution={"suspend": False})
        suspended.wait_for("Succeeded")
        assert "Drifted" in suspended.events()
        plan = world.planned(suspended, between)
        assert suspended.status["plan"]["hash"] == plan["summary"]["hash"]
        world.assert_reached(targets(plan))


class TestApproval:
    """spec.approval.policy: Manual."""

    @pytest.mark.campaign
    def test_runs_with_the_right_hash(self, world: World) -> None:
        """It shows its plan in the status and changes nothing, also with a wrong hash; the right hash starts it."""
        topic = world.skewed("approval", *[SMALL] * 6)
        before, epochs = world.judge.describe_topics(topic), world.epochs(topic)
        rebalance = world.rebalance("approval", topic, throttle=FAST, approval={"policy": "Manual"})
        plan = world.planned(rebalance, before)
        status = rebalance.wait_state("AwaitingApproval")
        right = plan["summary"]["hash"]
        assert status["plan"]["hash"] == right
        assert right in state(status)[1]
        assert condition(status, "Approved") == "False"
        rebalance.patch(approval={"planHash": f"sha256:{0:064}"})
        rebalance.until("the patch is seen", lambda status: status["observedGeneration"] == 2)
        with world.sampling(topic) as rest:
            rest.wait_more(20)
        assert rest.most_partitions == 0
        assert state(rebalance.status)[0] == "AwaitingApproval"
        assert (world.judge.describe_topics(topic), world.epochs(topic)) == (before, epochs)
        world.assert_tidy()
        rebalance.patch(approval={"planHash": right})
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))

    def test_deleted_while_it_waits(self, world: World) -> None:
        """Deleting a rebalance that awaits approval changes nothing, not even a leader."""
        topic = world.skewed("refused", *[SMALL] * 6)
        before, epochs = world.judge.describe_topics(topic), world.epochs(topic)
        rebalance = world.rebalance("refused", topic, throttle=FAST, approval={"policy": "Manual"})
        rebalance.wait_state("AwaitingApproval")
        rebalance.delete()
        rebalance.wait_gone()
        assert (world.judge.describe_topics(topic), world.epochs(topic)) == (before, epochs)
        assert rebalance.records() == []
        world.assert_tidy()


class TestBatch:
    """kafka-rebalance status --batch."""

    def test_more_than_a_status_holds(self, world: World) -> None:
        """It shows the same list as Kafka's tool, partition by partition, also beyond the rows of the status."""
        topic = world.skewed("batch", *[BIG // 4] * BATCH, batch_bytes=FINE)
        slow = {"leaderRate": "1Ki", "followerRate": "1Ki"}  # one copy alone takes minutes, and they share the rate
        wide = {"parallelLeaderMovements": BATCH}
        rebalance = world.rebalance("batch", topic, throttle=slow, brokers={"include": [3, 4, 5]}, execution=wide)
        status = rebalance.until("all are in flight", lambda status: status.get("currentBatchSize") == BATCH)
        assert len(status["currentBatch"]) == 20
        look = wait_until("two listings between which nothing arrives", lambda: self._look(world, rebalance))
        assert look is not None
        listed, answer = look
        assert len(listed) > 20
        shown = {
            (of["name"], row["partitionId"]): (row["currentBrokers"], row["targetBrokers"])
            for of in answer["currentTopicReassignmentBatch"]
            for row in of["partitions"]
        }
        assert shown == {
            key: (
                [broker for broker in row.replicas if broker not in row.adding],
                [broker for broker in row.replicas if broker not in row.removing],
            )
            for key, row in listed.items()
        }

    def _look(self, world: World, rebalance: Rebalance) -> tuple[dict[Key, Reassignment], Any] | None:
        """The output of Kafka's tool and of the command; None if the list changed meanwhile."""
        before = world.judge.list_reassignments()
        where = ("-n", NAMESPACE, "--operator-namespace", OPERATOR_NAMESPACE)
        answer = json.loads(world.command("status", rebalance.name, *where, "--batch", "-o", "json"))
        return (before, answer) if world.judge.list_reassignments() == before else None


def _comes_to_rest(world: World, topic: str, before: Mapping[Key, PartitionState]) -> None:
    """It drains until no partition has an extra replica; after that, twenty samples show nothing in flight."""

    def at_rest() -> bool:
        whole = all(
            len(found.replicas) == len(before[topic, at].replicas) for at, found in world.partitions(topic).items()
        )
        return whole and not world.in_flight(topic)

    wait_until("it is at rest", at_rest, every=0.3)
    with world.sampling(topic) as rest:
        rest.wait_more(20)
    assert rest.most_partitions == 0
    found = world.judge.describe_topics(topic)
    assert all(len(found[key].replicas) == len(before[key].replicas) for key in before)
    assert any(found[key].replicas == before[key].replicas for key in before)  # the run is not complete
    wait_until("its throttle slows nobody", lambda: world.judge.throttles() == {}, every=1)


def _waits_for(rebalance: Rebalance, other: Rebalance, place: int) -> bool:
    """Wait until it reports that it is queued behind the other one, at this place."""
    said = f"waits for {NAMESPACE}/{other.name}, "
    rebalance.until(
        f"queued behind {other.name} at place {place}",
        lambda status: (
            state(status)[0] == "Queued"
            and said in state(status)[1]
            and f"place {place}" in state(status)[1]
            and condition(status, "Stalled") == "False"
        ),
    )
    return True


def _copies_into(row: Mapping[Key, tuple[int, ...]]) -> Counter[int]:
    """Number of copies to each broker."""
    return Counter(broker for adding in row.values() for broker in adding)


def _begun_again(rows: list[dict[Key, tuple[int, ...]]]) -> set[tuple[Key, int]]:
    """Copies that were in flight, disappeared, and were started again."""
    ended: set[tuple[Key, int]] = set()
    again: set[tuple[Key, int]] = set()
    before: set[tuple[Key, int]] = set()
    for row in rows:
        now = {(key, broker) for key, adding in row.items() for broker in adding}
        again |= now & ended
        ended |= before - now
        before = now
    return again


def _topics(rows: list[dict[Key, tuple[int, ...]]]) -> set[str]:
    return {topic for row in rows for topic, _ in row}


def _names(*rebalances: Rebalance) -> list[str]:
    return [rebalance.name for rebalance in rebalances]


def _events(world: World) -> list[tuple[str, str]]:
    """Name and reason of all events, oldest first."""
    rows = sorted(
        world.kube.get("events", "-n", NAMESPACE)["items"], key=lambda row: int(row["metadata"]["resourceVersion"])
    )
    return [(row["involvedObject"]["name"], row["reason"]) for row in rows]
