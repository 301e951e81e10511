"""The operator as users run it: a process with the shipped roles and nothing more.

The administrator applies the manifests in `crds/` and `deploy/`; the operator gets a token of its service account. It
is started with the installed command, never imported.
"""

import os
import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any, Self

import yaml

from e2e.bench.kube import KubeCluster
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

NAMESPACE = "kafka-rebalance"
SERVICE_ACCOUNT = "kafka-rebalance-operator"
_ROOT = Path(__file__).parents[2]
LEASE = "kafka-rebalance-operator"
_READY = "operator ready"
_WAITING = "waiting for the lease held by"


class OperatorProcess:
    """`kafka-rebalance operator` against one API server; `start` again after `kill9` or `stop`.

    Of several operators with different identities only one leads. After a kill and a restart an operator continues at
    once, because it has the same identity.
    """

    def __init__(
        self,
        kube: KubeCluster,
        *arguments: str,
        identity: str = "operator",
        namespace: str = NAMESPACE,
        metrics_port: int = 0,
        report_port: int = 0,
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._arguments = arguments or ("--all-namespaces",)
        self._child: Child | None = None
        self._seen = 0
        self.identity = identity
        self.metrics_port = metrics_port
        self.report_port = report_port
        self.log = kube.directory / f"{namespace}-{identity}.log"

    @property
    def account(self) -> str:
        """Its service account as NAMESPACE:NAME, for `kubectl create clusterrolebinding`."""
        return f"{self._namespace}:{SERVICE_ACCOUNT}"

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        """Its process id; raises if it was never started."""
        return self._started().pid

    def install(self) -> Self:
        """Apply the CRDs and the shipped roles, and wait until the API server serves the resources."""
        crds = sorted((_ROOT / "crds").glob("*.yaml"))
        # Independent of the roles that a test of the chart has left: this is the administrator.
        self._kube.kubectl("apply", "--server-side", "--force-conflicts", *_files(crds))
        self._kube.kubectl("wait", "--for=condition=Established", "--timeout=240s", *_files(crds))
        self._kube.apply(yaml.safe_dump_all(self._manifests()))
        return self

    def start(self) -> Self:
        """Start it with its service account, and wait until it reports that it is ready."""
        return self.launch().wait_ready()

    def start_waiting(self) -> Self:
        """Start one while another operator leads, and wait until it reports that it is on standby."""
        self.launch()
        self._wait_said(_WAITING)
        return self

    def wait_ready(self) -> Self:
        """Wait until it reports that it is ready, which it does when it leads."""
        self._wait_said(_READY)
        return self

    def said(self) -> str:
        """Its log since the last start."""
        return self._text()[self._seen :]

    def metrics(self) -> str:
        """What Prometheus gets if it scrapes the operator now."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def launch(self) -> Self:
        """Start it with its service account, without waiting."""
        if self.running:
            raise RuntimeError("the operator runs already")
        kubeconfig = self._kube.service_account_kubeconfig(self._namespace, SERVICE_ACCOUNT)
        self._seen = len(self._text())
        command = [str(Path(sys.executable).parent / "kafka-rebalance"), "operator", *self._arguments]
        command += ["--identity", self.identity, "--own-namespace", self._namespace]
        command += ["--metrics-port", str(self.metrics_port), "--report-port", str(self.report_port)]
        env = {**os.environ, "KUBECONFIG": str(kubeconfig), "PYTHONUNBUFFERED": "1"}
        self._child = Child(command, log=self.log, env=env, cwd=self._kube.directory)
        return self

    def _wait_said(self, what: str) -> None:
        child = self._started()

        def has_said() -> bool:
            child.check_alive()
            return what in self.said()

        wait_until(f"the operator says {what!r} (log: {self.log})", has_said)

    def kill9(self) -> None:
        """SIGKILL, at any point of its work."""
        self._started().kill9()

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return self._started().stop()

    def freeze(self) -> None:
        """SIGSTOP: the process is suspended without notice."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT: it continues where it was suspended."""
        os.kill(self.pid, signal.SIGCONT)

    def ended(self, timeout: float = 240) -> int:
        """Wait until it exits by itself; returns the exit code."""
        wait_until(f"the operator {self.identity} ends (log: {self.log})", lambda: not self.running, timeout=timeout)
        return self.stop()

    def restart(self) -> Self:
        """SIGTERM and a new start."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop it if it is running."""
        if self._child is not None:
            self._child.kill9()

    def ensure_running(self) -> None:
        """Start it if it is not running."""
        if not self.running:
            self.start()

    def _started(self) -> Child:
        if self._child is None:
            raise RuntimeError("the operator was never started")
        return self._child

    def _manifests(self) -> list[dict[str, Any]]:
        """The shipped manifests, namespaces first; with the operator's own namespace if it has one."""
        paths = sorted((_ROOT / "deploy").glob("*.yaml"), key=lambda path: "namespace" not in path.name)
        manifests = [manifest for path in paths for manifest in yaml.safe_load_all(path.read_text())]
        for manifest in manifests if self._namespace != NAMESPACE else ():
            metadata = manifest["metadata"]
            if manifest["kind"] == "Namespace":
                metadata["name"] = self._namespace
            if manifest["kind"] == "ClusterRoleBinding":
                metadata["name"] += f"-{self._namespace}"
            for named in (metadata, *manifest.get("subjects", ())):
                if "namespace" in named:
                    named["namespace"] = self._namespace
        return manifests

    def _text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def _files(paths: list[Path]) -> list[str]:
    return [argument for path in paths for argument in ("-f", str(path))]
