"""Runs the whole `kafka-rebalance` program, including exit codes, without the second that a new process takes."""

from __future__ import annotations

import sys
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
        CliRunner().isolation(input=stdin) as streams,
        patch.object(sys, "argv", ["kafka-rebalance", *arguments]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        return Done(code or 0, streams[0].getvalue().decode(), streams[1].getvalue().decode())
