"""``GET /metrics`` for Prometheus, on a separate port, so that a NetworkPolicy can allow it without the probes.

The samples are read in the operator's event loop, between two steps of the engines, so that they are consistent. Their
text is written in a thread: that of thousands of resources takes half a second.
"""

import asyncio
import time
from contextlib import AbstractAsyncContextManager

from aiohttp import web
from prometheus_client import CollectorRegistry

from kafka_rebalance.app.served_port import served_at
from kafka_rebalance.reasons import Reason
from kafka_rebalance.telemetry.exposition import CollectedMetrics, exposed

PATH = "/metrics"
_OPENMETRICS = "application/openmetrics-text"
_REST = 4.0
"""An answer is used again for this multiple of the CPU time that it took: requests that come one after the other take
a fifth of the loop's time."""
_CHEAP_SECONDS = 0.02
"""An answer that took less is not used again."""


class _Scrapes:
    """The last answer of each format, and until when it is used again."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._kept: dict[str, tuple[tuple[bytes, str], float]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def answer(self, accept: str) -> tuple[bytes, str]:
        """The metrics, and their content type."""
        wanted = f"{_OPENMETRICS}; version=1.0.0" if _OPENMETRICS in accept else ""
        async with self._one_at_a_time:
            if wanted in self._kept and time.monotonic() < self._kept[wanted][1]:
                return self._kept[wanted][0]
            began = time.thread_time()
            metrics = CollectedMetrics(self._registry)
            reading = time.thread_time() - began
            made, writing = await asyncio.to_thread(_written, metrics, wanted)
            took = reading + writing
            self._kept[wanted] = made, time.monotonic() + (_REST * took if took > _CHEAP_SECONDS else 0.0)
            return made


def _written(metrics: CollectedMetrics, accept: str) -> tuple[tuple[bytes, str], float]:
    """The answer, and the CPU time that it took."""
    began = time.thread_time()
    return exposed(metrics, accept), time.thread_time() - began


def metrics_served(port: int, registry: CollectorRegistry) -> AbstractAsyncContextManager[None]:
    """Answer on ``port``, on all addresses, while the context is open; 0: serve no metrics.

    Permanent("MetricsPortUnavailable") if the port cannot be bound.
    """

    scrapes = _Scrapes(registry)

    async def answer(request: web.Request) -> web.StreamResponse:
        body, content_type = await scrapes.answer(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    return served_at(port, "--metrics-port", Reason.METRICS_PORT_UNAVAILABLE, {PATH: answer})
