"""The operator's records: plans, origins, runs and throttle ledgers, in the operator's own namespace.

They are not in the users' namespaces, where garbage collection, namespace deletion or GitOps pruning could remove them
before a rollback has read them. Every operation may be interrupted at any point and repeated with the same result.
Assumes one writer, the leader.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from kafka_rebalance.kube import codec
from kafka_rebalance.kube.api_errors import Conflict, NotFound, StoredStateCorrupt
from kafka_rebalance.kube.blobs import KIND_LABEL, UID_LABEL, BlobStore, config_map, object_name
from kafka_rebalance.kube.client import Json, KubeClient
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan as it was saved; ``ref`` is the name of its index ConfigMap."""

    plan: Plan
    ref: str
    cluster_id: str
    created_at: datetime


class _ResourceStore:
    """Records of resources: blobs of one kind, by uid and a second key."""

    _KIND: ClassVar[str]

    def __init__(self, kube: KubeClient) -> None:
        self._blobs = BlobStore(kube, self._KIND)

    async def clean(self) -> int:
        """Remove what a killed operator left half written."""
        return await self._blobs.clean()

    async def delete(self, uid: str, *, keep: str | None = None) -> None:
        """All of the resource, except the one with the key ``keep``."""
        await self._blobs.delete_all(uid, keep=self._blobs.name(uid, keep) if keep else "")


class PlanStore(_ResourceStore):
    """The plans of each resource, by plan hash; its run names the current one."""

    _KIND = "plan"

    async def save(self, uid: str, plan_hash: str, cluster_id: str, plan: Plan, created_at: datetime) -> str:
        """Store, replacing the plan of the same hash; returns ``ref``."""
        name = self._blobs.name(uid, plan_hash)
        payload, actual = await asyncio.to_thread(lambda: (codec.encode_plan(plan), plan.hash))
        attributes = {"clusterId": cluster_id, "planHash": actual, "createdAt": created_at.isoformat()}
        await self._blobs.write(name, uid, payload, attributes)
        return name

    async def load(self, uid: str, plan_hash: str) -> StoredPlan | None:
        """None if there is none, or it is damaged."""
        name = self._blobs.name(uid, plan_hash)
        try:
            blob = await self._blobs.read(name)
            if blob is None:
                return None
            plan, actual = await asyncio.to_thread(_decode_with_hash, blob.payload)
        except StoredStateCorrupt as error:
            _log.warning("stored plan of %s cannot be used: %s", uid, error.message)
            return None
        about = blob.attributes
        if actual != about["planHash"]:
            _log.warning("stored plan of %s cannot be used: its hash is %s, not %s", uid, actual, about["planHash"])
            return None
        return StoredPlan(plan, name, about["clusterId"], datetime.fromisoformat(about["createdAt"]))


class OriginStore(_ResourceStore):
    """Each partition as it was before a run first changed it. The first record of a topic id and partition wins."""

    _KIND = "origins"

    async def append(self, uid: str, run_id: str, origins: Iterable[Origin]) -> dict[TopicPartition, Origin]:
        """Record those that are not recorded yet, read them back and return all origins of the run.

        When this returns, the partitions may be altered. Each call that adds an origin writes the whole set: append
        many at a time. Conflict if there is another writer.
        """
        name = self._blobs.name(uid, run_id)
        blob = await self._blobs.read(name)
        recorded, payload = await asyncio.to_thread(_with_new, blob.payload if blob else None, origins)
        if payload is not None:
            expected = blob.resource_version if blob else ""
            await self._blobs.write(name, uid, payload, {"runId": run_id}, expected=expected)
            written = await self._blobs.read(name)
            if written is None or written.payload != payload:
                raise Conflict(f"origins of run {run_id} are not what was just written: another operator is writing")
        return recorded

    async def load(self, uid: str, run_id: str) -> dict[TopicPartition, Origin]:
        """Empty if nothing was recorded. Of a topic that was re-created within the run, those of the newer id."""
        blob = await self._blobs.read(self._blobs.name(uid, run_id))
        if blob is None:
            return {}
        payload = blob.payload
        return await asyncio.to_thread(lambda: _by_partition(codec.decode_origins(payload)))


class RunStore:
    """The current or last run of each resource."""

    _KIND = "run"
    _KEY = "run.json"

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube

    async def load(self, uid: str) -> Run | None:
        """None if the resource never had one."""
        found = await self._kube.get_config_map(object_name(self._KIND, uid))
        return None if found is None else self._read(found)

    async def save(self, run: Run) -> None:
        """Create or replace in one write."""
        name = object_name(self._KIND, run.uid)
        labels = {KIND_LABEL: self._KIND, UID_LABEL: run.uid}
        body = config_map(name, labels, data={self._KEY: codec.encode_run(run)})
        try:
            await self._kube.replace_config_map(name, body)
        except NotFound:
            await self._kube.create_config_map(body)

    async def delete(self, uid: str) -> None:
        """No error if there is none."""
        await self._kube.delete_config_map(object_name(self._KIND, uid))

    async def list_all(self) -> list[Run]:
        """Of all resources, deleted ones included. A run that cannot be read is logged and left out."""
        runs = []
        for found in await self._kube.list_config_maps({KIND_LABEL: self._KIND}):
            try:
                runs.append(self._read(found))
            except StoredStateCorrupt as error:
                _log.error("%s", error.message)
        return sorted(runs, key=lambda run: (run.opened_at, run.uid))

    def how_to_see(self, uid: str) -> str:
        """The command that shows all records of one resource, for messages."""
        return f"kubectl get configmaps -n {self._kube.namespace} -l {UID_LABEL}={uid}"

    def _read(self, found: Json) -> Run:
        try:
            return codec.decode_run(found["data"][self._KEY])
        except (KeyError, TypeError) as error:
            name = found["metadata"]["name"]
            raise StoredStateCorrupt(f"ConfigMap {self._kube.namespace}/{name} contains no run") from error


class LedgerStore:
    """The throttle ledger of each Kafka cluster: JSON of any size. `execution.ledger_json` defines its fields."""

    def __init__(self, kube: KubeClient) -> None:
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
        await self._blobs.write(self._blobs.name(cluster_id), "", payload, {"clusterId": cluster_id})

    async def delete(self, cluster_id: str) -> None:
        """No error if there is none."""
        await self._blobs.delete(self._blobs.name(cluster_id))

    async def clean(self) -> int:
        """Remove what a killed operator left half written."""
        return await self._blobs.clean()


def _decode_with_hash(payload: bytes) -> tuple[Plan, str]:
    plan = codec.decode_plan(payload)
    return plan, plan.hash


def _with_new(payload: bytes | None, origins: Iterable[Origin]) -> tuple[dict[TopicPartition, Origin], bytes | None]:
    """All origins with these added, and the payload to write: None if nothing is new."""
    known = codec.decode_origins(payload) if payload is not None else []
    merged = {(origin.topic_id, origin.tp.partition): origin for origin in known}
    before = len(merged)
    for origin in origins:
        merged.setdefault((origin.topic_id, origin.tp.partition), origin)
    return _by_partition(merged.values()), codec.encode_origins(merged.values()) if len(merged) > before else None


def _by_partition(origins: Iterable[Origin]) -> dict[TopicPartition, Origin]:
    return {origin.tp: origin for origin in origins}
