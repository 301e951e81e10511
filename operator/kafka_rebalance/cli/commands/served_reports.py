"""Serves a report that is made again for each request, on this machine only and with the rights of the user.

Requests whose Host header does not name this machine are refused, against DNS rebinding: otherwise a web page of
another site could let its host name resolve to 127.0.0.1 and read the report.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from kafka_rebalance.app.fresh_pages import RELOAD_SECONDS, FreshPages
from kafka_rebalance.app.served_port import served_at
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.reasons import Reason
from kafka_rebalance.report.report_contents import Report

HOST = "127.0.0.1"
_NAMES = {HOST, "localhost"}


@asynccontextmanager
async def report_served(port: int, make: Callable[[], Awaitable[Report]]) -> AsyncIterator[None]:
    """Answer ``GET /`` with the page while the context is open. Port 0: serve nothing.

    Permanent("ReportPortUnavailable") if the port cannot be bound.
    """
    pages: FreshPages[None] = FreshPages(lambda _: make())

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.host.partition(":")[0] not in _NAMES:
            raise web.HTTPForbidden(text="the Host header does not name this machine\n")
        headers = {"Cache-Control": "no-store"}
        try:
            page = await pages.page(None)
        except RebalanceError as error:
            headers["Refresh"] = str(RELOAD_SECONDS)
            return web.Response(status=503, text=f"{error.reason}: {error.message}\n", headers=headers)
        return web.Response(body=page, content_type="text/html", charset="utf-8", headers=headers)

    try:
        async with served_at(port, "--serve", Reason.REPORT_PORT_UNAVAILABLE, {"/": answer}, HOST):
            yield
    finally:
        await pages.close()
