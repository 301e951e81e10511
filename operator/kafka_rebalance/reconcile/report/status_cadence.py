"""When a status is written: transitions at once, figures every few seconds. Pure.

Figures are what changes in nearly every round while replicas are copied: progress, sizes, rates, the time left, the
texts of messages. A PATCH in each round would be most of what the operator asks of the API server.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from kafka_rebalance.api.resource_status import Condition, ResourceStatus

FIGURES_EVERY = timedelta(seconds=5)
LATEST = timedelta(minutes=1)
"""The API server ends a request after this time: one that got no answer changes nothing any more."""

_FIGURES = {
    "conditions",  # compared on their own: their messages have figures
    "progress",
    "current_batch",
    "current_batch_size",
    "display",
    "brokers",
    "throttled_replicas",
    "foreign_reassignments",
}


def due(written: ResourceStatus, status: ResourceStatus, written_at: datetime, now: datetime) -> bool:
    """Whether ``status`` is to be written now, after ``written`` was."""
    if status == written:
        return False
    # Not between the two times only: the wall clock may have been set back.
    return _transitions(status) != _transitions(written) or not timedelta(0) <= now - written_at < FIGURES_EVERY


def may_be_overwritten(written_at: datetime, now: datetime) -> bool:
    """Whether an earlier write that got no answer may have been executed after the one at ``written_at``."""
    return timedelta(0) <= now - written_at < LATEST


def _transitions(status: ResourceStatus) -> tuple[object, ...]:
    rest: dict[str, Any] = {name: value for name, value in status if name not in _FIGURES}
    if rest.get("plan") is not None:
        rest["plan"] = rest["plan"].model_copy(update={"eta": None})
    progress = getattr(status, "progress", None)
    started_at = progress.started_at if progress is not None else None
    return rest, started_at, _without_messages(status.conditions)


def _without_messages(conditions: Iterable[Condition]) -> list[tuple[object, ...]]:
    return [(c.type, c.status, c.reason, c.observed_generation) for c in conditions]
