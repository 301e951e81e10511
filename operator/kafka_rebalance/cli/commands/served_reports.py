"""Serves a report that is made again for each request, on this machine only and with the rights of the user.

Requests whose Host header does not name this machine are refused, against DNS rebinding: otherwise a web page from
elsewhere could let its own host name resolve to 127.0.0.1 and read the report.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from aiohttp import web

from kafka_rebalance.app.served_port import served_at
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.reasons import Reason
from kafka_rebalance.report.pages import html_page
from kafka_rebalance.report.report_contents import Report

HOST = "127.0.0.1"
_NAMES = {HOST, "localhost"}
_RELOAD_SECONDS = 5
_FRESH_SECONDS = 2.0
"""Requests within this time get the same page, for example from several windows."""


def report_served(port: int, make: Callable[[], Awaitable[Report]]) -> AbstractAsyncContextManager[None]:
    """Answer ``GET /`` with the page while the context is open. Permanent("ReportPortUnavailable") if it cannot."""
    one_at_a_time = asyncio.Lock()
    page, made_at = "", float("-inf")

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal page, made_at
        if request.host.partition(":")[0] not in _NAMES:
            raise web.HTTPForbidden(text="the Host header does not name this machine\n")
        async with one_at_a_time:
            if time.monotonic() - made_at > _FRESH_SECONDS:
                try:
                    report = await make()
                except RebalanceError as error:
                    return web.Response(status=503, text=f"{error.reason}: {error.message}\n")
                page = await asyncio.to_thread(html_page, report, _RELOAD_SECONDS)
                made_at = time.monotonic()
        return web.Response(text=page, content_type="text/html", headers={"Cache-Control": "no-store"})

    return served_at(port, "--serve", Reason.REPORT_PORT_UNAVAILABLE, {"/": answer}, HOST)
