"""`kafka-rebalance operator` before it connects to anything."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from e2e.bench.waiting import wait_until

from kafka_rebalance.cli.main import cli


class TestStopping:
    def test_while_it_is_being_imported(self, tmp_path):
        """PID 1 of a container ignores signals without a handler: the kubelet would wait and then kill it."""
        importing = tmp_path / "importing"
        tmp_path.joinpath("kopf.py").write_text(
            f"import pathlib, time\npathlib.Path({str(importing)!r}).touch()\ntime.sleep(600)\n"
        )
        program = Path(sys.executable).with_name("kafka-rebalance")
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        with subprocess.Popen(
            [program, "operator", "--all-namespaces"], env={**os.environ, "PYTHONPATH": path}
        ) as process:
            try:
                wait_until("it imports", lambda: importing.exists() or process.poll() is not None)
                process.send_signal(signal.SIGTERM)
                assert process.wait(240) == 0
            finally:
                process.kill()


class TestUsage:
    def test_a_port_that_is_none(self):
        done = CliRunner().invoke(cli, ["operator", "--all-namespaces", "--health-port", "65536"])
        assert done.exit_code == 2
        assert "--health-port" in done.output
