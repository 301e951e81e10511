"""A KafkaConnection of a test."""

import json
from collections.abc import Callable
from typing import Any

from e2e.bench.waiting import wait_until
from e2e.lane import NAMESPACE
from e2e.rebalance import GROUP_VERSION, state
from e2e.world import World

CONNECTION_KIND = "kafkaconnections.kafkarebalance.dev"


class Connection:
    """A KafkaConnection in the lane's namespace."""

    def __init__(self, world: World, name: str = "connection", **spec: Any) -> None:
        self._world = world
        self._spec = {"bootstrapServers": world.kafka.bootstrap_servers, **spec}
        self.name = world.unique(name)
        self.apply()

    def apply(self, **spec: Any) -> None:
        """Create or change it."""
        self._spec |= spec
        metadata = {"name": self.name, "namespace": NAMESPACE}
        body = {"apiVersion": GROUP_VERSION, "kind": "KafkaConnection", "metadata": metadata, "spec": self._spec}
        self._world.kube.apply(json.dumps(body))

    def delete(self) -> None:
        """`kubectl delete`: nothing holds it up."""
        self._world.kube.kubectl("delete", CONNECTION_KIND, self.name, "-n", NAMESPACE, "--ignore-not-found")

    def wait_state(self, reason: str) -> Any:
        """Wait until the reason of Ready has this value; returns the status."""
        return self.until(reason, lambda status: state(status)[0] == reason)

    def until(self, what: str, holds: Callable[[Any], object]) -> Any:
        """Wait until the status is as wanted; returns it."""
        path = f"/apis/{GROUP_VERSION}/namespaces/{NAMESPACE}/kafkaconnections/{self.name}"

        def status() -> Any:
            found = self._world.kube.api.get(path)["status"]
            return found if holds(found) else None

        return wait_until(f"KafkaConnection {what}", status)

    @property
    def ref(self) -> dict[str, Any]:
        """spec.kafka of a resource that names it."""
        return {"connectionRef": {"name": self.name, "namespace": NAMESPACE}}
