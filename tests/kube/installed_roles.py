"""The operator's account and roles from the chart, for an operator that runs outside of the cluster."""

import json
from typing import Any

import yaml
from tests.chart.rendering import rendered_text
from tests.kube.namespaces import Namespace


def install_roles(own: Namespace, namespaces: tuple[str, ...], *values: str) -> None:
    """Account, roles and bindings of the chart, without those of its hooks and of users.

    They have the name of ``own``, the namespace of the operator's records. ``values``: for the chart, as ``a=b``.
    """
    options = ("--set", f"fullnameOverride={own.name}", "--set-json", f"watchNamespaces={json.dumps(namespaces)}")
    options += tuple(option for value in values for option in ("--set", value))
    found: Any = filter(None, yaml.safe_load_all(rendered_text(*options, "--no-hooks", namespace=own.name)))
    manifests = [m for m in found if m["kind"] == "ServiceAccount" or "rbac" in m["apiVersion"]]
    component = "app.kubernetes.io/component"
    for manifest in manifests:
        if manifest["metadata"].get("namespace") in namespaces:
            # Roles go in any order with their namespace: the operator has to keep them until the test has seen enough.
            manifest["metadata"]["finalizers"] = ["example.org/test"]
    own.cluster.apply(yaml.safe_dump_all(m for m in manifests if m["metadata"]["labels"][component] == "operator"))
