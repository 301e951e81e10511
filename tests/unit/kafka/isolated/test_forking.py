"""The processes of all clients together fit into the container of the operator."""

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import pytest
import yaml
from tests.fakes.hostile_server import HostileServer
from tests.unit.kafka.isolated.isolated_clients import LEADING

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.isolated import process_handle
from kafka_rebalance.kafka.settings import ConnectionSettings

_MIB = 2**20
_ROOT = Path(__file__).parents[4]
_VALUES = _ROOT / "charts/kafka-rebalance-operator/values.yaml"
_RESOURCES = yaml.safe_load(_VALUES.read_text())["resources"]
CONTAINER, OPERATOR = (int(_RESOURCES[kind]["memory"].removesuffix("Mi")) * _MIB for kind in ("limits", "requests"))
PLANNER = 433 * _MIB
"""The one process that plans for inline connections: its largest limit."""
SERVERS, LONG = 12, 95
"""MiB of an answer: each server keeps within the limit of one process."""
FITTING = 5


def used_by(pid):
    """Bytes, with its share of what it has in common with others."""
    with contextlib.suppress(OSError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(rollup.partition("\nPss:")[2].split()[0]) * 1024
    return 0


@pytest.fixture
def patient(monkeypatch):
    """Clients that wait for their answers for as long as these take."""
    monkeypatch.setattr(process_handle, "__package__", "tests.fakes.patient_clients")
    monkeypatch.setattr(process_handle, "_SILENT_TICKS", 1000)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]))


@pytest.mark.usefixtures("patient")
async def test_those_of_the_namespace_that_uses_most_end(clients):
    """Its resources say why, and a neighbour keeps its process."""
    async with contextlib.AsyncExitStack() as stack:
        healthy = await stack.enter_async_context(HostileServer())
        healthy.partitions = {"t": 3}
        neighbour = clients.connect(ConnectionSettings(healthy.address), LEADING, "neighbour")
        assert len(await neighbour.describe_partitions(["t"], {})) == 3
        (running,) = clients.processes
        servers = [await stack.enter_async_context(HostileServer(unfinished_mib=LONG)) for _ in range(SERVERS)]
        asking = [
            asyncio.create_task(clients.connect(ConnectionSettings(one.address), LEADING).list_reassignments())
            for one in servers
        ]
        most, ended = 0, []
        while len(ended) < SERVERS - FITTING:
            most = max(most, await asyncio.to_thread(lambda: sum(map(used_by, clients.processes))))
            ended = [one for one in asking if one.done()]
        assert running in clients.processes
        for one in asking:
            one.cancel()
        results = await asyncio.gather(*asking, return_exceptions=True)
    errors = [error for error in results if isinstance(error, Transient)]
    assert len(errors) >= SERVERS - FITTING
    assert {error.reason for error in errors} == {"KafkaClientEnded"}
    assert all("together needed more than 512 MiB" in error.message for error in errors)
    assert most <= CONTAINER - OPERATOR - PLANNER


async def test_a_process_without_sockets_does_not_end_the_others(clients):
    """With too many open files, fewer than three of the sockets arrive."""
    async with HostileServer() as healthy:
        healthy.partitions = {"t": 3}
        one = clients.connect(ConnectionSettings(healthy.address), LEADING)
        assert len(await one.describe_partitions(["t"], {})) == 3
        running = clients.processes
        only, theirs = socket.socketpair()
        with only, theirs:
            socket.send_fds(clients._forking._control, [b"+namespace"], [theirs.fileno()])
        other = clients.connect(ConnectionSettings(healthy.address), LEADING)
        assert len(await other.describe_partitions(["t"], {})) == 3
        assert set(running) < set(clients.processes)
