"""Every state of a KafkaRebalance as the operator reports it, and the health that GitOps controllers should show."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.rebalance_states import STATES
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.reasons import Reason

GITOPS = Path(__file__).parents[2] / "examples" / "gitops"
WAITING = {Reason.AWAITING_APPROVAL, Reason.FROZEN, Reason.OUTSIDE_WINDOW, Reason.SUSPENDED}
"""The states that end only if a person does something, or at a time: waiting for them in a sync makes no sense."""
PROBLEMS = (Reason.STALLED, Reason.KAFKA_UNREACHABLE, Reason.INSUFFICIENT_BROKERS, Reason.INVALID_SPEC)


def rebalance(summary: ReadySummary, reason: str, *, generation: int = 1, observed: int = 1) -> dict[str, Any]:
    """A KafkaRebalance with this status, as the API server returns it."""
    now = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    conditions = summarise((), summary, reason, "as told", generation=observed, now=now)
    status = KafkaRebalanceStatus(observed_generation=observed, conditions=conditions).as_patch()["status"]
    return {
        "apiVersion": "kafkarebalance.dev/v1alpha1",
        "kind": "KafkaRebalance",
        "metadata": {"name": "r", "namespace": "kafka", "generation": generation},
        "spec": {"kafka": {"bootstrapServers": "kafka:9092"}},
        "status": {field: value for field, value in status.items() if value is not None},
    }


def fresh() -> dict[str, Any]:
    """A KafkaRebalance that no operator has seen; the API server has added the default of the status."""
    return {**rebalance(ReadySummary.DONE, "Succeeded"), "status": {"observedGeneration": -1}}


def states() -> Iterator[tuple[Reason, ReadySummary]]:
    """Each state, and some problems."""
    yield from ((reason, state.summary) for reason, state in STATES.items())
    yield from ((reason, ReadySummary.STUCK) for reason in PROBLEMS)
