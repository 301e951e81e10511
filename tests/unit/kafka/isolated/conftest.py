"""Isolated clients, and a server that answers them."""

import pytest
from tests.fakes.hostile_server import HostileServer
from tests.fakes.settable_clock import SettableClock
from tests.unit.kafka.isolated.isolated_clients import Clients


@pytest.fixture
def clock():
    return SettableClock(1000.0)


@pytest.fixture
async def clients(clock):
    clients = Clients(clock)
    yield clients
    await clients.close()


@pytest.fixture
async def healthy():
    async with HostileServer() as server:
        server.partitions = {"t": 3}
        yield server
