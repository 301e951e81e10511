"""Reads the files of options. An invalid file is wrong usage; the message names the option and the place."""

from collections.abc import Callable
from typing import BinaryIO, TypeVar

import click

from kafka_rebalance.model.json_shapes import read_limited
from kafka_rebalance.printable_text import printable

_Parsed = TypeVar("_Parsed")


def parsed(option: str, file: BinaryIO, parse: Callable[[bytes], _Parsed]) -> _Parsed:
    """The parsed content. click.BadParameter where the file cannot be read, is empty or invalid."""
    try:
        data = read_limited(file.read)
        found = parse(data) if data else None
    except OSError as unreadable:
        raise click.BadParameter(f"cannot be read: {unreadable.strerror}", param_hint=option) from unreadable
    except ValueError as wrong:
        raise click.BadParameter(printable(str(wrong)), param_hint=option) from wrong
    if found is None:
        raise click.BadParameter("the file is empty", param_hint=option)
    return found
