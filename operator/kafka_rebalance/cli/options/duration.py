"""A duration such as ``15m`` or ``1h30m`` as the value of an option."""

from __future__ import annotations

import click

from kafka_rebalance.units import parse_duration


class Duration(click.ParamType[int]):
    """Seconds; at least ``minimum`` of them."""

    name = "duration"

    def __init__(self, minimum: int = 0) -> None:
        self._minimum = minimum

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The seconds; a usage error where the value is not a duration, or too short."""
        try:
            seconds = value if isinstance(value, int) else parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < self._minimum:
            self.fail(f"{value!r} is less than {self._minimum}s", param, ctx)
        return seconds
