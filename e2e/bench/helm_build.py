"""Helm, built from the published modules pinned in `e2e/helm/go.mod`; used by the chart tests."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from e2e.bench.cache import cached

_MODULE = Path(__file__).parents[1] / "helm"


def helm_binary() -> Path:
    """The path of the binary; builds it if it is not cached."""
    version = _required("helm.sh/helm/v3")
    pins = hashlib.sha256((_MODULE / "go.mod").read_bytes() + (_MODULE / "go.sum").read_bytes()).hexdigest()[:12]
    return cached(f"helm/{version}-{pins}", lambda place: _build(version, place / "helm")) / "helm"


def _required(module: str) -> str:
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_MODULE / 'go.mod'} does not require {module}")
    return found.group(1)


def _build(version: str, target: Path) -> None:
    print(f"Building helm {version} from source: two to three minutes with a cold Go cache, once", file=sys.stderr)
    # Without these flags helm reports Kubernetes 1.20 as its version, and our chart refuses it.
    minor = _required("k8s.io/client-go").split(".")[1]
    facts = {"internal/version.version": version}
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        facts |= {f"{package}.k8sVersionMajor": "1", f"{package}.k8sVersionMinor": minor}
    flags = "-s -w " + " ".join(f"-X helm.sh/helm/v3/{name}={value}" for name, value in facts.items())
    # A Go older than go.mod requires may fetch the required toolchain, unless the environment forbids it.
    environment = {"GOTOOLCHAIN": "auto", **os.environ, "CGO_ENABLED": "0"}
    command = ["go", "build", "-mod=readonly", "-ldflags", flags, "-o", str(target), "helm.sh/helm/v3/cmd/helm"]
    subprocess.run(command, check=True, cwd=_MODULE, env=environment, stdout=sys.stderr)


if __name__ == "__main__":
    print(helm_binary())
