from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.unit.cli.commands.plan_runs import CLUSTER, RESOURCE, planned, without_sizes

from kafka_rebalance.cli.commands.fleet_command import plan_as_alone
from kafka_rebalance.errors import Refused


def same(document: dict[str, Any], alone: dict[str, Any]) -> None:
    for each in (document, alone):
        del each["summary"]["planningSeconds"]
    assert document["summary"] == alone["summary"]
    assert document["partitions"] == alone["partitions"]


class TestPlanAsAlone:
    @pytest.mark.parametrize("cluster", [CLUSTER, without_sizes()])
    def test_is_what_plan_prints(self, cluster: Any) -> None:
        """It has the defaults of all options of `plan`."""
        document = plan_as_alone(json.dumps(cluster).encode(), None)
        same(document, planned(cluster=cluster))
        assert document["clusterSize"] == {"brokers": 4, "partitions": 4}

    def test_with_a_rebalance(self, tmp_path: Any) -> None:
        """Its warnings come along."""
        krb = tmp_path / "krb.yaml"
        krb.write_text(yaml.safe_dump({**RESOURCE, "spec": {**RESOURCE["spec"], "topics": {"include": ["t", "x"]}}}))
        document = plan_as_alone(json.dumps(CLUSTER).encode(), krb.read_bytes())
        same(document, planned("--rebalance", str(krb)))
        assert any("x" in warning for warning in document["warnings"])

    def test_a_damaged_file_is_refused(self) -> None:
        """As wrong usage of `plan` is."""
        with pytest.raises(Refused, match="--cluster"):
            plan_as_alone(b"{", None)
