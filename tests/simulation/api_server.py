"""An API server with watches and merge patches, on top of the one of the unit tests."""

import copy
import json

from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES
from kafka_rebalance.kube.api_errors import Conflict, Terminating
from kafka_rebalance.kube.merge_patch import merge_patch


class SimulatedKube(KubeInMemory):
    """``by``: the process whose request is being carried out; ``late``: after its sender has given it up.

    ``told``: the reasons of each resource's events.
    """

    def __init__(self, world):
        super().__init__()
        self.world = world
        self.by, self.late = None, False
        self.told = {}

    @property
    def has_connection(self):
        return any(key[0] == CONNECTIONS for key in self.resources)

    @staticmethod
    def copy(body):
        return json.loads(json.dumps(body))

    async def patch_status(self, plural, namespace, name, patch):
        """A merge patch, in which null removes."""
        found = self.resources.get((plural, namespace, name))
        if found is None:
            return False
        if patch.get("metadata", {}).get("resourceVersion") not in {None, found["metadata"]["resourceVersion"]}:
            raise Conflict(f"{namespace}/{name} has been modified")
        self.writes.append(("status", plural, namespace, name))
        merged = merge_patch(found.get("status", {}), copy.deepcopy(patch["status"]))
        if merged != found.get("status"):
            found["status"] = merged
            self._touch(found)
            self.world.judge.reported(plural, found)
        return True

    async def create_event(self, kind, about, reason, message, *, warning=False):
        if about.namespace in self.terminating_namespaces:
            raise Terminating(f"events is forbidden: namespace {about.namespace} is being terminated")
        self.told.setdefault(about.uid, []).append((str(reason), message))
        self.world.note(f"event {about.namespace}/{about.name}: {reason}: {message[:300]}")

    def changed_by_a_rival(self, key):
        """Another controller labels the resource between a reading and a write of the operator."""
        found = self.resources.get(tuple(key))
        if found is not None:
            labels = found["metadata"].setdefault("labels", {})
            labels["touched"] = str(int(labels.get("touched", "0")) + 1)
            self._touch(found)

    def _touch(self, body):
        super()._touch(body)
        plural = next((key[0] for key, found in self.resources.items() if found is body), None)
        if plural is not None:
            self._tell(plural, body, deleted=False)

    def _unless_finalized(self, plural, namespace, name):
        before = self.resources[plural, namespace, name]
        found = super()._unless_finalized(plural, namespace, name)
        if found is None:
            self._tell(plural, before, deleted=True)
            if plural == REBALANCES:
                self.world.judge.gone(before)
        return found

    def _put(self, name, body):
        put = super()._put(name, body)
        self.world.judge.recorded(self.by, put, late=self.late)
        self.world.scenario.recorded(self.by)
        return put

    def _tell(self, plural, body, *, deleted):
        if plural == REBALANCES:
            self.world.judge.statuses.edited(body)
        for process in self.world.processes:
            process.changed(plural, body, deleted=deleted)
