"""The live page: up to date, for this machine only."""

import socket
from dataclasses import replace

import aiohttp
import pytest
from e2e.bench.ports import release_port, reserve_port
from tests.fakes.whole_program import run_program
from tests.unit.report.report_values import course, report

from kafka_rebalance.app import fresh_pages
from kafka_rebalance.cli.commands.served_reports import report_served
from kafka_rebalance.errors import Permanent, Transient


@pytest.fixture
def port():
    number = reserve_port()
    yield number
    release_port(number)


@pytest.fixture(autouse=True)
def _always_anew(monkeypatch):
    monkeypatch.setattr(fresh_pages, "_FRESH_SECONDS", -1.0)


async def ask(port, host="127.0.0.1", **headers):
    url = f"http://{host}:{port}/"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.text(), answer.headers


class TestPage:
    async def test_each_request_reads_anew(self, port):
        """The page reloads itself, and is never taken from a cache."""
        states = iter(["Planning", "Rebalancing"])

        async def make():
            return replace(report(course=course()), state=next(states))

        async with report_served(port, make):
            _, first, headers = await ask(port)
            _, second, _ = await ask(port)
        assert '<span class="state">Planning</span>' in first
        assert '<span class="state">Rebalancing</span>' in second
        assert '<meta http-equiv="refresh" content="5">' in first
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Type"].startswith("text/html")

    async def test_the_api_server_does_not_answer(self, port):
        """The reason is shown; the next request tries again."""
        answers = iter([Transient("ApiServerUnreachable", "no answer"), report()])

        async def make():
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        async with report_served(port, make):
            status, text, _ = await ask(port)
            assert (status, text) == (503, "ApiServerUnreachable: no answer\n")
            assert (await ask(port))[0] == 200

    async def test_another_name_for_this_machine(self, port):
        """A web page from elsewhere whose name resolves to this machine (DNS rebinding) gets no report."""

        async def make():
            pytest.fail("nobody may ask")

        async with report_served(port, make):
            status, text, _ = await ask(port, Host=f"evil.example:{port}")
        assert (status, text) == (403, "the Host header does not name this machine\n")

    async def test_only_on_this_machine(self, port):
        async def make():
            return report()

        async with report_served(port, make):
            with socket.socket() as other:  # on all other addresses the port is still free
                other.bind(("127.0.0.2", port))

    async def test_port_taken(self, port):
        async def make():
            return report()

        with (
            socket.create_server(("127.0.0.1", port)),
            pytest.raises(Permanent, match=f"cannot listen on --serve {port}"),
        ):
            async with report_served(port, make):
                pass


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("r",), "give --output or --serve"),
            (("r", "-o", "x.html", "--serve", "8000"), "give one of --output and --serve"),
            (("--cluster", "-", "--serve", "8000"), "--serve is about a run"),
        ],
    )
    def test_contradictions(self, arguments, message):
        done = run_program("report", *arguments)
        assert done.code == 2
        assert message in " ".join(done.err.split())
