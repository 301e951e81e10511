"""Output that cannot be written: a full disk, a closed pipe, a missing directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO
from unittest.mock import patch

import click
import pytest
from tests.unit.cli.commands.plan_runs import CLUSTER, run

from kafka_rebalance.cli.commands import plan_command


class TestPipes:
    """What happens to the output is visible only from outside: in a separate process with real pipes."""

    @pytest.mark.parametrize("output", ["table", "json"])
    def test_a_full_disk_is_one_line(self, output: str) -> None:
        """Exit 1, and no traceback either when buffered output is flushed at the end."""
        with open("/dev/full", "wb") as full:
            done = process(output, full)
        assert (done.returncode, done.stderr) == (1, b"failed (OutputFailed): No space left on device\n")

    @pytest.mark.parametrize("output", ["table", "json"])
    def test_a_reader_that_went_is_no_error_to_print(self, output: str) -> None:
        """`plan | head` ends silently with exit 1."""
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb") as broken:
            done = process(output, broken)
        assert (done.returncode, done.stderr) == (1, b"")

    def test_a_file_that_cannot_be_written_is_named(self) -> None:
        """For any command: one line with the path, exit 1."""
        with patch.object(plan_command, "plan", into_nowhere):
            done = run()
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr == b"failed (FileFailed): No such file or directory: /nonexistent/plan.json\n"


@click.command("plan")
def into_nowhere() -> None:
    Path("/nonexistent/plan.json").write_text("{}")


def process(output: str, stdout: IO[bytes]) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from kafka_rebalance.cli.main import main; main()", "plan", "--cluster", "-"]
    stdin = json.dumps(CLUSTER).encode()
    # As a shell starts it: with buffered output.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    command += ["-o", output]
    return subprocess.run(command, input=stdin, stdout=stdout, stderr=subprocess.PIPE, env=env, timeout=240)
