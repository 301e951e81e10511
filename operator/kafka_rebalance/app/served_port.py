"""An HTTP server in the event loop of the program. It does not answer while the loop is blocked.

The number and the duration of connections are limited, because a client that sends nothing needs no token to hold one.
"""

import asyncio
from collections import defaultdict
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
    open_ones = _OpenConnections()
    return lambda: _Connection(cast("web.Server", runner.server)(), open_ones)


class _Connection(asyncio.Protocol):
    """A connection of aiohttp that is counted while it is open."""

    def __init__(self, handler: web.RequestHandler, others: "_OpenConnections") -> None:
        self._handler = handler
        self._others = others
        self._transport: asyncio.Transport | None = None
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self._handler.connection_made(transport)
        self._others.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.remove(self)
        self._handler.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._handler.data_received(data)

    def eof_received(self) -> None:
        self._handler.eof_received()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()


class _OpenConnections:
    """The open connections of a server, oldest first; closes what is too many or too old."""

    def __init__(self) -> None:
        self._ends: dict[_Connection, float] = {}
        """By connection, when it is closed, as loop time."""
        self._of_address: defaultdict[str, dict[_Connection, None]] = defaultdict(dict)
        self._timed = False

    def add(self, connection: _Connection) -> None:
        """Close another one for it if there are too many: the oldest one of the address that has most.

        Idle connections must not keep other clients out, and many connections of one address must not close those of
        others, such as the kubelet's.
        """
        if len(self._ends) >= _MOST_CONNECTIONS:
            most = max(self._of_address.values(), key=len)
            self._close(next(iter(most)))
        loop = asyncio.get_running_loop()
        self._ends[connection] = loop.time() + _CONNECTION_SECONDS
        self._of_address[connection.address][connection] = None
        if not self._timed:
            self._timed = True
            loop.call_later(_CONNECTION_SECONDS, self._expire)

    def remove(self, connection: _Connection) -> None:
        """It is closed."""
        if self._ends.pop(connection, None) is None:
            return
        same = self._of_address[connection.address]
        del same[connection]
        if not same:
            del self._of_address[connection.address]

    def _close(self, connection: _Connection) -> None:
        self.remove(connection)
        connection.abort()

    # One timer for all: a timer for each would keep a closed connection, with what it has sent, in memory until then.
    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        while self._ends and (oldest := next(iter(self._ends.items())))[1] <= loop.time():
            self._close(oldest[0])
        self._timed = bool(self._ends)
        if self._timed:
            loop.call_at(next(iter(self._ends.values())), self._expire)
