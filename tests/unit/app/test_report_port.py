"""The answers of the report port: their users and their limits.

`tests/kube/test_report_port.py` and `e2e/test_live_page.py` have a real API server.
"""

import asyncio
import logging
import socket
import struct
from contextlib import asynccontextmanager

import aiohttp
import pytest
from e2e.bench.ports import release_port, reserve_port
from tests.fakes.reviewing_api_server import ReviewingApiServer
from tests.unit.report.report_values import course, report

from kafka_rebalance.app import report_port
from kafka_rebalance.app.fresh_pages import FreshPages
from kafka_rebalance.app.report_access import ReportAccess
from kafka_rebalance.app.report_port import reports_served
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kube.access_reviews import AccessReviews
from kafka_rebalance.kube.api_errors import Forbidden, NotFound

PAGE = "/namespaces/kafka/kafkarebalances/r"
ANN, BOB = "token-of-ann", "token-of-bob"


class Setting:
    """``make`` is what makes the report."""

    def __init__(self):
        self.port = reserve_port()
        self.server = ReviewingApiServer()
        self.made = []

    async def make(self, where):
        self.made.append(where)
        return report(course=course())

    @asynccontextmanager
    async def serving(self):
        access = ReportAccess(AccessReviews(self.server), lambda: 0.0)
        async with reports_served(self.port, access, FreshPages(lambda where: self.make(where))):
            yield

    async def ask(self, token=ANN, path=PAGE, method="GET", **headers):
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession() as session, session.request(method, url, headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers


@pytest.fixture
def setting():
    made = Setting()
    yield made
    release_port(made.port)


class TestWho:
    async def test_a_reader_of_the_resource(self, setting):
        async with setting.serving():
            status, text, headers = await setting.ask()
        assert status == 200
        assert '<meta http-equiv="refresh" content="5">' in text
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert setting.made == [("kafka", "r")]

    async def test_another_user(self, setting):
        """The answer does not show whether the resource exists, and nothing is read."""
        async with setting.serving():
            for path in (PAGE, "/namespaces/kafka/kafkarebalances/no-such"):
                status, text, _ = await setting.ask(BOB, path)
                assert status == 403
                assert text.startswith("the user of this token may not get kafkarebalances/")
        assert setting.made == []

    @pytest.mark.parametrize("token", ["", "expired"])
    async def test_no_valid_token(self, setting, token):
        async with setting.serving():
            status, _, headers = await setting.ask(token)
        assert status == 401
        assert headers["WWW-Authenticate"].startswith("Bearer")
        assert setting.made == []

    @pytest.mark.parametrize("header", ["Basic YTpi", "Bearer", "Bearer  ", ANN])
    async def test_no_bearer_token(self, setting, header):
        async with setting.serving():
            assert (await setting.ask("", Authorization=header))[0] == 401
        assert setting.server.reviews == []

    async def test_a_token_in_the_address_does_not_count(self, setting):
        """Addresses are in histories and logs of proxies."""
        async with setting.serving():
            assert (await setting.ask("", f"{PAGE}?access_token={ANN}&token={ANN}"))[0] == 401

    async def test_made_up_tokens_do_not_keep_readers_out(self, setting):
        async with setting.serving():
            assert (await setting.ask())[0] == 200
            answers = {(await setting.ask(f"made-up-{n}"))[0] for n in range(40)}
            assert answers == {401, 429}
            assert (await setting.ask())[0] == 200


class TestWhat:
    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    async def test_only_reads(self, setting, method):
        async with setting.serving():
            assert (await setting.ask(method=method))[0] == 405
        assert setting.server.reviews == []

    @pytest.mark.parametrize(
        "path", ["/", "/metrics", "/namespaces/kafka/kafkarebalances/..%2f..", "/namespaces/k/kafkarebalances/A"]
    )
    async def test_nothing_else(self, setting, path):
        async with setting.serving():
            assert (await setting.ask(path=path))[0] == 404
        assert setting.server.reviews == []

    async def test_no_such_resource(self, setting):
        """Users who may read it get 404, and the page reloads until it exists."""

        async def make(_):
            raise NotFound("there is none")

        setting.make = make
        async with setting.serving():
            status, text, headers = await setting.ask()
        assert (status, text, headers["Refresh"]) == (404, "there is none\n", "5")


class TestTrouble:
    @pytest.mark.parametrize(
        "failure",
        [Transient("ApiServerUnreachable", "https://10.0.0.1 is away"), Forbidden("tokenreviews is forbidden")],
    )
    async def test_the_token_cannot_be_reviewed(self, setting, failure, caplog):
        """The log has the cause, once. The answer has only the name of the reason."""
        setting.server.failures = [failure, failure]
        async with setting.serving():
            with caplog.at_level(logging.WARNING):
                for _ in range(2):
                    status, text, headers = await setting.ask()
                    assert (status, text) == (503, f"{failure.reason}: see the log of the operator\n")
                    assert headers["Refresh"] == "5"
            assert (await setting.ask())[0] == 200
        assert caplog.text.count(failure.message) == 1
        assert ANN not in caplog.text

    async def test_the_resource_cannot_be_read(self, setting):
        answers = iter([Transient("ApiServerBusy", "busy"), report()])

        async def make(_):
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        setting.make = make
        async with setting.serving():
            assert (await setting.ask())[0] == 503
            assert (await setting.ask())[0] == 200

    async def test_an_answer_that_does_not_come(self, setting, monkeypatch):
        monkeypatch.setattr(report_port, "_ANSWER_SECONDS", 0.01)

        async def make(_):
            await asyncio.Event().wait()

        setting.make = make
        async with setting.serving():
            status, text, _ = await setting.ask()
        assert (status, text) == (503, "the report was not ready in time\n")


class TestBounds:
    async def test_requests_at_once(self, setting, monkeypatch):
        """Requests above the limit are refused at once, before their token is reviewed."""
        monkeypatch.setattr(report_port, "_MOST_REQUESTS", 2)
        go_on, real = asyncio.Event(), setting.make

        async def make(where):
            await go_on.wait()
            return await real(where)

        setting.make = make
        async with setting.serving():
            first = [asyncio.create_task(setting.ask()) for _ in range(5)]
            done, waiting = await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            while len(waiting) > 2:
                more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                done |= more
            assert [task.result()[0] for task in done] == [429] * 3
            go_on.set()
            assert [(await task)[0] for task in waiting] == [200, 200]
            assert (await setting.ask())[0] == 200

    @asynccontextmanager
    async def one_who_does_not_read(self, setting, monkeypatch):
        """The connection of a browser that gets the first bytes of a large page, the only request at that time."""
        monkeypatch.setattr(report_port, "_MOST_REQUESTS", 1)

        class Large(FreshPages):
            async def page(self, which):
                return b"x" * 50_000_000

        access = ReportAccess(AccessReviews(setting.server), lambda: 0.0)
        async with reports_served(setting.port, access, Large(setting.make)):
            with socket.create_connection(("127.0.0.1", setting.port)) as silent:
                silent.sendall(f"GET {PAGE} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {ANN}\r\n\r\n".encode())
                assert await asyncio.to_thread(silent.recv, 100)
                yield silent

    async def test_who_goes(self, setting, monkeypatch, caplog):
        """A closed window is no error."""
        async with self.one_who_does_not_read(setting, monkeypatch) as silent:
            assert (await setting.ask("other"))[0] == 429
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            silent.close()
            while (found := (await setting.ask("other"))[0]) == 429:
                pass
            assert found == 401
        assert caplog.records == []

    async def test_who_does_not_read_the_answer(self, setting, monkeypatch, caplog):
        """The request ends, and the next one is answered."""
        monkeypatch.setattr(report_port, "_SEND_SECONDS", 0.2)
        async with self.one_who_does_not_read(setting, monkeypatch):
            while (found := (await setting.ask("other"))[0]) == 429:
                pass
            assert found == 401
        assert caplog.records == []

    async def test_port_taken(self, setting):
        with (
            socket.create_server(("", setting.port)),
            pytest.raises(Permanent, match=f"cannot listen on --report-port {setting.port}"),
        ):
            async with setting.serving():
                pass
