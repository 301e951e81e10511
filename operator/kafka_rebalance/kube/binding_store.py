"""The owners of the Kafka clusters, in the operator's own namespace: one ConfigMap for each cluster id.

Each decision reads the record again, so that a restart of the operator makes no difference. An administrator can
confirm with an annotation that a server belongs to the cluster although nothing on record shows it. The next write of
the record replaces the annotation.
"""

from collections.abc import Iterable
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.blobs import KIND_LABEL, PREFIX, config_map, object_name
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.ordered_writes import OrderedWrites
from kafka_rebalance.model.ownership import Binding

_BINDING = TypeAdapter(Binding)
_KIND = "binding"
_KEY = "binding.json"
_CONFIRMED = f"{PREFIX}/same-cluster"


class BindingStore:
    """The binding of each cluster id. Assumes one writer, the leader."""

    def __init__(self, kube: KubeObjects) -> None:
        self._kube = kube
        self._writes = OrderedWrites(kube)

    async def load(self, cluster_id: str) -> Binding | None:
        """None if the cluster has no owner. StoredStateCorrupt if the record cannot be read: nothing is guessed."""
        found = await self._kube.get_config_map(object_name(_KIND, cluster_id))
        return None if found is None else self._read(found)

    async def load_all(self) -> list[Binding]:
        """All readable bindings, by cluster id."""
        bindings = []
        for found in await self._kube.list_config_maps({KIND_LABEL: _KIND}):
            try:
                bindings.append(self._read(found))
            except StoredStateCorrupt:
                continue  # said where the cluster is connected to
        return sorted(bindings, key=lambda binding: binding.cluster_id)

    async def save(self, binding: Binding) -> None:
        """Create or replace in one write."""
        name = object_name(_KIND, binding.cluster_id)
        await self._writes.put(config_map(name, {KIND_LABEL: _KIND}, data={_KEY: _BINDING.dump_json(binding).decode()}))

    async def delete(self, cluster_id: str) -> None:
        """No error if there is none. Conflict if it was written since it was read, as by a new owner."""
        await self._writes.delete(object_name(_KIND, cluster_id))

    def how_to_confirm(self, cluster_id: str, servers: Iterable[str]) -> str:
        """The command that confirms these bootstrap servers, for messages."""
        name, value = object_name(_KIND, cluster_id), ",".join(sorted(servers))
        return f"kubectl annotate -n {self._kube.namespace} configmap/{name} --overwrite {_CONFIRMED}={value}"

    def _read(self, found: Json) -> Binding:
        self._writes.note(found)
        try:
            binding = _BINDING.validate_json(found["data"][_KEY])
        except (KeyError, TypeError, ValidationError) as error:
            name = f"{self._kube.namespace}/{found['metadata']['name']}"
            raise StoredStateCorrupt(
                f"ConfigMap {name} does not say whose Kafka cluster it is; restore it, or delete it if the connections "
                "that you have now lead to the right cluster"
            ) from error
        confirmed = found["metadata"].get("annotations", {}).get(_CONFIRMED)
        return binding if confirmed is None else replace(binding, confirmed=confirmed)
