"""``GET /namespaces/NAMESPACE/kafkarebalances/NAME``: the report of a KafkaRebalance, which reloads itself. Only reads.

Each request has the bearer token of a Kubernetes user, who must be permitted to ``get`` that KafkaRebalance. There are
no cookies and no login, so other web pages cannot use a browser's access.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from kafka_rebalance.app.fresh_pages import RELOAD_SECONDS, FreshPages
from kafka_rebalance.app.report_access import Access, ReportAccess
from kafka_rebalance.app.served_port import served_at
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

_NAMESPACE = "{namespace:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?}"
_NAME = "{name:[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?}"
PATH = f"/namespaces/{_NAMESPACE}/kafkarebalances/{_NAME}"
_MOST_REQUESTS = 16
_ANSWER_SECONDS = 30.0
_SEND_SECONDS = 30.0
_AGAIN = {"Retry-After": str(RELOAD_SECONDS), "Refresh": str(RELOAD_SECONDS)}
"""An open page loads again by itself, and shows the report as soon as it is available."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class ReportPort:
    """Answers requests. The limits apply to all requests together."""

    def __init__(self, access: ReportAccess, pages: FreshPages[tuple[str, str]]) -> None:
        self._access = access
        self._pages = pages
        self._requests = 0
        self._logged = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send the page, or why there is none."""
        if self._requests >= _MOST_REQUESTS:
            return _refused(429, "too many requests", _AGAIN)
        self._requests += 1
        try:
            return await self._sent(request, await self._answered(request))
        finally:
            self._requests -= 1

    async def _answered(self, request: web.Request) -> web.Response:
        where = request.match_info["namespace"], request.match_info["name"]
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                refused = await self._access_refused(request, *where)
                if refused is not None:
                    return refused
                try:
                    page = await self._pages.page(where)
                except NotFound as error:
                    return _refused(404, error.message, _AGAIN)
        except RebalanceError as error:
            self._log(error)
            return _refused(503, f"{error.reason}: see the log of the operator", _AGAIN)
        except TimeoutError:
            return _refused(503, "the report was not ready in time", _AGAIN)
        return web.Response(body=page, content_type="text/html", charset="utf-8", headers=_HEADERS)

    async def _access_refused(self, request: web.Request, namespace: str, name: str) -> web.Response | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return _refused(401, "give a token of a Kubernetes user: Authorization: Bearer TOKEN", _challenge())
        match await self._access.of(token.strip(), namespace, name):
            case Access.GRANTED:
                return None
            case Access.DENIED:
                message = f"the user of this token may not get kafkarebalances/{name} in namespace {namespace}"
                return _refused(403, message)
            case Access.UNKNOWN_TOKEN:
                return _refused(401, "the token is not valid, or not any more", _challenge("invalid_token"))
            case Access.BUSY:
                return _refused(429, "too many requests with other tokens", _AGAIN)

    async def _sent(self, request: web.Request, response: web.Response) -> web.Response:
        """Send it, until the browser has received it, has disconnected or is too slow.

        Meanwhile it counts as a request.
        """
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            pass
        return response

    def _log(self, error: RebalanceError) -> None:
        """Log a problem once, even if many browsers reload."""
        said = f"{error.reason}: {error.message}"
        if said != self._logged:
            log.warning("no report: %s", said)
            self._logged = said


@asynccontextmanager
async def reports_served(port: int, access: ReportAccess, pages: FreshPages[tuple[str, str]]) -> AsyncIterator[None]:
    """Answer on ``port``, on all addresses, while the context is open.

    Permanent("ReportPortUnavailable") if the port cannot be bound.
    """
    routes = {PATH: ReportPort(access, pages).answer}
    try:
        async with served_at(port, "--report-port", Reason.REPORT_PORT_UNAVAILABLE, routes):
            yield
    finally:
        await pages.close()


def _challenge(error: str = "") -> Mapping[str, str]:
    return {"WWW-Authenticate": f'Bearer error="{error}"' if error else "Bearer"}


def _refused(status: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{message}\n", headers={**_HEADERS, **(headers or {})})
