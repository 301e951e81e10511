"""Prometheus' HTTP API: the requests, the parsed answers, and that no secret is sent elsewhere or printed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.pipeline.prometheus import PrometheusServer, Series, broker_of, checked_url

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FIVE = timedelta(minutes=5)
MATRIX = {
    "status": "success",
    "data": {
        "resultType": "matrix",
        "result": [{"metric": {"topic": "t", "instance": "kafka-0:1"}, "values": [[NOON.timestamp(), "1.5"]]}],
    },
}


@asynccontextmanager
async def serving(answer: Callable[[web.Request], web.Response]) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """A server at any path; yields its URL, and the headers and forms that it got."""
    asked: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        asked.append({"path": request.path, "authorization": request.headers.get("Authorization", ""), **form})
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


async def ask(url: str, authorization: str = "") -> Series:
    return await PrometheusServer(url, authorization).query_range("rate(x[5m])", NOON, NOON + FIVE, FIVE)


class TestQuery:
    async def test_asks_for_a_range_with_the_credentials(self) -> None:
        """In the body: URLs are logged. The path of the URL is kept, for proxies."""
        async with serving(lambda _: web.json_response(MATRIX)) as (url, asked):
            found = await ask(f"{url}/prometheus/", "Bearer secret-token")
        assert found == (({"topic": "t", "instance": "kafka-0:1"}, {NOON: 1.5}),)
        assert asked == [
            {
                "path": "/prometheus/api/v1/query_range",
                "authorization": "Bearer secret-token",
                "query": "rate(x[5m])",
                "start": f"{NOON.timestamp():.3f}",
                "end": f"{(NOON + FIVE).timestamp():.3f}",
                "step": "300",
            }
        ]

    @pytest.mark.parametrize(
        ("answer", "kind", "why"),
        [
            (web.Response(status=401, text="secret-token"), Permanent, "HTTP status 401: name a file"),
            (web.Response(status=403, text="secret-token"), Permanent, "HTTP status 403: name a file"),
            (
                web.json_response({"status": "error", "error": "parse error: x"}, status=400),
                Permanent,
                "HTTP status 400: parse error: x",
            ),
            (web.Response(status=503), Transient, "HTTP status 503"),
            (web.Response(status=429), Transient, "HTTP status 429"),
            (web.Response(text="<html>secret-token"), Permanent, "no answer of Prometheus' query_range"),
            (web.json_response({"status": "success", "data": {}}), Permanent, "no answer of Prometheus' query_range"),
            (web.json_response([1]), Permanent, "no answer of Prometheus' query_range"),
        ],
        ids=["401", "403", "bad query", "503", "429", "html", "no result", "a list"],
    )
    async def test_an_answer_that_is_none_is_told_without_secrets(
        self, answer: web.Response, kind: type[Exception], why: str
    ) -> None:
        """Transient what may heal by itself."""
        async with serving(lambda _: answer) as (url, _):
            with pytest.raises(kind, match=why) as refused:
                await ask(url, "Bearer secret-token")
        assert "secret-token" not in repr(refused.value)

    async def test_credentials_do_not_follow_redirects(self) -> None:
        """They are for the named server only."""
        async with serving(lambda _: web.json_response(MATRIX)) as (other, asked):
            moved = web.Response(status=307, headers={"Location": other})
            async with serving(lambda _: moved) as (url, _):
                with pytest.raises(Permanent, match="redirects are not followed"):
                    await ask(url, "Bearer secret-token")
        assert asked == []

    async def test_nobody_is_there(self) -> None:
        """It may come back."""
        with pytest.raises(Transient, match=r"Prometheus at http://127.0.0.1:1 does not answer"):
            await ask("http://127.0.0.1:1")


class TestUrl:
    @pytest.mark.parametrize(
        ("url", "why"),
        [
            ("prometheus:9090", "not an http"),
            ("file:///etc/passwd", "not an http"),
            ("http://user:secret@prometheus:9090", "write them into a file"),
            ("http://prometheus:9090?token=secret", "has a query"),
        ],
    )
    def test_what_is_none_is_refused_without_it(self, url: str, why: str) -> None:
        """It may have a secret."""
        with pytest.raises(ValueError, match=why) as refused:
            checked_url(url)
        assert "secret" not in str(refused.value)

    def test_any_other(self) -> None:
        """Also behind a path."""
        assert checked_url("https://metrics.example/prometheus") == "https://metrics.example/prometheus"


BROKERS = {
    BrokerId(id_): Broker(BrokerId(id_), None, host, 9092)
    for id_, host in ((1, "kafka-1.a.svc"), (2, "kafka-2.a.svc"), (11, "10.0.0.1"), (12, "same"), (13, "same"))
}


class TestBrokerOf:
    @pytest.mark.parametrize(
        ("label", "broker"),
        [
            ("1", 1),
            ("1:9404", 1),
            ("3", None),
            ("kafka-2.a.svc:9404", 2),
            ("kafka-2", 2),
            ("kafka-2.b.svc", 2),
            ("kafka-3", None),
            ("10.0.0.1:9404", 11),
            ("10.0.0.2:9404", None),
            ("same", None),
            ("", None),
        ],
    )
    def test_by_id_host_or_first_part_of_the_host(self, label: str, broker: int | None) -> None:
        """Two brokers at one host are ambiguous, and a similar address is not enough."""
        assert broker_of(label, BROKERS) == broker
