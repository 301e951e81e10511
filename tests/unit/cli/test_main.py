"""The entry point, as PID 1 of a container."""

import os
import signal
import subprocess
import sys

import pytest
from e2e.bench.waiting import wait_until

_AS_PROCESS_ONE = "import os; os.getpid = lambda: 1; from kafka_rebalance.cli.main import main; main()"


class TestProcessOne:
    @pytest.mark.parametrize(
        ("command", "imports"),
        [
            (["retire", "--all-namespaces"], "kubernetes"),
            (["check-install", "--all-namespaces"], "kubernetes"),
            (["pipeline", "load-model", "--lake", "x"], "pyarrow"),
        ],
    )
    def test_ends_when_it_is_told_to(self, tmp_path, command, imports):
        """Without its own handler the kernel does not deliver SIGTERM, and the Pod ends half a minute later."""
        importing = tmp_path / "importing"
        tmp_path.joinpath(f"{imports}.py").write_text(
            f"import pathlib, time\npathlib.Path({str(importing)!r}).touch()\ntime.sleep(600)\n"
        )
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        with subprocess.Popen(
            [sys.executable, "-c", _AS_PROCESS_ONE, *command], env={**os.environ, "PYTHONPATH": path}
        ) as process:
            try:
                wait_until("it imports", lambda: importing.exists() or process.poll() is not None)
                process.send_signal(signal.SIGTERM)
                assert process.wait(240) == 128 + signal.SIGTERM
            finally:
                process.kill()
