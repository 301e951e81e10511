"""``GET /metrics`` for Prometheus, on a separate port, so that a NetworkPolicy can allow it without the probes.

The samples are read in the operator's event loop, between two steps of the engines, so that they are consistent.
"""

from contextlib import AbstractAsyncContextManager

from aiohttp import web
from prometheus_client import CollectorRegistry

from kafka_rebalance.app.served_port import served_at
from kafka_rebalance.reasons import Reason
from kafka_rebalance.telemetry.exposition import exposed

PATH = "/metrics"


def metrics_served(port: int, registry: CollectorRegistry) -> AbstractAsyncContextManager[None]:
    """Answer on ``port``, on all addresses, while the context is open; 0: serve no metrics.

    Permanent("MetricsPortUnavailable") if the port cannot be bound.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        body, content_type = exposed(registry, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    return served_at(port, "--metrics-port", Reason.METRICS_PORT_UNAVAILABLE, {PATH: answer})
