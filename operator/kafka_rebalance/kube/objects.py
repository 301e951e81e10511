"""The port by which the engine and its records read and write Kubernetes objects.

`KubeClient` is the API server. A run without Kubernetes keeps the same objects in a directory (`DirectoryObjects`), so
the engine, the records and their order of writes are the same in both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kafka_rebalance.api.v1alpha1 import ObjectMeta

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UserSecret:
    """The decoded data of a Secret. ``uid``: one that is deleted and created again gets another."""

    uid: str
    data: Mapping[str, bytes] = field(repr=False)


class KubeObjects(Protocol):
    """``namespace`` is that of the records.

    Every method may raise Transient if the objects cannot be reached, and Conflict (``kube.api_errors``); NotFound only
    where None or False cannot express it.
    """

    @property
    def namespace(self) -> str:
        """The namespace of the records."""

    async def close(self) -> None:
        """Release what it holds. When this returns, no write is under way."""

    # Our resources -------------------------------------------------------------------------------------------------

    async def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """One resource of ours; None if it is gone."""

    async def list_resources(self, plural: str, namespace: str | None = None) -> list[Json]:
        """All resources of one kind, in one namespace or in all."""

    async def patch(
        self, plural: str, namespace: str, name: str, patch: Mapping[str, Any], resource_version: str
    ) -> Json | None:
        """Merge into the resource, null removes a field; as it is now, None if it is gone. Conflict if outdated."""

    async def delete_resource(
        self, plural: str, namespace: str, name: str, uid: str, resource_version: str | None = None
    ) -> bool:
        """Delete it as a user. False if it is gone.

        Conflict if the name now belongs to another object, or the object is outdated where a version is given.
        """

    async def patch_status(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> bool:
        """Merge into the status (``{"status": {...}}``; null removes). False if the resource is gone.

        Conflict if the patch names a resource version (``{"metadata": {"resourceVersion": ...}}``) that is outdated. A
        uid in the patch is ignored, so it does not protect another resource of that name.
        """

    async def patch_finalizers(
        self, plural: str, namespace: str, name: str, finalizers: Sequence[str], resource_version: str
    ) -> Json | None:
        """Set the whole list; as it is now, None if it is gone. Conflict if ``resource_version`` is outdated."""

    async def annotate(
        self, plural: str, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> bool:
        """Merge into the annotations; None removes one. False if the resource is gone, also if another has its name."""

    # Events, namespaces, Secrets -----------------------------------------------------------------------------------

    async def create_event(
        self, kind: str, about: ObjectMeta, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Report a transition of a resource to people."""

    async def terminating(self, plural: str, namespace: str) -> bool:
        """Whether the namespace, or the CRD of these resources, is being deleted."""

    async def namespace_labels(self, namespace: str) -> dict[str, str]:
        """The labels of a namespace. NotFound if it does not exist."""

    async def read_config_map(self, namespace: str, name: str) -> dict[str, str]:
        """The data of a ConfigMap of a user. Transient("ConfigMapNotFound"): it may be applied a moment later."""

    async def read_secret(self, namespace: str, name: str) -> UserSecret:
        """One Secret. Refused("SecretNotFound") names the Secret; no message contains its content."""

    # ConfigMaps with the records -----------------------------------------------------------------------------------

    async def get_config_map(self, name: str) -> Json | None:
        """One ConfigMap; None if there is none."""

    async def create_config_map(self, body: Mapping[str, Any]) -> Json:
        """Conflict if it exists."""

    async def replace_config_map(self, name: str, body: Mapping[str, Any]) -> Json:
        """Replace in one write. Conflict if ``body`` has a resourceVersion that is outdated; NotFound if it is gone."""

    async def delete_config_map(self, name: str, resource_version: str | None = None) -> bool:
        """False if there was none. Conflict if its resource version is not this one, where one is given."""

    async def list_config_maps(self, labels: Mapping[str, str]) -> list[Json]:
        """All with these labels, data included."""

    async def list_config_map_metadata(self, labels: Mapping[str, str]) -> list[Json]:
        """``metadata`` of all ConfigMaps with these labels."""
