"""One cluster's engine with an in-memory API server and brokers; it can be killed between two rounds."""

import asyncio
import json
from datetime import timedelta

from tests.fakes.configs_in_memory import Records
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.engine import ClusterEngine
from kafka_rebalance.reconcile.engine_parts import EngineParts
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores
from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

_WHERE = (REBALANCES, "kafka", "r")


class _Kube(KubeInMemory):
    """Records every status, the newest last."""

    def __init__(self):
        super().__init__()
        self.told = []

    async def patch_status(self, plural, namespace, name, patch):
        self.told.append(patch["status"])
        return await super().patch_status(plural, namespace, name, patch)


class _History:
    """Keeps records of runs in a list, and knows how long runs take."""

    def __init__(self, operator):
        self.operator = operator

    def keep(self, record):
        self.operator.history.append(record)

    async def durations(self, _cluster_id):
        return self.operator.durations


class OperatorInMemory:
    """Rounds of one second each, for one KafkaRebalance. ``model`` is the pipeline's load model of the cluster.

    ``turns``: those of an inline connection. ``history``: the records of the runs that have ended; ``durations``: what
    was learnt from such.
    """

    def __init__(self, kafka, model=None, turns=None):
        self.kafka, self.model, self.capacity, self.turns = kafka, model, None, turns
        self.kube, self.clock, self.records = _Kube(), StoppedClock(), Records()
        self.history, self.durations = [], None
        self.restart()

    def restart(self, on_record=()):
        """Kill and restart it: only stored state is left. ``on_record``: brokers that may not be live any more."""
        stores = Stores(PlanStore(self.kube), OriginStore(self.kube), RunStore(self.kube))
        keeper = ThrottleKeeper("c", self.kafka, self.records, self.clock.monotonic)
        resources = Resources(self.kube, self.clock.now)
        parts = EngineParts(
            self.kafka.info,
            self.kafka,
            resources,
            stores,
            keeper,
            self._loads,
            lambda: self.capacity,
            self.clock,
            _History(self),
            turns=self.turns,
            on_record=frozenset(on_record),
        )
        self.engine = ClusterEngine(parts)
        for (plural, _, _), body in self.kube.resources.items():
            if plural == REBALANCES:
                self._see(body)

    def apply(self, **spec):
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "creationTimestamp": NOON.isoformat()}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}
        self._see(self.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))

    def see(self, body):
        """As the watch delivers a resource that is there."""
        self._see(body)

    def edit(self, **spec):
        self._see(self.kube.edit(*_WHERE, **spec))

    def delete(self):
        self._see(self.kube.delete(*_WHERE, self.clock.at.isoformat()))

    def order(self, annotation, value):
        self.kube.resources[_WHERE]["metadata"].setdefault("annotations", {})[annotation] = value
        self._see(self.kube.resources[_WHERE])

    def assign(self, *rows, **spec):
        """A ConfigMap of (topic, partition, replicas[, original_replicas]), and the rebalance that references it."""
        self.write(*rows)
        self.apply(strategy="Assignment", assignment={"configMapRef": {"name": "lists", "key": "k"}}, **spec)

    def write(self, *rows):
        keys = ("topic", "partition", "replicas", "original_replicas")
        document = {"version": 1, "partitions": [dict(zip(keys, row, strict=False)) for row in rows]}
        self.kube.user_config_maps["kafka", "lists"] = {"k": json.dumps(document)}

    async def round(self):
        """Run one round, and wait for the plan that it started."""
        await self.engine.tick()
        self.clock.at += timedelta(seconds=1)
        plans = [r.memory.planning for r in self.engine.rebalances.values() if r.memory.planning is not None]
        if plans:
            await asyncio.wait(plans)

    async def until(self, *states):
        """Run rounds until the state is one of these; returns its message."""
        await self.until_true(lambda: self.state in states)
        return self.message

    async def until_true(self, holds):
        """Run rounds until the condition holds."""
        for _ in range(100):
            if holds():
                return
            await self.round()
        raise AssertionError(f"it does not come to that: {self.state}: {self.message}")

    async def until_closed(self):
        """Run rounds until the run is closed."""
        await self.until_true(lambda: self.run is not None and not self.run.open)

    def unsay(self):
        """Drop the last status, as if killed before it was written."""
        self.kube.resources[_WHERE]["status"] = self.kube.told[-2]
        self.restart()

    async def until_open(self):
        """Run rounds until a run is open, before anything of it is reported."""
        await self.until_true(lambda: self.rebalance.memory.planning is not None)

    @property
    def rebalance(self):
        return self.engine.rebalances["u-1"]

    @property
    def run(self):
        return self.rebalance.record.run

    @property
    def status(self):
        return self.kube.resources[_WHERE].get("status", {})

    def condition(self, kind):
        return next((c for c in self.status.get("conditions", ()) if c["type"] == kind), None)

    @property
    def state(self):
        return (self.condition("Ready") or {}).get("reason")

    @property
    def message(self):
        return (self.condition("Ready") or {}).get("message")

    @property
    def skipped(self):
        return {f"{row['topic']}-{row['partition']}": row["reason"] for row in self.status.get("skipped", ())}

    def _see(self, body):
        uid = body["metadata"]["uid"]
        if uid in self.engine.rebalances:
            self.engine.rebalances[uid].see(body)
        else:
            self.engine.rebalances[uid] = Rebalance.of(body)

    async def _loads(self, _cluster_id):
        if isinstance(self.model, Exception):
            raise self.model
        return self.model
