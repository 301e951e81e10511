"""An API server in memory: the part of `KubeClient` that the command line, stores and lifecycles use."""

import copy
import itertools

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict, Forbidden, NotFound
from kafka_rebalance.kube.merge_patch import merge_patch
from kafka_rebalance.kube.objects import UserSecret


class KubeInMemory:
    """``writes`` lists all changes, in order; the namespace is the operator's.

    ``events`` has reason and message of each; ``rivals`` change a resource, one before each of the next writes to it;
    ``lost_replies`` are raised after the next patches, which are carried out; ``terminating_namespaces`` are being
    deleted; ``labels`` of namespaces; ``forbidden_namespaces`` cannot be read; ``scaled`` lists the replica counts set
    on a Deployment, and ``on_scale`` is awaited at each; ``secret_uids``: of Secrets that were created again.
    """

    def __init__(self, namespace="kafka-rebalance"):
        self.namespace = namespace
        self.resources = {}
        self.secrets = {}
        self.secret_uids = {}
        self.config_maps = {}
        self.user_config_maps = {}
        self.writes = []
        self.events = []
        self.rivals = []
        self.lost_replies = []
        self.terminating_namespaces = set()
        self.labels = {}
        self.forbidden_namespaces = set()
        self.leases = {}
        self.scaled = []
        self.on_scale = None
        self.closed = False
        self._versions = itertools.count(1)

    async def close(self):
        self.closed = True

    async def get(self, plural, namespace, name):
        return copy.deepcopy(self.resources.get((plural, namespace, name)))

    async def list_resources(self, plural, namespace=None):
        if namespace in self.forbidden_namespaces:
            raise Forbidden(f"{plural} is forbidden in {namespace}")
        return [
            copy.deepcopy(found)
            for (kind, where, _), found in self.resources.items()
            if kind == plural and namespace in {None, where}
        ]

    def create(self, plural, body):
        """Apply a resource as a user; returns it as stored."""
        metadata = {"generation": 1, "finalizers": [], **body["metadata"]}
        self.resources[plural, metadata["namespace"], metadata["name"]] = found = {**body, "metadata": metadata}
        self._touch(found)
        return copy.deepcopy(found)

    def edit(self, plural, namespace, name, **spec):
        """Patch its spec as a user; returns it as stored."""
        found = self.resources[plural, namespace, name]
        found["spec"] = {**found["spec"], **spec}
        found["metadata"]["generation"] += 1
        self._touch(found)
        return copy.deepcopy(found)

    def delete(self, plural, namespace, name, at):
        """Delete it as a user; it stays while it has finalizers. Returns it as stored, or None if it is gone."""
        found = self.resources[plural, namespace, name]
        found["metadata"] |= {"deletionTimestamp": at, "generation": found["metadata"]["generation"] + 1}
        self._touch(found)
        return self._unless_finalized(plural, namespace, name)

    async def patch(self, plural, namespace, name, patch, resource_version):
        found = self.resources.get((plural, namespace, name))
        if found is None:
            return None
        if self.rivals:
            self.rivals.pop(0)(found)
            self._touch(found)
        if found["metadata"]["resourceVersion"] != resource_version:
            raise Conflict(f"{namespace}/{name} has been modified")
        self.writes.append(("patch", plural, namespace, name))
        before = found["spec"]
        found |= {key: merge_patch(found.get(key, {}), value) for key, value in patch.items()}
        found["metadata"]["generation"] += found["spec"] != before
        self._touch(found)
        if self.lost_replies:
            raise self.lost_replies.pop()
        return copy.deepcopy(found)

    async def delete_resource(self, plural, namespace, name, uid, resource_version=None):
        found = self.resources.get((plural, namespace, name))
        if found is None:
            return False
        if found["metadata"]["uid"] != uid:
            raise Conflict(f"the uid in the precondition is {uid}")
        if resource_version not in {None, found["metadata"]["resourceVersion"]}:
            raise Conflict(f"{namespace}/{name} has been modified")
        self.writes.append(("delete", plural, namespace, name))
        self.delete(plural, namespace, name, "2026-01-01T12:00:00Z")
        return True

    async def patch_status(self, plural, namespace, name, patch):
        found = self.resources.get((plural, namespace, name))
        if found is None:
            return False
        if patch.get("metadata", {}).get("resourceVersion") not in {None, found["metadata"]["resourceVersion"]}:
            raise Conflict(f"{namespace}/{name} has been modified")
        self.writes.append(("status", plural, namespace, name))
        found["status"] = copy.deepcopy(patch["status"])
        self._touch(found)
        return True

    async def patch_finalizers(self, plural, namespace, name, finalizers, resource_version):
        found = self.resources.get((plural, namespace, name))
        if found is None:
            return None
        if self.rivals:
            self.rivals.pop(0)(found["metadata"])
            self._touch(found)
        metadata = found["metadata"]
        if metadata["resourceVersion"] != resource_version:
            raise Conflict(f"{namespace}/{name} has been modified")
        if "deletionTimestamp" in metadata and not set(finalizers) <= set(metadata["finalizers"]):
            raise Refused("ApiServerRefused", "no new finalizers can be added if the object is being deleted")
        self.writes.append(("finalizers", plural, namespace, name))
        metadata["finalizers"] = list(finalizers)
        self._touch(found)
        answer = copy.deepcopy(found)
        self._unless_finalized(plural, namespace, name)
        return answer

    async def namespace_labels(self, namespace):
        return self.labels.get(namespace, {})

    async def terminating(self, plural, namespace):
        return namespace in self.terminating_namespaces

    async def create_event(self, kind, about, reason, message, *, warning=False):
        self.events.append((reason, message))

    async def annotate(self, plural, namespace, name, uid, annotations):
        found = self.resources.get((plural, namespace, name))
        if found is None or found["metadata"]["uid"] != uid:
            return False
        self.writes.append(("annotate", plural, namespace, name))
        known = found["metadata"].setdefault("annotations", {})
        known.update({key: value for key, value in annotations.items() if value is not None})
        for key in [key for key, value in annotations.items() if value is None]:
            known.pop(key, None)
        return True

    async def read_secret(self, namespace, name):
        if (namespace, name) not in self.secrets:
            raise Refused("SecretNotFound", f"Secret {namespace}/{name} does not exist")
        uid = self.secret_uids.get((namespace, name), f"uid-of-{name}")
        return UserSecret(uid, self.secrets[namespace, name])

    async def read_config_map(self, namespace, name):
        if (namespace, name) not in self.user_config_maps:
            raise Transient("ConfigMapNotFound", f"ConfigMap {namespace}/{name} does not exist", retry_after=15)
        return self.user_config_maps[namespace, name]

    async def get_config_map(self, name):
        return copy.deepcopy(self.config_maps.get(name))

    async def create_config_map(self, body):
        name = body["metadata"]["name"]
        if name in self.config_maps:
            raise Conflict(f"ConfigMap {name} exists")
        return self._put(name, body)

    async def replace_config_map(self, name, body):
        if name not in self.config_maps:
            raise NotFound(f"ConfigMap {name} not found")
        seen = body["metadata"].get("resourceVersion")
        if seen not in {None, self.config_maps[name]["metadata"]["resourceVersion"]}:
            raise Conflict(f"ConfigMap {name} has been modified")
        return self._put(name, body)

    async def delete_config_map(self, name, resource_version=None):
        found = self.config_maps.get(name)
        if found is not None and resource_version not in {None, found["metadata"]["resourceVersion"]}:
            raise Conflict(f"ConfigMap {name} has been modified")
        self.writes.append(("delete", name))
        return self.config_maps.pop(name, None) is not None

    async def list_config_maps(self, labels):
        return [
            copy.deepcopy(found)
            for found in self.config_maps.values()
            if labels.items() <= found["metadata"]["labels"].items()
        ]

    async def list_config_map_metadata(self, labels):
        return [found["metadata"] for found in await self.list_config_maps(labels)]

    async def get_lease(self, name):
        return copy.deepcopy(self.leases.get(name))

    async def create_lease(self, body):
        return await self.replace_lease(body["metadata"]["name"], body)

    async def replace_lease(self, name, body):
        known = self.leases.get(name, {"metadata": {"resourceVersion": None}})
        if body["metadata"].get("resourceVersion") != known["metadata"]["resourceVersion"]:
            raise Conflict(f"Lease {name} has been modified")
        self.leases[name] = copy.deepcopy(dict(body))
        self._touch(self.leases[name])
        return copy.deepcopy(self.leases[name])

    async def request(self, method, path, body=None, *, content_type="application/json"):
        """The requests of `Installation`: scale a Deployment, delete a Lease."""
        name = path.split("/")[-1]
        if (method, name) == ("PATCH", "scale"):
            if body:
                self.scaled.append(body["spec"]["replicas"])
                if self.on_scale is not None:
                    await self.on_scale()
            replicas = self.scaled[-1] if self.scaled else 1
            return {"spec": {"replicas": replicas} if replicas else {}}
        if (method, "/leases/" in path) != ("DELETE", True):
            raise AssertionError(f"{method} {path}")
        del self.leases[name]
        return {}

    def _unless_finalized(self, plural, namespace, name):
        found = self.resources[plural, namespace, name]
        if "deletionTimestamp" in found["metadata"] and not found["metadata"]["finalizers"]:
            del self.resources[plural, namespace, name]
            return None
        return copy.deepcopy(found)

    def _touch(self, body):
        body["metadata"]["resourceVersion"] = str(next(self._versions))

    def _put(self, name, body):
        self.writes.append(("put", name))
        stored = copy.deepcopy(dict(body))
        before = self.config_maps.get(name)
        if before is not None and _content(before) == _content(stored):
            return copy.deepcopy(before)  # as the API server: no new version
        self._touch(stored)
        self.config_maps[name] = stored
        return copy.deepcopy(stored)


def _content(body):
    metadata = {field: value for field, value in body["metadata"].items() if field != "resourceVersion"}
    return {**body, "metadata": metadata}
