"""The CRDs on a real API server: taken, and bad resources refused with the path of the field."""

from typing import Any

import pytest
from tests.kube.namespaces import Namespace

pytestmark = pytest.mark.apiserver


class TestEstablished:
    """Both CRDs are structural and served."""

    @pytest.mark.parametrize("plural", ["kafkarebalances", "kafkareassignmentthrottles"])
    def test_established(self, namespace: Namespace, plural: str) -> None:
        namespace.kubectl("wait", "--for=condition=Established", f"crd/{plural}.kafkarebalance.dev", "--timeout=10s")
        conditions = namespace.kubectl(
            "get", f"crd/{plural}.kafkarebalance.dev", "-o", "jsonpath={.status.conditions[*].type}"
        )
        assert "NonStructuralSchema" not in conditions


class TestRefusals:
    """What is wrong is refused before it is stored, and the message names the field."""

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ({"bogus": 1}, 'unknown field "spec.bogus"'),
            ({"topics": {"include": ["a", "["]}}, "spec.topics.include[1]: "),
            ({"topics": {"exclude": ["(?=a)"]}}, "is not a valid RE2 regular expression"),
            ({"execution": {"parallelReplicaCount": 0}}, "spec.execution.parallelReplicaCount: Invalid value: 0"),
            ({"execution": {"parallelPartitionCount": 0}}, "spec.execution.parallelPartitionCount: "),
            ({"execution": {"parallelLeaderMovements": 0}}, "spec.execution.parallelLeaderMovements: "),
            ({"execution": {"stallTimeout": "0s"}}, "must be a duration of at least 1s"),
            ({"execution": {"stallTimeout": "1d"}}, "spec.execution.stallTimeout: "),
            ({"throttle": {"leaderRate": -1}}, "spec.throttle.leaderRate: Invalid value: -1: must be a quantity"),
            ({"throttle": {"followerRate": 0}}, "spec.throttle.followerRate: "),
            ({"throttle": {"followerRate": "50MB"}}, "spec.throttle.followerRate: "),
            ({"throttle": {"followerRate": "2048Ti"}}, "spec.throttle.followerRate: "),
            ({"throttle": {}}, "spec.throttle: Invalid value: set either unlimited or at least one of"),
            ({"throttle": {"unlimited": True, "leaderRate": 1}}, "spec.throttle: Invalid value: set either unlimited"),
            ({"throttle": {"unlimited": False}}, "spec.throttle.unlimited: "),
            ({"brokers": {"include": [1, 2], "decommission": [2]}}, "spec.brokers: Invalid value: a broker cannot be"),
            ({"brokers": {"decommission": [2, 2]}}, "spec.brokers.decommission[1]: Duplicate value: 2"),
            ({"strategy": "Better"}, 'spec.strategy: Unsupported value: "Better"'),
            ({"strategy": "Assignment"}, "spec: Invalid value: assignment is needed by the strategy Assignment"),
            ({"assignment": {"configMapRef": {"name": "a"}}}, "spec: Invalid value: assignment is needed by the strat"),
            ({"strategy": "PreferredLeaders", "replicationFactor": 3}, "spec: Invalid value: replicationFactor needs"),
            ({"strategy": "PreferredLeaders", "goals": {"leaders": False}}, "spec: Invalid value: goals.leaders: fal"),
            ({"strategy": "Generate", "goals": {"balance": "Both"}}, "spec: Invalid value: goals.balance, maxReplica"),
            ({"strategy": "ForcedMovesOnly", "goals": {"maxReplicaMoves": 5}}, "spec: Invalid value: goals.balance, "),
            ({"goals": {"minimumGain": 101}}, "spec.goals.minimumGain: "),
            ({"goals": {"maxDataToMove": "0"}}, "spec.goals.maxDataToMove: "),
            ({"replicationFactor": 0}, "spec.replicationFactor: "),
            ({"topics": {"pinned": ["["]}}, "spec.topics.pinned[0]: Invalid value: "),
            ({"offlinePolicy": "Wait"}, 'spec.offlinePolicy: Unsupported value: "Wait"'),
            ({"kafka": {"bootstrapServers": "nowhere"}}, "spec.kafka.bootstrapServers: "),
            ({"kafka": {"bootstrapServers": "a:1", "sasl": {"mechanism": "PLAIN"}}}, "spec.kafka.sasl.secretRef: "),
        ],
    )
    def test_rebalance(self, namespace: Namespace, spec: dict[str, Any], said: str) -> None:
        assert said in namespace.refused("KafkaRebalance", spec)

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ({"leaderRate": -2}, "spec.leaderRate: Invalid value: -2: must be -1 (unset) or a quantity"),
            ({"followerRate": "-5Mi"}, "spec.followerRate: "),
            ({"freeze": "maybe"}, "spec.freeze: "),
            ({"brokers": [{"id": 1, "leaderRate": 1}] * 2}, "spec.brokers[1]: Duplicate value: "),
            ({"brokers": [{"id": 1}]}, "spec.brokers[0]: Invalid value: set leaderRate, followerRate or both"),
            ({"brokers": [{"leaderRate": 1}]}, "spec.brokers[0].id: Required value"),
            ({"brokers": [{"id": 1, "leaderRate": 0}]}, "spec.brokers[0].leaderRate: "),
            ({"brokers": [{"id": 1, "rate": 1}]}, 'unknown field "spec.brokers[0].rate"'),
            ({"whenReplicationThrottled": "additive"}, 'spec.whenReplicationThrottled: Unsupported value: "additive"'),
        ],
    )
    def test_throttle(self, namespace: Namespace, spec: dict[str, Any], said: str) -> None:
        assert said in namespace.refused("KafkaReassignmentThrottle", spec)

    @pytest.mark.parametrize("kind", ["KafkaRebalance", "KafkaReassignmentThrottle"])
    def test_another_cluster(self, namespace: Namespace, kind: str) -> None:
        namespace.apply(kind, {})
        said = namespace.refused(kind, {"kafka": {"bootstrapServers": "other:9092"}})
        assert "spec.kafka: Invalid value: cannot be changed" in said


class TestTaken:
    """A good resource is taken as it is; what is left out is filled in; how it may be changed."""

    def test_defaults(self, namespace: Namespace) -> None:
        namespace.apply("KafkaRebalance", {})
        found = namespace.get("kafkarebalances")
        assert found["status"] == {"observedGeneration": -1}
        assert found["spec"]["execution"] == {
            "suspend": False,
            "parallelReplicaCount": 1,
            "parallelPartitionCount": 100,
            "parallelLeaderMovements": 20,
            "maxConcurrentReplicaMovements": 2147483647,
            "maxUnhealthy": 0,
            "brokerSettleTime": "1m",
            "stallTimeout": "15m",
        }
        assert "throttle" not in found["spec"]

    def test_everything(self, namespace: Namespace) -> None:
        """Also with the longest lists: a rule must not run out of its budget where it matters most."""
        full = {
            "kafka": {
                "bootstrapServers": "a.example.org:9092,[::1]:9093",
                "tls": {"caSecretRef": {"name": "ca"}, "clientSecretRef": {"name": "client"}},
                "sasl": {"mechanism": "SCRAM-SHA-256", "secretRef": {"name": "user"}},
            },
            "topics": {"include": ["orders-.*"] * 100, "exclude": ["legacy-(a|b)"], "pinned": ["audit-.*"] * 100},
            "brokers": {"include": list(range(1000)), "decommission": list(range(1000, 1200))},
            "goals": {
                "rackAwareness": "Preferred",
                "leaders": False,
                "followerOrder": False,
                "balance": "PerTopic",
                "maxReplicaMoves": 500,
                "maxDataToMove": "2Ti",
                "minimumGain": 5,
            },
            "replicationFactor": 3,
            "offlinePolicy": "Refuse",
            "execution": {"suspend": True, "parallelReplicaCount": 3, "stallTimeout": "1h30m"},
            "throttle": {"leaderRate": "50Mi", "followerRate": 1048576},
            "deletionPolicy": "Revert",
        }
        namespace.apply("KafkaRebalance", full)
        namespace.apply("KafkaRebalance", {**full, "throttle": {"unlimited": True}, "deletionPolicy": "Abandon"})
        assert namespace.get("kafkarebalances")["spec"]["deletionPolicy"] == "Abandon"

    @pytest.mark.parametrize(
        "spec",
        [
            {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "lists"}}},
            {"strategy": "ForcedMovesOnly", "replicationFactor": 2},
            {"strategy": "Generate", "goals": {"rackAwareness": "Disabled"}},
            {"strategy": "PreferredLeaders", "goals": {"followerOrder": False}},
        ],
    )
    def test_strategies(self, namespace: Namespace, spec: dict[str, Any]) -> None:
        namespace.apply("KafkaRebalance", spec)
        found = namespace.get("kafkarebalances")["spec"]
        assert (found["strategy"], found["offlinePolicy"]) == (spec["strategy"], "Skip")
        assert found["goals"]["minimumGain"] == 0

    def test_unset_rates(self, namespace: Namespace) -> None:
        namespace.apply("KafkaReassignmentThrottle", {"leaderRate": -1, "followerRate": "50Mi", "freeze": True})
        found = namespace.get("kafkareassignmentthrottles")
        assert (found["spec"]["leaderRate"], found["spec"]["followerRate"]) == (-1, "50Mi")
        assert found["spec"]["whenReplicationThrottled"] == "Additive"
        assert found["status"] == {"observedGeneration": -1}

    def test_overrides(self, namespace: Namespace) -> None:
        """The longest list too: each of its rules costs, and one object may cost only so much."""
        rows = [{"id": n, "leaderRate": "1000000000Ki", "followerRate": "-1"} for n in range(1000)]
        namespace.apply("KafkaReassignmentThrottle", {"brokers": rows, "whenReplicationThrottled": "Separate"})
        assert namespace.get("kafkareassignmentthrottles")["spec"]["brokers"] == rows
