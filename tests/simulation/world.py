"""One seed: a cluster, an API server, operators and users, until all that was asked for has ended."""

import asyncio
import contextlib
import logging
import random
import uuid
from enum import Enum
from unittest.mock import patch

from tests.simulation.api_server import SimulatedKube
from tests.simulation.brokers import SimulatedKafka
from tests.simulation.conditions import message, ready
from tests.simulation.fault_scenario import FaultScenario
from tests.simulation.faults import Faults, LateFaults, MoreFaults
from tests.simulation.judge import Judge
from tests.simulation.log_dir_scenario import LogDirScenario
from tests.simulation.log_dirs import KafkaWithLogDirs
from tests.simulation.other_tools import OtherTools
from tests.simulation.overlapping_scenario import OverlappingScenario
from tests.simulation.process import OperatorProcess, at_once, task_factory
from tests.simulation.scenario import Scenario
from tests.simulation.troubled_brokers import TroubledKafka
from tests.simulation.virtual_time import NothingMoves, VirtualClock, VirtualLoop

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.execution import list_budget
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.model.kafka_version import RECORDED

LAST_SECONDS = 1800.0
"""So long after all faults have ended, everything that was asked for has ended too."""
ENDED = {
    "Succeeded", "NothingToDo", "Undone", "TakenOver", "InsufficientBrokers", "UnknownBroker", "UnknownTopic",
    "NothingSelected", "ClusterOwnedElsewhere", "ReplicationThrottleLower", "NothingToUndo", "InsufficientDisk",
    "BelowMinInsyncReplicas", "InvalidSpec", "RolledBackPartially", "UnknownLogDir", "LastLogDir",
}  # fmt: skip


class Kind(Enum):
    """Of a world; the value is its option on the command line."""

    USUAL = ""
    LOG_DIRS = "--log-dirs"
    MORE_FAULTS = "--more-faults"
    OVERLAPPING = "--overlapping"

    @property
    def options(self):
        """On the command line."""
        return [self.value] if self.value else []


_PARTS = {
    Kind.USUAL: (Faults, SimulatedKafka, Scenario),
    Kind.LOG_DIRS: (Faults, KafkaWithLogDirs, LogDirScenario),
    Kind.MORE_FAULTS: (MoreFaults, TroubledKafka, FaultScenario),
    Kind.OVERLAPPING: (LateFaults, SimulatedKafka, OverlappingScenario),
}


class World:
    """``broken`` after `run`: the rules that were broken. ``trace``: what happened, with the time of each.

    ``kind``: with log dirs, brokers have several, with additional events from ``log_dir_random``; with more faults, or
    rebalances that overlap, there are additional events from ``fault_random``. Worlds of another kind stay the same.
    ``only``: the numbers of the events that happen; None: all.
    """

    def __init__(self, seed, kind=Kind.USUAL, only=None):
        self.seed, self.kind, self.only = seed, kind, only
        self.random = random.Random(seed)
        self.log_dir_random = random.Random(f"log dirs {seed}")
        self.fault_random = random.Random(f"more faults {seed}")
        self.happened = 0
        self.trace = []
        self.loop = VirtualLoop()
        self.loop.set_task_factory(task_factory)
        self.clock = VirtualClock(self.loop)
        self.said, self.rates_before = {}, {}
        self.processes = []
        self._started = 0
        self.judge = Judge(self)
        faults, kafka, scenario = _PARTS[kind]
        self.faults = faults(self)
        count = self.random.randint(4, 6)
        racks = {b: "abc"[b % 3] for b in range(1, count + 1)} if self.random.random() < 0.3 else {}
        self.kube = SimulatedKube(self)
        line = "4.3" if self.random.random() < 0.6 else "3.9"
        if kind is Kind.MORE_FAULTS:
            line = self.fault_random.choice(RECORDED)
        self.kafka = kafka(self, range(1, count + 1), line=line, racks=racks)
        self.scenario = scenario(self)

    @property
    def broken(self):
        return self.judge.broken

    def note(self, text):
        self.trace.append(f"{self.loop.now:9.3f} {text}")

    def run(self):
        """Until the end, or until a rule is broken."""
        asyncio.set_event_loop(self.loop)
        with self._short_lists(), patch.object(uuid, "uuid4", self._uuid):
            main = self.loop.create_task(self._main())
            try:
                self.loop.run_until_complete(main)
            except NothingMoves:
                self.judge.breach("nothing moves any more")
            finally:
                for process in self.processes:
                    process.kill()
                left = asyncio.all_tasks(self.loop)
                for task in left:
                    task.cancel()
                self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
                self.loop.close()
                asyncio.set_event_loop(None)
        return self.broken

    def _uuid(self):
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def _short_lists(self):
        """With more faults, the lists of throttled replicas are often full."""
        if self.kind is not Kind.MORE_FAULTS or self.fault_random.random() < 0.6:
            return contextlib.nullcontext()
        self.note("lists of throttled replicas hold 40 bytes")
        return patch.multiple(list_budget, MOST_BYTES=40, _STEP_BYTES=8)

    async def _main(self):
        copying = self.loop.create_task(self.kafka.copy_on())
        self.scenario.prepare()
        for tp in sorted(self.kafka.states):
            self.judge.changed(tp)
        for _, body in self.rebalances():
            self.note(f"{body['metadata']['name']}: {body['spec']}")
        self.start()
        if self.random.random() < 0.3:
            self.start()
        watching = self.loop.create_task(self._keep_running())
        await self._disturb()
        await self._calm_down()
        await self._all_ended()
        if self._undoes_at_the_end():
            await self._sleep(10)
            await self._all_ended()
        await self._all_gone()
        for task in (watching, copying):
            task.cancel()

    # Operators -------------------------------------------------------------------------------------------------------

    def start(self):
        self._started += 1
        identity = self.random.choice((f"operator-{self._started}", "operator-1"))
        if any(process.alive and process.identity == identity for process in self.processes):
            identity = f"operator-{self._started}"
        self.note(f"{identity} starts")
        self.processes.append(OperatorProcess(self, identity))

    async def _keep_running(self):
        """What Kubernetes does: a process that has died is started again."""
        while True:
            await asyncio.sleep(1)
            if not any(process.alive for process in self.processes):
                await asyncio.sleep(0 if self.faults.calm else self.random.choice((0, 1, 10)))
                self.start()

    # The course ------------------------------------------------------------------------------------------------------

    async def _disturb(self):
        weights, happenings = zip(*self.scenario.happenings, strict=True)
        pace = self.random.choice((0.5, 2, 4))
        for _ in range(self.random.choice((2, 4, 8, 16))):
            await self._sleep(self.random.expovariate(1 / pace))
            happening = self.random.choices(happenings, weights)[0]
            if self.only is None or self.happened in self.only:
                self.note(f"*** {self.happened}: {happening() or f'no {happening.__name__}'}")
            self.happened += 1

    async def _sleep(self, seconds):
        await asyncio.sleep(seconds)
        self._stop_if_broken()

    def _stop_if_broken(self):
        if self.broken:
            raise RuleBroken

    def revive(self, broker):
        if broker in self.kafka.dead:
            self.note(f"*** broker {broker} is back")
            self.kafka.come_back(broker)

    async def _calm_down(self):
        """From now on nothing goes wrong, and nobody holds anything up."""
        self.note("*** all faults end")
        self.faults.calm = True
        for broker in sorted(self.kafka.dead):
            self.revive(broker)
        self.kafka.heal()
        for process in self.processes:
            process.cut_off.clear()
            process.kill_after, process.pause_after_record = None, False
            process.resume()
        self.scenario.calm_down()
        OtherTools(self).remove_rates()
        for (plural, namespace, name), body in list(self.kube.resources.items()):
            if plural == REBALANCES and body["spec"]["execution"]["suspend"]:
                self.kube.edit(plural, namespace, name, execution={**body["spec"]["execution"], "suspend": False})
            if plural == REASSIGNMENT_THROTTLES and body["spec"].get("freeze"):
                self.kube.edit(plural, namespace, name, freeze=False)

    async def _all_ended(self):
        await self._until(lambda: all(self._ended(body) for _, body in self.rebalances()), "does not end")
        for _, body in self.rebalances():
            self.note(f"{body['metadata']['name']} ended as {ready(body)}: {message(body)[:200]}")

    def _undoes_at_the_end(self):
        """Only with log dirs. At the end, because few rebalances have succeeded before."""
        undone = self.scenario.undo() if self.kind is Kind.LOG_DIRS and self.log_dir_random.random() < 0.5 else None
        if undone is not None:
            self.note(f"*** {undone}")
        return undone is not None

    async def _all_gone(self):
        self.scenario.allow_all()
        await self._delete_all(REBALANCES, REASSIGNMENT_THROTTLES)
        await self._delete_all(CONNECTIONS)
        await self._until(self._idle, "the engine or its binding does not end")
        self.judge.end()
        self._stop_if_broken()

    async def _delete_all(self, *plurals):
        self.note(f"*** all {', '.join(plurals)} are deleted")
        for key, body in list(self.kube.resources.items()):
            if key[0] in plurals and "deletionTimestamp" not in body["metadata"]:
                self.kube.delete(*key, self.clock.now().isoformat())
        await self._until(lambda: not any(key[0] in plurals for key in self.kube.resources), "is not let go")

    def _idle(self):
        """Whether a leader serves no cluster, and no cluster has an owner on record."""
        leading = [p for p in self.processes if p.alive and p.watching and p.lease.is_leader()]
        engines = any(p.supervisor._engines._running for p in leading)
        return bool(leading) and not engines and not at_once(BindingStore(self.kube).load_unshared())

    def _ended(self, body):
        metadata = body["metadata"]
        reason = ready(body)
        if "deletionTimestamp" in metadata:
            return False
        if reason == "AwaitingApproval":
            self._approve(metadata, body)
        ended = reason in ENDED or self.scenario.waits_for_good(body, reason)
        return ended and body["status"].get("observedGeneration") == metadata["generation"]

    def _make_room(self):
        """Frees disk space, as a user would for a rebalance that waits for it."""
        full = [key[2] for key, body in self.rebalances() if ready(body) == "Stalled" and "DiskFull" in message(body)]
        if full and self.kafka.capacity:
            self.note(f"*** all log dirs get more room, for {full}")
            self.kafka.capacity.clear()

    def _approve(self, metadata, body):
        made = body["status"].get("plan", {}).get("hash")
        if made and body["spec"]["approval"].get("planHash") != made:
            self.note(f"{metadata['name']} is approved")
            approval = {"policy": "Manual", "planHash": made}
            self.kube.edit(REBALANCES, metadata["namespace"], metadata["name"], approval=approval)

    async def _until(self, holds, what):
        begun = self.loop.now
        while not holds():
            if self.loop.now - begun > LAST_SECONDS:
                states = {key[2]: (ready(body), message(body)) for key, body in self.kube.resources.items()}
                self.judge.breach(f"{what}: {states}")
            self._make_room()
            await self._sleep(1.0)

    # What the judge asks ---------------------------------------------------------------------------------------------

    def rebalances(self):
        return [(key, body) for key, body in sorted(self.kube.resources.items()) if key[0] == REBALANCES]

    def body_of(self, uid):
        return next((body for body in self.kube.resources.values() if body["metadata"]["uid"] == uid), None)

    def min_insync(self, topic):
        return int(self.kafka.values.get((topic, "min.insync.replicas"), "1"))

    def host_of(self, owner):
        return f"kafka-{owner.namespace}"


class RuleBroken(Exception):
    """The world need not go on."""


def simulate(seed, kind=Kind.USUAL, only=None):
    """The world after its end."""
    logging.disable(logging.CRITICAL)
    world = World(seed, kind, only)
    with contextlib.suppress(RuleBroken):
        world.run()
    return world
