"""Failures during a running rebalance: of its operator, of a broker that it uses, of a broker that it does not use."""

import contextlib
import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from e2e.bench.judge import Key, PartitionState
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.rebalance import KIND, NAMESPACE
from e2e.rebalance import state as ready
from e2e.world import BIG, FAST, SMALL, World, targets

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

KILLS = 20
SHORT_LIVES = 2


def arrived(
    world: World, topic: str, before: Mapping[Key, PartitionState], target: Mapping[Key, tuple[int, ...]]
) -> set[int]:
    """The partitions that have moved and are where the plan puts them: others may have a second move."""
    found = world.partitions(topic)
    return {n for n in world.moved(topic, before) if found[n].replicas == target.get((topic, n))}


class TestOperatorKilled:
    """The operator is killed with -9 and restarted repeatedly."""

    @pytest.mark.campaign
    def test_many_times_in_one_run(self, world: World, operator: OperatorProcess) -> None:
        """The original plan completes, within its caps in every sample, and the recorded origins can undo it."""
        chance = random.Random(1)
        topic = world.skewed("killed", *[BIG // 16] * 60)
        beside = world.skewed("beside", SMALL, SMALL)
        before = world.judge.describe_topics(topic, beside)
        operator.kill9()
        rate = {"leaderRate": "128Ki", "followerRate": "128Ki"}
        rebalance = world.rebalance("killed", topic, throttle=rate, execution={"parallelPartitionCount": 2})
        plan = world.planned(rebalance, before)
        target = targets(plan)
        with world.sampling() as look:
            for kill in range(KILLS):
                begun = time.monotonic()
                operator.launch()
                if kill:  # the first life ends before there is a plan
                    operator.wait_ready()
                # Measured on this machine: a short life ends while the operator connects, plans and sets the throttle.
                start = time.monotonic() - begun
                if kill == KILLS - 1:
                    wait_until("a partition has arrived", lambda: arrived(world, topic, before, target), every=0.2)
                time.sleep(chance.uniform(0, 0.25 * start if kill < SHORT_LIVES else min(start, 1.5)))
                operator.kill9()
                assert kill or not rebalance.records()
        assert 0 < len(arrived(world, topic, before, target)) < len(target)
        assert 0 < look.most_partitions <= 2
        assert look.most_replicas == 1
        assert all(set(adding) <= set(target.get(key, ())) for row in look.seen for key, adding in row.items())

        operator.start()
        rebalance.patch(throttle=FAST, execution={"parallelPartitionCount": 100})
        rebalance.wait_for("Succeeded")
        world.assert_reached(target)
        after = world.judge.describe_topics(topic, beside)
        untouched = before.keys() - target.keys()
        assert {key: after[key] for key in untouched} == {key: before[key] for key in untouched}
        assert rebalance.status["plan"]["hash"] == plan["summary"]["hash"]
        assert sorted(name.partition("-")[0] for name in rebalance.records()) == ["origins", "plan", "run"]
        undo = f"kafkarebalance.dev/undo={plan['summary']['hash']}"
        world.kube.kubectl("annotate", KIND, rebalance.name, "-n", NAMESPACE, undo)
        rebalance.wait_state("Undone")
        assert world.judge.describe_topics(topic, beside) == before


class TestBroker:
    """A broker dies during a step and returns."""

    @pytest.mark.campaign
    def test_destination_dies(self, world: World) -> None:
        """While it is down the status says so and other moves continue; when it is back, the plan completes."""
        topic = world.skewed("died", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        # The rebalance should wait for the broker only.
        rebalance = world.rebalance("died", topic, execution={"brokerSettleTime": "1s", "maxUnhealthy": 100})
        plan = world.planned(rebalance, before)
        broker, *_ = wait_until("a copy in flight", lambda: [b for ids in world.in_flight(topic).values() for b in ids])
        world.kafka.kill9(broker)
        with _returning(world, broker, topic):
            rebalance.until("it is named", lambda status: _says(status, "TargetBrokerUnavailable", f"broker {broker}"))
            rebalance.patch(throttle=FAST)
            only = {(broker,)}
            wait_until("nothing else is in flight", lambda: set(world.in_flight(topic).values()) == only, every=0.3)
        rebalance.wait_for("Succeeded")
        world.assert_reached(targets(plan))


class TestHealthGate:
    """The cluster is unhealthy for a reason unrelated to the rebalance."""

    @pytest.mark.campaign
    def test_others_lack_a_replica(self, world: World) -> None:
        """Copies in flight complete, no step starts, the state names the partition; maxUnhealthy overrides it."""
        # The name sorts before the internal topics, which miss a replica on the same broker.
        beside = world.topic("Beside", [[5, 2, 3]], SMALL)
        topic = world.skewed("gate", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        one = {"parallelPartitionCount": 1}
        rebalance = world.rebalance("gate", topic, brokers={"include": [1, 2, 3, 4]}, execution=one)
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        world.kafka.kill9(5)
        with _returning(world, 5, beside):
            named = "UnderReplicated", f"{beside}-0"
            rebalance.until("the partition is named", lambda status: _says(status, *named, state="ClusterUnhealthy"))
            begun = world.begun(topic, before)
            rebalance.patch(throttle=FAST)
            wait_until("nothing is in flight", lambda: not world.in_flight(topic), every=0.3)
            with world.sampling(topic) as rest:
                rest.wait_more(20)
            assert rest.most_partitions == 0
            assert set() < world.moved(topic, before) <= begun < {number for _, number in targets(plan)}
            rebalance.patch(execution={"maxUnhealthy": 100})
            rebalance.wait_for("Succeeded")
            assert 5 not in world.kafka.running
        world.assert_reached(targets(plan))
        assert world.partitions(beside)[0].replicas == (5, 2, 3)


def _says(status: Mapping[str, Any], *words: str, state: str = "Rebalancing") -> bool:
    """Whether the status has this state and a message with these words."""
    reason, message = ready(status)
    return reason == state and all(word in message for word in words)


@contextlib.contextmanager
def _returning(world: World, broker: int, *topics: str) -> Iterator[None]:
    """Start the broker again at the end in any case, and wait until these topics are in sync."""
    try:
        yield
    finally:
        world.kafka.start_brokers(broker)
        world.wait_in_sync(*topics)
