"""A real S3 server process: moto's, in an environment of its own, because its libraries contradict ours.

(botocore wants python-dateutil before 3, the Kubernetes client wants 3.)
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.bench.cache import cached
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

_MOTO = "5.2.5"
ACCESS_KEY, SECRET_KEY = "bench-access-key", "bench-secret-key"


@contextmanager
def s3_server(log: Path) -> Iterator[dict[str, str]]:
    """Runs the server; yields the variables with which clients reach it."""
    place = cached(f"moto/{_MOTO}", _install)
    port = reserve_port()
    environment = {**os.environ, "PYTHONPATH": str(place)}
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = Child(command, log=log, env=environment)

    def answers() -> bool:
        server.check_alive()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until("the S3 server answers", answers)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.stop()
        release_port(port)


def _install(place: Path) -> None:
    print(f"Installing moto {_MOTO} (about 60 MB, once)", file=sys.stderr, flush=True)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(place))
    subprocess.run([sys.executable, *install, f"moto[server]=={_MOTO}"], check=True, stdout=sys.stderr)
