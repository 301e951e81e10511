"""--override, --for and --reason: a change as an annotation that takes precedence over the spec for a limited time."""

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from kafka_rebalance.api.fields import format_time
from kafka_rebalance.cli.options.parsed_value import duration

_Result = TypeVar("_Result")
_LONGEST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class OverrideOrder:
    """``until``: when the spec applies again; ``reason``: for others who look at the resource."""

    until: datetime
    reason: str | None = None

    @property
    def end(self) -> str:
        """For messages."""
        return f"until {format_time(self.until)}"

    def patch(self, annotation: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The merge patch that sets the annotation."""
        why = {"reason": self.reason} if self.reason else {}
        text = json.dumps({**values, "until": format_time(self.until), **why})
        return {"metadata": {"annotations": {annotation: text}}}


def without_override(annotation: str) -> dict[str, Any]:
    """The merge patch that ends an override."""
    return {"metadata": {"annotations": {annotation: None}}}


def overridden_to(body: Mapping[str, Any], annotation: str, field: str) -> object:
    """The value of the field in an override in force; None without one, or if it cannot be read."""
    try:
        found = json.loads((body["metadata"].get("annotations") or {}).get(annotation, "null"))
        in_force = datetime.fromisoformat(found["until"]) > datetime.now(UTC)
    except (ValueError, TypeError, KeyError):
        return None
    return found.get(field) if in_force else None


def override_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """The options; the command gets ``override``, an OverrideOrder, or None without ``--override``."""

    @click.option(
        "--override",
        is_flag=True,
        help="Set an annotation that takes precedence over the spec for a limited time. A sync from Git keeps it.",
    )
    @click.option(
        "--for",
        "seconds",
        type=duration(1),
        help="With --override: how long, such as 2h, at most 30d.  [default: 1h]",
    )
    @click.option("--reason", metavar="TEXT", help="With --override: why, for others who look at the resource.")
    @functools.wraps(command)
    def chosen(
        *arguments: object, override: bool, seconds: int | None, reason: str | None, **options: object
    ) -> _Result:
        if not override and (seconds is not None or reason is not None):
            raise click.UsageError("--for and --reason require --override")
        length = timedelta(seconds=seconds or 3600)
        if length > _LONGEST:
            raise click.BadParameter(f"must be at most {_LONGEST.days}d: change the spec instead", param_hint="--for")
        if reason is not None and len(reason) > 200:
            raise click.BadParameter("must have at most 200 characters", param_hint="--reason")
        order = OverrideOrder(datetime.now(UTC) + length, reason) if override else None
        return command(*arguments, override=order, **options)

    return chosen
