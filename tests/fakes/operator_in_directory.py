"""One cluster's engine with in-memory brokers and its objects in a directory; it is killed by a `MortalDisk`."""

import asyncio
from datetime import timedelta

from tests.fakes.mortal_disk import Died
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.kube.directory_objects import DirectoryObjects
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.record_files import RecordFiles
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.engine import ClusterEngine
from kafka_rebalance.reconcile.engine_parts import EngineParts
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

_WHERE = (REBALANCES, "kafka", "r")
_MOST_ROUNDS = 60


class OperatorInDirectory:
    """Applies the spec again at each start, as a run does, and runs rounds of one second."""

    def __init__(self, kafka, disk, directory):
        self.kafka, self.disk, self.directory, self.clock = kafka, disk, directory, StoppedClock()
        self.kube = None

    async def carry_out(self, spec, *, deletes, left):
        """From the spec to the end, killed once after this many calls of the disk; False: it ended before.

        ``deletes``: whether to delete the resource when something has moved.
        """
        self.disk.left, deaths = left, 0
        while True:
            try:
                await self._live(spec, deletes)
            except Died:
                self.disk.left, deaths = None, deaths + 1
                assert deaths == 1
            else:
                return deaths == 1
            finally:
                await self._end()

    async def _live(self, spec, deletes):
        self.kube = kube = DirectoryObjects(RecordFiles.to_write(self.directory), self.clock.now)
        manifest = {"metadata": {"name": "r", "namespace": "kafka"}, "spec": spec}
        found = await kube.get(*_WHERE)
        if found is None and deletes and self.kafka.altered:
            return  # it was killed after the last write
        rebalance = Rebalance.of(await kube.apply(REBALANCES, manifest))
        keeper = ThrottleKeeper("c", self.kafka, LedgerStore(kube), self.clock.monotonic)
        resources = Resources(kube, self.clock.now)
        stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        parts = EngineParts(self.kafka.info, self.kafka, resources, stores, keeper, _no_loads, lambda: None, self.clock)
        engine = ClusterEngine(parts)
        engine.rebalances[rebalance.uid] = rebalance
        kube.seen = lambda _plural, body, gone: None if gone else rebalance.see(body)
        try:
            await self._rounds(engine, rebalance, deletes)
        finally:
            if rebalance.memory.planning is not None:
                rebalance.memory.planning.cancel()
                await asyncio.wait([rebalance.memory.planning])

    async def _rounds(self, engine, rebalance, deletes):
        for _ in range(_MOST_ROUNDS):
            await engine.tick()
            self.clock.at += timedelta(seconds=1)
            if rebalance.memory.planning is not None:
                await asyncio.wait([rebalance.memory.planning])
            body = await self.kube.get(*_WHERE)
            if (body is None or _ready(body)) and not await _throttled(self.kube):
                return
            if deletes and len(self.kafka.altered) >= deletes:
                await self.kube.delete_resource(*_WHERE, rebalance.uid)
                await asyncio.sleep(0)
        raise AssertionError(f"it does not end: {body}")

    async def _end(self):
        """The kernel closes the files; the threads of a killed process are gone."""
        if self.kube is not None:
            await self.kube.close()

    async def stored(self):
        """What another process reads of the directory."""
        kube = DirectoryObjects(RecordFiles.to_read(self.directory), self.clock.now)
        runs, origins = await RunStore(kube).list_all(), {}
        for run in runs:
            found = await OriginStore(kube).load(run.uid, run.run_id) or {}
            origins |= {str(tp): list(origin.replicas) for tp, origin in found.items()}
        states = [_ready(body) for body in await kube.list_resources(REBALANCES)]
        throttled = await _throttled(kube)
        await kube.close()
        return {"states": states, "runs": [run.outcome for run in runs], "origins": origins, "throttled": throttled}


def _ready(body):
    """The reason of Ready, if it is True."""
    conditions = body.get("status", {}).get("conditions", ())
    return next((row["reason"] for row in conditions if (row["type"], row["status"]) == ("Ready", "True")), None)


async def _throttled(kube):
    ledger = await LedgerStore(kube).load("c")
    return ledger is not None and not ledger_from_json(ledger).empty


async def _no_loads(_cluster_id):
    return None
