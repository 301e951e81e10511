"""An API server that is a dictionary: as much of `KubeClient` as the command line and the stores ask for."""

import copy
import itertools

from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.errors import Conflict, NotFound


class KubeInMemory:
    """``writes`` lists what was changed, in order; the namespace is the operator's."""

    def __init__(self, namespace="kafka-rebalance"):
        self.namespace = namespace
        self.resources = {}
        self.secrets = {}
        self.config_maps = {}
        self.writes = []
        self.closed = False
        self._versions = itertools.count(1)

    async def close(self):
        self.closed = True

    async def get(self, plural, namespace, name):
        return copy.deepcopy(self.resources.get((plural, namespace, name)))

    async def annotate(self, plural, namespace, name, annotations):
        found = self.resources.get((plural, namespace, name))
        if found is None:
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
        return self.secrets[namespace, name]

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
        return self._put(name, body)

    async def delete_config_map(self, name):
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

    def _put(self, name, body):
        self.writes.append(("put", name))
        stored = copy.deepcopy(dict(body))
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        self.config_maps[name] = stored
        return copy.deepcopy(stored)
