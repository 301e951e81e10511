"""Where the operator finds load models, which ones it refuses, and when it reads them."""

import asyncio
import os
import threading
import weakref
from datetime import timedelta

import pytest
from tests.fakes.load_models import render_parquet
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.app import load_model_files
from kafka_rebalance.app.load_model_files import LoadModelFiles
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.storage import stored_models

LOADS = {TopicPartition("t", 0): PartitionLoad(100)}


def stored(directory, cluster_id="c", of="c", age=timedelta(hours=1), loads=LOADS):
    path = directory / cluster_id / "load-model.parquet"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(render_parquet(LoadModel("LoadModel", NOON - age, loads, of)))
    return path


def files(directory):
    return LoadModelFiles(str(directory) if directory else None, StoppedClock().now)


class TestTheModel:
    async def test_is_that_of_the_cluster(self, tmp_path):
        """Each cluster has its own directory."""
        stored(tmp_path, "d", "d", timedelta(days=9))
        stored(tmp_path)
        assert dict((await files(tmp_path)("c")).partitions) == LOADS

    async def test_ids_that_servers_claim_leave_nothing_behind(self, tmp_path):
        """A server may claim another id each time."""
        found = files(tmp_path)
        for number in range(5):
            assert await found(f"id-{number}") is None
        assert not found._reading
        assert len(found._known) == 0

    @pytest.mark.parametrize("directory", [None, "empty"])
    async def test_may_be_none(self, tmp_path, directory):
        """The pipeline is optional."""
        assert await files(tmp_path if directory else None)("c") is None

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"age": timedelta(hours=25)}, "1d1h ago"),
            ({"age": -timedelta(minutes=6)}, "ahead of this machine's clock"),
            ({"of": "d"}, "belongs to cluster d"),
        ],
    )
    async def test_is_refused(self, tmp_path, changes, said):
        """With the figures."""
        stored(tmp_path, **changes)
        with pytest.raises(RebalanceError, match=said) as refused:
            await files(tmp_path)("c")
        assert refused.value.reason == "LoadModelStale"

    async def test_is_refused_if_it_is_damaged(self, tmp_path):
        """It is no reason to plan from guesses."""
        os.truncate(stored(tmp_path), 400)
        with pytest.raises(RebalanceError) as refused:
            await files(tmp_path)("c")
        assert refused.value.reason == "LoadModelInvalid"

    async def test_is_not_chosen_by_a_server(self, tmp_path):
        """A server says its id: it must not choose the file that is read."""
        (tmp_path / "models").mkdir()
        stored(tmp_path, "c", "../c")
        with pytest.raises(RebalanceError, match="letters, digits"):
            await files(tmp_path / "models")("../c")


async def freed(array):
    """The thread that has read it may refer to it a moment longer than the event loop."""
    async with asyncio.timeout(20):
        while array() is not None:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.001)


class TestReading:
    @pytest.fixture
    def reads(self, monkeypatch):
        """The threads that have read a file."""
        threads, original = [], stored_models.read_model

        def read(location, found):
            threads.append(threading.current_thread())
            return original(location, found)

        monkeypatch.setattr(stored_models, "read_model", read)
        return threads

    async def test_is_off_the_event_loop_and_only_of_changed_files(self, tmp_path, reads):
        """A model of a million partitions takes half a second of CPU."""
        path, models = stored(tmp_path), files(tmp_path)
        first, second = await asyncio.gather(models("c"), models("c"))
        assert first is second
        assert await models("c") is first
        assert (len(reads), reads[0] is threading.main_thread()) == (1, False)
        os.utime(path, ns=(1, 1))
        assert await models("c") is not first
        assert len(reads) == 2
        path.unlink()
        assert await models("c") is None

    async def test_clusters_that_are_gone_do_not_fill_the_memory(self, tmp_path, reads, monkeypatch):
        """The models that were asked for last are kept, up to a number of partitions; one of more is kept alone."""
        monkeypatch.setattr(load_model_files, "_SMALLEST", 2)
        monkeypatch.setattr(load_model_files, "_MOST_PARTITIONS", 7)
        three = {TopicPartition("t", number): PartitionLoad(100) for number in range(3)}
        for cluster in ("a", "b", "in-use", "small"):
            stored(tmp_path, cluster, cluster, loads=LOADS if cluster == "small" else three)
        models = files(tmp_path)
        in_use = await models("in-use")
        gone = []
        for cluster in ("a", "b"):
            gone.append(weakref.ref((await models(cluster)).partitions._columns.partition))
            assert await models("in-use") is in_use
        await freed(gone[0])
        assert gone[1]() is not None
        await models("small")
        await freed(gone[1])
        assert len(reads) == 4
        stored(tmp_path, "large", "large", loads={TopicPartition("t", at): PartitionLoad(100) for at in range(8)})
        assert await models("large") is await models("large")
        assert len(models._known) == 1

    async def test_an_old_model_is_refused_also_from_memory(self, tmp_path):
        """It was fresh when it was read."""
        clock = StoppedClock()
        models = LoadModelFiles(str(tmp_path), lambda: clock.now() + later)
        stored(tmp_path)
        later = timedelta()
        assert await models("c")
        later = timedelta(hours=24)
        with pytest.raises(RebalanceError, match="1d1h ago"):
            await models("c")

    async def test_a_store_that_hangs(self, tmp_path, monkeypatch):
        """It is reported, and tried again later: planning does not wait for it."""
        go = threading.Event()
        monkeypatch.setattr(load_model_files, "_READ_SECONDS", 0.01)
        monkeypatch.setattr(stored_models, "find_model", lambda *_: go.wait(60) and None)
        try:
            with pytest.raises(RebalanceError, match="its store does not answer") as late:
                await files(tmp_path)("c")
        finally:
            go.set()
        assert late.value.retry_after > 0
