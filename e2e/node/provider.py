"""The cluster that `E2E_PROVIDER` selects for the tests on a real node."""

import os
import shutil
import subprocess
from typing import Self

from e2e.bench.kube import KindCluster
from e2e.node.docker import Docker
from e2e.node.node import RealNode


class KindNode(KindCluster):
    """A cluster that kind creates in this machine's Docker."""

    host_address = ""
    """Address at which its Pods reach the servers of this machine: the gateway of kind's network."""

    def start(self) -> Self:
        """Create the cluster, and find its gateway."""
        super().start()
        question = ("docker", "network", "inspect", "kind", "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}")
        told = subprocess.run(question, check=True, capture_output=True, text=True).stdout.split()
        self.host_address = next(gateway for gateway in told if "." in gateway)
        return self

    def load(self, _: Docker, *tags: str) -> None:
        """Load images into the node."""
        self._kind("load", "docker-image", *tags)


Node = RealNode | KindNode


def own() -> bool:
    """Whether the node, and the Docker daemon that builds for it, are our own rather than the machine's."""
    return _provider() == "own"


def node() -> Node:
    """The cluster, not started yet. Raises RuntimeError, with what to do, if this machine cannot provide it."""
    check()
    return RealNode() if own() else KindNode()


def check() -> None:
    """Raise RuntimeError, with what to do, if our own node cannot run on this machine."""
    if not own():
        return
    if os.geteuid() != 0:
        raise RuntimeError("a real node needs root: namespaces, mounts and cgroups are made. Run make e2e-node as root")
    needed = ("dockerd", "containerd", "runc", "debootstrap", "iptables", "conntrack", "ip", "nsenter", "unshare")
    if missing := [program for program in needed if shutil.which(program) is None]:
        raise RuntimeError(f"not on PATH: {', '.join(missing)}. e2e/bench/prerequisites.sh node installs them")


def _provider() -> str:
    provider = os.environ.get("E2E_PROVIDER") or "own"
    if provider not in {"own", "kind"}:
        raise RuntimeError(f"E2E_PROVIDER={provider} has no node to load images into; known here: own, kind")
    return provider
