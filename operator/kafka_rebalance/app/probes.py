"""``GET /livez`` and ``GET /readyz``: 200, or 503 with the reasons, one per line.

Served by the operator's own loop: while it is blocked, the kubelet gets no answer and the probe fails. The reasons
contain nothing but ages, cluster ids and namespaces: anybody who can reach the port may read them.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from aiohttp import web
from aiohttp.typedefs import Handler

from kafka_rebalance.app.health import ProcessState, liveness_failures, readiness_failures
from kafka_rebalance.app.served_port import served_at
from kafka_rebalance.reasons import Reason

PROBES: Mapping[str, Callable[[ProcessState], list[str]]] = {"/livez": liveness_failures, "/readyz": readiness_failures}
"""All paths that are served, each with the function that lists the reasons for 503."""


def served(port: int, state: Callable[[], ProcessState]) -> AbstractAsyncContextManager[None]:
    """Answer on ``port``, on all addresses, while the context is open; 0: serve no probes.

    Permanent("HealthPortUnavailable") if the port cannot be bound.
    """
    routes = {path: _answering(state, judge) for path, judge in PROBES.items()}
    return served_at(port, "--health-port", Reason.HEALTH_PORT_UNAVAILABLE, routes)


def _answering(state: Callable[[], ProcessState], judge: Callable[[ProcessState], list[str]]) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        reasons = judge(state())
        return web.Response(status=503 if reasons else 200, text="\n".join(reasons or ["ok"]) + "\n")

    return answer
