"""From Prometheus to the lake: the windows that have ended since the last time, an hour at a time."""

import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kafka_rebalance.errors import Permanent
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_tables import METRICS
from kafka_rebalance.pipeline.metrics_schema import METRIC_WINDOW_SECONDS, MetricRow
from kafka_rebalance.pipeline.prometheus import PrometheusServer, Series, broker_of
from kafka_rebalance.pipeline.sample_manifests import StoredBatch, days, names_of, stamp_of, write_rows
from kafka_rebalance.reasons import Reason

SETTLED = timedelta(minutes=2)
"""Until then a scrape may still be missing in Prometheus."""
_WINDOW = timedelta(seconds=METRIC_WINDOW_SECONDS)
PIECE = timedelta(hours=1)
"""What one query asks for, at most."""


@dataclass(frozen=True, slots=True)
class MetricQueries:
    """PromQL for bytes in and out per second, by ``topic`` and ``label``, which names the broker."""

    bytes_in: str
    bytes_out: str
    label: str


@dataclass(frozen=True, slots=True)
class MetricPiece:
    """What one read brought. ``others``: values of the label that mean no broker of the cluster."""

    rows: tuple[MetricRow, ...]
    end: datetime
    others: frozenset[str]


def due(lake: Lake, cluster_id: str, window: timedelta, now: datetime) -> tuple[datetime, datetime]:
    """The begin of the first window to read and the end of the last; equal or later: none is due."""
    end = _floor(now - SETTLED)
    start = _floor(end - window)
    for day in reversed(days(lake, cluster_id, METRICS)):
        names = names_of(lake, cluster_id, day, METRICS)
        if names:
            return max(start, stamp_of(names[-1])), end
    return start, end


async def read_pieces(
    server: PrometheusServer,
    queries: MetricQueries,
    cluster_id: str,
    brokers: Mapping[BrokerId, Broker],
    begin: datetime,
    end: datetime,
) -> AsyncIterator[MetricPiece]:
    """The windows between two times. Raises Permanent (MetricsUnavailable) if the newest has series of others only.

    Older ones may: a Prometheus may have others for longer than this cluster.
    """

    async def read(start: datetime, last: datetime) -> MetricPiece:
        times = (start + _WINDOW, last, _WINDOW)
        found = {
            "in": await server.query_range(queries.bytes_in, *times),
            "out": await server.query_range(queries.bytes_out, *times),
        }
        return _piece(found, queries.label, cluster_id, brokers, last)

    if begin < end:
        newest = await read(end - _WINDOW, end)
        if newest.others and not newest.rows:
            raise _of_others(queries.label, newest.others, brokers)
    while begin < end:
        last = min(begin + PIECE, end)
        yield await read(begin, last)
        begin = last


def _of_others(label: str, others: frozenset[str], brokers: Mapping[BrokerId, Broker]) -> Permanent:
    return Permanent(
        Reason.METRICS_UNAVAILABLE,
        f"the label {label} of the series has values like {min(others)!r}, neither an id nor a host of the brokers "
        f"{sorted(brokers)}: name another label with --broker-label, or make one with label_replace in the queries",
    )


def store_metrics(lake: Lake, cluster_id: str, piece: MetricPiece) -> None:
    """As one file with its manifest, also if there are no rows: these windows are not read again."""
    stored = StoredBatch(piece.end, str(uuid.uuid4()), 0, len(piece.rows))
    write_rows(lake, cluster_id, piece.rows, stored, METRICS)


def _piece(
    found: Mapping[str, Series], label: str, cluster_id: str, brokers: Mapping[BrokerId, Broker], end: datetime
) -> MetricPiece:
    read_at = datetime.now(UTC)
    values: dict[tuple[str, BrokerId, datetime], dict[str, float]] = {}
    others: set[str] = set()
    for way, series in found.items():
        for labels, points in series:
            topic, name = labels.get("topic", ""), labels.get(label, "")
            broker = broker_of(name, brokers)
            if not topic or broker is None:
                others.add(name)
                continue
            for at, value in points.items():
                if 0 <= value < float("inf"):
                    cell = values.setdefault((topic, broker, at - _WINDOW), {})
                    cell[way] = max(value, cell.get(way, 0.0))
    rows = tuple(
        MetricRow(cluster_id, topic, broker, start, cell.get("in"), cell.get("out"), read_at)
        for (topic, broker, start), cell in sorted(values.items())
    )
    return MetricPiece(rows, end, frozenset(others))


def _floor(moment: datetime) -> datetime:
    seconds = int(moment.timestamp())
    return datetime.fromtimestamp(seconds - seconds % METRIC_WINDOW_SECONDS, UTC)
