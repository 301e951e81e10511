"""A rebalance that is renamed in mid-run, for the tests of takeovers."""

import asyncio
from datetime import timedelta

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import REBALANCES

FAST = {"unlimited": True}
SPEC = {"throttle": FAST, "brokers": {"include": [4, 5, 6]}, "execution": {"parallelPartitionCount": 2}}
BEFORE = [[1, 2, 3]] * 6


class Renamed(OperatorInMemory):
    """``r`` and a second resource."""

    def apply_another(self, name="new", **spec):
        self.apply_in("kafka", name, **spec)

    def apply_in(self, namespace, name, **spec):
        created = self.clock.at.isoformat()
        metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}", "creationTimestamp": created}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}
        self._see(self.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))

    def delete_another(self, name="new"):
        self._see(self.kube.delete(REBALANCES, "kafka", name, self.clock.at.isoformat()))

    def order_another(self, annotation, value, name="new"):
        body = self.kube.resources[REBALANCES, "kafka", name]
        body["metadata"].setdefault("annotations", {})[annotation] = value
        self._see(body)

    def state_of(self, name="new", namespace="kafka"):
        body = self.kube.resources.get((REBALANCES, namespace, name), {})
        conditions = body.get("status", {}).get("conditions", ())
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), None)

    @property
    def ends(self):
        """Each has an event for the status and one for the end."""
        return list(dict.fromkeys(reason for reason, _ in self.kube.events if reason in {"TakenOver", "RolledBack"}))

    def exists(self, name):
        return (REBALANCES, "kafka", name) in self.kube.resources


def arrived(kafka):
    return [n for n, held in enumerate(kafka.lists("t")) if set(held) == {4, 5, 6}]


async def renamed_half_way(brokers=range(1, 7)):
    """Some partitions have arrived, two are in flight."""
    kafka = KafkaInMemory(brokers, t=BEFORE)
    operator = Renamed(kafka)
    operator.apply(**SPEC)
    await operator.until_true(lambda: sum(set(held) == {4, 5, 6} for held in kafka.lists("t")) >= 2)
    kafka.slow = {4, 5, 6}
    await operator.until_true(lambda: len(kafka.flying) == 2)
    return operator


async def a_tick(operator):
    """A round that does not wait for the plan that it started."""
    await operator.engine.tick()
    operator.clock.at += timedelta(seconds=1)
    await asyncio.sleep(0)
