"""Isolated clients with what their tests look at: child processes, and the time."""

import asyncio
from pathlib import Path

from e2e.bench.waiting import wait_until

from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated.isolated_admin import IsolatedClients

LEADING = Fence(lambda: True)


def children_of(pid):
    """The running child processes of this process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(status.parent.name))
    return found


class Clients(IsolatedClients):
    """With what tests look at."""

    def connect(self, settings, fence, namespace="team"):
        return super().connect(settings, fence, namespace)

    @property
    def forking(self):
        return self._forking._process.pid

    @property
    def processes(self):
        return children_of(self.forking)


async def states(admin):
    return await admin.describe_partitions(["t"], {})


async def until(text, condition):
    await asyncio.to_thread(wait_until, text, condition, every=0.01)
