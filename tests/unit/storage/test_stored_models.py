"""The choice of the model file of a cluster; files of both versions are read."""

import os

import pytest
from tests.fakes.load_models import render_parquet, render_version_1
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.storage import stored_models
from kafka_rebalance.storage.locations import open_location
from kafka_rebalance.storage.stored_models import find_model, parse_model, read_model, read_model_file

T0 = TopicPartition("t", 0)
RENDER = {"load-model.parquet": render_parquet, "load-model.json.gz": render_version_1}


def put(directory, name, size=1, at=1000):
    path = directory / "c" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(RENDER[name](LoadModel("LoadModel", NOON, {T0: PartitionLoad(size)}, "c")))
    os.utime(path, (at, at))
    return path


def found(directory):
    location = open_location(str(directory))
    stored = find_model(location, "c")
    return read_model(location, stored).partitions[T0].size_bytes if stored else None


class TestTheModelOfACluster:
    @pytest.mark.parametrize("name", RENDER)
    def test_of_either_version(self, tmp_path, name):
        """An upgrade does not refuse yesterday's file."""
        assert found(tmp_path) is None
        put(tmp_path, name, 7)
        assert found(tmp_path) == 7

    @pytest.mark.parametrize(("parquet", "json", "size"), [(2000, 1000, 1), (1000, 2000, 2)])
    def test_is_the_newest_file(self, tmp_path, parquet, json, size):
        """After a rollback of the pipeline, that is the one of version 1."""
        put(tmp_path, "load-model.parquet", 1, parquet)
        put(tmp_path, "load-model.json.gz", 2, json)
        assert found(tmp_path) == size

    def test_changes_with_its_file(self, tmp_path):
        """By time or by size; otherwise it need not be read again."""
        location = open_location(str(tmp_path))
        put(tmp_path, "load-model.parquet")
        before = find_model(location, "c")
        assert find_model(location, "c") == before
        put(tmp_path, "load-model.parquet", at=1001)
        assert find_model(location, "c") != before

    def test_is_bounded(self, tmp_path, monkeypatch):
        """Before it is opened."""
        monkeypatch.setattr(stored_models, "MAX_FILE_BYTES", 10)
        put(tmp_path, "load-model.parquet")
        with pytest.raises(Refused, match="at most 10 B are read"):
            found(tmp_path)

    def test_is_gone_when_it_is_read(self, tmp_path):
        """It is tried again later."""
        path, location = put(tmp_path, "load-model.parquet"), open_location(str(tmp_path))
        stored = find_model(location, "c")
        path.unlink()
        with pytest.raises(Transient, match=r"load-model.parquet cannot be read"):
            read_model(location, stored)


class TestOneFile:
    @pytest.mark.parametrize("name", RENDER)
    def test_of_either_version(self, tmp_path, name):
        """By its content, with any name."""
        path = put(tmp_path, name, 7).rename(tmp_path / "model")
        assert read_model_file(path.as_uri()).partitions[T0].size_bytes == 7
        assert parse_model(path.read_bytes()).partitions[T0].size_bytes == 7

    def test_that_is_not_there(self, tmp_path):
        """Said with its name."""
        with pytest.raises(Refused, match="there is no file"):
            read_model_file((tmp_path / "x").as_uri())
