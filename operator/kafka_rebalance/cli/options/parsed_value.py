"""Values of options that have a syntax of their own."""

from collections.abc import Callable
from typing import TypeVar

import click

from kafka_rebalance.units import parse_duration

_Value = TypeVar("_Value")


class ParsedValue(click.ParamType[_Value]):
    """What ``parse`` makes of the text. Its ValueError is wrong usage. ``name`` stands for the value in the help."""

    def __init__(self, name: str, parse: Callable[[str], _Value]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> _Value:
        """The parsed value."""
        try:
            return self._parse(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


def duration(minimum: int = 0) -> ParsedValue[int]:
    """A duration such as ``15m`` or ``1h30m`` in seconds; at least ``minimum`` of them."""

    def parse(text: str) -> int:
        seconds = parse_duration(text)
        if seconds < minimum:
            raise ValueError(f"{text!r} is less than {minimum}s")
        return seconds

    return ParsedValue("duration", parse)
