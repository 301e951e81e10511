"""The processes of all clients together fit into the container of the operator."""

import asyncio
import contextlib
import os
import socket
from pathlib import Path

import pytest
import yaml
from tests.fakes.hostile_server import HostileServer
from tests.unit.kafka.isolated.isolated_clients import LEADING, until

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.isolated import process_handle
from kafka_rebalance.kafka.isolated.cpu_share import LOW_PRIORITY
from kafka_rebalance.kafka.isolated.forking import MOST_PROCESSES
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


async def test_unread_data_of_sockets_counts(clients, monkeypatch):
    """The kernel holds it for the container. A server may claim 1,500 brokers, and fill all these connections."""
    monkeypatch.setattr(process_handle, "__package__", "tests.fakes.clients_with_large_sockets")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]))
    async with HostileServer() as server:
        with pytest.raises(Transient, match="together needed more than 512 MiB"):
            await clients.connect(ConnectionSettings(server.address), LEADING).describe_cluster()


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


async def test_a_namespace_has_a_number_of_processes(clients):
    """One more says why it is refused, if anybody still waits. The others go on, and another namespace has its own."""
    async with HostileServer() as server:
        settings = ConnectionSettings(server.address)
        theirs = [clients.connect(settings, LEADING, "busy") for _ in range(MOST_PROCESSES)]
        await asyncio.gather(*(one.describe_cluster() for one in theirs))
        one_more = clients.connect(settings, LEADING, "busy")
        with pytest.raises(Transient, match=f"already have {MOST_PROCESSES} client processes") as refused:
            await one_more.describe_cluster()
        assert refused.value.reason == "KafkaClientEnded"
        await clients.connect(settings, LEADING, "neighbour").describe_cluster()
        assert len(clients.processes) == MOST_PROCESSES + 1
        given_up, (lifeline, rest) = socket.socket(), socket.socketpair()
        with given_up, lifeline:
            rest.close()  # the operator does not wait for this one any more
            control, closed = clients._forking._control, [given_up.fileno(), given_up.fileno(), lifeline.fileno()]
            socket.send_fds(control, [b"+busy"], closed)
        forking = clients.forking
        await clients.connect(settings, LEADING, "other-neighbour").describe_cluster()
        assert (clients.forking, len(clients.processes)) == (forking, MOST_PROCESSES + 2)
        await theirs[0].close()
        await until("its process is gone", lambda: len(clients.processes) == MOST_PROCESSES + 1)
        await clients.connect(settings, LEADING, "busy").describe_cluster()


def priorities(pid):
    """Of its threads."""
    return {os.getpriority(os.PRIO_PROCESS, int(thread.name)) for thread in Path(f"/proc/{pid}/task").iterdir()}


async def test_busy_processes_get_a_lower_priority(clients, monkeypatch):
    """All threads of all processes of the namespace, also of later ones; a neighbour keeps its priority."""
    monkeypatch.setattr(process_handle, "__package__", "tests.fakes.thrifty_clients")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]))
    async with HostileServer() as server:
        settings = ConnectionSettings(server.address)
        await clients.connect(settings, LEADING, "neighbour").describe_cluster()
        (calm,) = clients.processes
        as_before = priorities(calm)
        one = clients.connect(settings, LEADING, "busy")
        await one.describe_cluster()
        (busy,) = set(clients.processes) - {calm}
        server.partitions = {"t": 3_000}
        while os.getpriority(os.PRIO_PROCESS, busy) != LOW_PRIORITY:
            await one.describe_partitions(["t"], {})
        assert priorities(busy) == {LOW_PRIORITY}
        asking = asyncio.create_task(clients.connect(settings, LEADING, "busy").describe_cluster())
        await until("a later one has begun", lambda: len(clients.processes) == 3)
        (later,) = set(clients.processes) - {calm, busy}
        await until("it has that too", lambda: os.getpriority(os.PRIO_PROCESS, later) == LOW_PRIORITY)
        asking.cancel()
        assert priorities(calm) == as_before
