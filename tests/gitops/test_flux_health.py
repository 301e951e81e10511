"""The health checks for Flux: its rules, with the expressions evaluated by an implementation of CEL."""

from typing import Any

import celpy
import pytest
import yaml
from celpy.adapter import json_to_cel
from tests.gitops.reported_states import GITOPS, WAITING, fresh, rebalance, states

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.reasons import Reason

KUSTOMIZATION = yaml.safe_load((GITOPS / "flux" / "kustomization.yaml").read_text(encoding="utf-8"))
(CHECK,) = KUSTOMIZATION["spec"]["healthCheckExprs"]


def health(resource: dict[str, Any]) -> str:
    """As Flux (RFC 0009): it compares the generations, then evaluates inProgress, failed and current in this order.

    If none is true, the resource is in progress.
    """
    observed = resource.get("status", {}).get("observedGeneration")
    if observed is not None and observed != resource["metadata"]["generation"]:
        return "InProgress"
    for field, found in (("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current")):
        if field in CHECK and holds(CHECK[field], resource):
            return found
    return "InProgress"


def holds(expression: str, resource: dict[str, Any]) -> bool:
    """The fields at the top of the resource are the variables."""
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    return bool(program.evaluate({name: json_to_cel(value) for name, value in resource.items()}))


class TestStates:
    @pytest.mark.parametrize(("reason", "summary"), [*states()], ids=str)
    def test_each_state(self, reason: Reason, summary: ReadySummary) -> None:
        """Waiting for a person or for a time is current: Flux would otherwise wait for it until the time-out."""
        expected = {ReadySummary.DONE: "Current", ReadySummary.STUCK: "Failed"}.get(summary, "InProgress")
        assert health(rebalance(summary, reason)) == ("Current" if reason in WAITING else expected)

    def test_a_new_resource_is_in_progress(self) -> None:
        assert health(fresh()) == "InProgress"

    def test_an_edit_counts_at_once(self) -> None:
        """The status is still that of the spec before."""
        assert health(rebalance(ReadySummary.DONE, "Succeeded", generation=2)) == "InProgress"

    @pytest.mark.parametrize("field", ["failed", "current"])
    def test_a_status_without_conditions_is_no_error(self, field: str) -> None:
        """An expression that fails is evaluated again until the time-out."""
        assert not holds(CHECK[field], fresh())


class TestKustomization:
    def test_it_checks_what_it_applies(self) -> None:
        assert KUSTOMIZATION["spec"]["wait"] is True
        kind = CHECK["apiVersion"], CHECK["kind"]
        assert kind == ("kafkarebalance.dev/v1alpha1", "KafkaRebalance")
