"""The operator as users install it: helm, with the exact commands of the documentation.

It runs as a Pod. Tests act on it through Kubernetes, or as the kernel would.
"""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any, Self

from e2e.bench.helm_build import helm_binary
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import LEASE, NAMESPACE
from e2e.bench.waiting import wait_until
from e2e.node.isolation import memory_counts

ROOT = Path(__file__).parents[2]
NAME = "kafka-rebalance-operator"
PODS = "app.kubernetes.io/component=operator"
_PROGRAM = b"/opt/venv/bin/kafka-rebalance\0operator\0"


class Release:
    """One release of the chart."""

    def __init__(self, kube: KubeCluster) -> None:
        self._kube = kube

    # -- commands of the documentation --------------------------------------------------------------------------

    def install(self) -> Self:
        """Install with the commands of README.md."""
        self._follow(console("README.md", "Install it"))
        return self

    def upgrade(self, *options: str) -> None:
        """Upgrade with the commands of docs/install.md, and values."""
        self._follow(" ".join([console("docs/install.md", "Upgrade").strip(), *options]))

    def uninstall(self) -> None:
        """Uninstall with the commands of README.md."""
        self._follow(console("README.md", "Install it", 1))

    def _follow(self, commands: str) -> None:
        """Run the commands, with the images that the node has instead of a registry."""
        commands = commands.replace("REGISTRY/", "")
        tools = [str(helm_binary().parent), str(self._kube.kubectl_path.parent)]
        homes = {f"HELM_{kind}_HOME": str(self._kube.directory / "helm") for kind in ("CACHE", "CONFIG", "DATA")}
        path = os.pathsep.join([*tools, os.environ["PATH"]])
        env = {**os.environ, **homes, "PATH": path, "KUBECONFIG": str(self._kube.admin_kubeconfig)}
        done = subprocess.run(
            ["bash", "-exo", "pipefail", "-c", commands], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise AssertionError(f"{commands}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}\n{self._state()}")

    def _state(self) -> str:
        """Diagnostic output for a failure."""
        seen = [self._kube.kubectl("get", "pods,jobs", "-n", NAMESPACE, "-o", "wide")]
        seen.append(self._kube.kubectl("get", "events", "-n", NAMESPACE, "--sort-by=.lastTimestamp"))
        return "\n".join(seen)[-6000:]

    # -- interface of the shared tests --------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a Pod is ready."""
        return any(_is_ready(pod) for pod in self.pods())

    def start(self) -> Self:
        """Wait for a ready Pod; Kubernetes starts it."""
        wait_until("an operator is ready", lambda: self.running, timeout=120)
        return self

    def ensure_running(self) -> None:
        """Kubernetes keeps it running."""
        self.start()

    # -- Pods ---------------------------------------------------------------------------------------------------

    def pods(self) -> list[Any]:
        """The operator's Pods that are not being deleted."""
        found = self._kube.get("pods", "-n", NAMESPACE, "-l", PODS)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def pod(self) -> Any:
        """The only Pod."""
        (only,) = self.pods()
        return only

    @property
    def holder(self) -> str:
        """The holder of the Lease: a Pod name."""
        found = self._kube.get("lease", LEASE, "-n", NAMESPACE)
        return str(found["spec"].get("holderIdentity", ""))

    def wait_led_by_another(self, former: str) -> Any:
        """Wait until a Pod other than `former` leads and is ready; returns it."""

        def successor() -> Any:
            return next(
                (p for p in self.pods() if _is_ready(p) and former != p["metadata"]["name"] == self.holder), None
            )

        return wait_until(f"another Pod than {former} leads", successor, timeout=120)

    def freeze(self) -> None:
        """SIGSTOP to the process in the container, to simulate a hang."""
        os.kill(self._process(), signal.SIGSTOP)

    def logs(self, *options: str) -> str:
        """The operator's log."""
        return self._kube.kubectl("logs", "-n", NAMESPACE, "-l", PODS, "--tail=-1", *options)

    def kills_by_memory(self) -> int:
        """How many processes the kernel has killed because the container reached its limit of memory."""
        (counts,) = [path.read_text() for path in memory_counts(self._process()) if path.exists()]
        return int(dict(line.split() for line in counts.splitlines())["oom_kill"])

    def _process(self) -> int:
        (only,) = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if _runs_operator(path)]
        return only

    def complete(self, job: str, from_cron_job: str, timeout: float = 180) -> str:
        """Run a CronJob's Pod once, now, until it completes; returns its log."""
        self._kube.kubectl("create", "job", job, f"--from=cronjob/{from_cron_job}", "-n", NAMESPACE)

        def ended() -> Any:
            status = self._kube.get("job", job, "-n", NAMESPACE)["status"]
            kinds = [c["type"] for c in status.get("conditions", []) if c["status"] == "True"]
            return kinds if {"Complete", "Failed"} & set(kinds) else None

        kinds = wait_until(f"job {job} ends", ended, timeout=timeout, every=0.5)
        said = self._kube.kubectl("logs", "-n", NAMESPACE, f"job/{job}", "--tail=-1")
        assert "Complete" in kinds, f"{said}\n{self._state()}"
        return said


def console(file: str, heading: str, number: int = 0) -> str:
    """The commands of a `console` block under a heading of a document; the shell skips comments."""
    text = (ROOT / file).read_text()
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"{file} has no section {heading!r}"
    return re.findall(r"^```console\n(.*?)^```", section.group(1), re.MULTILINE | re.DOTALL)[number]


def _is_ready(pod: Any) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _runs_operator(path: Path) -> bool:
    try:
        return _PROGRAM in path.read_bytes()
    except OSError:  # the process has exited meanwhile
        return False


def volume(name: str, directory: Path) -> str:
    """A directory of the node as a volume and a claim of the same name; JSON documents, one per line."""
    size = {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claim_of = {"namespace": NAMESPACE, "name": name}
    documents = [
        {
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {**common, "capacity": size, "hostPath": {"path": str(directory)}, "claimRef": claim_of},
        },
        {
            "kind": "PersistentVolumeClaim",
            "metadata": claim_of,
            "spec": {**common, "volumeName": name, "resources": {"requests": size}},
        },
    ]
    return "\n---\n".join(json.dumps({"apiVersion": "v1", **document}) for document in documents)
