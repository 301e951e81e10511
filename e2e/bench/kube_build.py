"""The Kubernetes control plane and kubectl, built from the published modules that `e2e/kube/go.mod` pins.

No release download and no container registry is needed: only the Go module proxy of the environment.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from e2e.bench.cache import cached

_MODULE = Path(__file__).parents[1] / "kube"
_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kubectl")


def kube_binaries() -> Path:
    """The directory with etcd, kube-apiserver, kube-controller-manager and kubectl, built when it is not cached."""
    version = _version()
    pins = hashlib.sha256((_MODULE / "go.mod").read_bytes() + (_MODULE / "go.sum").read_bytes()).hexdigest()[:12]
    return cached(f"kube/{version}-{pins}", lambda place: _build(version, place / "bin")) / "bin"


def _version() -> str:
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_MODULE / 'go.mod'} does not require k8s.io/kubernetes")
    return found.group(1)


def _build(version: str, place: Path) -> None:
    print(
        f"Building Kubernetes {version} and etcd from source: 5 to 15 minutes with a cold Go cache, once",
        file=sys.stderr,
        flush=True,
    )
    # Without these the server reports v0.0.0-master, which clients and charts compare with.
    major, minor = version.lstrip("v").split(".")[:2]
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    flags = "-s -w " + " ".join(f"-X {package}.{key}={value}" for package in packages for key, value in facts.items())
    place.mkdir()
    _go_build(flags, f"{place}/", *(f"k8s.io/kubernetes/cmd/{command}" for command in _KUBERNETES))
    _go_build("-s -w", f"{place}/etcd", "go.etcd.io/etcd/server/v3")


def _go_build(flags: str, target: str, *packages: str) -> None:
    # A go that is older than go.mod asks for may fetch that toolchain, unless the environment forbids it.
    environment = {"GOTOOLCHAIN": "auto", **os.environ, "CGO_ENABLED": "0"}
    command = ["go", "build", "-mod=readonly", "-ldflags", flags, "-o", target, *packages]
    subprocess.run(command, check=True, cwd=_MODULE, env=environment, stdout=sys.stderr)


if __name__ == "__main__":
    print(kube_binaries())
