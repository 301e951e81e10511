"""The objects of a run without Kubernetes, stored in a directory: implements `KubeObjects` like the API server.

Resource versions, generations and finalizers work as on the API server, and a callback gets each change of a resource,
as from a watch. Secrets and the ConfigMaps of users are passed in and never stored. All operations run one after the
other in one thread.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.v1alpha1 import API_VERSION, KINDS, REBALANCES, ObjectMeta
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.heartbeat import beat
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.client import DEFAULT_NAMESPACE
from kafka_rebalance.kube.merge_patch import merge_difference, merge_patch
from kafka_rebalance.kube.objects import Json, UserSecret
from kafka_rebalance.kube.record_files import RecordFiles
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

_RECORDS = "configmaps"
_WHOLE = ("throttle",)
"""Fields of a spec that are replaced as a whole, because their parts exclude each other."""
LAST_APPLIED = "lastApplied"
"""The spec of the manifest that was applied last, beside the resource's own fields."""
GONE_AT = "goneAt"
"""The time at which a deleted resource was removed, in addition to its own fields."""
_GIVEN = "given"
"""The uid of all Secrets: they are given again at each start."""
_GONE = "gone-"
"""Prefix of the kind for deleted KafkaRebalances. The directory keeps the last one of each name, read-only."""

T = TypeVar("T")

Seen = Callable[[str, Json, bool], None]
"""plural, body, whether it is gone; called in the event loop."""


@dataclass(frozen=True, slots=True)
class GivenObjects:
    """Objects of the user that are read and not stored, by namespace and name."""

    secrets: Mapping[tuple[str, str], Mapping[str, bytes]] = field(default_factory=dict, repr=False)
    config_maps: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)


class DirectoryObjects:
    """``seen`` is called after each change of a resource of ours; ``given`` may be replaced."""

    def __init__(self, files: RecordFiles, now: Callable[[], datetime], given: GivenObjects = GivenObjects()) -> None:
        self.namespace = DEFAULT_NAMESPACE
        self.given = given
        self.seen: Seen | None = None
        self._files = files
        self._now = now
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._version: int | None = None
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """Wait for writes under way, and release the lock."""
        await asyncio.to_thread(self._thread.shutdown)
        self._files.close()

    # Our resources -------------------------------------------------------------------------------------------------

    async def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """One resource of ours; None if it is gone."""
        return await self._do(lambda: self._files.read(plural, namespace, name))

    async def list_resources(self, plural: str, namespace: str | None = None) -> list[Json]:
        """All resources of one kind, in one namespace or in all."""
        return await self._do(
            lambda: [body for where, body in self._files.read_all(plural) if namespace in {None, where}]
        )

    async def get_gone(self, plural: str, namespace: str, name: str) -> Json | None:
        """The last state of the last deleted resource of that name; None if none is on record."""
        return await self.get(_GONE + plural, namespace, name)

    async def list_gone(self, plural: str) -> list[Json]:
        """The last deleted resource of each name."""
        return await self.list_resources(_GONE + plural)

    async def apply(self, plural: str, manifest: Mapping[str, Any]) -> Json:
        """Create the resource, or merge into it what has changed in the manifest since it was last applied.

        So a field that a command has changed keeps its value until the manifest changes it.
        """
        wanted = manifest["metadata"]
        namespace, name = wanted["namespace"], wanted["name"]

        def applied() -> Json:
            found = self._files.read(plural, namespace, name)
            if found is None:
                created = {"uid": str(uuid.uuid4()), "creationTimestamp": format_time(self._now()), "generation": 1}
                metadata = {"name": name, "namespace": namespace, **created, "finalizers": []}
                found = {"apiVersion": API_VERSION, "kind": KINDS[plural], "metadata": metadata, "spec": {}}
                return self._put(plural, {**merge_patch(found, _described(manifest)), LAST_APPLIED: manifest["spec"]})
            spec = _merged(found["spec"], found.get(LAST_APPLIED, {}), manifest["spec"])
            after = {**merge_patch(found, _described(manifest)), "spec": spec, LAST_APPLIED: manifest["spec"]}
            after["metadata"]["generation"] += spec != found["spec"]
            return found if after == found else self._put(plural, after)

        return await self._do(applied)

    async def patch(
        self, plural: str, namespace: str, name: str, patch: Mapping[str, Any], resource_version: str
    ) -> Json | None:
        """Merge into the resource. Conflict if its resource version is no longer ``resource_version``."""

        def change(found: Json) -> Json:
            _check(found, resource_version)
            after: Json = merge_patch(found, patch)
            after["metadata"]["generation"] += after["spec"] != found["spec"]
            return after

        return await self._change(plural, namespace, name, change)

    async def delete_resource(
        self, plural: str, namespace: str, name: str, uid: str, resource_version: str | None = None
    ) -> bool:
        """Delete it as a user: it stays while it has finalizers."""

        def change(found: Json) -> Json:
            if found["metadata"]["uid"] != uid:
                raise Conflict(f"the uid of {namespace}/{name} is not {uid}")
            if resource_version is not None:
                _check(found, resource_version)
            if "deletionTimestamp" in found["metadata"]:
                return found
            generation = found["metadata"]["generation"] + 1
            order = {"deletionTimestamp": format_time(self._now()), "generation": generation}
            return {**found, "metadata": {**found["metadata"], **order}}

        return await self._change(plural, namespace, name, change) is not None

    async def patch_status(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> bool:
        """Merge into the status. False if the resource is gone."""

        def change(found: Json) -> Json:
            _check(found, patch.get("metadata", {}).get("resourceVersion", found["metadata"]["resourceVersion"]))
            merged: Json = merge_patch(found, {"status": patch["status"]})
            return merged

        return await self._change(plural, namespace, name, change) is not None

    async def patch_finalizers(
        self, plural: str, namespace: str, name: str, finalizers: Sequence[str], resource_version: str
    ) -> Json | None:
        """Set the whole list; a deleted resource without finalizers is gone."""

        def change(found: Json) -> Json:
            _check(found, resource_version)
            return {**found, "metadata": {**found["metadata"], "finalizers": list(finalizers)}}

        return await self._change(plural, namespace, name, change)

    async def annotate(
        self, plural: str, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> bool:
        """Merge into the annotations; None removes one. False if it is gone, also if another has its name."""
        patch = {"metadata": {"annotations": dict(annotations)}}

        def change(found: Json) -> Json:
            same = found["metadata"]["uid"] == uid
            return merge_patch(found, patch) if same else found

        found = await self._change(plural, namespace, name, change)
        return found is not None and found["metadata"]["uid"] == uid

    # Events, namespaces, Secrets -----------------------------------------------------------------------------------

    async def create_event(
        self, kind: str, about: ObjectMeta, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Logged: the terminal shows the states."""
        level = logging.WARNING if warning else logging.INFO
        log.log(level, "%s %s/%s: %s: %s", kind, about.namespace, about.name, reason, message)

    async def terminating(self, plural: str, namespace: str) -> bool:  # noqa: ARG002 - of the port
        """No: nothing else is deleted here."""
        return False

    async def namespace_labels(self, namespace: str) -> dict[str, str]:
        """The label that every namespace has."""
        return {"kubernetes.io/metadata.name": namespace}

    async def read_config_map(self, namespace: str, name: str) -> dict[str, str]:
        """The data of a ConfigMap that was given."""
        if (found := self.given.config_maps.get((namespace, name))) is None:
            message = f"ConfigMap {namespace}/{name} is not in the file"
            raise Transient(Reason.CONFIG_MAP_NOT_FOUND, message, retry_after=15)
        return dict(found)

    async def read_secret(self, namespace: str, name: str) -> UserSecret:
        """A Secret that was given."""
        if (found := self.given.secrets.get((namespace, name))) is None:
            raise Refused(Reason.SECRET_NOT_FOUND, f"Secret {namespace}/{name} is not in the file")
        return UserSecret(_GIVEN, dict(found))

    # ConfigMaps with the records -----------------------------------------------------------------------------------

    async def get_config_map(self, name: str) -> Json | None:
        """One record; None if there is none."""
        return await self.get(_RECORDS, self.namespace, name)

    async def create_config_map(self, body: Mapping[str, Any]) -> Json:
        """Conflict if it exists."""
        name = body["metadata"]["name"]

        def create() -> Json:
            if self._files.read(_RECORDS, self.namespace, name) is not None:
                raise Conflict(f"ConfigMap {name} exists")
            return self._put(_RECORDS, _in(self.namespace, body))

        return await self._do(create)

    async def replace_config_map(self, name: str, body: Mapping[str, Any]) -> Json:
        """Conflict if the resourceVersion is given and outdated; NotFound if it is gone."""

        def replace() -> Json:
            found = self._files.read(_RECORDS, self.namespace, name)
            if found is None:
                raise NotFound(f"ConfigMap {name} not found")
            if (expected := body["metadata"].get("resourceVersion")) is not None:
                _check(found, expected)
            return self._put(_RECORDS, _in(self.namespace, body))

        return await self._do(replace)

    async def delete_config_map(self, name: str, resource_version: str | None = None) -> bool:
        """False if there was none. Conflict if its resource version is not this one, where one is given."""

        def deleted() -> bool:
            found = self._files.read(_RECORDS, self.namespace, name)
            if found is not None and resource_version not in {None, found["metadata"]["resourceVersion"]}:
                raise Conflict(f"ConfigMap {name} has been modified")
            return self._files.remove(_RECORDS, self.namespace, name)

        return await self._do(deleted)

    async def list_config_maps(self, labels: Mapping[str, str]) -> list[Json]:
        """All records with these labels."""

        def listed() -> list[Json]:
            found = (body for _, body in self._files.read_all(_RECORDS))
            return [body for body in found if labels.items() <= body["metadata"].get("labels", {}).items()]

        return await self._do(listed)

    async def list_config_map_metadata(self, labels: Mapping[str, str]) -> list[Json]:
        """``metadata`` of all records with these labels."""
        return [body["metadata"] for body in await self.list_config_maps(labels)]

    # ---------------------------------------------------------------------------------------------------------------

    async def _do(self, operation: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, operation)
        finally:
            beat()

    async def _change(self, plural: str, namespace: str, name: str, change: Callable[[Json], Json]) -> Json | None:
        """Store the result of ``change``; remove the resource if it is being deleted and has no finalizer."""

        def changed() -> Json | None:
            found = self._files.read(plural, namespace, name)
            if found is None:
                return None
            after = change(found)
            if after == found:
                return found
            if "deletionTimestamp" not in after["metadata"] or after["metadata"]["finalizers"]:
                return self._put(plural, after)
            if plural == REBALANCES:
                self._files.write(_GONE + plural, namespace, {**after, GONE_AT: format_time(self._now())})
            self._files.remove(plural, namespace, name)
            self._tell(plural, after, gone=True)
            return after

        return await self._do(changed)

    def _put(self, kind: str, body: Json) -> Json:
        if self._version is None:
            kinds = (*KINDS, _RECORDS)
            found = (body for kind in kinds for _, body in self._files.read_all(kind))
            self._version = max((int(body["metadata"]["resourceVersion"]) for body in found), default=0)
        self._version += 1
        written = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._version)}}
        self._files.write(kind, body["metadata"]["namespace"], written)
        if kind != _RECORDS:
            self._tell(kind, written, gone=False)
        return written

    def _tell(self, plural: str, body: Json, *, gone: bool) -> None:
        """From the thread, and not where the result is awaited: that may have been cancelled."""
        if self.seen is not None:
            self._loop.call_soon_threadsafe(self.seen, plural, body, gone)


def _check(found: Json, resource_version: str) -> None:
    metadata = found["metadata"]
    if metadata["resourceVersion"] != resource_version:
        raise Conflict(f"{metadata['namespace']}/{metadata['name']} has been changed since it was read")


def _in(namespace: str, body: Mapping[str, Any]) -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def _merged(spec: Json, applied: Json, wanted: Mapping[str, Any]) -> Json:
    """``spec`` with the difference of the two manifests."""
    merged: Json = merge_patch(spec, merge_difference(applied, wanted))
    whole = {name for name in _WHOLE if applied.get(name) != wanted.get(name) and name in wanted}
    return {**merged, **{name: wanted[name] for name in whole}}


def _described(manifest: Mapping[str, Any]) -> Json:
    """The spec, the labels and the annotations of the manifest; other labels and annotations stay."""
    wanted = {part: manifest["metadata"][part] for part in ("labels", "annotations") if part in manifest["metadata"]}
    return {"spec": manifest["spec"], "metadata": wanted}
