"""Kubernetes programs, built from the published modules pinned in `e2e/kube/go.mod`.

It needs no release download and no container registry, only the Go module proxy of the environment.
"""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from e2e.bench.cache import cached

_MODULE = Path(__file__).parents[1] / "kube"
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kubectl")
_NODE = ("kube-scheduler", "kubelet", "kube-proxy")


def kube_binaries() -> Path:
    """The directory with etcd, kube-apiserver, kube-controller-manager and kubectl; builds them if missing."""

    def build(place: Path) -> None:
        _tell("a control plane and etcd", "5 to 15 minutes")
        _build_kubernetes(place, *_CONTROL_PLANE)
        _go_build("-s -w", f"{place}/etcd", "go.etcd.io/etcd/server/v3")

    return _built("", build)


def node_binaries() -> Path:
    """The directory with the additional programs of a node: scheduler, kubelet, kube-proxy, and pause."""

    def build(place: Path) -> None:
        _tell("a scheduler, a kubelet and a kube-proxy", "2 to 10 minutes")
        _build_kubernetes(place, *_NODE)
        _go_build("-s -w", f"{place}/pause", "./pause")

    return _built("-node", build)


def _built(suffix: str, build: Callable[[Path], None]) -> Path:
    """The cache entry with the programs; its name is a hash of all inputs."""
    sources = (_MODULE / "go.mod", _MODULE / "go.sum", _MODULE / "pause" / "main.go")
    pins = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]

    def make(place: Path) -> None:
        (place / "bin").mkdir()
        build(place / "bin")

    return cached(f"kube/{_version()}-{pins}{suffix}", make) / "bin"


def _tell(what: str, how_long: str) -> None:
    print(
        f"Building {what} of Kubernetes {_version()} from source: {how_long} with a cold Go cache, once",
        file=sys.stderr,
        flush=True,
    )


def _version() -> str:
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_MODULE / 'go.mod'} does not require k8s.io/kubernetes")
    return found.group(1)


def _build_kubernetes(place: Path, *commands: str) -> None:
    # Without these flags the server reports v0.0.0-master; clients and charts compare versions.
    version = _version()
    major, minor = version.lstrip("v").split(".")[:2]
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    flags = "-s -w " + " ".join(f"-X {package}.{key}={value}" for package in packages for key, value in facts.items())
    _go_build(flags, f"{place}/", *(f"k8s.io/kubernetes/cmd/{command}" for command in commands))


def _go_build(flags: str, target: str, *packages: str) -> None:
    # A Go older than go.mod requires may fetch the required toolchain, unless the environment forbids it.
    environment = {"GOTOOLCHAIN": "auto", **os.environ, "CGO_ENABLED": "0"}
    command = ["go", "build", "-mod=readonly", "-ldflags", flags, "-o", target, *packages]
    subprocess.run(command, check=True, cwd=_MODULE, env=environment, stdout=sys.stderr)


if __name__ == "__main__":
    print(kube_binaries())
