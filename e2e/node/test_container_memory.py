"""Servers of inline connections try to fill the container of the operator, which has the memory limit of the chart."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.hostile_server import HostileServer

from e2e.bench.waiting import wait_until
from e2e.node.provider import Node
from e2e.node.release import Release
from e2e.rebalance import Rebalance, state
from e2e.world import FAST, SMALL, World

pytestmark = [pytest.mark.node, pytest.mark.brokers]

NAMESPACES = ("filling-a", "filling-b")
SERVERS, ANSWER_MIB = 12, 95
"""In each namespace. An answer is within the limit of one client process; all of them are 2.2 GiB."""


@pytest.fixture
def addresses(kube: Node) -> Iterator[list[str]]:
    """Servers that Pods reach, whose answers are long and never end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="hostile-servers", daemon=True)
    thread.start()

    async def serve() -> list[str]:
        every = len(NAMESPACES) * SERVERS
        servers = [HostileServer(unfinished_mib=ANSWER_MIB, interface=kube.host_address) for _ in range(every)]
        return [(await server.__aenter__()).address for server in servers]

    try:
        yield asyncio.run_coroutine_threadsafe(serve(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_answers_that_would_fill_it(world: World, kube: Node, operator: Release, addresses: list[str]) -> None:
    """Clients end before the kernel ends the container, and a rebalance beside them completes."""
    before = operator.pod()
    for namespace in NAMESPACES:
        kube.kubectl("create", "namespace", namespace)
    filling = [
        world.rebalance(
            f"filling-{at}", "t", kafka={"bootstrapServers": address}, namespace=NAMESPACES[at % len(NAMESPACES)]
        )
        for at, address in enumerate(addresses)
    ]
    wait_until("clients end, because all together need too much", lambda: any(map(_was_too_much, filling)), timeout=240)
    beside = world.rebalance("beside", world.skewed("beside", *[SMALL] * 6), throttle=FAST)
    beside.wait_for("Succeeded")
    after = operator.pod()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert _container(after)["restartCount"] == _container(before)["restartCount"]
    assert operator.kills_by_memory() == 0


def _was_too_much(rebalance: Rebalance) -> bool:
    return "together needed more than 512 MiB" in state(rebalance.status)[1]


def _container(pod: Any) -> Any:
    (status,) = pod["status"]["containerStatuses"]
    return status
