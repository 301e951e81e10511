"""The throttle resource's spec: overrides for single brokers, and which specs set a rate."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleSpec, WhenReplicationThrottled
from kafka_rebalance.api.v1alpha1 import parse_throttle
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.reassignment_throttle import Rates
from kafka_rebalance.model.topology import BrokerId

MI = 2**20


def spec(**parts: Any) -> KafkaReassignmentThrottleSpec:
    metadata = {"name": "limits", "namespace": "kafka", "uid": "k-1"}
    kafka = {"bootstrapServers": "kafka:9092"}
    return parse_throttle({"metadata": metadata, "spec": {"kafka": kafka, **parts}}).spec


def rates(broker: int, **parts: Any) -> Rates:
    return spec(**parts).rates_on([BrokerId(broker)])[BrokerId(broker)]


class TestRatesOn:
    """A broker has the general rates except for the sides that its own entry sets; -1 removes the limit on a side."""

    @pytest.mark.parametrize(
        ("own", "expected"),
        [
            ({"id": 4, "followerRate": "20Mi"}, Rates(50 * MI, 20 * MI)),
            ({"id": 4, "leaderRate": "80Mi", "followerRate": 7}, Rates(80 * MI, 7)),
            ({"id": 4, "leaderRate": -1}, Rates(None, 50 * MI)),
            ({"id": 4, "leaderRate": "-1", "followerRate": -1}, Rates(None, None)),
            ({"id": 5, "leaderRate": 1}, Rates(50 * MI, 50 * MI)),
        ],
    )
    def test_override(self, own: dict[str, Any], expected: Rates) -> None:
        assert rates(4, leaderRate="50Mi", followerRate="50Mi", brokers=[own]) == expected

    def test_only_one_broker_is_limited(self) -> None:
        found = spec(brokers=[{"id": 4, "leaderRate": "1Mi"}]).rates_on([BrokerId(3), BrokerId(4)])
        assert found == {3: Rates(), 4: Rates(MI)}


class TestSetsRates:
    """A resource that only freezes, or has only ceilings, has nothing to restore."""

    @pytest.mark.parametrize(
        ("parts", "expected"),
        [
            ({}, False),
            ({"freeze": True, "limits": {"parallelPartitionCount": 1}}, False),
            ({"leaderRate": -1, "brokers": [{"id": 1, "followerRate": -1}]}, False),
            ({"followerRate": 1}, True),
            ({"brokers": [{"id": 1, "followerRate": 1}]}, True),
        ],
    )
    def test_sets_rates(self, parts: dict[str, Any], *, expected: bool) -> None:
        assert spec(**parts).sets_rates is expected


class TestRefusals:
    """An invalid spec is refused with the path of the field."""

    @pytest.mark.parametrize(
        ("parts", "said"),
        [
            ({"brokers": [{"id": 1, "leaderRate": 1}] * 2}, "spec.brokers: names broker 1 twice"),
            ({"brokers": [{"id": 1}]}, "spec.brokers[0]: set leaderRate, followerRate or both"),
            ({"brokers": [{"id": -1, "leaderRate": 1}]}, "spec.brokers[0].id: "),
            ({"brokers": [{"leaderRate": 1}]}, "spec.brokers[0].id: "),
            ({"brokers": [{"id": 1, "leaderRate": 0}]}, "spec.brokers[0].leaderRate: must be a quantity"),
            ({"brokers": [{"id": 1, "followerRate": "-2"}]}, "spec.brokers[0].followerRate: "),
            ({"brokers": [{"id": 1, "rate": 1}]}, "spec.brokers[0].rate: unknown field"),
            ({"brokers": [{"id": n, "leaderRate": 1} for n in range(1001)]}, "spec.brokers: "),
            ({"whenReplicationThrottled": "additive"}, "spec.whenReplicationThrottled: "),
        ],
    )
    def test_names_the_field(self, parts: dict[str, Any], said: str) -> None:
        with pytest.raises(Refused) as refused:
            spec(**parts)
        assert refused.value.reason == "InvalidSpec"
        assert refused.value.message.startswith(said)


def test_rates_are_added_up_unless_said_otherwise() -> None:
    """The total as in KIP-542."""
    assert spec().when_replication_throttled is WhenReplicationThrottled.ADDITIVE
    assert spec(whenReplicationThrottled="Separate").when_replication_throttled is WhenReplicationThrottled.SEPARATE


def test_the_example_is_taken() -> None:
    """And it does what its comments say."""
    body = yaml.safe_load((Path(__file__).parents[3] / "examples" / "throttle.yaml").read_text(encoding="utf-8"))
    body["metadata"]["uid"] = "k-1"
    assert parse_throttle(body).spec.rates_on([BrokerId(4)])[BrokerId(4)] == Rates(50 * MI, 20 * MI)
