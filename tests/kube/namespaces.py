"""A user's namespace on a real API server, accessed with kubectl."""

import json
import uuid
from typing import Any, Self

import pytest
from e2e.bench.kube import KubeCluster, KubectlError


class Namespace:
    """One namespace, as an administrator with kubectl sees it."""

    def __init__(self, cluster: KubeCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    @classmethod
    def create(cls, cluster: KubeCluster) -> Self:
        """Create a new one."""
        name = f"t-{uuid.uuid4().hex[:10]}"
        cluster.api.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return cls(cluster, name)

    def delete(self) -> None:
        """Delete it and its content, in the background. The test may have deleted it already."""
        self._delete(f"/api/v1/namespaces/{self.name}")

    def empty(self) -> None:
        """Delete our resources, which later operators would see; not the namespace, which takes ten times the CPU."""
        for plural in ("kafkarebalances", "kafkaconnections", "kafkareassignmentthrottles"):
            self._delete(f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{self.name}/{plural}")

    def _delete(self, path: str) -> None:
        try:
            self.cluster.api.send("DELETE", path)
        except KubectlError as error:
            if "(NotFound)" not in str(error):
                raise

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.name, *args, stdin=stdin)

    def refused(self, kind: str, spec: dict[str, Any], name: str = "a") -> str:
        """The error for a refused resource; unknown fields are refused, as with kubectl."""
        path = f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{self.name}/{kind.lower()}s"
        with pytest.raises(KubectlError) as refused:
            self.cluster.api.send("POST", path, body(kind, name, spec), fieldValidation="Strict")
        return str(refused.value)

    def refused_change(self, kind: str, spec: dict[str, Any], name: str = "a") -> str:
        """The error for a refused change."""
        with pytest.raises(KubectlError) as refused:
            self.apply(kind, spec, name)
        return str(refused.value)

    def apply(self, kind: str, spec: dict[str, Any], name: str = "a") -> None:
        self.kubectl("apply", "-f", "-", stdin=resource(kind, name, spec))

    def get(self, plural: str, name: str = "a") -> dict[str, Any]:
        path = f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{self.name}/{plural}/{name}"
        found: dict[str, Any] = self.cluster.api.get(path)
        return found


def resource(kind: str, name: str, spec: dict[str, Any]) -> str:
    return json.dumps(body(kind, name, spec))


def body(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    full = {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}
    if kind == "KafkaConnection":
        del full["kafka"]
    return {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": full}
