"""--log-level and --log-format of the commands that log to standard error."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import click

_Result = TypeVar("_Result")


def log_options(levels: Sequence[str], default: str) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """The options; the command gets them as ``log_level`` and ``log_format``."""

    def with_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
        level = click.option("--log-level", type=click.Choice(levels), default=default, show_default=True)
        form = click.option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="Lines of text, or of JSON with fields for a log collector.",
        )
        return level(form(command))

    return with_options
