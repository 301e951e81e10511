from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.load_models import render_version_1

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.load_artifact import check_usable, parse_load_model
from kafka_rebalance.model.topology import TopicPartition

NEWEST = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)
MODEL = LoadModel(
    source="LoadModel",
    measured_at=NEWEST,
    partitions={
        TopicPartition("orders", 1): PartitionLoad(2048, 10.5, 20.25, 30.0, 3600.0, "id-1"),
        TopicPartition("orders", 0): PartitionLoad(1024, None, topic_id="id-1"),
    },
    cluster_id="c1",
    window_start=NEWEST - timedelta(hours=1),
    samples=360,
)


PACKED = render_version_1(MODEL)


def changed(**fields: object) -> bytes:
    document = json.loads(gzip.decompress(PACKED)) | fields
    return json.dumps({name: value for name, value in document.items() if value != "gone"}).encode()


class TestParsing:
    @pytest.mark.parametrize("data", [PACKED, gzip.decompress(PACKED)], ids=["gzip", "plain"])
    def test_a_model_of_version_1_is_read(self, data: bytes) -> None:
        """As it was written, or unpacked by a user. An unknown rate stays unknown: an idle partition has a rate, 0."""
        assert parse_load_model(data) == MODEL


class TestBadArtefacts:
    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"", "not JSON"),
            (b"[]", "expected an object"),
            (b"\xff\xfe", "not JSON"),
            (b"[" * 100_000, "nested too deeply"),
            (PACKED[:-20], "the gzip stream is broken"),
            (PACKED[:30] + b"xxxx" + PACKED[34:], "the gzip stream is broken"),
            (changed(version=2), "of version 2, this program reads version 1 as JSON"),
            (changed(columns=["topic"]), "columns"),
            (changed(clusterId="gone"), "clusterId is missing"),
            (changed(clusterId=7), "7 is not text"),
            (changed(windowEnd="2026-03-01T12:00:00"), "without a zone"),
            (changed(samples=-1), "-1 is not a count"),
            (changed(partitions=[["t", 0]]), "expected 8 values"),
            (changed(partitions=[["t", 0, "", -5, None, None, None, 0]]), "-5 is not a count"),
            (changed(partitions=[["t", 0, "", 5, float("nan"), None, None, 0]]), "nan is not a rate"),
        ],
    )
    def test_is_refused_with_what_is_wrong(self, data: bytes, why: str) -> None:
        """Refused without a stack trace, and the message names the fault."""
        with pytest.raises(Refused, match=why) as refusal:
            parse_load_model(data)
        assert refusal.value.reason == "LoadModelInvalid"


class TestFreshness:
    def test_exactly_the_allowed_age_passes(self) -> None:
        """The limit itself is allowed."""
        check_usable(MODEL, "c1", NEWEST + timedelta(hours=1), timedelta(hours=1))

    def test_older_is_refused_with_the_numbers(self) -> None:
        """Its age, its time, and the limit."""
        with pytest.raises(Refused, match=r"2026-03-01T12:00:00.250000Z, 1h1m ago; at most 1h is") as refusal:
            check_usable(MODEL, "c1", NEWEST + timedelta(minutes=61), timedelta(hours=1))
        assert refusal.value.reason == "LoadModelStale"

    def test_a_model_from_the_future_is_refused(self) -> None:
        """Beyond five minutes of clock skew its age is unknown."""
        check_usable(MODEL, "c1", NEWEST - timedelta(minutes=5), timedelta(hours=1))
        with pytest.raises(Refused, match="ahead of this machine's clock"):
            check_usable(MODEL, "c1", NEWEST - timedelta(minutes=6), timedelta(hours=1))

    def test_a_model_without_a_time_is_refused(self) -> None:
        """An unknown age is not fresh."""
        with pytest.raises(Refused, match="does not say when"):
            check_usable(LoadModel("LogDirs", None, cluster_id="c1"), "c1", NEWEST, timedelta(hours=1))

    def test_a_model_of_another_cluster_is_refused(self) -> None:
        """With both ids."""
        with pytest.raises(Refused, match="belongs to cluster c1, not to c2"):
            check_usable(MODEL, "c2", NEWEST, timedelta(hours=1))
