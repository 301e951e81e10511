"""The overrides of a resource as its status shows them: rows and the condition Overridden. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from kafka_rebalance.api.conditions import overridden
from kafka_rebalance.api.overrides import OverrideInForce
from kafka_rebalance.api.resource_status import Condition, OverrideRow


def override_rows(in_force: Iterable[OverrideInForce]) -> tuple[OverrideRow, ...]:
    """The rows of ``status.overrides``."""
    return tuple(
        OverrideRow(setting=row.setting, value=row.value, until=row.until, reason=row.reason) for row in in_force
    )


def with_overrides(
    conditions: Iterable[Condition],
    in_force: Iterable[OverrideInForce],
    problems: Sequence[str],
    *,
    generation: int,
    now: datetime,
) -> tuple[Condition, ...]:
    """The conditions with Overridden. ``problems``: why annotations cannot be read."""
    return overridden(conditions, [str(row) for row in in_force], problems, generation=generation, now=now)
