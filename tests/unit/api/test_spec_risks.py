"""Settings that a reviewer should see."""

import pytest

from kafka_rebalance.api.spec_risks import rebalance_risks
from kafka_rebalance.api.v1alpha1 import parse_spec

KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}


def risks(**spec):
    return list(rebalance_risks(parse_spec({**KAFKA, **spec})))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"throttle": {"unlimited": True}}, "spec.throttle.unlimited"),
        ({"execution": {"parallelPartitionCount": 1001}}, "spec.execution.parallelPartitionCount"),
        ({"execution": {"parallelReplicaCount": 4}}, "spec.execution.parallelReplicaCount"),
        ({"brokers": {"decommission": [4, 5]}}, "spec.brokers.decommission"),
        ({"replicationFactor": 1}, "spec.replicationFactor"),
        ({"deletionPolicy": "Abandon"}, "spec.deletionPolicy"),
    ],
)
def test_each_names_its_field(spec, field):
    """And says what to write instead."""
    (found,) = risks(**spec)
    assert found.startswith(f"{field}: ")
    assert "; " in found


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"throttle": {"leaderRate": "50Mi"}},
        {"execution": {"parallelPartitionCount": 1000, "parallelReplicaCount": 3}},
        {"brokers": {"decommission": [4]}},
        {"brokers": {"decommission": [4, 5]}, "approval": {"policy": "Manual"}},
        {"replicationFactor": 2},
        {"deletionPolicy": "Revert"},
    ],
)
def test_usual_settings_have_no_risks(spec):
    assert risks(**spec) == []
