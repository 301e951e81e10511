"""Ends of a rebalance other than success and the plain rollback: side effects, reports, and remains."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from e2e.bench.judge import Key, PartitionState
from e2e.bench.kafka import KafkaCluster
from e2e.bench.kafka_properties import SASL_USERS
from e2e.bench.waiting import wait_until
from e2e.going_back import OFF_BROKER_1, goes_back, wait_half_way
from e2e.lane import OPERATOR_NAMESPACE, TEAM
from e2e.rebalance import KIND, NAMESPACE, Rebalance, condition, state
from e2e.world import BIG, FAST, SMALL, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

MIXED = (BIG, SMALL, BIG, SMALL, BIG, SMALL)
"""At a low rate the small partitions complete while the big ones are in flight."""
SLOW = {"leaderRate": "128Ki", "followerRate": "128Ki"}
"""A copy of a BIG partition takes 15 seconds if it does not share the broker."""
NEW_BROKERS = {4, 5}


class TestDeletion:
    """Special cases of deletion."""

    @pytest.mark.campaign
    def test_foreground(self, world: World) -> None:
        """`--cascade=foreground` adds another finalizer: the rebalance is rolled back as usual, then deleted."""
        topic = world.skewed("foreground", *MIXED)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("foreground", topic, brokers=OFF_BROKER_1)
        wait_half_way(world, topic, before)
        rebalance.delete("--cascade=foreground")
        rebalance.wait_gone()
        assert world.judge.describe_topics(topic) == before
        assert rebalance.records() == []
        world.assert_tidy()

    @pytest.mark.campaign
    def test_more_to_move_back_than_wanted(self, world: World) -> None:
        """Above rollback.maxData only copies in flight are cancelled; the object stays until the limit is raised."""
        topic = world.skewed("large", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = _moved_and_crawling(world, "large", topic, before, rollback={"maxData": "1Mi"})
        rebalance.delete()
        status = rebalance.wait_state("RollbackTooLarge")
        assert condition(status, "Stalled") == "True"
        assert "maxData (1.0 MiB)" in state(status)[1]
        wait_until("reassignments in flight are cancelled", lambda: not world.in_flight(topic), every=0.3)
        with world.sampling(topic) as rest:
            rest.wait_more(20)
        assert rest.most_partitions == 0
        after = world.judge.describe_topics(topic)
        moved = _changed(before, after)
        assert moved
        assert {key: after[key] for key in before.keys() - moved} == {key: before[key] for key in before.keys() - moved}
        assert rebalance.get()["metadata"]["finalizers"]
        world.assert_tidy()
        rebalance.patch(rollback={"maxData": "1Gi"}, throttle=FAST)
        rebalance.wait_gone()
        assert world.judge.describe_topics(topic) == before
        assert rebalance.records() == []
        world.assert_tidy()

    @pytest.mark.campaign
    def test_timeout(self, world: World) -> None:
        """After rollback.timeout copies in flight are cancelled and the object is deleted; an event lists the rest."""
        topic = world.skewed("timeout", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = _moved_and_crawling(world, "timeout", topic, before, rollback={"timeout": "4s"})
        rebalance.delete()
        wait_until("a copy goes back", lambda: goes_back(world, topic, before))
        rebalance.wait_gone()
        after = world.judge.describe_topics(topic)
        left = _changed(before, after)
        told = rebalance.messages("RolledBackPartially")
        assert left
        assert {key for key in before if f"{topic}-{key[1]} (" in told} == left
        assert all(len(after[key].replicas) == len(before[key].replicas) for key in before)
        assert any(name.startswith("origins-") for name in rebalance.records())
        world.assert_tidy()

    @pytest.mark.campaign
    def test_let_go(self, world: World) -> None:
        """With the let-go annotation it is deleted at once, with copies in flight; their throttle is removed later."""
        topic = world.skewed("let-go", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = _moved_and_crawling(world, "let-go", topic, before)
        rebalance.delete()
        wait_until("a copy goes back", lambda: goes_back(world, topic, before))
        world.kube.kubectl("annotate", KIND, rebalance.name, "-n", NAMESPACE, "kafkarebalance.dev/let-go=true")
        rebalance.wait_gone()
        assert world.in_flight(topic)
        assert any(name.startswith("origins-") for name in rebalance.records())
        wait_until("Kafka finishes by itself", lambda: not world.in_flight(topic), every=0.5)
        wait_until("the throttles are taken away", lambda: world.judge.throttles() == {}, every=1)


class TestTakeover:
    """A resource is renamed in Git: a new one with the same spec is created, and the old one is deleted."""

    @pytest.mark.parametrize("first", ["applied", pytest.param("deleted", marks=pytest.mark.campaign)])
    def test_goes_on(self, world: World, first: str) -> None:
        """No move is reverted: the new resource continues, and its deletion restores the state before the old one."""
        topic = world.skewed("renamed", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        old = _moved_and_crawling(world, "old", topic, before)
        moved = world.moved(topic, before)
        with world.sampling(topic) as look:
            if first == "deleted":
                old.delete()
            new = _crawling(world, "new", topic)
            if first == "applied":
                old.delete()
            old.wait_gone()
            new.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        assert moved <= world.moved(topic, before)
        if first == "applied":
            assert {broker for row in look.seen for adding in row.values() for broker in adding} <= NEW_BROKERS
        assert old.events()[-1] == "TakenOver"
        assert new.name in old.messages("TakenOver")
        new.delete()
        new.patch(throttle=FAST)
        new.wait_gone()
        assert world.judge.describe_topics(topic) == before
        world.assert_tidy()


class TestUndo:
    """Undo of a rebalance that has succeeded."""

    @pytest.mark.campaign
    def test_what_others_moved_before_it_began_stays(self, world: World) -> None:
        """Kafka's tool moves everything while a plan waits for approval: an undo of the next plan leads to there."""
        topic = world.skewed("theirs", *[SMALL] * 4)
        manual = {"policy": "Manual"}
        rebalance = world.rebalance("theirs", topic, throttle=FAST, approval=manual, brokers={"include": [1, 2, 3, 4]})
        rebalance.wait_state("AwaitingApproval")
        assert not any(name.startswith("origins-") for name in rebalance.records())
        theirs = {(topic, number): (5, 2, 1) for number in range(4)}
        world.reassign(theirs)
        wait_until("they are moved", lambda: not world.in_flight(topic), every=0.3)
        rebalance.patch(brokers={"include": [1, 3, 4]}, approval={"policy": "Automatic"})
        rebalance.wait_for("Succeeded")
        assert all(set(state.replicas) == {1, 3, 4} for state in world.judge.describe_topics(topic).values())
        where = ("-n", NAMESPACE, "--operator-namespace", OPERATOR_NAMESPACE)
        world.command("undo", rebalance.name, *where, "--yes")
        rebalance.wait_state("Undone")
        assert {key: state.replicas for key, state in world.judge.describe_topics(topic).items()} == theirs
        world.assert_tidy()

    def test_back_to_before(self, world: World) -> None:
        """Replicas, their order and leaders are restored and stay so; deleting the resource then changes nothing."""
        topic = world.skewed("undo", *[SMALL] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("undo", topic, throttle=FAST)
        rebalance.wait_for("Succeeded")
        assert _changed(before, world.judge.describe_topics(topic))
        where = ("-n", NAMESPACE, "--operator-namespace", OPERATOR_NAMESPACE)
        world.command("undo", rebalance.name, *where, "--yes")
        status = rebalance.wait_state("Undone")
        assert (condition(status, "Ready"), condition(status, "Succeeded")) == ("True", "False")
        assert world.judge.describe_topics(topic) == before
        world.assert_tidy()

        epochs = world.epochs(topic)
        world.operator.restart()
        with world.sampling(topic) as rest:
            rest.wait_more(30)
        assert rest.most_partitions == 0
        rebalance.delete()
        rebalance.wait_gone()
        assert world.judge.describe_topics(topic) == before
        assert world.epochs(topic) == epochs
        assert rebalance.records() == []


class TestCredentials:
    """The operator's access to Kafka is removed during a run."""

    @pytest.fixture
    def guarded(self, world: World) -> Iterator[World]:
        """Two brokers that require authentication."""
        with KafkaCluster({1: "r1", 2: "r2"}, sasl=True) as cluster:
            guarded = World(cluster, world.kube, world.operator, world.unique)
            yield guarded
            guarded.close()

    @pytest.mark.campaign
    def test_secret_deleted(self, guarded: World) -> None:
        """Without its Secret a running rebalance is still rolled back, over the open connection."""
        topic = guarded.topic("guarded", [[1]] * 6, MIXED)
        before = guarded.judge.describe_topics(topic)
        secret = guarded.secret("login", username="operator", password=SASL_USERS["operator"])
        sasl = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": secret}}
        kafka = {"bootstrapServers": guarded.kafka.bootstrap_servers, "sasl": sasl}
        rebalance = guarded.rebalance("guarded", topic, kafka=kafka, brokers={"include": [2]})
        wait_until(
            "half way",
            lambda: guarded.moved(topic, before) and guarded.judge.list_reassignments(),
            every=0.3,
        )
        guarded.kube.kubectl("delete", "secret", secret, "-n", NAMESPACE)
        rebalance.delete()
        rebalance.wait_gone()
        assert guarded.judge.describe_topics(topic) == before
        assert rebalance.records() == []
        guarded.assert_tidy()


class TestSurroundings:
    """The resource is deleted as part of something larger, which it must not block."""

    def test_namespace(self, world: World) -> None:
        """Copies in flight are cancelled, completed moves stay; event and origins are in the operator's namespace."""
        world.kube.kubectl("create", "namespace", TEAM)
        topic = world.skewed("namespace", *MIXED)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("namespace", topic, brokers=OFF_BROKER_1, namespace=TEAM)
        wait_half_way(world, topic, before)
        arrived = {(topic, partition) for partition in world.moved(topic, before)}
        world.kube.kubectl("delete", "namespace", TEAM, "--wait=false")
        world.kube.kubectl("wait", "--for=delete", f"namespace/{TEAM}", "--timeout=240s", timeout=300)
        left = _reverted(world, topic, before)
        assert arrived <= left
        named = f"{TEAM}/{rebalance.name} "
        wait_until("the event is there", lambda: named in rebalance.messages("Reverted", OPERATOR_NAMESPACE))
        told = rebalance.messages("Reverted", OPERATOR_NAMESPACE)
        assert {key for key in before if f"{topic}-{key[1]} (LeftInPlace)" in told} == left
        assert any(name.startswith("origins-") for name in rebalance.records())


@pytest.mark.alone
class TestDefinition:
    """All resources are deleted with their CRD."""

    @pytest.mark.campaign
    def test_crd(self, world: World) -> None:
        """The CRD is deleted as fast as a namespace; when it is back, the same process serves new resources."""
        topic = world.skewed("crd", *MIXED)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("crd", topic, brokers=OFF_BROKER_1)
        wait_half_way(world, topic, before)
        arrived = {(topic, partition) for partition in world.moved(topic, before)}
        pid = world.operator.pid
        try:
            world.kube.kubectl("delete", "crd", KIND, "--wait=false")
            world.kube.kubectl("wait", "--for=delete", f"crd/{KIND}", "--timeout=240s", timeout=300)
            left = _reverted(world, topic, before)
            assert arrived <= left
            assert any(name.startswith("origins-") for name in rebalance.records())
        finally:
            world.operator.install()
        again = world.rebalance("again", topic, throttle=FAST)
        again.wait_for("Succeeded")
        assert (world.operator.running, world.operator.pid) == (True, pid)
        world.assert_tidy()


def _crawling(world: World, name: str, topic: str, **spec: Any) -> Rebalance:
    return world.rebalance(name, topic, throttle=SLOW, execution={"parallelPartitionCount": 1}, **spec)


def _moved_and_crawling(
    world: World, name: str, topic: str, before: Mapping[Key, PartitionState], **spec: Any
) -> Rebalance:
    """A rebalance that has moved a big partition and is slowly moving another one."""
    rate = {"leaderRate": "1Mi", "followerRate": "1Mi"}
    rebalance = world.rebalance(name, topic, throttle=rate, execution={"parallelPartitionCount": 1}, **spec)
    wait_until("a partition has moved", lambda: world.moved(topic, before))
    rebalance.patch(throttle=SLOW)
    wait_half_way(world, topic, before)
    return rebalance


def _changed(before: Mapping[Key, PartitionState], after: Mapping[Key, PartitionState]) -> set[Key]:
    """The partitions whose brokers have changed."""
    return {key for key in before if set(after[key].replicas) != set(before[key].replicas)}


def _reverted(world: World, topic: str, before: Mapping[Key, PartitionState]) -> set[Key]:
    """Check that some partitions stayed where they had arrived and the others are as before; returns the former."""
    after = world.judge.describe_topics(topic)
    left = _changed(before, after)
    assert left < before.keys()
    assert {key: after[key] for key in before.keys() - left} == {key: before[key] for key in before.keys() - left}
    assert all(len(after[key].replicas) == len(before[key].replicas) for key in left)
    world.assert_tidy()
    return left
