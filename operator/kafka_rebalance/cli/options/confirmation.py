"""Asks before a change. ``--yes`` skips the question."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kafka_rebalance.errors import Refused
from kafka_rebalance.reasons import Reason

_Command = TypeVar("_Command", bound=Callable[..., Any])


def yes_option(command: _Command) -> _Command:
    """The command gets it as ``yes``."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")(command)


def confirm(question: str) -> None:
    """Refused (NotConfirmed) unless the answer is yes; the end of a pipe is no answer."""
    try:
        agreed = click.confirm(question)
    except click.Abort:
        click.echo()
        agreed = False
    if not agreed:
        raise Refused(Reason.NOT_CONFIRMED, "nothing was changed; use --yes to skip this question")
