"""The API server, as far as the operator needs it; only this module and ``access`` import ``kubernetes``.

That package handles kubeconfig, tokens and certificates. It is imported only where somebody connects, because the
import takes as long as a small plan. Requests and responses are plain JSON, because it has no classes for our
resources. Calls block, so they run in threads of this object (``call_threads``); none is retried here.
"""

import base64
import binascii
import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlencode

from kafka_rebalance.api.fields import format_time
from kafka_rebalance.api.v1alpha1 import API_VERSION, GROUP, VERSION, ObjectMeta
from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.heartbeat import beat
from kafka_rebalance.kube import access
from kafka_rebalance.kube.api_errors import (
    Conflict,
    Forbidden,
    KindNotFound,
    NotFound,
    Terminating,
    from_response,
    unreachable,
)
from kafka_rebalance.kube.call_threads import CallShare, CallThreads
from kafka_rebalance.kube.object_json import read_object_json, without_ballast
from kafka_rebalance.kube.objects import Json, UserSecret
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from kubernetes import client

COMPONENT = "kafka-rebalance-operator"
DEFAULT_NAMESPACE = "kafka-rebalance"
_TIMEOUT = (3, 8)
"""Seconds to connect, seconds to answer."""
_IN_NAMESPACE = re.compile(r"/namespaces/([^/?]+)/")
_MERGE_PATCH = "application/merge-patch+json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_MAX_EVENT_MESSAGE = 1024
_PAGE = 20
"""Resources that are read at once: users may fill each up to 1.5 MB."""


def operator_namespace(chosen: str | None = None) -> str:
    """The namespace of the operator's records: ``chosen``, else where it runs, else ``kafka-rebalance``."""
    return chosen or access.namespace_of_pod() or DEFAULT_NAMESPACE


class KubeClient:
    """One API server. ``namespace`` is the operator's own, for its records, its Lease and some Events.

    Every method may raise Transient("ApiServerUnreachable" or "ApiServerBusy"), Conflict, Forbidden, KindNotFound, and
    Refused if the API server finds the request invalid; NotFound of an object only where None or False cannot express
    it. ``before_write`` is called, in a thread, right before each request but GET; if it raises, nothing is sent.
    """

    def __init__(
        self, configuration: "client.Configuration", namespace: str, *, before_write: Callable[[], None] | None = None
    ) -> None:
        from kubernetes import client

        configuration.retries = False  # the caller decides when to retry, and the log stays readable
        self.namespace = namespace
        self._before_write = before_write
        self._api = client.ApiClient(configuration)
        self._threads = CallThreads()

    @classmethod
    def connect(
        cls,
        namespace: str | None = None,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        before_write: Callable[[], None] | None = None,
    ) -> Self:
        """With the address and credentials that ``access.configuration`` finds."""
        found = access.configuration(kubeconfig, context)
        return cls(found, operator_namespace(namespace), before_write=before_write)

    async def close(self) -> None:
        """Close connections and stop threads. When this returns, no request is under way."""
        await self._threads.close()

    # Our resources -------------------------------------------------------------------------------------------------

    async def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """One resource of ours; None if it is gone."""
        return await self._get_or_none(_resource(plural, namespace, name))

    async def list_resources(self, plural: str, namespace: str | None = None) -> list[Json]:
        """All resources of one kind, in one namespace or in all, without the metadata that ``ObjectMeta`` ignores.

        Pages are read one after the other, and so are the resources of a page: all together would take too much memory.
        """
        items: list[Json] = []
        query = {"limit": str(_PAGE)}
        while True:
            path = f"{_resource(plural, namespace)}?{urlencode(query)}"
            page = await self._json("GET", path, kept=without_ballast)
            items += page["items"]
            if not (more := page["metadata"].get("continue")):
                return items
            query["continue"] = more

    async def patch(
        self, plural: str, namespace: str, name: str, patch: Mapping[str, Any], resource_version: str
    ) -> Json | None:
        """Merge into the resource, null removes a field; returns the resource as it is now, None if it is gone.

        Conflict if its resource version is no longer ``resource_version``. A field that the API server does not know is
        refused, not dropped.
        """
        body = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": resource_version}}
        path = f"{_resource(plural, namespace, name)}?fieldValidation=Strict"
        return await self._unless_gone("PATCH", path, body, content_type=_MERGE_PATCH)

    async def delete_resource(
        self, plural: str, namespace: str, name: str, uid: str, resource_version: str | None = None
    ) -> bool:
        """Delete it as a user. False if it is gone.

        Conflict if the name now belongs to another object, or the object is outdated where a version is given.
        """
        given = {"uid": uid} | ({} if resource_version is None else {"resourceVersion": resource_version})
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": given}
        return await self._unless_gone("DELETE", _resource(plural, namespace, name), body) is not None

    async def patch_status(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> bool:
        """Merge into the status (``{"status": {...}}``; null removes). False if the resource is gone.

        Conflict if the patch names a resource version that is outdated. The API server ignores a uid in the patch.
        """
        path = f"{_resource(plural, namespace, name)}/status"
        return await self._unless_gone("PATCH", path, patch, content_type=_MERGE_PATCH) is not None

    async def patch_finalizers(
        self, plural: str, namespace: str, name: str, finalizers: Sequence[str], resource_version: str
    ) -> Json | None:
        """Set the whole list, foreign finalizers included; returns the resource as it is now, None if it is gone.

        Conflict if its resource version is no longer ``resource_version``.
        """
        body = {"metadata": {"finalizers": list(finalizers), "resourceVersion": resource_version}}
        return await self._unless_gone("PATCH", _resource(plural, namespace, name), body, content_type=_MERGE_PATCH)

    async def annotate(
        self, plural: str, namespace: str, name: str, uid: str, annotations: Mapping[str, str | None]
    ) -> bool:
        """Merge into the annotations; None removes one. False if the resource is gone, also if another has its name.

        The patch has the uid, which cannot be changed, so the API server refuses it for any other object: with 422, as
        for any invalid value. Reading the object shows the cause.
        """
        body = {"metadata": {"uid": uid, "annotations": dict(annotations)}}
        path = _resource(plural, namespace, name)
        try:
            return await self._unless_gone("PATCH", path, body, content_type=_MERGE_PATCH) is not None
        except (Refused, Conflict):
            found = await self._get_or_none(path)
            if found is None or found["metadata"]["uid"] != uid:
                return False
            raise

    # Events, namespaces, Secrets -----------------------------------------------------------------------------------

    async def create_event(
        self, kind: str, about: ObjectMeta, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Create an Event about a resource; in the operator's namespace if the resource's own is being deleted."""
        try:
            await self._create_event(about.namespace, kind, about, reason, message, warning=warning)
        except (Terminating, NotFound):
            # An Event must name an object of its own namespace, so the message says where the resource really is.
            where = f"{about.namespace}/{about.name} (its namespace is being deleted): {message}"
            await self._create_event(self.namespace, kind, about, reason, where, warning=warning)

    async def terminating(self, plural: str, namespace: str) -> bool:
        """Whether the namespace, or the CRD of these resources, is being deleted."""
        crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}"
        for path in (f"/api/v1/namespaces/{quote(namespace)}", crd):
            found = await self._get_or_none(path)
            if found is None or "deletionTimestamp" in found["metadata"]:
                return True
        return False

    async def namespace_labels(self, namespace: str) -> dict[str, str]:
        """The labels of a namespace. NotFound if it does not exist."""
        found = await self._json("GET", f"/api/v1/namespaces/{quote(namespace)}")
        return found["metadata"].get("labels") or {}

    async def read_config_map(self, namespace: str, name: str) -> dict[str, str]:
        """The data of any ConfigMap. Transient("ConfigMapNotFound"): it may be applied a moment later."""
        what = f"ConfigMap {namespace}/{name}"
        try:
            found = await self._json("GET", f"/api/v1/namespaces/{quote(namespace)}/configmaps/{quote(name)}")
        except NotFound as error:
            raise Transient(Reason.CONFIG_MAP_NOT_FOUND, f"{what} does not exist", retry_after=15) from error
        except Forbidden as error:
            raise Permanent(Reason.CONFIG_MAP_FORBIDDEN, f"the operator's account may not read {what}") from error
        return found.get("data") or {}

    async def read_secret(self, namespace: str, name: str) -> UserSecret:
        """One Secret. Refused("SecretNotFound") names the Secret; no message contains its content."""
        what = f"Secret {namespace}/{name}"
        try:
            secret = await self._json("GET", f"/api/v1/namespaces/{quote(namespace)}/secrets/{quote(name)}")
        except NotFound as error:
            raise Refused(Reason.SECRET_NOT_FOUND, f"{what} does not exist") from error
        except Forbidden as error:
            raise Permanent(Reason.SECRET_FORBIDDEN, f"the operator's account may not read {what}") from error
        try:
            data = {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
        except binascii.Error as error:
            raise Refused(Reason.SECRET_NOT_FOUND, f"{what} cannot be decoded") from error
        return UserSecret(secret["metadata"]["uid"], data)

    # ConfigMaps in the operator's own namespace --------------------------------------------------------------------

    async def get_config_map(self, name: str) -> Json | None:
        """One ConfigMap; None if there is none."""
        return await self._get_or_none(self._config_maps(name))

    async def create_config_map(self, body: Mapping[str, Any]) -> Json:
        """Conflict if it exists."""
        return await self._json("POST", self._config_maps(), body)

    async def replace_config_map(self, name: str, body: Mapping[str, Any]) -> Json:
        """Replace in one write. Conflict if ``body`` has a resourceVersion that is outdated; NotFound if it is gone."""
        return await self._json("PUT", self._config_maps(name), body)

    async def delete_config_map(self, name: str, resource_version: str | None = None) -> bool:
        """False if there was none. Conflict if its resource version is not this one, where one is given."""
        body: Json | None = None
        if resource_version is not None:
            given = {"resourceVersion": resource_version}
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": given}
        return await self._unless_gone("DELETE", self._config_maps(name), body) is not None

    async def list_config_maps(self, labels: Mapping[str, str]) -> list[Json]:
        """All with these labels, data included."""
        items: list[Json] = (await self._json("GET", self._config_maps(), labels=labels))["items"]
        return items

    async def list_config_map_metadata(self, labels: Mapping[str, str]) -> list[Json]:
        """``metadata`` of all objects with these labels; the request is cheap even if the objects are large."""
        answer = await self._json("GET", self._config_maps(), labels=labels, accept=_METADATA_ONLY)
        return [item["metadata"] for item in answer["items"] or ()]  # null if there is none

    # Leases in the operator's own namespace ------------------------------------------------------------------------

    async def get_lease(self, name: str) -> Json | None:
        """One Lease; None if there is none."""
        return await self._get_or_none(self._leases(name))

    async def create_lease(self, body: Mapping[str, Any]) -> Json:
        """Conflict if it exists."""
        return await self._json("POST", self._leases(), body)

    async def replace_lease(self, name: str, body: Mapping[str, Any]) -> Json:
        """Conflict if the resourceVersion of ``body`` is outdated, or the Lease is gone."""
        return await self._json("PUT", self._leases(name), body)

    async def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, content_type: str = "application/json"
    ) -> Json:
        """Any other request, for the other modules of this package. Raises NotFound."""
        return await self._json(method, path, body, content_type=content_type)

    # ---------------------------------------------------------------------------------------------------------------

    def _namespace_of_others(self, path: str) -> str | None:
        """The namespace of the objects in the path; None if they have none, or are in the operator's own."""
        found = _IN_NAMESPACE.search(path)
        return found[1] if found is not None and found[1] != quote(self.namespace) else None

    def _leases(self, name: str = "") -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(self.namespace)}/leases"
        return f"{path}/{quote(name)}" if name else path

    def _config_maps(self, name: str = "") -> str:
        path = f"/api/v1/namespaces/{quote(self.namespace)}/configmaps"
        return f"{path}/{quote(name)}" if name else path

    async def _create_event(
        self, namespace: str, kind: str, about: ObjectMeta, reason: str, message: str, *, warning: bool
    ) -> None:
        now = format_time(datetime.now(UTC))
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name[:200].rstrip('.-')}.{uuid.uuid4().hex[:16]}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": kind,
                "namespace": namespace,
                "name": about.name,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message if len(message) <= _MAX_EVENT_MESSAGE else message[: _MAX_EVENT_MESSAGE - 1] + "…",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": os.environ.get("HOSTNAME", ""),
        }
        await self._json("POST", f"/api/v1/namespaces/{quote(namespace)}/events", body)

    async def _get_or_none(self, path: str) -> Json | None:
        return await self._unless_gone("GET", path)

    async def _unless_gone(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, content_type: str = "application/json"
    ) -> Json | None:
        try:
            return await self._json(method, path, body, content_type=content_type)
        except KindNotFound:
            raise
        except NotFound:
            return None

    async def _json(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        labels: Mapping[str, str] | None = None,
        accept: str = "application/json",
        kept: Callable[[Any], Any] | None = None,
    ) -> Json:
        if labels:
            path += "?" + urlencode({"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())})
        call = partial(self._call, method, path, body, content_type, accept, kept)
        try:
            return await self._threads.run(call, self._namespace_of_others(path), _share_of(method, path))
        finally:
            beat()

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        content_type: str,
        accept: str,
        kept: Callable[[Any], Any] | None,
    ) -> Json:
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        what = f"{method} {path.partition('?')[0]}"
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": COMPONENT}
        try:
            self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            url = self._api.configuration.host + path
            send = self._api.rest_client.request
            if self._before_write is not None and method != "GET":
                self._before_write()
            answer = send(method, url, headers, body=body, _request_timeout=_TIMEOUT)  # type: ignore[no-untyped-call]
            data = answer.read()
        except (HTTPError, ApiException) as error:
            raise unreachable(what, self._api.configuration.host, error) from error
        if not 200 <= answer.status < 300:
            raise from_response(what, answer.status, data)
        try:
            parsed: Json = read_object_json(data, kept)
        except ValueError as error:
            raise unreachable(what, self._api.configuration.host, error, "answers without JSON: a proxy?") from error
        return parsed


def _share_of(method: str, path: str) -> CallShare:
    if method != "GET":
        return CallShare.WRITES
    return CallShare.SECRETS if "/secrets/" in path else CallShare.READS


def _resource(plural: str, namespace: str | None, name: str = "") -> str:
    scope = f"/namespaces/{quote(namespace)}" if namespace else ""
    return f"/apis/{GROUP}/{VERSION}{scope}/{plural}" + (f"/{quote(name)}" if name else "")
