"""A real Kubernetes API server.

`E2E_PROVIDER` selects it: `own` (the default) starts etcd, kube-apiserver and the controller manager on loopback;
`kind` creates a cluster in Docker; `existing` uses the cluster of `KUBECONFIG_E2E` or `KUBECONFIG`. Tests always see
the same `KubeCluster`. The `own` cluster has no kubelet: no test here may expect a Pod to run.
"""

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.bench.audit import POLICY
from e2e.bench.kube_api import Connection, KubectlError
from e2e.bench.kube_build import kube_binaries
from e2e.bench.pki import Authority, write_kubeconfig
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

_KIND_CONFIG = Path(__file__).parents[1] / "kind.yaml"
_KIND_NAME = "kafka-rebalance-e2e"


class KubeCluster:
    """A running API server, its administrator's kubeconfig and a kubectl."""

    def __init__(self, admin_kubeconfig: Path, kubectl: Path) -> None:
        self.admin_kubeconfig = admin_kubeconfig
        self.kubectl_path = kubectl
        self.directory = Path(tempfile.mkdtemp(prefix="kube-bench-"))
        self._connection: Connection | None = None

    def start(self) -> Self:
        """Wait until it is ready; raises if it does not answer."""
        self.kubectl("get", "--raw", "/readyz")
        return self

    def close(self, *, keep_logs: bool = False) -> None:
        """Release it; in an existing cluster, tests delete the resources that they created."""
        if not keep_logs:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(keep_logs=error is not None)
        if error is not None:
            print(f"The control plane's logs are in {self.directory}")

    def kubectl(
        self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None, timeout: float = 300
    ) -> str:
        """Run kubectl as the administrator, or with another kubeconfig; returns its standard output.

        Raises `KubectlError` with kubectl's error message if it fails.
        """
        done = subprocess.run(
            [str(self.kubectl_path), "--kubeconfig", str(kubeconfig or self.admin_kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            # A shared cache of API groups would outlive the cluster if another one reuses its port. Collecting garbage
            # would take a sixth of kubectl's CPU.
            env={**os.environ, "KUBECACHEDIR": str(self.directory / "kubectl-cache"), "GOGC": "off"},
        )
        if done.returncode:
            raise KubectlError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """`kubectl get … -o json`, parsed."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    @property
    def api(self) -> Connection:
        """A connection to the API server without kubectl, as the administrator: for frequent requests."""
        if self._connection is None:
            self._connection = Connection(self._view(), self.directory)
        return self._connection

    def apply(self, manifest: str) -> None:
        """`kubectl apply` of YAML or JSON text."""
        self.kubectl("apply", "-f", "-", stdin=manifest)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token of that service account only."""
        view = self._view()
        token = self.kubectl("create", "token", name, "--namespace", namespace, "--duration", "24h").strip()
        path = self.directory / f"{namespace}-{name}.kubeconfig"
        write_kubeconfig(path, view["clusters"][0]["cluster"], {"token": token})
        return path

    def _view(self) -> Any:
        return json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))


class OwnKubeCluster(KubeCluster):
    """etcd, kube-apiserver with RBAC and the controller manager, as processes on loopback."""

    def __init__(self) -> None:
        self._bin = kube_binaries()
        super().__init__(Path(), self._bin / "kubectl")
        self._api, self._etcd, self._etcd_peer, self._manager = ports = [reserve_port() for _ in range(4)]
        self._ports = ports
        self._children: dict[str, Child] = {}

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._api}"

    def start(self) -> Self:
        """Start all processes and wait until the API server is ready and creates service accounts."""
        try:
            self._start_etcd()
            self._make_certificates()
            self.start_api_server()
            self._start_controller_manager()
            wait_until("the controller manager makes service accounts", self._has_default_account)
        except BaseException:
            self.close(keep_logs=True)
            raise
        return self

    @property
    def audit_log(self) -> Path:
        """The audit log of the API server (`e2e.bench.audit`)."""
        return self.directory / "audit.log"

    def close(self, *, keep_logs: bool = False) -> None:
        """Kill all processes; the state is deleted."""
        for child in reversed(self._children.values()):
            child.kill9()
        self._children.clear()
        for port in self._ports:
            with contextlib.suppress(KeyError):
                release_port(port)
        for private in ("etcd", "pki"):
            shutil.rmtree(self.directory / private, ignore_errors=True)
        super().close(keep_logs=keep_logs)

    def kill9_api_server(self) -> None:
        """SIGKILL to the API server; etcd keeps its state."""
        self._children["kube-apiserver"].kill9()

    def start_api_server(self) -> None:
        """Start the API server, and wait until it is ready."""
        pki = self._authority
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(POLICY)
        self._run(
            *("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self._etcd}"),
            *("--bind-address=127.0.0.1", f"--secure-port={self._api}", "--authorization-mode=RBAC"),
            *(f"--client-ca-file={pki.crt('ca')}", f"--tls-cert-file={pki.crt('apiserver')}"),
            *(f"--tls-private-key-file={pki.key('apiserver')}", "--service-account-issuer=https://bench"),
            *(f"--service-account-key-file={pki.directory}/tokens.pub",),
            *(f"--service-account-signing-key-file={pki.key('tokens')}", "--service-cluster-ip-range=10.96.0.0/16"),
            *(f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}"),
            # The API server itself refuses a Service with loopback endpoints, on every retry.
            "--endpoint-reconciler-type=none",
        )
        self.wait_ready()

    def wait_ready(self, timeout: float = 240) -> None:
        """Wait until /readyz succeeds."""
        trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self._authority.crt("ca")))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), trust)

        def ready() -> bool:
            self._children["kube-apiserver"].check_alive()
            self._children["etcd"].check_alive()
            with contextlib.suppress(OSError), opener.open(f"{self.server}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
            return False

        wait_until(f"the API server is ready (log: {self.directory}/kube-apiserver.log)", ready, timeout=timeout)

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._etcd_peer}"
        self._run(
            *("etcd", "--name=bench", f"--data-dir={self.directory}/etcd", "--unsafe-no-fsync", "--log-level=warn"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"),
            *(f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=bench={peer}"),
        )

    def _make_certificates(self) -> None:
        self._authority = Authority(self.directory / "pki")
        names = "IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
        self._authority.issue("apiserver", "/CN=kube-apiserver", names)
        self._authority.issue("admin", "/O=system:masters/CN=bench-admin")
        self._authority.issue("manager", "/CN=system:kube-controller-manager")
        self.admin_kubeconfig = self._authority.kubeconfig("admin", self.server)

    def _start_controller_manager(self) -> None:
        kubeconfig = self._authority.kubeconfig("manager", self.server)
        self._run(
            *("kube-controller-manager", f"--kubeconfig={kubeconfig}", "--leader-elect=false"),
            *(f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"),
            *("--bind-address=127.0.0.1", f"--secure-port={self._manager}", f"--cert-dir={self.directory}/pki"),
            *(f"--service-account-private-key-file={self._authority.key('tokens')}",),
            *(f"--root-ca-file={self._authority.crt('ca')}", "--use-service-account-credentials=true"),
        )

    def _has_default_account(self) -> bool:
        self._children["kube-controller-manager"].check_alive()
        return bool(self.kubectl("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name"))

    def _run(self, program: str, *arguments: str) -> None:
        log = self.directory / f"{program}.log"
        # All servers are on loopback: ignore the proxy settings of the environment.
        env = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        self._children[program] = Child([str(self._bin / program), *arguments], log=log, env=env)


class KindCluster(KubeCluster):
    """A cluster created by `kind` in Docker, deleted at the end."""

    def __init__(self) -> None:
        super().__init__(Path(), _on_path("kubectl"))
        self.admin_kubeconfig = self.directory / "kind.kubeconfig"

    def start(self) -> Self:
        """Create the cluster; replaces one that a killed run left behind."""
        self._kind("delete", "cluster")
        self._kind("create", "cluster", "--config", str(_KIND_CONFIG), "--wait", "180s")
        return super().start()

    def close(self, *, keep_logs: bool = False) -> None:
        """Delete the cluster."""
        self._kind("delete", "cluster")
        super().close(keep_logs=keep_logs)

    def _kind(self, *arguments: str) -> None:
        own = ("--name", _KIND_NAME, "--kubeconfig", str(self.admin_kubeconfig))
        subprocess.run([str(_on_path("kind")), *arguments, *own], check=True)


def kube_cluster() -> KubeCluster:
    """The cluster that `E2E_PROVIDER` selects, not started yet."""
    provider = os.environ.get("E2E_PROVIDER") or "own"
    if provider == "own":
        return OwnKubeCluster()
    if provider == "kind":
        return KindCluster()
    if provider == "existing":
        kubeconfig = os.environ.get("KUBECONFIG_E2E") or os.environ.get("KUBECONFIG")
        if not kubeconfig:
            raise RuntimeError("E2E_PROVIDER=existing needs KUBECONFIG_E2E or KUBECONFIG")
        return KubeCluster(Path(kubeconfig), _on_path("kubectl"))
    raise RuntimeError(f"E2E_PROVIDER={provider} is unknown; known: own, kind, existing")


def _on_path(program: str) -> Path:
    found = shutil.which(program)
    if found is None:
        raise RuntimeError(f"{program} is not on PATH")
    return Path(found)
