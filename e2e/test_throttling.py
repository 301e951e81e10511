"""The throttle while users, other tools and failures change it; afterwards all configs are as before."""

import contextlib
import json
import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from e2e.bench.judge import Key
from e2e.bench.load import fill
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.rebalance import GROUP_VERSION, NAMESPACE, state
from e2e.world import (
    BIG,
    FAST,
    FINE,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    SLOW,
    SLOW_BYTES,
    THROTTLE_KIND,
    World,
)

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

CONFIGS = "kafka.admin.ConfigCommand"
FAST_BYTES = str(500 * 2**20)


class TestNothingIsLeft:
    """Kafka's own tool describes every config before and after, without a difference."""

    @pytest.mark.parametrize("kills", [3, pytest.param(6, marks=pytest.mark.campaign)])
    def test_killed_again_and_again(self, world: World, operator: OperatorProcess, kills: int) -> None:
        """Rates from every source, lists and a wildcard; the operator is killed at random times; then a rollback."""
        chance = random.Random(7)
        listed = world.skewed("listed", BIG, BIG, leader_replication_throttled_replicas="0:1,1:1")
        starred = world.skewed("starred", BIG, follower_replication_throttled_replicas="*")
        plain = world.skewed("plain", BIG)
        with (
            world.broker_config("--entity-name", "1", leader_replication_throttled_rate="10000000"),
            world.broker_config("--entity-default", follower_replication_throttled_rate="20000000"),
        ):
            before, placed = world.judge.throttles(), world.judge.describe_topics(listed, starred, plain)
            assert {"broker 1", "broker default", f"topic {listed}", f"topic {starred}"} == before.keys()
            rebalance = world.rebalance("killed", listed, starred, plain, rollback={"timeout": "10m"})
            rebalance.until("copies are in flight", lambda status: status.get("currentBatchSize"))
            for kill in range(kills):
                operator.kill9()
                if kill == kills // 2:
                    rebalance.delete()
                operator.start()
                time.sleep(chance.uniform(0, 1.5))
            rebalance.patch(throttle={"leaderRate": "10M", "followerRate": "20M"})
            rebalance.wait_gone()
            wait_until("every config is as before", lambda: world.judge.throttles() == before, every=1)
            assert world.judge.describe_topics(listed, starred, plain) == placed

    def test_ten_changes_in_a_minute(self, world: World) -> None:
        """The last rate takes effect and is in the status, and nothing remains."""
        topic = world.skewed("often", BIG, BIG, BIG, batch_bytes=FINE)
        rebalance = world.rebalance("often", topic, throttle=SLOW)
        rebalance.until("copies are in flight", lambda status: status.get("currentBatchSize"))
        for step in range(10):
            rebalance.patch(throttle={"leaderRate": 7_000 + step, "followerRate": 8_000 + step})
        wait_until("the last rate", lambda: world.rates(4) == ("7009", "8009"))
        rebalance.until("its status", lambda status: status["throttle"]["leaderRate"] == 7_009)
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        assert world.judge.throttles() == {}


class TestOthers:
    """KafkaReassignmentThrottle applies to reassignments started by Kafka's own tool."""

    def test_their_reassignments_are_throttled_and_let_go(self, world: World) -> None:
        """Throttled within seconds, at the rate of the resource and its override; a patch raises the rates."""
        topic = world.topic(
            "theirs", [[1, 2, 3], [2, 3, 1]], BIG, batch_bytes=FINE, follower_replication_throttled_replicas="1:9"
        )
        before = {f"topic {topic}": {FOLLOWER_LIST: "1:9"}}
        # A broker on a busy machine may still describe what the test before has removed.
        wait_until("nothing else is throttled", lambda: world.judge.throttles() == before, every=1)
        override = {"id": 4, "followerRate": "4Ki"}
        throttle = _Throttle(world, "others", **SLOW, brokers=[override])
        throttle.until("nothing to do yet", lambda status: state(status)[0] == "NothingToThrottle")
        _begun_elsewhere(world, {(topic, 0): (4, 2, 3), (topic, 1): (5, 3, 1)})
        wait_until("the destinations are throttled", lambda: world.rates(4)[1] and world.rates(5)[1])
        assert (world.rates(4)[1], world.rates(5)[1]) == ("4096", SLOW_BYTES)
        assert world.rates(1)[0] == SLOW_BYTES
        lists = world.judge.throttles()[f"topic {topic}"]
        assert set(lists[FOLLOWER_LIST].split(",")) == {"1:9", "0:4", "1:5"}
        assert set(lists[LEADER_LIST].split(",")) == {"0:1", "0:2", "0:3", "0:4", "1:1", "1:2", "1:3", "1:5"}
        status = throttle.until("they are counted", lambda status: status.get("foreignReassignments") == 2)
        rows = {row["id"]: row for row in status["brokers"]}
        assert (rows[4]["followerRate"], rows[5]["followerRate"]) == (4096, int(SLOW_BYTES))
        assert throttle.name in rows[4]["followerClaim"]
        used = "followerUtilisationPercent"
        throttle.until("it is measured", lambda status: any(row.get(used) for row in status["brokers"]))
        assert len(world.in_flight(topic)) == 2
        throttle.patch(**FAST, brokers=None)
        wait_until("they have arrived", lambda: not world.in_flight(topic))
        wait_until("every config is as before", lambda: world.judge.throttles() == before, every=1)

    def test_deleted_while_in_use(self, world: World) -> None:
        """The resource is deleted after its claims are released; the reassignment continues at full speed."""
        topic = world.topic("let-go", [[1, 2, 3]], BIG, batch_bytes=FINE)
        throttle = _Throttle(world, "gone", **SLOW)
        throttle.until("it is there", lambda status: state(status)[0] == "NothingToThrottle")
        _begun_elsewhere(world, {(topic, 0): (4, 2, 3)})
        wait_until("it is throttled", lambda: world.rates(4)[1])
        throttle.delete()
        assert world.judge.throttles() == {}
        wait_until("it has arrived", lambda: not world.in_flight(topic))

    @pytest.mark.campaign
    def test_two_for_one_cluster(self, world: World) -> None:
        """The older one applies, the other reports the conflict; when the older is deleted, the other applies."""
        topic = world.skewed("two", BIG, BIG, BIG, batch_bytes=FINE)
        older = _Throttle(world, "older", **SLOW)
        older.until("it is there", lambda status: state(status)[0] == "NothingToThrottle")
        time.sleep(1.1)  # creationTimestamp has a resolution of one second
        later = _Throttle(world, "later", leaderRate="10Ki", followerRate="10Ki")
        later.until("it stands back", lambda status: state(status)[0] == "Conflicted")
        rebalance = world.rebalance("two", topic, throttle=FAST)
        wait_until("the older one binds", lambda: world.rates(4) == (SLOW_BYTES, SLOW_BYTES))
        older.delete()
        wait_until("the later one binds", lambda: world.rates(4) == (str(10 * 2**10),) * 2)
        later.delete()
        wait_until("its own binds", lambda: world.rates(4)[0] in {None, FAST_BYTES})
        rebalance.wait_for("Succeeded")
        assert world.judge.throttles() == {}


class TestDrift:
    """Another tool changes what the operator has set."""

    def test_lists_that_are_deleted_come_back(self, world: World) -> None:
        """Deleted as Strimzi's topic operator does: restored each time, counted, and reported after the third time."""
        topic = world.skewed("reverted", BIG, BIG, BIG, batch_bytes=FINE)
        throttle = _Throttle(world, "reverted", **SLOW)
        rebalance = world.rebalance("reverted", topic, throttle=FAST)
        wait_until("it is listed", lambda: _list(world, topic))
        for count in (1, 2, 3):
            _alter(world, "topics", topic, f"--delete-config={LEADER_LIST}")
            throttle.until("it is counted", lambda status, count=count: status.get("reverts", 0) >= count)
            wait_until("it is listed again", lambda: _list(world, topic))
        status = throttle.until("it is contested", lambda status: state(status)[0] == "Contested")
        assert status["reverts"] >= 3
        assert "topic operator" in state(status)[1]
        throttle.delete()
        rebalance.wait_for("Succeeded")
        assert world.judge.throttles() == {}

    def test_a_lowered_rate_is_a_brake_until_the_spec_changes(self, world: World) -> None:
        """It is not restored, not even after a restart; a patch of the spec lifts it. The value set by hand stays."""
        topic = world.skewed("brake", BIG, BIG, BIG, batch_bytes=FINE)
        rate = {"leaderRate": "20Ki", "followerRate": "20Ki"}
        throttle = _Throttle(world, "brake", leaderRate="15Ki", followerRate="15Ki")
        rebalance = world.rebalance("brake", topic, throttle=rate)
        wait_until("it is set", lambda: world.rates(4) == (str(15 * 2**10),) * 2)
        with _set_by_hand(world, 4, FOLLOWER_RATE, "1024"):
            throttle.until("it is seen", lambda status: "1024" in state(status)[1])
            world.operator.kill9()
            world.operator.start()
            throttle.until("it is seen again", lambda status: "1024" in state(status)[1])
            rebalance.patch(throttle={"leaderRate": "20Ki", "followerRate": "21Ki"})
            throttle.patch(leaderRate="14Ki", followerRate="14Ki")
            wait_until("the new rate", lambda: world.rates(4)[1] == str(14 * 2**10))
            throttle.delete()
            rebalance.patch(throttle=FAST)
            rebalance.wait_for("Succeeded")
            wait_until("it is the person's", lambda: world.judge.throttles() == {"broker 4": {FOLLOWER_RATE: "1024"}})

    @pytest.mark.campaign
    def test_a_raised_or_deleted_rate_is_put_back(self, world: World) -> None:
        """A raised or deleted rate is restored and counted."""
        topic = world.skewed("raised", BIG, BIG, BIG, batch_bytes=FINE)
        throttle = _Throttle(world, "raised", **SLOW)
        rebalance = world.rebalance("raised", topic, throttle=FAST)
        for broker in (4, 5):
            wait_until("it is set", lambda broker=broker: world.rates(broker) == (SLOW_BYTES, SLOW_BYTES))
        with _set_by_hand(world, 4, FOLLOWER_RATE, "99999999"):
            throttle.until("it is seen", lambda status: status.get("reverts") == 1)
            wait_until("it is back", lambda: world.rates(4)[1] == SLOW_BYTES)
            # By now the rates were read back: one that is missing was deleted, and is not one that comes late.
            _alter(world, "brokers", "5", f"--delete-config={FOLLOWER_RATE}")
            throttle.until("it is seen again", lambda status: status.get("reverts") == 2)
            wait_until("it is back again", lambda: world.rates(5)[1] == SLOW_BYTES)
            throttle.delete()
            rebalance.wait_for("Succeeded")
            assert world.judge.throttles() == {"broker 4": {FOLLOWER_RATE: "99999999"}}


class TestReplicationThrottle:
    """The cluster already has a replication throttle (KIP-542's table)."""

    def test_above_it_is_refused_and_below_it_goes_on(self, world: World) -> None:
        """The status names the broker and both rates, and nothing starts; a patch resolves it."""
        topic = world.skewed("above", BIG, BIG, BIG)
        with world.broker_config("--entity-name", "4", follower_replication_throttled_rate="1000000"):
            rebalance = world.rebalance("above", topic, throttle=FAST, brokers={"include": [1, 2, 3, 4]})
            words = ("broker 4", FAST_BYTES, "1000000")
            rebalance.until("it is refused", lambda status: all(word in state(status)[1] for word in words))
            assert world.in_flight(topic) == {}
            assert world.rates(4)[1] == "1000000"
            rebalance.patch(throttle={"leaderRate": "1M", "followerRate": "1M"})
            rebalance.wait_for("Succeeded")
            assert world.judge.throttles() == {"broker 4": {FOLLOWER_RATE: "1000000"}}

    @pytest.mark.campaign
    def test_full_speed_takes_part_in_it(self, world: World) -> None:
        """Moving replicas are added to the existing lists; the rate stays."""
        topic = world.skewed("part", BIG, BIG, BIG, batch_bytes=FINE)
        with world.broker_config("--entity-name", "4", follower_replication_throttled_rate=SLOW_BYTES):
            include = {"include": [1, 2, 3, 4]}
            rebalance = world.rebalance("part", topic, throttle={"unlimited": True}, brokers=include)
            wait_until("it is listed", lambda: ":4" in _list(world, topic, FOLLOWER_LIST))
            assert world.rates(4) == (None, SLOW_BYTES)
            wait_until("it is in flight", lambda: world.in_flight(topic))
            _alter(world, "brokers", "4", f"--add-config={FOLLOWER_RATE}={FAST_BYTES}")
            rebalance.wait_for("Succeeded")
            assert world.judge.throttles() == {"broker 4": {FOLLOWER_RATE: FAST_BYTES}}

    @pytest.mark.campaign
    def test_separate(self, world: World) -> None:
        """The lower rate of the two applies to all listed replicas, and the previous value is restored."""
        topic = world.skewed("separate", BIG, BIG, BIG, batch_bytes=FINE)
        throttle = _Throttle(world, "separate", **SLOW, whenReplicationThrottled="Separate")
        with world.broker_config("--entity-name", "4", follower_replication_throttled_rate="1000000"):
            rebalance = world.rebalance("separate", topic, throttle={"unlimited": True})
            wait_until("the lower one", lambda: world.rates(4)[1] == SLOW_BYTES)
            throttle.patch(whenReplicationThrottled="Additive")
            wait_until("the sum", lambda: world.rates(4)[1] == str(1_000_000 + int(SLOW_BYTES)))
            throttle.delete()
            rebalance.wait_for("Succeeded")
            assert world.judge.throttles() == {"broker 4": {FOLLOWER_RATE: "1000000"}}


class TestFollowers:
    """Replicas that do not move."""

    def test_one_that_returns_is_not_held_up(self, world: World) -> None:
        """It leaves the ISR during a slow copy, has much to catch up, and is in sync before the copy completes."""
        topic = world.topic("stays", [[1, 2, 3]], BIG, batch_bytes=FINE)
        spec = {"brokers": {"include": [1, 2, 4]}, "execution": {"maxUnhealthy": 100}}
        rebalance = world.rebalance("stays", topic, throttle=SLOW, **spec)
        wait_until("the copy is in flight", lambda: world.in_flight(topic))
        world.kafka.kill9(2)
        world.kafka.wait_gone(2)
        fill(world.kafka, {(topic, 0): 4 * BIG})
        world.kafka.start_brokers(2)
        wait_until("it is in sync", lambda: 2 in world.partitions(topic)[0].isr)
        assert world.in_flight(topic)
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        world.wait_in_sync(topic)
        assert world.judge.throttles() == {}


class _Throttle:
    """A KafkaReassignmentThrottle as a kubectl user sees it."""

    def __init__(self, world: World, name: str, **spec: Any) -> None:
        self._world = world
        self.name = world.throttle(name, **spec)

    @property
    def status(self) -> Mapping[str, Any]:
        path = f"/apis/{GROUP_VERSION}/namespaces/{NAMESPACE}/kafkareassignmentthrottles/{self.name}"
        found: Mapping[str, Any] = self._world.kube.api.get(path).get("status", {})
        return found

    def until(self, what: str, holds: Any) -> Mapping[str, Any]:
        """Wait until the condition holds for the status; returns it."""
        last: Mapping[str, Any] = {}

        def ask() -> bool:
            nonlocal last
            last = self.status
            return bool(holds(last))

        try:
            wait_until(f"{self.name}: {what}", ask, every=0.2)
        except TimeoutError as error:
            raise AssertionError(f"{error}; the status is {json.dumps(last, indent=1)}") from None
        return last

    def patch(self, **spec: Any) -> None:
        patch = json.dumps({"spec": spec})
        self._world.kube.kubectl("patch", THROTTLE_KIND, self.name, "-n", NAMESPACE, "--type=merge", "-p", patch)

    def delete(self) -> None:
        self._world.kube.kubectl("delete", THROTTLE_KIND, self.name, "-n", NAMESPACE, "--timeout=240s")


def _begun_elsewhere(world: World, target: Mapping[Key, tuple[int, ...]]) -> None:
    """Reassign with another tool; the destinations stay down until the sources are throttled."""
    added = {ids[0] for ids in target.values()}
    sources = {world.partitions(topic)[number].leader for topic, number in target}
    world.kafka.kill9(*added)
    world.kafka.wait_gone(*added)
    world.order(target)
    for source in sources:
        wait_until(f"broker {source} is throttled", lambda source=source: world.rates(source)[0] == SLOW_BYTES)
    world.kafka.start_brokers(*added)


@contextlib.contextmanager
def _set_by_hand(world: World, broker: int, name: str, value: str) -> Iterator[None]:
    _alter(world, "brokers", str(broker), f"--add-config={name}={value}")
    try:
        yield
    finally:
        world.unset(broker, name)


def _alter(world: World, kind: str, name: str, change: str) -> None:
    where = ("--bootstrap-server", world.kafka.bootstrap_servers, "--entity-type", kind, "--entity-name", name)
    world.kafka.run_tool(CONFIGS, *where, "--alter", *change.split("=", 1))


def _list(world: World, topic: str, name: str = LEADER_LIST) -> str:
    """A list of throttled replicas; empty if it is not set."""
    return world.judge.topic_configs(topic).get(topic, {}).get(name, "")
