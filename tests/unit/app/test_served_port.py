"""The limits of the HTTP servers: idle connections cost memory and descriptors, and need no token."""

import asyncio
import gc

import aiohttp
import pytest
from e2e.bench.ports import release_port, reserve_port

from kafka_rebalance.app import served_port
from kafka_rebalance.app.served_port import served_at
from kafka_rebalance.reasons import Reason

MOST = 5


@pytest.fixture
def port():
    reserved = reserve_port()
    yield reserved
    release_port(reserved)


def serving(port):
    async def answer(_request):
        return aiohttp.web.Response(text="ok")

    return served_at(port, "--report-port", Reason.REPORT_PORT_UNAVAILABLE, {"/": answer}, "127.0.0.1")


def handlers():
    gc.collect()
    return sum(type(found) is aiohttp.web.RequestHandler for found in gc.get_objects())  # no isinstance: weak proxies


async def connected(port, sends):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sends)
    return reader, writer


async def closed(reader):
    async with asyncio.timeout(60):
        try:
            return await reader.read(1) == b""
        except ConnectionError:
            return True


@pytest.mark.parametrize("sends", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n"], ids=["nothing", "half a request"])
async def test_the_oldest_connections_are_closed(port, monkeypatch, sends):
    """New ones are answered, however many are idle."""
    monkeypatch.setattr(served_port, "_MOST_CONNECTIONS", MOST)
    async with serving(port):
        idle = [await connected(port, sends) for _ in range(2 * MOST)]
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as answer:
            assert await answer.text() == "ok"
        for reader, _ in idle[: MOST + 1]:
            assert await closed(reader)
        for _, writer in idle:
            writer.transport.abort()


async def test_many_connections_of_one_address_close_no_others(port, monkeypatch):
    """A Pod may open thousands in a second. The kubelet's probe is answered, or it would restart the operator."""
    monkeypatch.setattr(served_port, "_MOST_CONNECTIONS", MOST)
    async with serving(port):
        probe, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        many = [await connected(port, b"") for _ in range(4 * MOST)]
        writer.write(b"\r\n")
        assert (await probe.readline()).startswith(b"HTTP/1.1 200")
        for _, other in [*many, (probe, writer)]:
            other.transport.abort()


async def test_a_connection_is_closed_in_time(port, monkeypatch):
    monkeypatch.setattr(served_port, "_CONNECTION_SECONDS", 0.1)
    async with serving(port):
        reader, writer = await connected(port, b"")
        assert await closed(reader)
        writer.transport.abort()


async def test_closed_connections_cost_no_memory(port, monkeypatch):
    """Neither their number nor what they have sent matters."""
    monkeypatch.setattr(served_port, "_MOST_CONNECTIONS", MOST)
    others = handlers()
    async with serving(port):
        for _ in range(4 * MOST):
            reader, writer = await connected(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nbody")
            await reader.readline()
            writer.transport.abort()
        # By passes of the event loop, not by time: aiohttp used to keep them for 10 s.
        for _ in range(20):
            if (left := handlers() - others) <= MOST + 1:
                break
            await asyncio.sleep(0)
        assert left <= MOST + 1
