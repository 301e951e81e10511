"""The processes of all clients together fit into the container of the operator."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.fakes.hostile_server import HostileServer
from tests.unit.kafka.isolated.test_isolated_admin import LEADING, Clients, Clock

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.settings import ConnectionSettings

_MIB = 2**20
CONTAINER, OPERATOR = 1024 * _MIB, 256 * _MIB
"""The chart: resources.limits.memory, and resources.requests.memory."""
SERVERS, LONG = 12, 95
"""MiB of an answer: each server keeps within the limit of one process."""
FITTING = 5


@pytest.fixture
async def clients():
    clients = Clients(Clock())
    yield clients
    await clients.close()


def used_by(pid):
    """Bytes, with its share of what it has in common with others."""
    with contextlib.suppress(OSError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(rollup.partition("\nPss:")[2].split()[0]) * 1024
    return 0


async def test_those_of_the_namespace_that_uses_most_end(clients):
    """Its resources say why, and a neighbour keeps its process."""
    async with contextlib.AsyncExitStack() as stack:
        healthy = await stack.enter_async_context(HostileServer())
        healthy.partitions = {"t": 3}
        neighbour = clients.connect(ConnectionSettings(healthy.address), LEADING, "neighbour")
        assert len(await neighbour.describe_partitions(["t"], {})) == 3
        (running,) = clients.processes
        servers = [await stack.enter_async_context(HostileServer(long=LONG)) for _ in range(SERVERS)]
        asking = [
            asyncio.create_task(clients.connect(ConnectionSettings(one.address), LEADING).list_reassignments())
            for one in servers
        ]
        most, ended = 0, []
        while len(ended) < SERVERS - FITTING:
            most = max(most, sum([await asyncio.to_thread(used_by, pid) for pid in clients.processes]))
            await asyncio.sleep(0)
            ended = [one for one in asking if one.done()]
        assert running in clients.processes
        for one in asking:
            one.cancel()
        results = await asyncio.gather(*asking, return_exceptions=True)
    errors = [error for error in results if isinstance(error, Transient)]
    assert len(errors) >= SERVERS - FITTING
    assert {error.reason for error in errors} == {"KafkaClientEnded"}
    assert all("together needed more than 512 MiB" in error.message for error in errors)
    assert most <= CONTAINER - OPERATOR
