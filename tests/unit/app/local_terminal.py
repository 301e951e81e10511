"""A terminal in which rebalances from a file run, without Kubernetes."""

import asyncio

from kafka_rebalance.app.local_run import LocalManifests, LocalSettings, run_locally
from kafka_rebalance.kube.directory_objects import GivenObjects

BEFORE = [[1]] * 4 + [[2]] * 4
"""On brokers 1 to 4: four replicas move."""
KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}
ONE_AT_A_TIME = {"execution": {"parallelPartitionCount": 1}}


class Terminal:
    """Runs, and stops when ``stops`` says so: at a look, after Ctrl-C; ``cuts``: after the second one."""

    def __init__(self, kafka, directory):
        self.kafka, self.directory = kafka, directory
        self.states = []

    async def run(self, *, name="r", back=False, stops=None, cuts=None, then=None, others=(), given=None, **spec):
        stop, states = asyncio.Event(), []

        def show(seen):
            self.seen = seen
            ready = next((c.reason for c in seen.status.conditions if c.type == "Ready"), "")
            states.append(ready)
            if stop.is_set() and then is not None:
                then()
            elif stops is not None and stops(ready):
                stop.set()
            if cuts is not None and cuts(ready):
                running.cancel()

        metadata = {"name": name, "namespace": "default", "labels": {}, "annotations": {}}
        manifests = LocalManifests({"metadata": metadata, "spec": {**KAFKA, **spec}}, others, given or GivenObjects())
        settings = LocalSettings(self.directory, back)
        running = asyncio.create_task(run_locally(settings, manifests, lambda *_: self.kafka, stop, show))
        try:
            async with asyncio.timeout(240):
                return await running
        finally:
            self.states = states

    @property
    def moved(self):
        return sum(now != before for now, before in zip(self.kafka.lists("t"), BEFORE, strict=True))
