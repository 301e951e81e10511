"""An HTTP server in the event loop of the program. It does not answer while the loop is blocked.

The number and the duration of connections are limited, because a client that sends nothing needs no token to hold one.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason

_SHUTDOWN_SECONDS = 1.0
_MOST_CONNECTIONS = 100
_CONNECTION_SECONDS = 120.0
"""More than the longest answer takes. Browsers, Prometheus and the kubelet connect again."""


@asynccontextmanager
async def served_at(
    port: int, option: str, reason: Reason, routes: Mapping[str, Handler], host: str | None = None
) -> AsyncIterator[None]:
    """Answer GET requests for these paths while the context is open; 0: not at all.

    ``host`` None: on all addresses. Permanent(``reason``), which names the ``option``, if the port cannot be bound.
    """
    if not port:
        yield
        return
    app = web.Application()
    for path, handler in routes.items():
        app.router.add_get(path, handler)
    # Without lingering: aiohttp would keep a connection for 10 s after its end, for the rest of an unread body.
    runner = web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS, lingering_time=0
    )
    await runner.setup()
    try:
        try:
            listening = await asyncio.get_running_loop().create_server(_bounded(runner), host, port)
        except OSError as error:
            raise Permanent(reason, f"cannot listen on {option} {port}: {error.strerror}") from error
        try:
            yield
        finally:
            listening.close()
    finally:
        await runner.cleanup()


def _bounded(runner: web.AppRunner) -> Callable[[], asyncio.Protocol]:
    """The factory of the connections of the server: at most ``_MOST_CONNECTIONS``, for ``_CONNECTION_SECONDS`` each."""
    loop, latest = asyncio.get_running_loop(), deque[tuple[web.RequestHandler, float]]()

    def connection() -> asyncio.Protocol:
        # The oldest one is closed, not the new one: idle connections must not keep other clients out.
        if len(latest) == _MOST_CONNECTIONS:
            _abort(latest.popleft()[0])
        made = cast("web.Server", runner.server)()
        latest.append((made, loop.time() + _CONNECTION_SECONDS))
        if len(latest) == 1:
            loop.call_at(latest[0][1], expire)
        return made

    # One timer for all: a timer for each would keep a closed connection, with what it has sent, in memory until then.
    def expire() -> None:
        while latest and latest[0][1] <= loop.time():
            _abort(latest.popleft()[0])
        if latest:
            loop.call_at(latest[0][1], expire)

    return connection


def _abort(connection: web.RequestHandler) -> None:
    if connection.transport is not None:
        connection.transport.abort()
