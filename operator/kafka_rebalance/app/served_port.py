"""An HTTP server in the event loop of the program. It does not answer while the loop is blocked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason

_SHUTDOWN_SECONDS = 1.0


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
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise Permanent(reason, f"cannot listen on {option} {port}: {error.strerror}") from error
        yield
    finally:
        await runner.cleanup()
