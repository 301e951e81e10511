"""The operator moves replicas on real brokers as a KafkaRebalance requests; Kafka's own tools confirm it."""

import pytest

from e2e.bench.waiting import wait_until
from e2e.rebalance import NAMESPACE, condition, state
from e2e.world import BIG, CRAWL_BYTES, FAST, FOLLOWER_LIST, LEADER_LIST, SMALL, THROTTLE_KIND, World

CORDON = "cordoned.log.dirs"

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]


class TestApply:
    """A KafkaRebalance is applied and completes."""

    def test_brokers_added(self, world: World) -> None:
        """New brokers get their share: as planned, with the fewest moves, preferred leaders, and unchanged configs."""
        topic = world.skewed("apply", *[BIG] * 6, leader_replication_throttled_replicas="0:1,1:1")
        with (
            world.broker_config("--entity-name", "1", leader_replication_throttled_rate="10000000"),
            world.broker_config("--entity-default", follower_replication_throttled_rate="20000000"),
        ):
            self._carried_out(world, topic)

    def _carried_out(self, world: World, topic: str) -> None:
        expected = {"broker 1", "broker default", f"topic {topic}"}
        # A broker on a busy machine may still describe what the test before has removed.
        wait_until("nothing else is throttled", lambda: world.judge.throttles().keys() == expected, every=1)
        before, throttles = world.judge.describe_topics(topic), world.judge.throttles()
        rebalance = world.rebalance("apply", topic)
        rebalance.until("copies are in flight", lambda status: status.get("currentBatchSize"))
        columns = world.kube.kubectl("get", "krb", rebalance.name, "-n", NAMESPACE)
        # The rebalance's own rate is added to the existing rate.
        assert world.rates(1) == (str(10_000_000 + int(CRAWL_BYTES)), str(20_000_000 + int(CRAWL_BYTES)))
        # At most the rate of the existing replication throttle (KIP-542).
        rebalance.patch(throttle={"leaderRate": "10M", "followerRate": "20M"})
        rebalance.wait_for("Succeeded")
        after = world.judge.describe_topics(topic)

        made = world.planned(rebalance, before)
        target = {key: state.replicas for key, state in before.items()}
        target |= {(row["topic"], row["partition"]): tuple(row["replicas"]) for row in made["partitions"]}
        assert {key: state.replicas for key, state in after.items()} == target
        assert all(state.leader == state.replicas[0] for state in after.values())
        assert all(state.isr == set(state.replicas) for state in after.values())
        assert world.judge.list_reassignments() == {}
        wait_until("the throttles are as before", lambda: world.judge.throttles() == throttles, every=1)

        plan = rebalance.status["plan"]
        assert plan["hash"] == made["summary"]["hash"]
        moves = sum(len(set(after[key].replicas) - set(before[key].replicas)) for key in before)
        assert plan["replicaMoves"] == plan["lowerBound"] == moves == 6

        header, row = columns.splitlines()
        assert header.split() == ["NAME", "STATE", "PROGRESS", "MOVED", "ETA", "THROTTLE", "AGE"]
        assert row.split()[:2] == [rebalance.name, "Rebalancing"]
        assert "64.0 KiB/s" in row
        events = rebalance.events()
        assert [reason for reason in events if reason != "Planning"] == ["Rebalancing", "Succeeded"]
        assert len(set(events)) == len(events)

    def test_nothing_to_do(self, world: World) -> None:
        """If the cluster already satisfies the spec, the rebalance succeeds at once and changes nothing."""
        topic = world.topic("balanced", [[1, 2, 3]], SMALL)
        rebalance = world.rebalance("balanced", topic, brokers={"include": [1, 2, 3]})
        rebalance.wait_for("Succeeded")
        assert state(rebalance.status)[0] == "NothingToDo"
        assert world.partitions(topic)[0].replicas == (1, 2, 3)

    def test_decommission(self, world: World) -> None:
        """Drained is True only when Kafka's tools find no replica on the broker, including internal topics."""
        topic = world.topic("drained", [[5, 1, 3], [4, 5, 3], [1, 5, 3]], SMALL)
        assert any(5 in state.replicas for state in world.judge.describe_topics().values())
        try:
            rebalance = world.rebalance("drain", throttle=FAST, brokers={"decommission": [5]})
            rebalance.wait_for("Drained")
            rebalance.wait_for("Succeeded")
            found = world.judge.describe_topics()
            assert [key for key, state in found.items() if 5 in state.replicas] == []
            # Other topics change only where they must leave the broker: leaders lost by a killed broker stay elsewhere.
            assert all(state.leader == state.replicas[0] for key, state in found.items() if key[0] == topic)
            world.assert_tidy()
            assert world.setting(5, CORDON) == "*"
        finally:
            world.unset(5, CORDON)

    def test_a_cordon_goes_with_the_way_back(self, world: World) -> None:
        """After a rollback half way, the decommissioned broker accepts new replicas again."""
        topic = world.topic("stays", [[5, 1, 3], [4, 5, 3]], BIG)
        rebalance = world.rebalance("stay", topic, brokers={"decommission": [5]})
        wait_until("a copy is in flight", lambda: world.in_flight(topic))
        assert world.setting(5, CORDON) == "*"
        rebalance.delete()
        rebalance.wait_gone()
        assert world.setting(5, CORDON) == ""


class TestPatch:
    """Patchable fields take effect during a run."""

    def test_caps_and_rates(self, world: World) -> None:
        """The caps hold in every sample and can be raised in flight; the throttle covers all moves at its rate."""
        topic = world.skewed("patch", *[BIG] * 6)
        narrow = {"parallelPartitionCount": 1, "parallelReplicaCount": 1}
        wide = {"parallelPartitionCount": 3, "parallelReplicaCount": 2}
        with world.sampling(topic) as first:
            rebalance = world.rebalance("patch", topic, brokers={"include": [3, 4, 5]}, execution=narrow)
            wait_until("a copy is in flight", lambda: first.most_partitions)
            self._throttled_where_it_moves(world, topic)
            first.wait_more(10)
        assert (first.most_partitions, first.most_replicas) == (1, 1)

        with world.sampling(topic) as second:
            rebalance.patch(execution=wide)
            wait_until("three partitions in flight", lambda: second.most_partitions == 3)
            assert rebalance.until("a batch of 3", lambda status: status["currentBatchSize"] == 3)
            rebalance.patch(throttle={"leaderRate": "500Mi", "followerRate": "300Mi"})
            wait_until("the new rates", lambda: world.rates(4) == (str(500 * 2**20), str(300 * 2**20)))
            rebalance.until("its status", lambda status: status["throttle"]["followerRate"] == 300 * 2**20)
            rebalance.wait_for("Succeeded")
        assert (second.most_partitions, second.most_replicas) == (3, 2)
        assert all(set(found.replicas) == {3, 4, 5} for found in world.judge.describe_topics(topic).values())
        world.assert_tidy()

    def _throttled_where_it_moves(self, world: World, topic: str) -> None:
        throttles, moving = world.judge.throttles(), world.judge.list_reassignments()
        assert len(moving) == 1
        ((_, partition), row), *_ = moving.items()
        lists = throttles.pop(f"topic {topic}")
        assert _entries(lists[FOLLOWER_LIST]) == {f"{partition}:{broker}" for broker in row.adding}
        assert _entries(lists[LEADER_LIST]) == {f"{partition}:{broker}" for broker in row.replicas}
        involved = {f"broker {broker}" for broker in row.replicas}
        assert involved <= throttles.keys() <= {f"broker {broker}" for broker in world.kafka.brokers}
        assert {rate for rates in throttles.values() for rate in rates.values()} == {CRAWL_BYTES}

    def test_suspend(self, world: World) -> None:
        """When suspended, reassignments in flight drain and no step starts; when resumed, the rebalance completes."""
        topic = world.skewed("suspend", *[BIG] * 6)
        rebalance = world.rebalance("suspend", topic, execution={"parallelPartitionCount": 1})
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        rebalance.patch(execution={"suspend": True})
        rebalance.wait_state("Suspended")
        rebalance.patch(throttle=FAST)
        _drains_and_rests(world, topic)
        assert condition(rebalance.status, "Reconciling") == "True"
        assert condition(rebalance.status, "Stalled") == "False"
        rebalance.patch(execution={"suspend": False})
        rebalance.wait_for("Succeeded")

    def test_cluster_throttle_binds_and_freezes(self, world: World) -> None:
        """A KafkaReassignmentThrottle below spec.throttle takes precedence; its freeze stops new steps."""
        topic = world.skewed("frozen", *[BIG] * 6)
        throttle = world.throttle("shared", leaderRate="64Ki", followerRate="64Ki")
        world.kube.kubectl("wait", "--for=condition=Ready", "--timeout=240s", THROTTLE_KIND, throttle, "-n", NAMESPACE)
        rebalance = world.rebalance("frozen", topic, throttle=FAST, execution={"parallelPartitionCount": 1})
        status = rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        assert status["throttle"]["leaderRate"] == int(CRAWL_BYTES)
        assert throttle in status["throttle"]["source"]
        assert world.rates(4) == (CRAWL_BYTES, CRAWL_BYTES)
        self._patch_throttle(world, throttle, '{"freeze": true}')
        rebalance.wait_state("Frozen")
        self._patch_throttle(world, throttle, '{"leaderRate": null, "followerRate": null}')
        wait_until("the rate of the spec", lambda: world.rates(4)[0] in {None, str(500 * 2**20)})
        _drains_and_rests(world, topic)
        world.kube.kubectl("delete", THROTTLE_KIND, throttle, "-n", NAMESPACE, "--timeout=240s")
        rebalance.wait_for("Succeeded")
        world.assert_tidy()

    def _patch_throttle(self, world: World, name: str, spec: str) -> None:
        patch = f'{{"spec": {spec}}}'
        world.kube.kubectl("patch", THROTTLE_KIND, name, "-n", NAMESPACE, "--type=merge", "-p", patch)

    def test_supersede(self, world: World) -> None:
        """A new spec in flight: unwanted reassignments are cancelled, and a new plan starts from the current state."""
        topic = world.skewed("supersede", *[BIG] * 6)
        rebalance = world.rebalance("supersede", topic)
        old = rebalance.until("copies in flight", lambda status: status.get("currentBatchSize"))["plan"]["hash"]
        rebalance.patch(brokers={"include": [1, 2, 3, 4]})
        rebalance.until("another plan", lambda status: status["plan"]["hash"] != old)
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        found = world.judge.describe_topics(topic)
        assert {broker for state in found.values() for broker in state.replicas} == {1, 2, 3, 4}
        assert sum(4 in state.replicas for state in found.values()) == 3
        world.assert_tidy()


class TestSeveral:
    """Several rebalances of one cluster."""

    def test_disjoint_run_together_and_overlapping_queue(self, world: World) -> None:
        """Rebalances of different topics run in parallel; one of the same topics queues, says why, and runs later."""
        one, other = world.skewed("one", BIG, BIG, BIG), world.skewed("other", BIG, BIG, BIG)
        first = world.rebalance("first", one)
        second = world.rebalance("second", other)
        wait_until("both in flight", lambda: {topic for topic, _ in world.in_flight(one, other)} == {one, other})
        third = world.rebalance("third", one, throttle=FAST, brokers={"include": [1, 2, 3]})
        queued = third.wait_state("Queued")
        assert f"{NAMESPACE}/{first.name}" in state(queued)[1]
        assert condition(queued, "Stalled") == "False"
        for rebalance in (first, second):
            rebalance.patch(throttle=FAST)
        for rebalance in (first, second, third):
            rebalance.wait_for("Succeeded")
        found = world.judge.describe_topics(one, other)
        assert {broker for key, state in found.items() if key[0] == one for broker in state.replicas} == {1, 2, 3}
        assert {broker for key, state in found.items() if key[0] == other for broker in state.replicas} >= {3, 4, 5}
        assert "Queued" in third.events()
        world.assert_tidy()


def _drains_and_rests(world: World, topic: str) -> None:
    """Reassignments in flight complete; after that, twenty samples show nothing in flight."""
    wait_until("nothing is in flight", lambda: not world.in_flight(topic), every=0.3)
    with world.sampling(topic) as rest:
        rest.wait_more(20)
    assert rest.most_partitions == 0
    assert any(len({1, 2, 3} & set(found.replicas)) == 3 for found in world.partitions(topic).values())


def _entries(value: str) -> set[str]:
    return set(value.split(","))
