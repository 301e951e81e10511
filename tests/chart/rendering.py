"""Renders the chart with helm, and the value sets of the tests."""

import functools
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml
from e2e.bench.helm_build import helm_binary

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "kafka-rebalance-operator"
NAME = "kafka-rebalance-operator"
NAMESPACE = "kafka-rebalance"
KUBE_VERSION = "1.34.0"
"""The Kubernetes version for rendering, so that the snapshots do not depend on the helm version."""
_CASES = Path(__file__).parent / "cases"
_SNAPSHOTS = Path(__file__).parent / "snapshots"
CASES = tuple(sorted(path.stem for path in _CASES.glob("*.yaml")))

Manifest = dict[str, Any]


class HelmError(RuntimeError):
    """Helm exited with an error; the text is its output."""


def helm(*arguments: str, kubeconfig: Path | None = None, timeout: float = 120) -> str:
    """Run helm; returns its standard output."""
    with tempfile.TemporaryDirectory() as nowhere:
        home = {f"HELM_{kind}_HOME": nowhere for kind in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [str(helm_binary()), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            env={**os.environ, **home, "KUBECONFIG": str(kubeconfig or os.devnull)},
        )
    if done.returncode:
        raise HelmError(done.stdout + done.stderr)
    return done.stdout


def documented(page: str, command: str, number: int = 0) -> list[str]:
    """The first (or n-th) helm command of that name on a page, as arguments; the chart's path is made absolute."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.startswith(f"helm {command} ")]
    words = shlex.split(lines[number], comments=True)[1:]
    return [str(CHART) if word == "charts/kafka-rebalance-operator" else word for word in words]


def values_of(case: str) -> Path:
    """The file with the values of a case."""
    return _CASES / f"{case}.yaml"


def snapshot_of(case: str) -> Path:
    """The file with the rendered manifests of a case."""
    return _SNAPSHOTS / f"{case}.yaml"


@functools.cache
def rendered_text(*arguments: str, release: str = NAME, namespace: str = NAMESPACE) -> str:
    """All manifests, hooks included."""
    return helm("template", release, str(CHART), "--namespace", namespace, "--kube-version", KUBE_VERSION, *arguments)


def rendered(case: str = "default", *arguments: str) -> list[Manifest]:
    """The objects of a case. ``arguments`` as helm takes them."""
    text = rendered_text("--values", str(values_of(case)), *arguments)
    return parsed(text)


def parsed(text: str) -> list[Manifest]:
    """The objects of YAML documents. PyYAML's own parser needs a second for the CRDs, libyaml a tenth of that."""
    return [manifest for manifest in yaml.load_all(text, yaml.CSafeLoader) if manifest]


def snapshot(case: str) -> str:
    """The rendered manifests of a case, without the CRDs, which are compared with `crds/`."""
    documents = rendered_text("--values", str(values_of(case))).removeprefix("---\n").split("\n---\n")
    kept = [document for document in documents if "\nkind: CustomResourceDefinition\n" not in document]
    return "---\n" + "\n---\n".join(kept)


def of_kind(manifests: list[Manifest], kind: str, suffix: str = "") -> Manifest:
    """The only object of that kind whose name ends with the suffix."""
    (found,) = [m for m in manifests if m["kind"] == kind and m["metadata"]["name"].endswith(suffix)]
    return found


def pod_templates(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The Pod templates of these objects, by kind and name of the object."""
    found: dict[str, Manifest] = {}
    for manifest in manifests:
        where = f"{manifest['kind']}/{manifest['metadata']['name']}"
        if manifest["kind"] == "Pod":
            found[where] = {"metadata": {"labels": manifest["metadata"]["labels"]}, "spec": manifest["spec"]}
        elif manifest["kind"] in {"Deployment", "Job"}:
            found[where] = manifest["spec"]["template"]
        elif manifest["kind"] == "CronJob":
            found[where] = manifest["spec"]["jobTemplate"]["spec"]["template"]
    return found
