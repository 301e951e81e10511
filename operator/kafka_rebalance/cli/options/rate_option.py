"""Throttle rates and other values of the resource that are given as options: checked as the resource checks them."""

from collections.abc import Callable

import click

from kafka_rebalance.api.execution_spec import Throttle
from kafka_rebalance.api.spec_warnings import low_rate
from kafka_rebalance.api.validation import validate
from kafka_rebalance.errors import Refused


def checked(check: Callable[[str], object], field: str) -> Callable[..., str | None]:
    """A callback that reports what ``check`` refuses of the field as a wrong value of the option."""

    def callback(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
        try:
            if value is not None:
                check(value)
        except Refused as invalid:
            raise click.BadParameter(invalid.message.removeprefix(f"{field}: ")) from invalid
        return value

    return callback


def checked_rate(option: str) -> Callable[..., str | None]:
    """A callback for a rate in bytes per second; warns of one that is probably meant in another unit."""

    def check(rate: str) -> None:
        read = validate(Throttle, {"leaderRate": rate}, "")
        if read.leader_rate is not None and (warning := low_rate(read.leader_rate)) is not None:
            click.echo(f"warning: {option} {rate}: {warning}", err=True)

    return checked(check, "leaderRate")
