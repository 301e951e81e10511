"""A rebalance as a kubectl user sees it: patch, delete and wait with kubectl, and its status.

Frequent reads go to the API server directly, without a kubectl for each.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from e2e.bench.judge import Key
from e2e.bench.kube import KubeCluster, KubectlError
from e2e.bench.waiting import wait_until
from e2e.lane import NAMESPACE, OPERATOR_NAMESPACE

KIND = "kafkarebalances.kafkarebalance.dev"
GROUP_VERSION = "kafkarebalance.dev/v1alpha1"


class Rebalance:
    """A KafkaRebalance through kubectl."""

    def __init__(self, kube: KubeCluster, name: str, spec: Mapping[str, Any], namespace: str = NAMESPACE) -> None:
        self._kube = kube
        self.name = name
        self.namespace = namespace
        self.spec = spec
        self.uid: str = self.get()["metadata"]["uid"]

    def get(self) -> Any:
        """The object, as parsed JSON."""
        return self._kube.api.get(f"/apis/{GROUP_VERSION}/namespaces/{self.namespace}/kafkarebalances/{self.name}")

    @property
    def status(self) -> Any:
        """Its status."""
        return self.get()["status"]

    def patch(self, **spec: Any) -> None:
        """`kubectl patch` of parts of the spec."""
        patch(self._kube, self.name, self.namespace, spec)

    def delete(self, *options: str) -> None:
        """`kubectl delete`, without waiting."""
        self._kube.kubectl("delete", KIND, self.name, "-n", self.namespace, "--wait=false", *options)

    def wait_for(self, condition: str, timeout: int = 240) -> None:
        """`kubectl wait --for=condition=…`; a failure shows the status."""
        self._wait(f"condition={condition}", timeout)

    def wait_gone(self, timeout: int = 240) -> None:
        """`kubectl wait --for=delete`; a failure shows the status."""
        self._wait("delete", timeout)

    def wait_state(self, reason: str, timeout: float = 240) -> Any:
        """Wait until the reason of Ready, which is the state, has this value; returns the status."""
        return self.until(f"state {reason}", lambda status: state(status)[0] == reason, timeout)

    def until(self, what: str, holds: Callable[[Any], Any], timeout: float = 240) -> Any:
        """Wait until the condition holds for the status; returns it. A failure shows the last status."""
        last: Any = None

        def ask() -> Any:
            nonlocal last
            last = self.status
            return last if holds(last) else None

        try:
            return wait_until(f"{self.name}: {what}", ask, timeout=timeout, every=0.2)
        except TimeoutError as error:
            raise AssertionError(f"{error}; the status is {json.dumps(last, indent=1)}") from None

    def skipped(self) -> dict[Key, str]:
        """The skipped partitions, with the reason."""
        return {(row["topic"], row["partition"]): row["reason"] for row in self.status.get("skipped", [])}

    def events(self) -> list[str]:
        """The reasons of all its events, oldest first."""
        return [row["reason"] for row in self._events(self.namespace) for _ in range(row.get("count") or 1)]

    def messages(self, reason: str, namespace: str | None = None) -> str:
        """The messages of its events with this reason, in its own namespace or another one."""
        rows = self._events(namespace or self.namespace)
        return "\n".join(row["message"] for row in rows if row["reason"] == reason)

    def _events(self, namespace: str) -> list[Any]:
        about = f"involvedObject.name={self.name}"
        rows = self._kube.api.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector=about)["items"]
        return sorted(rows, key=lambda row: int(row["metadata"]["resourceVersion"]))

    def records(self) -> list[str]:
        """The names of its records in the operator's namespace."""
        selector = f"kafkarebalance.dev/uid={self.uid}"
        rows = self._kube.api.get(f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps", labelSelector=selector)
        return [row["metadata"]["name"] for row in rows["items"]]

    def _wait(self, what: str, timeout: int) -> None:
        arguments = (f"--for={what}", f"--timeout={timeout}s", KIND, self.name, "-n", self.namespace)
        try:
            self._kube.kubectl("wait", *arguments, timeout=timeout + 60)
        except KubectlError as error:
            if what == "delete" and "not found" in str(error).lower():
                return
            raise AssertionError(f"{error}; the status is {json.dumps(self.status, indent=1)}") from None


def patch(kube: KubeCluster, name: str, namespace: str, spec: Mapping[str, Any]) -> None:
    """`kubectl patch` of parts of the spec of a KafkaRebalance."""
    kube.kubectl("patch", KIND, name, "-n", namespace, "--type=merge", "-p", json.dumps({"spec": spec}))


def state(status: Mapping[str, Any]) -> tuple[str, str]:
    """Reason and message of Ready; empty if it is not set yet."""
    return next(((c["reason"], c["message"]) for c in status.get("conditions", []) if c["type"] == "Ready"), ("", ""))


def condition(status: Mapping[str, Any], kind: str) -> str:
    """The status of a condition; empty if it is not set."""
    return next((str(c["status"]) for c in status.get("conditions", []) if c["type"] == kind), "")
