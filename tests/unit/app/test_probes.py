"""What the health port answers, and what happens if the port is in use."""

import socket

import aiohttp
import pytest
from e2e.bench.ports import release_port, reserve_port

from kafka_rebalance.app.health import ProcessState, Stage
from kafka_rebalance.app.probes import served
from kafka_rebalance.errors import Permanent


@pytest.fixture
def port():
    number = reserve_port()
    yield number
    release_port(number)


async def ask(port, path):
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


class TestAnswers:
    async def test_each_path_tells_its_own(self, port):
        """A standby that has not read the Lease yet is live, but not ready."""
        async with served(port, lambda: ProcessState(Stage.STANDBY)):
            assert await ask(port, "/livez") == (200, "ok\n")
            assert await ask(port, "/readyz") == (
                503,
                "the API server has not said who holds the lease\n",
            )
            assert (await ask(port, "/"))[0] == 404

    async def test_the_present_counts(self, port):
        """The state is read on each request; every reason is one line."""
        states = iter([ProcessState(Stage.LEADING), ProcessState(Stage.LEADING, is_leader=True, watching=True)])
        async with served(port, lambda: next(states)):
            assert await ask(port, "/readyz") == (503, "the lease was not renewed in time\nnot watching yet\n")
            assert await ask(port, "/readyz") == (200, "ok\n")

    async def test_nobody_answers_afterwards(self, port):
        async with served(port, lambda: ProcessState(Stage.STANDBY)):
            pass
        with pytest.raises(aiohttp.ClientConnectionError):
            await ask(port, "/livez")


class TestPort:
    async def test_taken(self, port):
        """Fails before the operator takes the Lease; otherwise the kubelet would kill the Pod without an error."""
        with socket.create_server(("", port)), pytest.raises(Permanent, match=f"cannot listen on --health-port {port}"):
            async with served(port, lambda: ProcessState(Stage.STANDBY)):
                pass

    async def test_none_by_default(self):
        async with served(0, lambda: pytest.fail("nobody can ask")):
            pass
