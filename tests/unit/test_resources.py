"""Our finalizer on an object that others change at the same time."""

import copy
import itertools
from datetime import UTC, datetime

import pytest

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.kube.errors import Conflict
from kafka_rebalance.reconcile.resources import Resources
from kafka_rebalance.reconcile.work import Work

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class BusyObject:
    """One object on an API server. `rivals` change it, one before each of the next writes."""

    def __init__(self, *finalizers, rivals=()):
        self._versions = itertools.count(1)
        self._rivals = list(rivals)
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "generation": 1, "finalizers": list(finalizers)}
        self.body = {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}}
        self._touch()

    def _touch(self):
        self.body["metadata"]["resourceVersion"] = str(next(self._versions))

    async def get(self, *_):
        return copy.deepcopy(self.body)

    async def patch_finalizers(self, _plural, _namespace, _name, finalizers, version):
        if self._rivals:
            self._rivals.pop(0)(self.body["metadata"])
            self._touch()
        if version != self.body["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified")
        self.body["metadata"]["finalizers"] = list(finalizers)
        self._touch()
        return await self.get()


def foreign(metadata):
    metadata["finalizers"] = [*metadata["finalizers"], "example.com/theirs"]


def unimportant(metadata):
    metadata["labels"] = {"touched": "yes"}


def deletion(metadata):
    metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"


class TestFinalizer:
    @pytest.mark.parametrize("rival", [unimportant, foreign])
    async def test_somebody_is_faster_once(self, rival):
        """It is put there and taken away in the same round, and what somebody else put there stays."""
        there = BusyObject(rivals=[rival])
        work = Work.of(await there.get())
        resources = Resources(there, lambda: NOW)
        await resources.hold(work)
        assert work.held
        theirs = ["example.com/theirs"] if rival is foreign else []
        assert sorted(there.body["metadata"]["finalizers"]) == sorted([FINALIZER, *theirs])
        there._rivals = [unimportant]
        await resources.release(work)
        assert there.body["metadata"]["finalizers"] == theirs

    async def test_somebody_is_faster_every_time(self):
        """It gives up with an error that is tried again later."""
        there = BusyObject(FINALIZER, rivals=[unimportant] * 100)
        work = Work.of(await there.get())
        with pytest.raises(Conflict):
            await Resources(there, lambda: NOW).release(work)

    async def test_deleted_meanwhile(self):
        """Nothing new is put on an object that is being deleted: the API server would refuse it."""
        there = BusyObject(rivals=[deletion])
        work = Work.of(await there.get())
        await Resources(there, lambda: NOW).hold(work)
        assert there.body["metadata"]["finalizers"] == []
        assert work.rebalance.metadata.deleting
