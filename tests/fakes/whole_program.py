"""Runs the whole `kafka-rebalance` program, including exit codes, without the second that a new process takes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from click.testing import CliRunner

from kafka_rebalance.cli.main import main


class Done(NamedTuple):
    """Exit code and output of the program."""

    code: Any
    out: str
    err: str


def run_program(*arguments: str, stdin: str | bytes = b"") -> Done:
    code: Any = 0
    with (
        _logging_kept(),
        CliRunner().isolation(input=stdin) as streams,
        patch.object(sys, "argv", ["kafka-rebalance", *arguments]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        return Done(code or 0, streams[0].getvalue().decode(), streams[1].getvalue().decode())


@contextmanager
def _logging_kept() -> Iterator[None]:
    """Some commands set up logging for their process; later tests here read what is logged."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
