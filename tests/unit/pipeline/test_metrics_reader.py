"""The windows that are read from Prometheus, and the stored rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet
import pytest

from kafka_rebalance.errors import Permanent
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_tables import METRICS
from kafka_rebalance.pipeline.metrics_reader import MetricPiece, MetricQueries, due, read_pieces, store_metrics
from kafka_rebalance.pipeline.prometheus import PrometheusServer, Series
from kafka_rebalance.pipeline.sample_manifests import inventory

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FIVE = timedelta(minutes=5)
HOUR = timedelta(hours=1)
BROKERS = {BrokerId(1): Broker(BrokerId(1), None, "kafka-1", 9092)}


class Answering(PrometheusServer):
    """Answers by query; keeps the ranges that were asked for."""

    answers: Mapping[str, Series]
    asked: list[tuple[datetime, datetime]]

    async def query_range(self, query: str, start: datetime, end: datetime, step: timedelta) -> Series:
        assert step == FIVE
        self.asked.append((start, end))
        return self.answers[query]


def answering(ins: Series = (), outs: Series = ()) -> Answering:
    server = Answering("http://p")
    object.__setattr__(server, "answers", {"in": ins, "out": outs})
    object.__setattr__(server, "asked", [])
    return server


class Later(PrometheusServer):
    """Answers to both queries with those of its series that have a value in the range."""

    def __init__(self, found: Series) -> None:
        super().__init__("http://p")
        object.__setattr__(self, "found", found)

    async def query_range(self, query: str, start: datetime, end: datetime, step: timedelta) -> Series:
        found: Series = self.found  # type: ignore[attr-defined]
        return tuple(each for each in found if any(start <= at <= end for at in each[1]))


def series(topic: str, broker: str, value: float, at: datetime = NOON) -> tuple[dict[str, str], dict[datetime, float]]:
    return {"topic": topic, "b": broker}, {at: value}


async def read(server: PrometheusServer, begin: datetime = NOON - FIVE, end: datetime = NOON) -> list[MetricPiece]:
    return [piece async for piece in read_pieces(server, MetricQueries("in", "out", "b"), "c1", BROKERS, begin, end)]


class TestDue:
    def test_the_first_time_is_as_far_back_as_asked_for(self, tmp_path: Path) -> None:
        """In whole windows; two minutes after its end nothing is missing in Prometheus any more."""
        lake = Lake.open(str(tmp_path))
        assert due(lake, "c1", HOUR, NOON + timedelta(minutes=6, seconds=59)) == (NOON - HOUR, NOON)
        assert due(lake, "c1", HOUR, NOON + timedelta(minutes=7)) == (NOON - HOUR + FIVE, NOON + FIVE)

    def test_later_it_goes_on_where_it_ended(self, tmp_path: Path) -> None:
        """Also after a read that found nothing; but not further back than asked for."""
        lake = Lake.open(str(tmp_path))
        store_metrics(lake, "c1", MetricPiece((), NOON, frozenset()))
        assert due(lake, "c1", HOUR, NOON + timedelta(minutes=13)) == (NOON, NOON + 2 * FIVE)
        assert due(lake, "c1", HOUR, NOON + timedelta(minutes=3)) == (NOON, NOON)
        assert due(lake, "c1", HOUR, NOON + timedelta(hours=9, minutes=2)) == (NOON + 8 * HOUR, NOON + 9 * HOUR)


class TestRead:
    async def test_an_hour_at_a_time(self) -> None:
        """A day of a large cluster would be too much for one answer. Each time is the end of a window."""
        server = answering()
        pieces = await read(server, NOON - HOUR - FIVE)
        assert [piece.end for piece in pieces] == [NOON - FIVE, NOON]
        assert server.asked[2:] == [(NOON - HOUR, NOON - FIVE)] * 2 + [(NOON, NOON)] * 2

    async def test_one_row_per_topic_broker_and_window(self) -> None:
        """A value that one query does not have is not known; if a broker has two series, the larger one counts."""
        ins = (series("t", "1", 10), series("t", "kafka-1:9404", 9), series("u", "1", 5))
        outs = (series("t", "1", 20), series("w", "1", 7), series("t", "1", float("nan"), NOON - FIVE))
        (piece,) = await read(answering(ins, outs))
        assert [(row.topic, row.broker, row.window_start, row.bytes_in, row.bytes_out) for row in piece.rows] == [
            ("t", 1, NOON - FIVE, 10, 20),
            ("u", 1, NOON - FIVE, 5, None),
            ("w", 1, NOON - FIVE, None, 7),
        ]

    async def test_series_of_other_clusters_are_left_out(self) -> None:
        """A Prometheus may have several; their names are reported."""
        (piece,) = await read(answering((series("t", "1", 10), series("t", "other-1", 10))))
        assert (len(piece.rows), piece.others) == (1, {"other-1"})

    async def test_others_may_be_older(self) -> None:
        """An hour with series of other clusters only does not stop it: the cluster is new."""
        ins = (series("t", "1", 10), series("t", "other-1", 10, NOON - 2 * HOUR))
        pieces = await read(Later(ins), NOON - 3 * HOUR)
        assert [(len(piece.rows), piece.others) for piece in pieces] == [(0, {"other-1"}), (0, set()), (1, set())]

    async def test_if_all_are_of_others_the_label_is_wrong(self) -> None:
        """The message says what to do."""
        with pytest.raises(Permanent, match=r"label b of the series has values like 'other-1'.*--broker-label"):
            await read(answering((series("t", "other-1", 10),)))

    async def test_rows_are_stored_with_a_manifest(self, tmp_path: Path) -> None:
        """The window that was read is in its time."""
        lake = Lake.open(str(tmp_path))
        (piece,) = await read(answering((series("t", "1", 10),)))
        store_metrics(lake, "c1", piece)
        (manifest,) = inventory(lake, "c1", HOUR, NOON, METRICS).manifests
        assert [(batch.sampled_at, batch.rows) for batch in manifest.batches] == [(NOON, 1)]
        (row,) = pyarrow.parquet.ParquetFile(tmp_path / manifest.path).read().to_pylist()
        assert (row["topic"], row["bytes_in"], row["bytes_out"]) == ("t", 10.0, None)
