"""One cluster's throttle over several rounds: foreign reassignments are throttled, reported and released."""

import asyncio
from datetime import timedelta

import pytest
from tests.fakes.configs_in_memory import Configs, Records
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import FINALIZER, REASSIGNMENT_THROTTLES, parse_throttle
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.reassignment_throttle import RATE_NAMES, Side
from kafka_rebalance.kafka.ports import ClusterInfo, Reassignment
from kafka_rebalance.model.topology import (
    Broker,
    BrokerId,
    ClusterState,
    PartitionState,
    TopicPartition,
    replicas_of,
)
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.throttle.cluster_throttle import ClusterThrottle
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

TP = TopicPartition("theirs", 0)
THEIRS = Reassignment(replicas_of(4, 1, 2), replicas_of(4), ())
WHERE = (REASSIGNMENT_THROTTLES, "kafka", "limits")


class Kafka(Configs):
    """Brokers 1, 2 and 4; foreign reassignments are in ``flying``. ``undescribed`` topics are in no description."""

    def __init__(self):
        super().__init__()
        self.flying = {TP: THEIRS}
        self.undescribed = set()

    async def list_reassignments(self):
        return dict(self.flying)

    async def describe_partitions(self, topics=None):
        return {
            tp: PartitionState(tp, "", row.replicas, frozenset({1, 2}), BrokerId(1), row.adding, row.removing)
            for tp, row in self.flying.items()
            if (topics is None or tp.topic in topics) and tp.topic not in self.undescribed
        }


class Engine:
    """The rounds of an engine without rebalances; each takes two seconds."""

    def __init__(self):
        self.clock = StoppedClock()
        self.kafka, self.records, self.kube = Kafka(), Records(), KubeInMemory()
        self.info = ClusterInfo("c", {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 4)})
        self.restart()

    def restart(self):
        keeper = ThrottleKeeper("c", self.kafka, self.records, self.clock.monotonic)
        self.throttle = ClusterThrottle("c", self.kafka, keeper, Resources(self.kube, self.clock.now), self.clock)

    def apply(self, **spec):
        metadata = {"name": "limits", "namespace": "kafka", "uid": "limits", "creationTimestamp": NOON.isoformat()}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}
        self.see(self.kube.create(WHERE[0], {"metadata": metadata, "spec": spec}))

    def delete(self):
        self.see(self.kube.delete(*WHERE, self.clock.at.isoformat()))

    def see(self, body):
        self.throttle.throttles["limits"] = parse_throttle(body)

    def tick(self, problem=None):
        async def once():
            cluster = ClusterState("c", self.info.brokers)
            await self.throttle.load((), self.info)
            await self.throttle.look((), cluster)
            await self.throttle.apply_claims((), cluster, {})
            await self.throttle.restore_finished(self.info)
            await self.throttle.report({(BrokerId(4), Side.FOLLOWER): 12}, problem)

        self.clock.at += timedelta(seconds=2)
        asyncio.run(once())

    @property
    def finalizers(self):
        return self.kube.resources[WHERE]["metadata"]["finalizers"]

    @property
    def status(self):
        return self.kube.resources[WHERE]["status"]


class TestBeforeTheFirstRound:
    def test_that_nobody_answers_is_said(self):
        """The ledger is read in a round, and there has been none yet."""
        engine = Engine()
        engine.apply(leaderRate=50)
        asyncio.run(engine.throttle.report({}, Transient("KafkaUnreachable", "nobody answers")))
        ready = next(c for c in engine.status["conditions"] if c["type"] == "Ready")
        assert (ready["reason"], ready["message"]) == ("KafkaUnreachable", "nobody answers; trying again")


class TestOthers:
    def test_what_others_reassign_is_held_and_said(self):
        """Rates on their brokers, entries for their replicas, and a row per broker with the measured rate."""
        engine = Engine()
        engine.apply(leaderRate=50, followerRate=40)
        engine.tick()
        assert engine.finalizers == [FINALIZER]
        assert engine.kafka.rates(4) == ("50", "40")
        assert engine.kafka.lists("theirs") == ({"0:1", "0:2", "0:4"}, {"0:4"})
        assert (engine.status["foreignReassignments"], engine.status["brokersTotal"]) == (1, 3)
        row = next(row for row in engine.status["brokers"] if row["id"] == 4)
        assert (row["followerRate"], row["followerBytesPerSecond"]) == (40, 12)
        assert row["followerClaim"] == "KafkaReassignmentThrottle kafka/limits"

    def test_it_is_let_go_when_it_has_arrived(self):
        """Nothing is left, and the resource waits for the next reassignment."""
        engine = Engine()
        engine.apply(leaderRate=50)
        engine.tick()
        engine.kafka.flying = {}
        engine.tick()
        engine.tick()
        assert engine.kafka.values == {}
        assert engine.throttle.ledger_empty

    def test_one_topic_that_may_not_be_read_keeps_nobody_else(self):
        """It is named; the others are throttled, and so is this one within a minute after the permission is granted."""
        engine = Engine()
        hidden = TopicPartition("hidden", 0)
        engine.kafka.flying[hidden] = THEIRS
        engine.kafka.forbidden = {"hidden"}
        engine.apply(leaderRate=50)
        engine.tick()
        assert engine.kafka.lists("theirs")[0] == {"0:1", "0:2", "0:4"}
        assert not any(engine.kafka.lists("hidden"))
        told = str(engine.status["conditions"])
        assert "not allowed to describe the configs of topic hidden, which others reassign" in told
        engine.kafka.forbidden = set()
        for _ in range(31):
            engine.tick()
        assert engine.kafka.lists("hidden")[0] == {"0:1", "0:2", "0:4"}
        assert "hidden" not in str(engine.status["conditions"])

    @pytest.mark.parametrize("restarted", [False, True])
    def test_what_is_not_described_stays_throttled(self, restarted):
        """It is in flight all the same; the status names its topic. Also if the last description is forgotten."""
        engine = Engine()
        engine.apply(leaderRate=50, followerRate=40)
        engine.tick()
        before = dict(engine.kafka.values)
        engine.kafka.undescribed = {"theirs"}
        if restarted:
            engine.restart()
            engine.see(engine.kube.resources[WHERE])
        for _ in range(3):
            engine.tick()
            assert engine.kafka.values == before
        assert engine.status["foreignReassignments"] == (0 if restarted else 1)
        assert "no broker described topic theirs, which others reassign" in str(engine.status["conditions"])
        engine.kafka.undescribed = set()
        engine.tick()
        assert engine.kafka.values == before
        assert engine.status["foreignReassignments"] == 1
        assert "theirs" not in str(engine.status["conditions"])
        engine.kafka.flying = {}
        engine.tick()
        engine.tick()
        assert engine.kafka.values == {}

    def test_without_a_rate_nobody_is_looked_for(self):
        """A resource that only freezes sets no rate, nor does the absence of a resource."""
        engine = Engine()
        engine.apply(freeze=True)
        engine.tick()
        assert engine.kafka.values == {}
        assert not engine.throttle.limits_others

    def test_after_a_restart_the_same_is_held(self):
        """Also before the resource has arrived again."""
        engine = Engine()
        engine.apply(leaderRate=50, followerRate=40)
        engine.tick()
        before = dict(engine.kafka.values)
        engine.restart()
        engine.tick()
        assert engine.kafka.values == before
        engine.see(engine.kube.resources[WHERE])
        engine.tick()
        assert engine.kafka.values == before


class TestLedger:
    """The ledger is missing, and somebody has set a rate."""

    def engine(self, *cluster_ids):
        """Resources with our finalizer, and the cluster that their status names; the last one is being deleted."""
        engine = Engine()
        engine.kafka.values[BrokerId(2), RATE_NAMES[0]] = "50000000"
        for name in cluster_ids:
            metadata = {"name": name, "namespace": "kafka", "uid": name, "finalizers": [FINALIZER]}
            spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "leaderRate": 50}
            body = {"metadata": metadata, "spec": spec, "status": {"clusterId": name}}
            engine.throttle.throttles[name] = parse_throttle(engine.kube.create(WHERE[0], body))
        deleted = engine.kube.delete(WHERE[0], "kafka", name, engine.clock.at.isoformat())
        engine.throttle.throttles[name] = parse_throttle(deleted)
        return engine

    def test_a_resource_that_claimed_here_shows_that_it_was_deleted(self):
        engine = self.engine("c")
        engine.tick()
        assert engine.throttle.problem.reason == "ThrottleLedgerMissing"
        assert list(engine.throttle.throttles) == ["c"]

    def test_one_that_claimed_in_another_cluster_shows_nothing(self):
        """Its KafkaConnection was changed to this cluster, so an administrator has set the rate."""
        engine = self.engine("d")
        engine.tick()
        assert engine.throttle.problem is None
        assert engine.throttle.throttles == {}
        assert engine.kafka.values == {(BrokerId(2), RATE_NAMES[0]): "50000000"}

    def test_nor_does_it_wait_for_the_ledger(self):
        engine = self.engine("c", "d")
        engine.tick()
        assert engine.throttle.problem is not None
        assert list(engine.throttle.throttles) == ["c"]


class TestDeletion:
    def test_it_goes_when_what_it_claimed_is_given_back(self):
        """Rates, lists, and then the finalizer."""
        engine = Engine()
        engine.apply(leaderRate=50, followerRate=40)
        engine.tick()
        engine.delete()
        engine.tick()
        engine.tick()
        assert engine.kafka.values == {}
        assert WHERE not in engine.kube.resources
        assert engine.throttle.throttles == {}

    def test_one_that_loses_its_connection_meanwhile_is_not_gone(self, monkeypatch):
        """It is taken in again when it may use the connection again: it may freeze the cluster."""
        engine = Engine()
        engine.apply(leaderRate=50, followerRate=40)
        engine.tick()
        metadata = {"name": "other", "namespace": "kafka", "uid": "other"}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "freeze": True}
        other = {"other": parse_throttle(engine.kube.create(WHERE[0], {"metadata": metadata, "spec": spec}))}
        engine.throttle.see(other)
        patch = engine.kube.patch_finalizers

        async def meanwhile(*args):
            engine.throttle.throttles.pop("other", None)
            return await patch(*args)

        monkeypatch.setattr(engine.kube, "patch_finalizers", meanwhile)
        engine.delete()
        engine.tick()
        engine.tick()
        assert engine.throttle.throttles == {}
        engine.throttle.see(other)
        assert engine.throttle.ruling is other["other"]

    def test_a_dead_broker_does_not_hold_it_up(self):
        """The configs of that broker stay in the ledger and are restored on its return."""
        engine = Engine()
        engine.apply(leaderRate=50, followerRate=40)
        engine.tick()
        away = engine.info.brokers.pop(BrokerId(4))
        engine.kafka.silent = {4}
        engine.delete()
        engine.tick()
        engine.tick()
        assert WHERE not in engine.kube.resources
        assert not engine.throttle.ledger_empty
        engine.info.brokers[BrokerId(4)] = away
        engine.kafka.silent = set()
        engine.tick()
        assert engine.kafka.values == {}

    def test_a_problem_is_said(self):
        """The last known rows stay, as the configs do in Kafka."""
        engine = Engine()
        engine.apply(leaderRate=50)
        engine.tick()
        engine.tick(Transient("KafkaUnreachable", "no broker answers"))
        ready = next(c for c in engine.status["conditions"] if c["type"] == "Ready")
        assert (ready["reason"], engine.status["brokersTotal"]) == ("KafkaUnreachable", 3)
