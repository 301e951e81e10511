"""CPU time that the program takes before it does anything, and for one `status` of an API server that answers at once.

User seconds of the process, the least of a few runs: the rest is what else the machine does.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

RUNS = 5
COMMANDS = (("--help",), ("lint", "--help"), ("status", "r"), ("list",), ("plan", "--help"))
RESOURCE = {
    "apiVersion": "kafkarebalance.dev/v1alpha1",
    "kind": "KafkaRebalance",
    "metadata": {"name": "r", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"kafka": {"bootstrapServers": "kafka:9092"}},
}


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        one = self.path.endswith("/r")
        body = json.dumps(RESOURCE if one else {"items": [RESOURCE]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def user_seconds(arguments: tuple[str, ...], kubeconfig: Path) -> float:
    """Of one run of the program."""
    code = "import sys; from kafka_rebalance.cli.main import main; main()"
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, env=env) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return used.ru_utime


def main() -> None:
    """One row for each command."""
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "config"
        clusters = [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}]
        contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
        users = [{"name": "u", "user": {"token": "t"}}]
        config = {"current-context": "c", "clusters": clusters, "contexts": contexts, "users": users}
        kubeconfig.write_text(json.dumps(config))
        print(f"{'command':<16} user CPU s")
        for arguments in COMMANDS:
            least = min(user_seconds(arguments, kubeconfig) for _ in range(RUNS))
            print(f"{' '.join(arguments):<16} {least:>10.2f}")
    server.shutdown()


if __name__ == "__main__":
    main()
