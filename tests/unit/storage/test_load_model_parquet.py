"""The load model of version 2: what is written comes back, and a file that is none is refused."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from tests.fakes.load_models import parquet_of, render_parquet, stored

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.storage import load_model_parquet
from kafka_rebalance.storage.load_model_parquet import read_parquet

NEWEST = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)
FULL = PartitionLoad(
    2**40, 10.5, 20.25, 30.0, 3600.0, "id-1", {1: 7, 3: 2**40}, 9.5, 29.0, 90.0, 5.0, 4.5, 6.0, 7.0, 8.0
)
LOADS = {
    TopicPartition("a", 0): PartitionLoad(1024, topic_id="id-a"),
    TopicPartition("orders", 0): FULL,
    TopicPartition("orders", 1): PartitionLoad(0, 0.0, 0.0, 0.0, 900.0, "id-1", {2: 0}),
    TopicPartition("orders", 7): PartitionLoad(1, topic_id="id-1", replica_bytes={2: 1, 1: 1, 5: 0}),
    TopicPartition("z", 3): PartitionLoad(5, bytes_out_max=1.5),
}
MODEL = LoadModel("LoadModel", NEWEST, LOADS, "c1", NEWEST - timedelta(hours=1), 360)


def read(data):
    with pa.BufferReader(data) as source:
        return read_parquet(source)


class TestWhatIsStored:
    @pytest.mark.parametrize("group", [None, 1, 2])
    def test_comes_back(self, group):
        """All figures, including unknown ones, with any row groups."""
        found = read(stored(parquet_of(MODEL), MODEL, group))
        assert dict(found.partitions) == LOADS
        assert (found.cluster_id, found.measured_at, found.window_start, found.samples) == (
            *("c1", NEWEST, MODEL.window_start),
            360,
        )

    def test_is_found_by_topic_and_number(self):
        """Also where numbers are missing; nothing else is found."""
        loads = read(render_parquet(MODEL)).partitions
        assert all(loads[tp] == load for tp, load in LOADS.items())
        assert len(loads) == len(LOADS)
        assert list(loads) == list(LOADS)
        for absent in [("orders", 2), ("orders", 8), ("a", 1), ("b", 0), ("z", 0), ("z", 4)]:
            assert TopicPartition(*absent) not in loads

    def test_may_be_nothing(self):
        """A cluster without topics."""
        empty = LoadModel("LoadModel", NEWEST, {}, "c1")
        assert dict(read(render_parquet(empty)).partitions) == {}

    def test_is_kept_as_arrays(self):
        """No object per partition: it would be a hundred times the memory."""
        columns = read(render_parquet(MODEL)).partitions._columns
        arrays = [value for value in columns if isinstance(value, np.ndarray)]
        assert len(arrays) == len(columns) - 2  # the names of topics, and their ids
        assert all(array.dtype != object for array in arrays)

    def test_may_be_of_a_pipeline_that_did_not_measure_bytes_out(self):
        """Then they cover nothing, and are not planned by."""
        older = parquet_of(MODEL).drop_columns(["bytes_out_covered_seconds", "bytes_out_method"])
        found = read(stored(older, MODEL)).partitions
        assert dict(found) == {tp: load._replace(bytes_out_covered_seconds=0.0) for tp, load in LOADS.items()}

    def test_may_come_from_another_writer(self):
        """Spark writes names as strings, and lists of nullable elements."""
        table = parquet_of(MODEL)
        for name, kind in [
            ("topic", pa.string()),
            ("replica_brokers", pa.list_(pa.int64())),
            ("replica_bytes", pa.list_(pa.field("item", pa.int64()))),
        ]:
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, table[name].cast(kind))
        assert dict(read(stored(table, MODEL)).partitions) == LOADS


def with_column(name, values):
    table = parquet_of(MODEL)
    at = table.schema.get_field_index(name)
    return stored(table.set_column(at, name, pa.array(values, table.schema.field(at).type)), MODEL)


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"PAR1", "too small|smaller"),
            (b"PAR1" + b"x" * 100, "footer|magic"),
            (render_parquet(MODEL)[:-50], "footer|magic"),
            (stored(parquet_of(MODEL), MODEL, version=3), "of version 3, this program reads versions 1 and 2"),
            (stored(parquet_of(MODEL), MODEL, clusterId=None), "clusterId is missing"),
            (stored(parquet_of(MODEL), MODEL, windowEnd="2026-03-01T12:00:00"), "without a zone"),
            (stored(parquet_of(MODEL).drop_columns(["bytes_in_p95"]), MODEL), "column bytes_in_p95 is missing"),
            (with_column("size_bytes", [1, 2, -3, 4, 5]), "size_bytes has negative"),
            (with_column("bytes_in_max", [1, 2, float("inf"), 4, 5]), "bytes_in_max has negative or infinite"),
            (with_column("bytes_out_p50", [1, 2, -0.5, 4, 5]), "bytes_out_p50 has negative or infinite"),
            (with_column("partition", [0, 1, 0, 7, 3]), "not sorted"),
            (with_column("partition", [0, 0, 0, 7, 3]), "not sorted"),
            (with_column("topic", ["a", "z", "z", "z", "a"]), "not sorted"),
            (with_column("replica_bytes", [[], [1], [1], [1], []]), "differ in length"),
        ],
    )
    def test_says_what_is_wrong(self, data, why):
        """Without a stack trace."""
        with pytest.raises(Refused, match=why) as refusal:
            read(data)
        assert refusal.value.reason == "LoadModelInvalid"

    def test_a_parquet_file_of_something_else(self):
        """It has no description."""
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(parquet_of(MODEL), sink)
        with pytest.raises(Refused, match="not a load model"):
            read(sink.getvalue().to_pybytes())

    def test_more_than_any_cluster_has(self, monkeypatch):
        """Seen before anything is unpacked, with the numbers."""
        monkeypatch.setattr(load_model_parquet, "MAX_PARTITIONS", 4)
        with pytest.raises(Refused, match=r"it has 5 partitions .* at most 4"):
            read(render_parquet(MODEL))
