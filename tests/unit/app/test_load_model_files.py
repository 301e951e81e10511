"""Where the operator finds load models, and which ones it ignores."""

import os
from datetime import timedelta

import pytest
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.app.load_model_files import LoadModelFiles
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.load_artifact import render_load_model
from kafka_rebalance.model.topology import TopicPartition

LOADS = {TopicPartition("t", 0): PartitionLoad(100)}


def stored(directory, cluster_id="c", of="c", age=timedelta(hours=1)):
    path = directory / cluster_id / "load-model.json.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(render_load_model(LoadModel("LoadModel", NOON - age, LOADS, of)))
    return path


async def found(directory, cluster_id="c"):
    return await LoadModelFiles(directory, StoppedClock().now)(cluster_id)


async def test_an_id_that_leads_elsewhere(tmp_path, caplog):
    """A server says its id: it must not choose the file that is read."""
    (tmp_path / "models").mkdir()
    stored(tmp_path, "c", "../c")
    assert await found(tmp_path / "models", "../c") is None
    assert "letters, digits" in caplog.text


async def test_that_of_the_cluster(tmp_path):
    """Each cluster has its own directory."""
    stored(tmp_path, "d", "d", timedelta(days=9))
    stored(tmp_path)
    assert (await found(tmp_path)).partitions == LOADS


@pytest.mark.parametrize("directory", [None, "empty"])
async def test_there_is_none(tmp_path, directory, caplog):
    """The pipeline is optional."""
    assert await found(tmp_path if directory else None) is None
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"age": timedelta(hours=25)}, "1d1h ago"),
        ({"age": -timedelta(minutes=6)}, "ahead of this machine's clock"),
        ({"of": "d"}, "belongs to cluster d"),
    ],
)
async def test_one_that_is_not_used(tmp_path, caplog, changes, said):
    """The log says why, with the figures."""
    stored(tmp_path, **changes)
    assert await found(tmp_path) is None
    assert said in caplog.text


async def test_one_that_is_damaged(tmp_path, caplog):
    """The plan uses live sizes instead."""
    path = stored(tmp_path)
    os.truncate(path, 40)
    assert await found(tmp_path) is None
    assert "load model of cluster c is not used" in caplog.text
