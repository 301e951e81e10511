"""Reads what brokers report of their topics from a Prometheus server, by its HTTP API (query_range).

Credentials are sent to the named server only: redirects are not followed, and no message has them. Values are rates of
bytes per second over the five minutes before each time.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.reasons import Reason

BYTES_IN = "kafka_server_brokertopicmetrics_bytesin_total"
BYTES_OUT = "kafka_server_brokertopicmetrics_bytesout_total"
"""As the usual rules of the JMX exporter name BytesInPerSec and BytesOutPerSec."""
_SECONDS = 60.0
_LONGEST_ANSWER = 256 << 20
_TRY_LATER = {408, 425, 429}


def default_query(metric: str, label: str) -> str:
    """Bytes per second by topic and broker. A maximum, because two Prometheus may scrape the same broker."""
    return f'max by (topic, {label}) (rate({metric}{{topic!=""}}[5m]))'


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    """Where it is. ``authorization`` is a header; ``context``: for https, None: the system's CAs."""

    url: str
    authorization: str = field(default="", repr=False)
    context: ssl.SSLContext | None = None

    async def query_range(self, query: str, start: datetime, end: datetime, step: timedelta) -> "Series":
        """Values by series and time, both ends included. Raises Permanent or Transient (MetricsUnavailable)."""
        import aiohttp

        form = {
            "query": query,
            "start": f"{start.timestamp():.3f}",
            "end": f"{end.timestamp():.3f}",
            "step": f"{step.total_seconds():.0f}",
        }
        headers = {"Accept": "application/json"} | ({"Authorization": self.authorization} if self.authorization else {})
        options: dict[str, Any] = {"data": form, "allow_redirects": False, "ssl": self.context or True}
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS), trust_env=True) as session,
                session.post(f"{self.url.rstrip('/')}/api/v1/query_range", headers=headers, **options) as answer,
            ):
                body = bytearray()
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) > _LONGEST_ANSWER:
                        raise self._refused("its answer is too long: aggregate more in the query")
                status = answer.status
        except TimeoutError as error:
            raise self._silent(f"no answer in {_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._silent(type(error).__name__) from error
        return self._series(status, bytes(body))

    def _series(self, status: int, body: bytes) -> "Series":
        if status >= 500 or status in _TRY_LATER:
            raise self._silent(f"HTTP status {status}")
        if 300 <= status < 400:
            raise self._refused(f"HTTP status {status}: redirects are not followed, name the final address")
        if status in {401, 403}:
            raise self._refused(f"HTTP status {status}: name a file with valid credentials")
        try:
            answer = json.loads(body)
            if status != 200 or answer["status"] != "success":
                raise self._refused(f"HTTP status {status}: {str(answer.get('error', 'no error is named'))[:300]}")
            return tuple(
                (
                    found["metric"],
                    {datetime.fromtimestamp(float(at), UTC): float(value) for at, value in found["values"]},
                )
                for found in answer["data"]["result"]
            )
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise self._refused(f"HTTP status {status}, and no answer of Prometheus' query_range") from None

    def _refused(self, why: str) -> RebalanceError:
        return Permanent(Reason.METRICS_UNAVAILABLE, f"Prometheus at {self.url} cannot be used: {why}")

    def _silent(self, why: str) -> RebalanceError:
        return Transient(Reason.METRICS_UNAVAILABLE, f"Prometheus at {self.url} does not answer: {why}", 60.0)


Series = tuple[tuple[Mapping[str, str], Mapping[datetime, float]], ...]
"""Labels, and values by time."""


def checked_url(url: str) -> str:
    """The URL, if it is one of HTTP without credentials. Raises ValueError, without the URL, with what to write."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it is not an http:// or https:// URL")
    if "@" in parts.netloc:
        raise ValueError("it has credentials, which others see: write them into a file")
    if parts.query or parts.fragment:
        raise ValueError("it has a query: name the server, like http://prometheus:9090")
    return url


def broker_of(label: str, brokers: Mapping[BrokerId, Broker]) -> BrokerId | None:
    """The broker that a label means: by its id, its host or, if it is of one broker only, the first part of its host.

    ``label`` may have a port. None if it means none of them, or several.
    """
    name = label.rpartition(":")[0] or label
    if name.isascii() and name.isdigit():
        return BrokerId(int(name)) if int(name) in brokers else None
    for of in (str, _first):
        found = [broker.id for broker in brokers.values() if broker.host and of(broker.host) == of(name)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _first(host: str) -> str:
    """Of an address, which has no such part, all."""
    first = host.partition(".")[0]
    return host if first.isdigit() else first
