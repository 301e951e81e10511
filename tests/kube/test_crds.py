"""The CRDs on a real API server: invalid resources are refused with the path of the field."""

import json
import re
from typing import Any

import pytest
from tests.kube.bad_connections import BAD_CONNECTIONS
from tests.kube.bad_rebalances import BAD_REBALANCES, BAD_THROTTLES
from tests.kube.namespaces import Namespace
from tests.kube.spec_parts import BadInput
from tests.kube.specs import CREDENTIALS, EVERYTHING, MOST_BYTES, NULLS, REFUSED, STRATEGIES

SCRAM = {"mechanism": "SCRAM-SHA-512", "username": "u", "secretRef": {"name": "user"}}

pytestmark = pytest.mark.apiserver

INLINE = {"bootstrapServers": "kafka:9092"}


class TestEstablished:
    """All CRDs are structural and served."""

    @pytest.mark.parametrize("plural", ["kafkaconnections", "kafkarebalances", "kafkareassignmentthrottles"])
    def test_established(self, namespace: Namespace, plural: str) -> None:
        namespace.kubectl("wait", "--for=condition=Established", f"crd/{plural}.kafkarebalance.dev", "--timeout=240s")
        conditions = namespace.kubectl(
            "get", f"crd/{plural}.kafkarebalance.dev", "-o", "jsonpath={.status.conditions[*].type}"
        )
        assert "NonStructuralSchema" not in conditions


class TestRefusals:
    """Invalid resources are refused before they are stored, and the message names the field."""

    @pytest.mark.parametrize(("spec", "said"), REFUSED)
    def test_rebalance(self, untouched: Namespace, spec: dict[str, Any], said: str) -> None:
        assert said in untouched.refused("KafkaRebalance", spec)

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
    def test_throttle(self, untouched: Namespace, spec: dict[str, Any], said: str) -> None:
        assert said in untouched.refused("KafkaReassignmentThrottle", spec)

    @pytest.mark.parametrize(
        ("kind", "bad"),
        [("KafkaRebalance", bad) for bad in BAD_REBALANCES]
        + [("KafkaReassignmentThrottle", bad) for bad in BAD_THROTTLES]
        + [("KafkaConnection", BadInput({**INLINE, **bad.spec}, bad.model, bad.server)) for bad in BAD_CONNECTIONS],
    )
    def test_says_what_to_write(self, untouched: Namespace, kind: str, bad: BadInput) -> None:
        """Where the API server leaves the words to the CRD, they are the same as ours."""
        field, said = bad.model.partition(": ")[0], untouched.refused(kind, bad.spec)
        assert field in re.sub(r"\[([a-z]+)\]", r".\1", said)  # it writes keys of maps in brackets
        assert bad.server in said

    @pytest.mark.parametrize("kind", ["KafkaRebalance", "KafkaReassignmentThrottle"])
    def test_another_cluster(self, namespace: Namespace, kind: str) -> None:
        namespace.apply(kind, {})
        said = namespace.refused_change(kind, {"kafka": {"bootstrapServers": "other:9092"}})
        assert "spec.kafka: Invalid value: cannot be changed" in said

    @pytest.mark.parametrize(
        "change",
        [
            {"bootstrapServers": "other:9092"},
            {"tls": {}},
            {"sasl": None},
            *({"sasl": SCRAM | more} for more in ({"username": "w"}, {"secretRef": {"name": "other"}})),
            {"sasl": {**SCRAM, "username": None}},
        ],
    )
    def test_other_credentials(self, namespace: Namespace, change: dict[str, Any]) -> None:
        """Also together with the one field that may be set."""
        kafka = {"bootstrapServers": "a:9092", "sasl": SCRAM}
        namespace.apply("KafkaRebalance", {"kafka": kafka})
        sasl = change.get("sasl", SCRAM)
        allowed = {"sasl": {**sasl, "allowPlaintextCredentials": True} if sasl else None}
        for changed in ({**kafka, **change}, {**kafka, **change, **allowed}):
            assert "spec.kafka: Invalid value: cannot be" in namespace.refused_change(
                "KafkaRebalance", {"kafka": changed}
            )

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ({"kafka": {"connectionRef": {"name": "p"}, "bootstrapServers": "a:1"}}, "requires either connectionRef"),
            ({"kafka": {"connectionRef": {"name": "p"}, "tls": {}}}, "requires either connectionRef"),
            ({"kafka": {"tls": {}}}, "requires either connectionRef"),
        ],
    )
    @pytest.mark.parametrize("kind", ["KafkaRebalance", "KafkaReassignmentThrottle"])
    def test_either_a_connection_or_its_name(
        self, untouched: Namespace, kind: str, spec: dict[str, Any], said: str
    ) -> None:
        assert f"spec.kafka: Invalid value: {said}" in untouched.refused(kind, spec)

    def test_an_inline_connection_may_become_a_name(self, namespace: Namespace) -> None:
        """And never change again."""
        namespace.apply("KafkaRebalance", {})
        namespace.apply("KafkaRebalance", {"kafka": {"connectionRef": {"name": "p", "namespace": "k"}}})
        for kafka in ({"bootstrapServers": "kafka:9092"}, {"connectionRef": {"name": "q"}}):
            said = namespace.refused_change("KafkaRebalance", {"kafka": kafka})
            assert "spec.kafka: Invalid value: cannot be changed" in said

    @pytest.mark.parametrize(
        "allowed", [None, {"from": "All"}, {"names": ["a", "b"]}, {"selector": {"matchLabels": {"team": "x"}}}]
    )
    def test_connection_taken(self, namespace: Namespace, allowed: dict[str, Any] | None) -> None:
        """Its fields may be edited."""
        namespace.apply("KafkaConnection", INLINE)
        changed = {"bootstrapServers": "b:1"} | ({"allowedNamespaces": allowed} if allowed else {})
        namespace.apply("KafkaConnection", changed)
        spec = namespace.get("kafkaconnections")["spec"]
        assert spec["bootstrapServers"] == "b:1"
        assert spec.get("allowedNamespaces") == allowed


class TestSelected:
    """`kubectl get --field-selector`."""

    @pytest.mark.parametrize(
        ("kind", "one", "other", "selector"),
        [
            ("KafkaRebalance", {"execution": {"suspend": True}}, {}, "spec.execution.suspend=true"),
            ("KafkaRebalance", {"suspend": True}, {}, "spec.suspend=true"),
            ("KafkaRebalance", {"approval": {"policy": "Manual"}}, {}, "spec.approval.policy=Manual"),
            ("KafkaRebalance", {"strategy": "ForcedMovesOnly"}, {}, "spec.strategy!=MinimalMovement"),
            (
                "KafkaRebalance",
                {"kafka": {"connectionRef": {"name": "prod"}}},
                {},
                "spec.kafka.connectionRef.name=prod",
            ),
            ("KafkaReassignmentThrottle", {"freeze": True}, {}, "spec.freeze=true"),
        ],
    )
    def test_by_spec(
        self, namespace: Namespace, kind: str, one: dict[str, Any], other: dict[str, Any], selector: str
    ) -> None:
        namespace.apply(kind, one, "a")
        namespace.apply(kind, other, "b")
        assert selected(namespace, kind, selector) == [f"{kind.lower()}.kafkarebalance.dev/a"]

    @pytest.mark.parametrize("kind", ["KafkaRebalance", "KafkaReassignmentThrottle", "KafkaConnection"])
    def test_by_cluster(self, namespace: Namespace, kind: str) -> None:
        spec = INLINE if kind == "KafkaConnection" else {}
        for name in ("a", "b"):
            namespace.apply(kind, spec, name)
        status = json.dumps({"status": {"observedGeneration": 1, "clusterId": "MkU3OEVBNTcwNTJENDM2Qg"}})
        plural = f"{kind.lower()}.kafkarebalance.dev"
        namespace.kubectl("patch", plural, "b", "--subresource=status", "--type=merge", "-p", status)
        assert selected(namespace, kind, "status.clusterId=MkU3OEVBNTcwNTJENDM2Qg") == [f"{plural}/b"]


def selected(namespace: Namespace, kind: str, selector: str) -> list[str]:
    return namespace.kubectl("get", kind.lower(), "--field-selector", selector, "-o", "name").split()


class TestTaken:
    """A valid resource is accepted, defaults are filled in, and some changes are allowed."""

    def test_defaults(self, namespace: Namespace) -> None:
        namespace.apply("KafkaRebalance", {})
        found = namespace.get("kafkarebalances")
        assert found["status"] == {"observedGeneration": -1}
        assert found["spec"]["execution"] == {
            "suspend": False,
            "parallelReplicaCount": 1,
            "parallelPartitionCount": 100,
            "parallelLeaderMovements": 20,
            "maxUnhealthy": 0,
            "brokerSettleTime": "1m",
            "stallTimeout": "15m",
        }
        assert "throttle" not in found["spec"]

    def test_everything(self, namespace: Namespace) -> None:
        """With the longest lists, too: a validation rule must not exceed its cost budget."""
        namespace.apply("KafkaRebalance", EVERYTHING)
        namespace.apply("KafkaRebalance", {**EVERYTHING, "throttle": {"unlimited": True}, "deletionPolicy": "Abandon"})
        assert namespace.get("kafkarebalances")["spec"]["deletionPolicy"] == "Abandon"

    def test_nulls(self, namespace: Namespace) -> None:
        namespace.apply("KafkaRebalance", NULLS)
        found = namespace.get("kafkarebalances")["spec"]
        assert "throttle" not in found
        assert found["brokers"] == {"decommission": [4]}

    @pytest.mark.parametrize("spec", STRATEGIES)
    def test_strategies(self, namespace: Namespace, spec: dict[str, Any]) -> None:
        namespace.apply("KafkaRebalance", spec)
        found = namespace.get("kafkarebalances")["spec"]
        assert (found["strategy"], found["offlinePolicy"]) == (spec["strategy"], "Skip")
        assert found["goals"]["minimumGain"] == 0

    @pytest.mark.parametrize("spec", CREDENTIALS)
    def test_credentials(self, namespace: Namespace, spec: dict[str, Any]) -> None:
        namespace.apply("KafkaRebalance", spec)
        found = namespace.get("kafkarebalances")["spec"]["kafka"]["sasl"]
        assert found["mechanism"] == spec["kafka"]["sasl"]["mechanism"]
        assert found["secretRef"] == spec["kafka"]["sasl"]["secretRef"]

    def test_credentials_in_clear_text(self, namespace: Namespace) -> None:
        """They can be allowed later, so that a resource from before the rule is served again; and not forbidden."""
        kafka = {"bootstrapServers": "a:9092", "sasl": SCRAM}
        namespace.apply("KafkaRebalance", {"kafka": kafka})
        allowed = {"kafka": kafka | {"sasl": SCRAM | {"allowPlaintextCredentials": True}}}
        namespace.apply("KafkaRebalance", allowed)
        assert namespace.get("kafkarebalances")["spec"]["kafka"]["sasl"]["allowPlaintextCredentials"] is True
        assert "cannot be changed" in namespace.refused_change("KafkaRebalance", {"kafka": kafka})

    @pytest.mark.parametrize("goals", MOST_BYTES)
    def test_the_most_bytes(self, namespace: Namespace, goals: dict[str, Any]) -> None:
        namespace.apply("KafkaRebalance", {"goals": goals})
        assert namespace.get("kafkarebalances")["spec"]["goals"]["maxDataToMove"] == goals["maxDataToMove"]

    def test_unset_rates(self, namespace: Namespace) -> None:
        namespace.apply("KafkaReassignmentThrottle", {"leaderRate": -1, "followerRate": "50Mi", "freeze": True})
        found = namespace.get("kafkareassignmentthrottles")
        assert (found["spec"]["leaderRate"], found["spec"]["followerRate"]) == (-1, "50Mi")
        assert found["spec"]["whenReplicationThrottled"] == "Additive"
        assert found["status"] == {"observedGeneration": -1}

    def test_capacities(self, namespace: Namespace) -> None:
        """With the longest lists, too: each broker is compared with all others."""
        values = {"disk": "8388607Ti", "networkIn": "1Gi", "networkOut": 1}
        rows = [{"ids": list(range(64 * n, 64 * (n + 1))), **values} for n in range(10)]
        namespace.apply("KafkaConnection", {**INLINE, "capacity": {"default": values, "brokers": rows}})
        assert namespace.get("kafkaconnections")["spec"]["capacity"]["brokers"] == rows

    @pytest.mark.parametrize("interval", ["10s", "999s", "1m", "59m", "60m", "1h"])
    def test_sampling(self, namespace: Namespace, interval: str) -> None:
        """With what it stands for if it is empty."""
        namespace.apply("KafkaConnection", {**INLINE, "sampling": {}})
        spec = namespace.get("kafkaconnections")["spec"]
        assert spec["sampling"] == {"interval": "1m", "consumerGroups": True}
        namespace.apply("KafkaConnection", {**INLINE, "sampling": {"interval": interval}})
        assert namespace.get("kafkaconnections")["spec"]["sampling"]["interval"] == interval

    def test_overrides(self, namespace: Namespace) -> None:
        """The longest list, too: each rule has a cost, and the cost of an object is limited."""
        rows = [{"id": n, "leaderRate": "1000000000Ki", "followerRate": "-1"} for n in range(1000)]
        namespace.apply("KafkaReassignmentThrottle", {"brokers": rows, "whenReplicationThrottled": "Separate"})
        assert namespace.get("kafkareassignmentthrottles")["spec"]["brokers"] == rows
