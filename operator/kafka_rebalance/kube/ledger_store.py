"""The throttle ledgers, in the operator's own namespace: what to restore in each Kafka cluster.

Every operation may be interrupted at any point and repeated with the same result. Assumes one writer, the leader.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka_rebalance.kube import codec
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.blobs import BlobStore
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.ownership import Owner

_OWNER = "owner"


class LedgerStore:
    """The throttle ledger of each Kafka cluster: JSON of any size. `execution.ledger_json` defines its fields.

    ``owner``: the owner of the cluster, whose client sets the configs in the ledger. It is stored with the ledger, so
    that a lost binding can be created again for the same owner.
    """

    def __init__(self, kube: KubeObjects, owner: Owner | None = None) -> None:
        self._kube = kube
        self._owner = owner
        self._blobs = BlobStore(kube, "ledger")

    async def load(self, cluster_id: str) -> dict[str, Any] | None:
        """None if none was ever saved; StoredStateCorrupt if it is damaged."""
        blob = await self._blobs.read(self._blobs.name(cluster_id))
        if blob is None:
            return None
        ledger: dict[str, Any] = await asyncio.to_thread(codec.unpack, blob.payload)
        return ledger

    async def load_all(self) -> dict[str, dict[str, Any] | None]:
        """By cluster id. A damaged one is None, with the name of its ConfigMap as key."""
        found: dict[str, dict[str, Any] | None] = {}
        for name in await self._blobs.names():
            try:
                blob = await self._blobs.read(name)
                if blob is not None:
                    found[blob.attributes["clusterId"]] = await asyncio.to_thread(codec.unpack, blob.payload)
            except (StoredStateCorrupt, KeyError):
                found[name] = None
        return found

    async def save(self, cluster_id: str, ledger: Mapping[str, Any]) -> None:
        """Create or replace atomically."""
        payload = await asyncio.to_thread(codec.pack, dict(ledger))
        owner = {_OWNER: f"{self._owner.namespace}/{self._owner.connection}"} if self._owner is not None else {}
        attributes = {"clusterId": cluster_id, **owner}
        await self._blobs.write(self._blobs.name(cluster_id), "", payload, attributes)

    async def owner(self, cluster_id: str) -> Owner | None:
        """The owner that is stored with the ledger; None: not known. StoredStateCorrupt if it is damaged."""
        blob = await self._blobs.read(self._blobs.name(cluster_id))
        namespace, _, connection = (blob.attributes.get(_OWNER, "") if blob is not None else "").partition("/")
        return Owner(namespace, connection) if namespace else None

    async def cluster_ids(self, *, excepted: Collection[str], most: int) -> list[str]:
        """The clusters of at most that many ledgers, without those ``excepted`` and ledgers that cannot be read."""
        names = set(await self._blobs.names()) - {self._blobs.name(cluster_id) for cluster_id in excepted}
        found = [await self._blobs.attributes(name) for name in sorted(names)[:most]]
        return [attributes["clusterId"] for attributes in found if "clusterId" in attributes]

    async def delete_if(self, cluster_id: str, spent: Callable[[Any], bool]) -> None:
        """Delete the ledger as it is read now, if ``spent`` says so of its content. No error if there is none.

        Conflict if it was saved since, as by another operator. If the deletion gets no answer and is carried out
        late, it does not delete what was saved meanwhile, even if that has the same content.
        """
        blob = await self._blobs.read(self._blobs.name(cluster_id))
        if blob is not None and spent(await asyncio.to_thread(codec.unpack, blob.payload)):
            await self._blobs.delete(blob)

    def where(self, cluster_id: str) -> str:
        """The ConfigMap, for messages."""
        return f"ConfigMap {self._kube.namespace}/{self._blobs.name(cluster_id)}"

    async def clean(self) -> int:
        """Remove what a killed operator left half written."""
        return await self._blobs.clean()
