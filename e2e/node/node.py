"""A Kubernetes node that runs Pods: the Kubernetes programs and Debian's containerd, without a registry.

It has only the images that are loaded into it. There is no DNS and no storage class: brokers are named by address,
volumes are directories.
"""

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Self

from e2e.bench.kube import KubeCluster, KubectlError
from e2e.bench.kube_build import kube_binaries, node_binaries
from e2e.bench.pki import Authority
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until
from e2e.node.docker import Docker
from e2e.node.isolation import CGROUP, HOST_ADDRESS, NODE_ADDRESS, POD_NETWORK, SERVICE_NETWORK, Isolation

NAME = "node0"
_API = f"https://{NODE_ADDRESS}:6443"
_API_SERVICE = "10.96.0.1"
_PAUSE = "localhost/pause:e2e"
_ETCD = "http://127.0.0.1:2379"

_CONTAINERD = """
version = 2
root = "{directory}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "{directory}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Machines without CAP_SYS_RESOURCE cannot lower a process's own score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


class RealNode(KubeCluster):
    """A cluster of one node; `start` starts it with the images of a Docker daemon, `close` removes everything."""

    host_address = HOST_ADDRESS
    """Address at which its Pods reach the servers of this machine."""

    def __init__(self) -> None:
        self._control_plane, self._node = kube_binaries(), node_binaries()
        super().__init__(Path(), self._control_plane / "kubectl")
        self._isolation = Isolation(self.directory)
        self._children: dict[str, Child] = {}

    def start(self) -> Self:
        """Start everything and wait until the node is Ready."""
        try:
            self._isolation.start()
            self._make_certificates()
            self._start_control_plane()
            self._start_containerd()
            self._start_kubelet()
            wait_until("the node is ready", self._is_ready, timeout=120)
        except BaseException:
            self.close(keep_logs=True)
            raise
        return self

    def load(self, docker: Docker, *tags: str) -> None:
        """Load images under their names in the Docker daemon, and the pause image."""
        if not docker.has(_PAUSE):
            self._make_pause_image(docker)
        with docker.saving(_PAUSE, *tags) as saving:
            subprocess.run(
                self._isolation.command(*self._ctr_command("--namespace=k8s.io", "images", "import", "-")),
                stdin=saving.stdout,
                check=True,
                capture_output=True,
            )
        if saving.returncode:
            raise RuntimeError(f"docker save {' '.join(tags)} failed")

    def close(self, *, keep_logs: bool = False) -> None:
        """Kill all processes; delete the state, and the logs unless `keep_logs`."""
        self._isolation.close()
        for child in self._children.values():
            child.kill9()
        self._children.clear()
        for private in ("etcd", "pki", "containerd", "kubelet"):
            shutil.rmtree(self.directory / private, ignore_errors=True)
        super().close(keep_logs=keep_logs)

    # -- control plane ------------------------------------------------------------------------------------------

    def _make_certificates(self) -> None:
        pki = self._authority = Authority(self.directory / "pki")
        alternatives = f"IP:{NODE_ADDRESS},IP:{_API_SERVICE},IP:127.0.0.1,DNS:kubernetes.default.svc,DNS:localhost"
        pki.issue("apiserver", "/CN=kube-apiserver", alternatives)
        pki.issue("kubelet", f"/O=system:nodes/CN=system:node:{NAME}", f"IP:{NODE_ADDRESS},DNS:{NAME}")
        for name, subject in {
            "admin": "/O=system:masters/CN=node-admin",
            "to-kubelet": "/O=system:masters/CN=kube-apiserver",
            "manager": "/CN=system:kube-controller-manager",
            "scheduler": "/CN=system:kube-scheduler",
            "proxy": "/CN=system:kube-proxy",
        }.items():
            pki.issue(name, subject)
        self.admin_kubeconfig = pki.kubeconfig("admin", _API)

    def _start_control_plane(self) -> None:
        pki, programs = self._authority, self._control_plane
        self._run(
            *(programs / "etcd", "--name=node", f"--data-dir={self.directory}/etcd", "--unsafe-no-fsync"),
            *("--log-level=warn", f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}"),
        )
        self._run(
            *(programs / "kube-apiserver", f"--etcd-servers={_ETCD}", f"--advertise-address={NODE_ADDRESS}"),
            *("--secure-port=6443", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"),
            *(f"--client-ca-file={pki.crt('ca')}", f"--tls-cert-file={pki.crt('apiserver')}"),
            *(f"--tls-private-key-file={pki.key('apiserver')}", f"--service-cluster-ip-range={SERVICE_NETWORK}"),
            *("--service-account-issuer=https://kubernetes.default.svc",),
            *(f"--service-account-key-file={pki.directory}/tokens.pub",),
            *(f"--service-account-signing-key-file={pki.key('tokens')}",),
            *(f"--kubelet-client-certificate={pki.crt('to-kubelet')}", f"--kubelet-client-key={pki.key('to-kubelet')}"),
            *(f"--kubelet-certificate-authority={pki.crt('ca')}", "--kubelet-preferred-address-types=InternalIP"),
        )
        wait_until(f"the API server is ready (logs: {self.directory})", self._api_is_ready, timeout=120)
        manager = self._kubeconfig("manager")
        self._run(
            *(programs / "kube-controller-manager", f"--kubeconfig={manager}", "--leader-elect=false"),
            *(f"--authentication-kubeconfig={manager}", f"--authorization-kubeconfig={manager}"),
            *("--bind-address=127.0.0.1", f"--cert-dir={pki.directory}", f"--root-ca-file={pki.crt('ca')}"),
            *(f"--service-account-private-key-file={pki.key('tokens')}", "--use-service-account-credentials=true"),
        )
        scheduler = self._kubeconfig("scheduler")
        self._run(
            *(self._node / "kube-scheduler", f"--kubeconfig={scheduler}", "--leader-elect=false"),
            *(f"--authentication-kubeconfig={scheduler}", f"--authorization-kubeconfig={scheduler}"),
            *("--bind-address=127.0.0.1", f"--cert-dir={pki.directory}"),
        )

    def _api_is_ready(self) -> bool:
        self._check_alive()
        try:
            return self.kubectl("get", "--raw", "/readyz") == "ok"
        except KubectlError:
            return False

    # -- node ---------------------------------------------------------------------------------------------------

    def _start_containerd(self) -> None:
        network = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "hairpinMode": True}
        addresses = {"type": "host-local", "ranges": [[{"subnet": POD_NETWORK}]], "routes": [{"dst": "0.0.0.0/0"}]}
        plugins = [{**network, "ipam": addresses}, {"type": "portmap", "capabilities": {"portMappings": True}}]
        (self.directory / "cni").mkdir()
        self._write("cni/pods.conflist", json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}))
        config = self._write("containerd.toml", _CONTAINERD.format(directory=self.directory, pause=_PAUSE))
        self._run(Path("/usr/bin/containerd"), f"--config={config}")

        wait_until("containerd answers", self._containerd_answers)

    def _containerd_answers(self) -> bool:
        self._check_alive()
        try:
            self._ctr("version")
        except RuntimeError:
            return False
        return True

    def _start_kubelet(self) -> None:
        pki, directory = self._authority, self.directory
        kubelet = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": pki.crt("ca")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": pki.crt("kubelet"),
            "tlsPrivateKeyFile": pki.key("kubelet"),
            "containerRuntimeEndpoint": f"unix://{directory}/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{CGROUP}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "podLogsDir": f"{directory}/pods",
            "volumePluginDir": f"{directory}/kubelet/plugins-exec",
            "resolvConf": "",
            # A test machine's disk may be nearly full, and images must not be collected: they could not be pulled
            # again.
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "nodeStatusUpdateFrequency": "5s",
        }
        self._run(
            *(self._node / "kubelet", f"--config={self._write('kubelet.json', json.dumps(kubelet))}"),
            *(f"--kubeconfig={self._kubeconfig('kubelet')}", f"--hostname-override={NAME}"),
            *(f"--node-ip={NODE_ADDRESS}", f"--root-dir={directory}/kubelet"),
        )
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(self._kubeconfig("proxy"))},
            "mode": "iptables",
            "clusterCIDR": POD_NETWORK,
            "hostnameOverride": NAME,
            # These limits are machine-wide; only the machine's own network may set them.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
        self._run(self._node / "kube-proxy", f"--config={self._write('proxy.json', json.dumps(proxy))}")

    def _is_ready(self) -> bool:
        self._check_alive()
        conditions = "{.status.conditions[?(@.type=='Ready')].status}"
        return self.kubectl("get", "node", NAME, "--ignore-not-found", "-o", f"jsonpath={conditions}") == "True"

    # -- internals ----------------------------------------------------------------------------------------------

    def _run(self, program: Path, *arguments: str) -> None:
        log = self.directory / f"{program.name}.log"
        # All servers are on this machine: ignore the proxy settings of the environment.
        env = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        command = self._isolation.command(str(program), *arguments)
        self._children[program.name] = Child(command, log=log, env=env)

    def _check_alive(self) -> None:
        for child in self._children.values():
            child.check_alive()

    def _make_pause_image(self, docker: Docker) -> None:
        with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
            with tarfile.open(archive.name, "w") as tar:
                tar.add(self._node / "pause", "pause")
            docker.import_root(Path(archive.name), _PAUSE, 'ENTRYPOINT ["/pause"]')

    def _ctr(self, *arguments: str) -> str:
        return self._isolation.run(*self._ctr_command(*arguments))

    def _ctr_command(self, *arguments: str) -> tuple[str, ...]:
        return ("/usr/bin/ctr", f"--address={self.directory}/containerd.sock", *arguments)

    def _kubeconfig(self, name: str) -> Path:
        return self._authority.kubeconfig(name, _API)

    def _write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path
