"""Processes that compete for one Lease, with time that advances only when a test says so."""

import asyncio
import copy
import heapq
import itertools
from datetime import UTC, datetime, timedelta

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.api_errors import Conflict, NotFound
from kafka_rebalance.kube.lease import LeaseHolder

DURATION = 15
FIRST_MORNING = datetime(2026, 1, 1, tzinfo=UTC)


class Machine:
    """Time that advances only when the test says so; wakes sleepers in order."""

    def __init__(self):
        self.time = 0.0
        self._waits = []
        self._numbers = itertools.count()

    async def let_pass(self, seconds):
        end = self.time + seconds
        while self._waits and self._waits[0][0] <= end:
            self.time, _, wait = heapq.heappop(self._waits)
            if not wait.done():
                wait.set_result(None)
            await settle()
        self.time = end
        await settle()

    def jump(self, seconds):
        """Advance the time while all processes are suspended."""
        self.time += seconds

    async def wait_for(self, seconds):
        wait = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waits, (self.time + seconds, next(self._numbers), wait))
        await wait


class Clock:
    """One process's clocks. Each machine has another boot time and wall clock."""

    def __init__(self, machine, booted):
        self._machine = machine
        self._booted = booted

    def now(self):
        return FIRST_MORNING + timedelta(seconds=7 * self._booted + self._machine.time)

    def monotonic(self):
        return self._booted + self._machine.time

    async def sleep(self, seconds):
        assert seconds > 0
        await self._machine.wait_for(seconds)


class ApiServer:
    """Leases, with the API server's rules for resourceVersion and names."""

    namespace = "kafka-rebalance"

    def __init__(self, machine):
        self.lease = None
        self.writes = 0
        self.away = False
        self.lose_answers = False
        self.takes_seconds = 0.0
        self._machine = machine

    async def _answer(self):
        if self.takes_seconds:
            await self._machine.wait_for(self.takes_seconds)
        if self.away:
            raise Transient("ApiServerUnreachable", "nobody answered")

    async def get_lease(self, name):
        await self._answer()
        assert name == "the-lease"
        return copy.deepcopy(self.lease)

    async def create_lease(self, body):
        await self._answer()
        if self.lease is not None:
            raise Conflict("exists")
        return self._keep(body)

    async def replace_lease(self, name, body):
        await self._answer()
        assert name == "the-lease"
        if self.lease is None:
            raise NotFound("gone")
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("changed")
        return self._keep(body)

    def _keep(self, body):
        self.writes += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.writes)
        if self.lose_answers:
            raise Transient("ApiServerUnreachable", "the answer was lost")
        return copy.deepcopy(self.lease)

    @property
    def holder(self):
        return self.lease["spec"]["holderIdentity"]

    @property
    def transitions(self):
        return self.lease["spec"]["leaseTransitions"]


class Candidate:
    """A process that acquires the lease and then renews it."""

    def __init__(self, api, machine, identity, booted=0, duration=DURATION):
        self.lease = LeaseHolder(api, "The-Lease", identity, Clock(machine, booted), duration)
        self.task = asyncio.create_task(self._run())

    async def _run(self):
        await self.lease.acquire()
        await self.lease.keep()

    @property
    def acts(self):
        return self.lease.is_leader()

    async def end(self):
        """Kill it: it neither renews nor releases."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def end_cleanly(self):
        await self.end()
        await self.lease.release()


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)
