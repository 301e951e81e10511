"""Runs Pods as processes of this machine: the parts of a kubelet that the chart's Pods need, because the bench has
none.

Each container runs as its command with its arguments, environment and service account; its state is written to the API
server, so that Deployments become ready, Jobs complete, and helm's waits and hooks are real. Images, filesystems and
resource limits are not simulated: the tests on a real node cover them.
"""

import json
import os
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.bench.kube import KubeCluster, KubectlError
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child

_HEALTH_PORT = "--health-port="
_PORTS = {_HEALTH_PORT, "--metrics-port=", "--report-port="}
_TURN_SECONDS = 0.2


@dataclass
class _Process:
    """The process of one Pod. ``ports``: by option; ``told`` is the last state sent to the API server."""

    pod: dict[str, Any]
    child: Child
    ports: dict[str, int]
    told: str = ""

    @property
    def state(self) -> str:
        """Running, Ready, or its exit code."""
        if not self.child.running:
            return str(self.child.stop())
        port = self.ports.get(_HEALTH_PORT)
        return "Ready" if port and _answers(port) else "Running"


class PodProcesses:
    """The Pods of one namespace, while the context is open."""

    def __init__(self, cluster: KubeCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._processes: dict[str, _Process] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pods", daemon=True)
        self._failure: BaseException | None = None
        self.logs: dict[str, Path] = {}
        """The log of each Pod, by its name."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        for process in self._processes.values():
            process.child.kill9()
            self._forget(process)
        if self._failure is not None and error is None:
            raise self._failure

    def said(self, name: str) -> str:
        """The log of the newest Pod whose name starts with this prefix."""
        return [log for pod, log in self.logs.items() if pod.startswith(name)][-1].read_text(errors="replace")

    def running(self) -> set[str]:
        """The Pods whose process is running."""
        return {p.pod["metadata"]["name"] for p in list(self._processes.values()) if p.child.running}

    def _run(self) -> None:
        try:
            while not self._stop.wait(_TURN_SECONDS):
                self._turn()
        except BaseException as error:
            self._failure = error
            raise

    def _turn(self) -> None:
        found = self._cluster.api.get(f"/api/v1/namespaces/{self._namespace}/pods")["items"]
        pods = {pod["metadata"]["uid"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}
        for uid in [uid for uid in self._processes if uid not in pods]:
            process = self._processes.pop(uid)
            process.child.stop()
            self._forget(process)
        for uid, pod in pods.items():
            if uid not in self._processes and pod["status"]["phase"] == "Pending":
                self._processes[uid] = self._start(pod)
        for process in self._processes.values():
            if (state := process.state) != process.told:
                self._tell(process, state)

    def _start(self, pod: dict[str, Any]) -> _Process:
        (container,) = pod["spec"]["containers"]
        name = pod["metadata"]["name"]
        program, *rest = [*container["command"], *container["args"]]
        options = [f"{argument.partition('=')[0]}=" for argument in rest]
        ports = {option: reserve_port() for option in options if option in _PORTS}
        rest = [
            f"{option}{ports[option]}" if option in ports else argument
            for option, argument in zip(options, rest, strict=True)
        ]
        account = self._cluster.service_account_kubeconfig(self._namespace, pod["spec"]["serviceAccountName"])
        given = {
            entry["name"]: entry.get("value") or _field(pod, entry["valueFrom"]["fieldRef"]["fieldPath"])
            for entry in container.get("env", [])
        }
        env = {**os.environ, **given, "KUBECONFIG": str(account), "PYTHONUNBUFFERED": "1"}
        log = self._cluster.directory / f"{name}-{pod['metadata']['uid']}.log"
        self.logs.pop(name, None)  # of an earlier Pod with the same name
        self.logs[name] = log
        command = [str(Path(sys.executable).parent / program), *rest]
        return _Process(pod, Child(command, log=log, env=env, cwd=self._cluster.directory), ports)

    def _tell(self, process: _Process, state: str) -> None:
        """Update the status as a kubelet does. A Pod that was just deleted is handled in the next round."""
        container = process.pod["spec"]["containers"][0]
        ended = state.isdigit() or state.startswith("-")
        status: dict[str, Any] = {
            "phase": ("Succeeded" if state == "0" else "Failed") if ended else "Running",
            "conditions": [{"type": "Ready", "status": "True" if state == "Ready" else "False"}],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": state == "Ready",
                    "restartCount": 0,
                    "state": {"terminated": {"exitCode": int(state)}} if ended else {"running": {}},
                }
            ],
        }
        where = ("pod", process.pod["metadata"]["name"], "-n", self._namespace, "--subresource=status", "--type=merge")
        try:
            self._cluster.kubectl("patch", *where, "-p", json.dumps({"status": status}))
        except KubectlError as error:
            if "not found" not in str(error):
                raise
        process.told = state

    def _forget(self, process: _Process) -> None:
        for port in process.ports.values():
            release_port(port)


def _field(pod: dict[str, Any], path: str) -> str:
    value: Any = pod
    for key in path.split("."):
        value = value[key]
    return str(value)


def _answers(port: int) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False
