"""kafka-rebalance verify: what it reports of partitions, leaders and throttles, and its exit code."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kafka_rebalance.cli.commands import verify_command as verify
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafka_rebalance.kafka.ports import Answers, ClusterInfo, ConfigSource, ConfigValue, LogDir
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of

UNSET = ConfigValue(None, ConfigSource.DEFAULT)


def state(number: int, *ids: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = (), leader: int = 0) -> Any:
    tp = TopicPartition("t", number)
    in_sync = frozenset(replicas_of(*ids)) - frozenset(replicas_of(*adding))
    return PartitionState(
        tp, "id", replicas_of(*ids), in_sync, BrokerId(leader or ids[0]), replicas_of(*adding), replicas_of(*removing)
    )


class Cluster:
    """Answers read requests; it has no methods for writes."""

    def __init__(self, *states: PartitionState) -> None:
        self.states = {s.tp: s for s in states}
        self.rates: dict[int, dict[str, ConfigValue]] = {}
        self.lists: dict[str, ConfigValue] = {}
        self.closed = False

    async def describe_cluster(self) -> ClusterInfo:
        return ClusterInfo("c", {BrokerId(b): Broker(BrokerId(b)) for b in (1, 2, 3)})

    async def describe_partitions(self, topics: Any) -> Any:
        return Answers({tp: s for tp, s in self.states.items() if tp.topic in topics})

    async def broker_configs(self, brokers: Any, names: Any) -> Any:
        return Answers({b: {name: self.rates.get(b, {}).get(name, UNSET) for name in names} for b in brokers})

    async def topic_configs(self, topics: Any, names: Any) -> Any:
        return Answers({topic: {name: self.lists.get(name, UNSET) for name in names} for topic in topics})

    async def log_dirs(self, brokers: Any) -> Any:
        return Answers(
            {b: (LogDir(f"/disk-{b}", {TopicPartition("t", 0): 1, TopicPartition("t", 7): 1}),) for b in brokers}
        )

    async def close(self) -> None:
        self.closed = True


def run(cluster: Cluster, *arguments: str, replicas: tuple[int, ...] = (1, 2), monkeypatch: Any) -> Any:
    monkeypatch.setattr(verify, "connect", lambda _: cluster)
    rows = [{"topic": "t", "partition": n, "replicas": list(replicas)} for n in sorted(tp.partition for tp in ALL)]
    text = json.dumps({"version": 1, "partitions": rows})
    options = ["--bootstrap-servers", "kafka:9092", "--reassignment-json-file", "-", *arguments]
    done = CliRunner().invoke(verify.verify, options, input=text)
    assert cluster.closed
    return done


ALL = [TopicPartition("t", n) for n in range(3)]
DONE = (state(0, 1, 2), state(1, 1, 2), state(2, 1, 2))


class TestOutcomes:
    def test_all_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exit 0, with the messages of Kafka's tool."""
        done = run(Cluster(*DONE), monkeypatch=monkeypatch)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "Status of partition reassignment:",
            *(f"Reassignment of partition t-{n} is completed." for n in range(3)),
            "",
            "3 of 3 partitions are completed, 0 in flight, 0 different, 0 missing.",
        ]

    def test_not_yet(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exit 1: in flight, in another order, or gone."""
        moving = state(0, 1, 2, 3, adding=(1,), removing=(3,))
        done = run(Cluster(moving, state(1, 2, 1)), monkeypatch=monkeypatch)
        assert done.exit_code == 4
        assert done.stdout.splitlines()[1:4] == [
            "Reassignment of partition t-0 is still in progress.",
            "There is no active reassignment of partition t-1, but replica set is 2,1 rather than 1,2.",
            "There is no partition t-2.",
        ]
        assert "0 of 3 partitions are completed, 1 in flight, 1 different, 1 missing." in done.stdout

    def test_in_flight_to_somewhere_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kafka's tool does not report this; a step of the operator is an example."""
        elsewhere = state(0, 1, 2, 3, adding=(3,))
        done = run(Cluster(elsewhere, *DONE[1:]), monkeypatch=monkeypatch)
        assert done.exit_code == 4
        assert "t-0 is being reassigned to other replicas: 1,2,3 now." in done.stdout

    def test_in_flight_although_the_list_is_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A reassignment that was not requested is in flight: not complete, as in Kafka's tool."""
        done = run(Cluster(state(0, 1, 2, adding=(2,)), *DONE[1:]), monkeypatch=monkeypatch)
        assert done.exit_code == 4

    def test_leaders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It still counts as complete."""
        done = run(Cluster(state(0, 1, 2, leader=2), *DONE[1:]), monkeypatch=monkeypatch)
        assert done.exit_code == 0
        assert "t-0 is led by 2; its preferred leader is 1." in done.stdout


class TestThrottles:
    def test_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Named, not removed, and without effect on the exit code; a rate in a broker's file is not left over."""
        cluster = Cluster(*DONE)
        cluster.rates[2] = {LEADER_RATE: ConfigValue("900", ConfigSource.DYNAMIC_BROKER)}
        cluster.rates[3] = {FOLLOWER_RATE: ConfigValue("900", ConfigSource.STATIC_BROKER)}
        cluster.lists[FOLLOWER_LIST] = ConfigValue("0:1", ConfigSource.DYNAMIC_TOPIC)
        cluster.lists[LEADER_LIST] = ConfigValue("", ConfigSource.DEFAULT)
        done = run(cluster, monkeypatch=monkeypatch)
        assert done.exit_code == 0
        assert done.stdout.splitlines()[-2:] == [
            "Throttle set on broker 2: leader.replication.throttled.rate=900",
            "Throttle set on topic t: follower.replication.throttled.replicas=0:1",
        ]

    def test_what_a_server_claims_controls_no_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Any value of a config is shown in one line, escaped."""
        cluster = Cluster(*DONE)
        cluster.lists[FOLLOWER_LIST] = ConfigValue("\x1b[2J\nThrottle", ConfigSource.DYNAMIC_TOPIC)
        done = run(cluster, monkeypatch=monkeypatch)
        assert done.stdout.splitlines()[-1].endswith(r"follower.replication.throttled.replicas=\x1b[2J\nThrottle")


class TestFormats:
    def test_json_and_yaml(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same facts for programs."""
        cluster = Cluster(state(0, 1, 2, 3, adding=(1,), removing=(3,)), state(1, 1, 2, leader=2))
        done = run(cluster, "-o", "json", monkeypatch=monkeypatch)
        document = json.loads(done.stdout)
        assert document["complete"] is False
        assert [row["outcome"] for row in document["partitions"]] == ["InProgress", "Completed", "Missing"]
        assert document["partitions"][0] == {
            "topic": "t",
            "partition": 0,
            "outcome": "InProgress",
            "replicas": [1, 2, 3],
            "target": [1, 2],
            "adding": [1],
            "removing": [3],
            "inSync": [2, 3],
            "leader": 1,
            "ledByPreferred": None,
            "elsewhere": False,
        }
        assert document["partitions"][1]["ledByPreferred"] is False
        assert yaml.safe_load(run(cluster, "-o", "yaml", monkeypatch=monkeypatch).stdout) == document

    def test_a_malformed_file(self) -> None:
        options = ["--bootstrap-servers", "kafka:9092", "--reassignment-json-file", "-"]
        done = CliRunner().invoke(verify.verify, options, input="[]")
        assert done.exit_code == 2
        assert "--reassignment-json-file" in done.stderr
