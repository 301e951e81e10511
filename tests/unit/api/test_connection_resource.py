"""Which namespaces a KafkaConnection permits, and which connections a resource may name."""

import pytest

from kafka_rebalance.api.connection import ConnectionRef, Kafka, KafkaSource
from kafka_rebalance.api.connection_resource import AllowedNamespaces, Capacity
from kafka_rebalance.api.v1alpha1 import parse_connection
from kafka_rebalance.api.validation import validate
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.broker_capacity import BrokerCapacity
from kafka_rebalance.model.topology import BrokerId

INLINE = {"bootstrapServers": "kafka:9092"}


class TestAllowedNamespaces:
    @pytest.mark.parametrize(
        ("allowed", "permitted"),
        [
            ({"from": "Same"}, {"k"}),
            ({"from": "All"}, {"k", "a", "b"}),
            ({"names": ["a"]}, {"k", "a"}),
            ({"names": []}, {"k"}),
            ({"selector": {"matchLabels": {"team": "x"}}}, {"k", "b"}),
            ({"selector": {"matchLabels": {"team": "x", "env": "prod"}}}, {"k"}),
        ],
    )
    def test_permit(self, allowed, permitted):
        """Its own namespace k always; b has the label team=x."""
        found = validate(AllowedNamespaces, allowed, "")
        labels = {"b": {"team": "x", "env": "test"}}
        assert {name for name in ("k", "a", "b") if found.permit("k", name, labels.get(name, {}))} == permitted

    @pytest.mark.parametrize("allowed", [{}, {"from": "All", "names": ["a"]}, {"selector": {"matchLabels": {}}}])
    def test_exactly_one_way(self, allowed):
        """An empty selector would permit all namespaces by mistake."""
        with pytest.raises(Refused):
            validate(AllowedNamespaces, allowed, "")

    def test_absent(self):
        """Only its own namespace."""
        found = parse_connection({"metadata": {"name": "p", "namespace": "k", "uid": "u"}, "spec": INLINE}).spec
        assert not found.allowed_namespaces.permit("k", "a", {})


class TestCapacity:
    def test_of(self):
        """An entry overrides the default, value by value."""
        rows = [{"ids": [7, 8], "disk": "4Ti"}, {"ids": [9], "networkIn": "1Gi"}]
        found = validate(Capacity, {"default": {"disk": "2Ti", "networkIn": "300Mi"}, "brokers": rows}, "")
        assert found.of(BrokerId(1)) == BrokerCapacity(2 * 2**40, 300 * 2**20)
        assert found.of(BrokerId(8)) == BrokerCapacity(4 * 2**40, 300 * 2**20)
        assert found.of(BrokerId(9)) == BrokerCapacity(2 * 2**40, 2**30)


class TestKafkaSource:
    def test_either_way(self):
        """Inline, or by name."""
        assert validate(KafkaSource, INLINE, "").named == Kafka(bootstrap_servers="kafka:9092")
        ref = validate(KafkaSource, {"connectionRef": {"name": "p"}}, "").named
        assert ref == ConnectionRef(name="p")

    @pytest.mark.parametrize(
        "source",
        [{}, {"tls": {}}, {**INLINE, "connectionRef": {"name": "p"}}, {"connectionRef": {"name": "p"}, "tls": {}}],
    )
    def test_never_both_or_none(self, source):
        """It would not be clear which one counts."""
        with pytest.raises(Refused, match="either connectionRef, or bootstrapServers"):
            validate(KafkaSource, source, "spec.kafka")
