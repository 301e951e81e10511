"""``GET /livez`` and ``GET /readyz``: 200, or 503 with the reasons, one per line.

Served by the operator's own loop: while it is blocked, the kubelet gets no answer and the probe fails. The reasons
contain nothing but ages, cluster ids and namespaces: anybody who can reach the port may read them.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler

from kafka_rebalance.app.health import ProcessState, liveness_failures, readiness_failures
from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason

_SHUTDOWN_SECONDS = 1.0
PROBES: Mapping[str, Callable[[ProcessState], list[str]]] = {"/livez": liveness_failures, "/readyz": readiness_failures}
"""All paths that are served, each with the function that lists the reasons for 503."""


@asynccontextmanager
async def served(port: int, state: Callable[[], ProcessState]) -> AsyncIterator[None]:
    """Answer on ``port``, on all addresses, while the context is open; 0: serve no probes.

    Permanent("HealthPortUnavailable") if the port cannot be bound.
    """
    if not port:
        yield
        return
    app = web.Application()
    for path, judge in PROBES.items():
        app.router.add_get(path, _answering(state, judge))
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, port=port).start()
        except OSError as error:
            message = f"cannot listen on --health-port {port}: {error.strerror}"
            raise Permanent(Reason.HEALTH_PORT_UNAVAILABLE, message) from error
        yield
    finally:
        await runner.cleanup()


def _answering(state: Callable[[], ProcessState], judge: Callable[[ProcessState], list[str]]) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        reasons = judge(state())
        return web.Response(status=503 if reasons else 200, text="\n".join(reasons or ["ok"]) + "\n")

    return answer
