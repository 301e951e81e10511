"""A user's namespace on a real API server, seen through kubectl."""

import json
from typing import Any

import pytest
from e2e.bench.kube import KubeCluster, KubectlError


class Namespace:
    """One namespace, as an administrator with kubectl sees it."""

    def __init__(self, cluster: KubeCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.name, *args, stdin=stdin)

    def refused(self, kind: str, spec: dict[str, Any], name: str = "a") -> str:
        """What the person reads whose resource is not taken."""
        with pytest.raises(KubectlError) as refused:
            self.apply(kind, spec, name)
        return str(refused.value)

    def apply(self, kind: str, spec: dict[str, Any], name: str = "a") -> None:
        self.kubectl("apply", "-f", "-", stdin=resource(kind, name, spec))

    def get(self, plural: str, name: str = "a") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", f"{plural}.kafkarebalance.dev", name, "-o", "json"))
        return found


def resource(kind: str, name: str, spec: dict[str, Any]) -> str:
    full = {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}
    return json.dumps(
        {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": full}
    )
