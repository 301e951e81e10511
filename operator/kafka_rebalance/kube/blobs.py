"""Byte strings of any size in ConfigMaps of the operator's namespace, replaced atomically.

A blob is an *index* ConfigMap. A payload below the API server's limit is in the index itself; a larger one is cut into
immutable shards, which are written before the index that names them. Writing the index is what commits: if the operator
is killed before, the old content is still there, and the new shards are garbage that the next write, delete or
``clean`` removes. Nothing here knows what the bytes mean.

The API server may carry out a deletion after its client has given it up. So no write uses a name again that may have
been deleted: new shards have new names, also for content that was stored before.
"""

import asyncio
import base64
import hashlib
import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_rebalance.kube.api_errors import Conflict, NotFound, StoredStateCorrupt
from kafka_rebalance.kube.client import COMPONENT
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.ordered_writes import OrderedWrites, marked

SHARD_BYTES = 900 * 1024
"""The API server accepts 1 MiB of decoded data per ConfigMap; names and labels need some of it."""

PREFIX = "kafkarebalance.dev"
KIND_LABEL = f"{PREFIX}/kind"
UID_LABEL = f"{PREFIX}/uid"
_BLOB_LABEL = f"{PREFIX}/blob"
_CONTENT_LABEL = f"{PREFIX}/content"
_INDEX = "index.json"
_PAYLOAD = "payload"
_CONTENT = ("data", "binaryData")


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob as it was read. ``attributes`` are those that it was written with; ``pieces``: the payload by shard."""

    name: str
    payload: bytes
    attributes: Mapping[str, str]
    resource_version: str
    shards: tuple[str, ...] = ()
    pieces: tuple[bytes, ...] = ()


class BlobStore:
    """The blobs of one kind. Assumes one writer at a time; a second one is detected where ``expected`` is given."""

    def __init__(self, kube: KubeObjects, kind: str) -> None:
        self._kube = kube
        self._kind = kind
        self._writes = OrderedWrites(kube)
        self._shards: dict[str, list[str]] = {}
        """The shards of each blob whose last write by this store is known to be complete."""

    def name(self, *key: str) -> str:
        """Name of the index. A hash, since ids are case-sensitive and names are not."""
        return object_name(self._kind, *key)

    async def names(self) -> list[str]:
        """The indexes of all blobs of this kind."""
        return sorted(index["name"] for index in await self._kube.list_config_map_metadata({KIND_LABEL: self._kind}))

    async def owners(self) -> dict[str, str]:
        """The uid that each blob of this kind was written with, by name."""
        indexes = await self._kube.list_config_map_metadata({KIND_LABEL: self._kind})
        return {index["name"]: index["labels"].get(UID_LABEL, "") for index in indexes}

    async def attributes(self, name: str) -> Mapping[str, str]:
        """Those that the blob was written with, without reading its shards; none if they cannot be read."""
        index = await self._kube.get_config_map(name)
        try:
            attributes: dict[str, str] = json.loads(index["data"][_INDEX])["attributes"] if index is not None else {}
        except (KeyError, TypeError, ValueError, RecursionError):
            return {}
        return attributes

    async def write(
        self, name: str, uid: str, payload: bytes, attributes: Mapping[str, str], *, expected: str | None = None
    ) -> None:
        """Replace the content atomically.

        ``expected``: the resource version that the blob must still have, or "" if it must not exist, else Conflict.
        None: replace it whatever it is.
        """
        content = hashlib.sha256(payload).hexdigest()
        pieces = cut(payload, SHARD_BYTES)
        before = self._shards.pop(name, None)
        shards = _new_names(name, len(pieces)) if len(pieces) > 1 else []
        labels = self._labels(uid, content)
        for shard, piece in zip(shards, pieces, strict=bool(shards)):
            await self._write_shard(shard, piece, {**labels, KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name})
        index = _index(name, labels, content, shards, attributes)
        if not shards:
            index["binaryData"] = {_PAYLOAD: _encode(payload)}
        await self._put(index, expected)
        if before is None:  # another process, or a write that failed, may have left some
            await self._sweep({KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name}, keep=set(shards))
        for shard in before or ():
            if shard not in shards:
                await self._kube.delete_config_map(shard)
        self._shards[name] = shards

    async def extend(
        self,
        name: str,
        uid: str,
        shards: Sequence[str],
        pieces: Sequence[bytes],
        content: str,
        attributes: Mapping[str, str],
        *,
        expected: str,
    ) -> tuple[tuple[str, ...], str]:
        """Store content that consists of shards that are stored already and of new pieces. Reads the new ones back.

        ``content``: the SHA-256 of the whole content; ``expected``: as for ``write``. Does not delete shards that are
        no longer named (``drop``). Returns the shards, none if the payload is in the index, and the resource version.
        """
        labels = self._labels(uid, hashlib.sha256(name.encode()).hexdigest())  # the same for all shards of the blob
        inline = not shards and len(pieces) == 1
        named = dict(zip(_new_names(name, len(pieces)), pieces, strict=True)) if not inline else {}
        for shard, piece in named.items():
            await self._write_shard(shard, piece, {**labels, KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name})
        everything = (*shards, *named)
        index = _index(name, labels, content, everything, attributes)
        if inline:
            index["binaryData"] = {_PAYLOAD: _encode(pieces[0])}
        await self._put(index, expected)
        written, *found = await asyncio.gather(*map(self._kube.get_config_map, (name, *named)))
        same = written is not None and all(written.get(part) == index[part] for part in _CONTENT if part in index)
        if written is None or not same or [_decode(shard) for shard in found] != list(named.values()):
            raise Conflict(
                f"ConfigMap {self._kube.namespace}/{name} is not what was written: is there another operator?"
            )
        return everything, written["metadata"]["resourceVersion"]

    async def drop(self, name: str, shards: Collection[str] | None = None, *, keep: Collection[str] = ()) -> None:
        """Delete these shards of the blob; None: all but those to ``keep``."""
        if shards is None:
            await self._sweep({KIND_LABEL: f"{self._kind}-shard", _BLOB_LABEL: name}, keep=set(keep))
        for shard in shards or ():
            await self._kube.delete_config_map(shard)

    async def read(self, name: str) -> Blob | None:
        """None if there is none; StoredStateCorrupt if it is incomplete or not as it was written."""
        index = await self._kube.get_config_map(name)
        if index is None:
            return None
        self._writes.note(index)
        try:
            described = json.loads(index["data"][_INDEX])
            shards: list[str] = described["shards"]
            expected: str = described["sha256"]
            attributes: dict[str, str] = described["attributes"]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise StoredStateCorrupt(
                f"ConfigMap {self._kube.namespace}/{name} was not written by the operator"
            ) from error
        sources = await asyncio.gather(*map(self._kube.get_config_map, shards)) if shards else [index]
        pieces = tuple(_decode(source) for source in sources)
        payload = b"".join(pieces)
        if hashlib.sha256(payload).hexdigest() != expected:
            where = f"ConfigMap {self._kube.namespace}/{name} and its {len(shards)} shards"
            raise StoredStateCorrupt(f"{where} do not have the content that was written")
        return Blob(name, payload, attributes, index["metadata"]["resourceVersion"], tuple(shards), pieces)

    async def delete(self, blob: Blob) -> None:
        """Delete it with its shards, as it was read. Conflict if it was written since; no error if it is gone."""
        self._shards.pop(blob.name, None)
        self._writes.forget(blob.name)
        await self._kube.delete_config_map(blob.name, blob.resource_version)
        await self.drop(blob.name, blob.shards)

    async def delete_all(self, uid: str, *, keep: Collection[str] = ()) -> None:
        """Every blob of one resource, except those named."""
        self._shards.clear()
        await self._sweep({KIND_LABEL: self._kind, UID_LABEL: uid}, keep=set(keep))
        kept = await self._live(uid)
        for shard in await self._kube.list_config_map_metadata({KIND_LABEL: f"{self._kind}-shard", UID_LABEL: uid}):
            if _shard_of(shard) not in kept:
                await self._kube.delete_config_map(shard["name"])

    async def clean(self) -> int:
        """Delete shards that no index names, left by a writer that was killed; returns their number.

        The API server may still carry out the last request of that writer, with an index that names them. It refuses
        to replace an index that has a new version. If an index was written after the indexes were listed, its shards
        stay until the next call; Conflict if it was written even later.
        """
        kept = await self._live()
        listed = {name: version for (name, _), version in kept.items()}
        shards = await self._kube.list_config_map_metadata({KIND_LABEL: f"{self._kind}-shard"})
        garbage = [shard for shard in shards if _shard_of(shard) not in kept]
        newer = set()
        for name in sorted({_shard_of(shard)[0] for shard in garbage}):
            if name and (index := await self._kube.get_config_map(name)) is not None:
                if index["metadata"]["resourceVersion"] == listed.get(name):
                    await self._writes.renew(index)
                else:
                    newer.add(name)
        garbage = [shard for shard in garbage if _shard_of(shard)[0] not in newer]
        for shard in garbage:
            await self._kube.delete_config_map(shard["name"])
        return len(garbage)

    def _labels(self, uid: str, content: str) -> dict[str, str]:
        labels = {KIND_LABEL: self._kind, _CONTENT_LABEL: content[:32]}
        return {**labels, UID_LABEL: uid} if uid else labels

    async def _live(self, uid: str = "") -> dict[tuple[str, str], str]:
        """The resource version of every index, by its name and content hash."""
        labels = {KIND_LABEL: self._kind, UID_LABEL: uid} if uid else {KIND_LABEL: self._kind}
        indexes = await self._kube.list_config_map_metadata(labels)
        return {(index["name"], index["labels"].get(_CONTENT_LABEL, "")): index["resourceVersion"] for index in indexes}

    async def _sweep(self, labels: Mapping[str, str], keep: set[str] | None = None) -> None:
        for found in await self._kube.list_config_map_metadata(labels):
            if found["name"] not in (keep or ()):
                self._writes.forget(found["name"])
                await self._kube.delete_config_map(found["name"], found["resourceVersion"])

    async def _write_shard(self, name: str, piece: bytes, labels: Mapping[str, str]) -> None:
        body = config_map(name, labels, binaryData={_PAYLOAD: _encode(piece)}, immutable=True)
        await self._kube.create_config_map(body)

    async def _put(self, index: Json, expected: str | None) -> None:
        name = index["metadata"]["name"]
        if expected is None:
            await self._writes.put(index)
            return
        if expected == "":
            await self._kube.create_config_map(index)
            return
        index["metadata"]["resourceVersion"] = expected
        try:
            await self._kube.replace_config_map(name, marked(index))
        except NotFound:
            raise Conflict(f"ConfigMap {self._kube.namespace}/{name} was deleted meanwhile") from None


def config_map(name: str, labels: Mapping[str, str], **content: Any) -> Json:
    """A ConfigMap of the operator."""
    metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": COMPONENT, **labels}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def object_name(kind: str, *key: str) -> str:
    """A valid ConfigMap name for any key."""
    return f"{kind}-{hashlib.sha256(chr(10).join(key).encode()).hexdigest()[:40]}"


def cut(payload: bytes, size: int) -> Sequence[bytes]:
    """Pieces of at most ``size`` bytes; at least one, which may be empty."""
    return [payload[start : start + size] for start in range(0, len(payload), size)] or [b""]


def _new_names(name: str, count: int) -> list[str]:
    unique = uuid.uuid4().hex[:16]
    return [f"{name}-{unique}-{number:03d}" for number in range(count)]


def _index(
    name: str, labels: Mapping[str, str], content: str, shards: Sequence[str], attributes: Mapping[str, str]
) -> Json:
    described = json.dumps({"sha256": content, "shards": [*shards], "attributes": dict(attributes)})
    return config_map(name, labels, data={_INDEX: described})


def _shard_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    labels = metadata.get("labels", {})
    return labels.get(_BLOB_LABEL, ""), labels.get(_CONTENT_LABEL, "")


def _encode(piece: bytes) -> str:
    return base64.b64encode(piece).decode("ascii")


def _decode(config_map: Json | None) -> bytes:
    return base64.b64decode(((config_map or {}).get("binaryData") or {}).get(_PAYLOAD, ""))
