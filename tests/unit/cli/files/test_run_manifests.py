"""The file of run: one KafkaRebalance with what belongs to it, refused with the place where it is wrong."""

import pytest

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES
from kafka_rebalance.cli.files.run_manifests import read_manifests, with_bootstrap_servers

REBALANCE = """\
apiVersion: kafkarebalance.dev/v1alpha1
kind: KafkaRebalance
metadata: {name: r, annotations: {kubectl.kubernetes.io/last-applied-configuration: x, team: a}}
spec: {kafka: {bootstrapServers: "kafka:9092"}, priority: 1}
"""
THROTTLE = """\
---
apiVersion: kafkarebalance.dev/v1alpha1
kind: KafkaReassignmentThrottle
metadata: {name: limits, namespace: other}
spec: {kafka: {bootstrapServers: "kafka:9092"}, leaderRate: 1Mi}
"""
CONNECTION = """\
---
apiVersion: kafkarebalance.dev/v1alpha1
kind: KafkaConnection
metadata: {name: prod}
spec: {bootstrapServers: "kafka:9092"}
"""
SECRET = """\
---
apiVersion: v1
kind: Secret
metadata: {name: login}
data: {password: c2VjcmV0}
stringData: {username: me}
"""
CONFIG_MAP = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: lists}
data: {k: "{}"}
"""


def read(*parts):
    return read_manifests("".join(parts).encode())


class TestContent:
    def test_a_rebalance_alone(self):
        """The namespace has a default; what kubectl has noted is left out."""
        found = read(REBALANCE)
        assert found.where == ("default", "r")
        assert found.rebalance["spec"]["priority"] == 1
        assert found.rebalance["metadata"]["annotations"] == {"team": "a"}
        assert found.others == []

    def test_with_everything(self):
        found = read(REBALANCE, THROTTLE, CONNECTION, SECRET, CONFIG_MAP)
        names = [(plural, body["metadata"]["namespace"], body["metadata"]["name"]) for plural, body in found.others]
        assert names == [(REASSIGNMENT_THROTTLES, "other", "limits"), (CONNECTIONS, "default", "prod")]
        assert found.given.secrets == {("default", "login"): {"password": b"secret", "username": b"me"}}
        assert found.given.config_maps == {("default", "lists"): {"k": "{}"}}

    def test_a_list(self):
        """As kubectl and execute print it."""
        text = '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "kafkarebalance.dev/v1alpha1", '
        text += '"kind": "KafkaRebalance", "metadata": {"name": "r"}, "spec": {"kafka": {"bootstrapServers": "k:1"}}}]}'
        assert read(text).where == ("default", "r")

    def test_other_bootstrap_servers(self):
        """Of the command line: they hold for every resource, and a KafkaConnection is no longer needed."""
        found = with_bootstrap_servers(read(REBALANCE, THROTTLE, CONNECTION), "other:9092")
        kafka = {"bootstrapServers": "other:9092"}
        assert found.rebalance["spec"] == {"kafka": kafka, "priority": 1}
        assert [(plural, body["spec"]["kafka"]) for plural, body in found.others] == [(REASSIGNMENT_THROTTLES, kafka)]


class TestRefusals:
    @pytest.mark.parametrize(
        ("parts", "message"),
        [
            ([THROTTLE], "expected one KafkaRebalance, found 0"),
            ([REBALANCE, "---\n", REBALANCE], "expected one KafkaRebalance, found 2"),
            ([REBALANCE.replace("priority: 1", "prority: 1")], "KafkaRebalance r: .*prority"),
            ([REBALANCE.replace("name: r,", "")], "metadata.name: is required"),
            ([REBALANCE.replace("name: r,", f"name: {'r' * 151},")], "at most 150 characters"),
            ([REBALANCE, "---\n{apiVersion: v1, kind: Pod, metadata: {name: p}}"], "Pod of v1 has no use here"),
            ([REBALANCE, "---\ntext"], "text has no use here"),
            ([REBALANCE, SECRET.replace("c2VjcmV0", "secret!")], "Secret login: data must be base64"),
        ],
    )
    def test_with_the_place(self, parts, message):
        with pytest.raises(ValueError, match=message):
            read(*parts)

    def test_no_message_has_a_secret(self):
        with pytest.raises(ValueError, match="Secret login") as wrong:
            read(REBALANCE, SECRET.replace("c2VjcmV0", "TopSecret!"))
        assert "TopSecret" not in str(wrong.value)
        assert wrong.value.__cause__ is None
