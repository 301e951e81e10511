"""The owners of the Kafka clusters, in the operator's own namespace: one ConfigMap for each cluster id.

Each decision reads the record again, so that a restart of the operator makes no difference. An administrator can
confirm with an annotation that a server belongs to the cluster although nothing on record shows it. The next write of
the record replaces the annotation.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from weakref import WeakValueDictionary

from pydantic import TypeAdapter, ValidationError

from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.blobs import KIND_LABEL, PREFIX, config_map, object_name
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.ordered_writes import OrderedWrites
from kafka_rebalance.kube.shared_reading import SharedReading
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reasons import Reason

_BINDING = TypeAdapter(Binding)
_KIND = "binding"
_KEY = "binding.json"
_CONFIRMED = f"{PREFIX}/same-cluster"
_MANY = 20
"""From this number of bindings on, they are decoded off the event loop. Each of an earlier version may have 400 KB."""


class BindingStore:
    """The binding of each cluster id. Assumes one writer, the leader."""

    def __init__(self, kube: KubeObjects) -> None:
        self._kube = kube
        self._writes = OrderedWrites(kube)
        self._locks: WeakValueDictionary[str | Owner, asyncio.Lock] = WeakValueDictionary()
        self._all = SharedReading(self.load_unshared)

    async def load(self, cluster_id: str) -> Binding | None:
        """None if the cluster has no owner. StoredStateCorrupt if the record cannot be read: nothing is guessed."""
        found = await self._kube.get_config_map(object_name(_KIND, cluster_id))
        return None if found is None else self._read(found)

    async def exists(self, cluster_id: str) -> bool:
        """Whether the cluster has an owner, also if the record cannot be read."""
        return await self._kube.get_config_map(object_name(_KIND, cluster_id)) is not None

    async def load_all(self) -> list[Binding]:
        """All readable bindings, by cluster id. All who ask at the same time share a list."""
        return list(await self._all.latest())

    async def load_unshared(self) -> list[Binding]:
        """As ``load_all``, with a request of its own."""
        found = await self._kube.list_config_maps({KIND_LABEL: _KIND})
        for body in found:
            self._writes.note(body)
        return await asyncio.to_thread(self._readable, found) if len(found) >= _MANY else self._readable(found)

    async def save(self, binding: Binding, *, most: int | None = None) -> None:
        """Create or replace in one write.

        ``most``: Refused("InlineConnectionRefused") if the owner has this number of other clusters.
        """
        async with self._turn(binding, most):
            await self._put(binding, most)

    async def replaces(self, before: Binding | None, after: Binding, *, most: int | None = None) -> bool:
        """As ``save``, unless something else than ``before`` is on record by now; whether it was written."""
        async with self._turn(after, most):
            if await self.load(after.cluster_id) != before:
                return False
            await self._put(after, most)
            return True

    async def refuse_more(self, binding: Binding, most: int | None) -> None:
        """Raises as ``save`` with this ``most``, and writes nothing."""
        if most is not None:
            _refuse_more(binding, await self.load_all(), most)

    async def delete(self, cluster_id: str) -> None:
        """No error if there is none. Conflict if it was written since it was read, as by a new owner."""
        async with self._lock(cluster_id):
            await self._writes.delete(object_name(_KIND, cluster_id))

    def how_to_confirm(self, cluster_id: str, servers: Iterable[str]) -> str:
        """The command that confirms these bootstrap servers, for messages."""
        name, value = object_name(_KIND, cluster_id), ",".join(sorted(servers))
        return f"kubectl annotate -n {self._kube.namespace} configmap/{name} --overwrite {_CONFIRMED}={value}"

    @asynccontextmanager
    async def _turn(self, binding: Binding, most: int | None) -> AsyncIterator[None]:
        """The turn to write the binding: one write at a time for each cluster, and for each owner whose clusters count.

        What has to be counted takes a list of all bindings. Other owners do not wait for it.
        """
        async with AsyncExitStack() as held:
            if most is not None:
                await held.enter_async_context(self._lock(binding.owner))
            await held.enter_async_context(self._lock(binding.cluster_id))
            yield

    def _lock(self, key: str | Owner) -> asyncio.Lock:
        """Forgotten when nobody has it or waits for it."""
        return self._locks.setdefault(key, asyncio.Lock())

    async def _put(self, binding: Binding, most: int | None) -> None:
        name = object_name(_KIND, binding.cluster_id)
        body = config_map(name, {KIND_LABEL: _KIND}, data={_KEY: _BINDING.dump_json(binding).decode()})
        await self.refuse_more(binding, most)
        await self._writes.put(body)

    def _readable(self, found: Iterable[Json]) -> list[Binding]:
        bindings = []
        for body in found:
            try:
                bindings.append(self._decoded(body))
            except StoredStateCorrupt:
                continue  # said where the cluster is connected to
        return sorted(bindings, key=lambda binding: binding.cluster_id)

    def _read(self, found: Json) -> Binding:
        self._writes.note(found)
        return self._decoded(found)

    def _decoded(self, found: Json) -> Binding:
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


def _refuse_more(binding: Binding, bound: Iterable[Binding], most: int) -> None:
    others = [other for other in bound if other.owner == binding.owner and other.cluster_id != binding.cluster_id]
    if len(others) >= most:
        raise Refused(
            Reason.INLINE_CONNECTION_REFUSED,
            f"{binding.owner} already has {len(others)} Kafka clusters on record, the most for inline connections: use "
            "KafkaConnections. A cluster leaves the record when no resource names it, no run is open there and its "
            "throttles are restored. The log of the operator says what is left in a cluster that cannot be reached",
        )
