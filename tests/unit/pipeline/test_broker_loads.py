"""The table of what brokers carry, and the imbalance in it."""

import pytest

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.pipeline.broker_loads import BrokerLoad, LoadImbalance, imbalance, loads_path, read, store
from kafka_rebalance.pipeline.hot_partitions import HotPartition
from kafka_rebalance.pipeline.lake import Lake


def load(broker, p95, resource=LoadResource.BYTES_IN, hot=()):
    return BrokerLoad(broker, resource, p95, p95, p95, 6 if p95 is not None else 0, 6, 2, 2, hot)


class TestImbalance:
    def test_is_of_the_broker_with_most_against_an_equal_share(self):
        """60 of 90 on three brokers, whose equal share is 30. Other resources do not count."""
        loads = [load(1, 20.0), load(2, 60.0), load(3, 10.0), load(3, 1e9, LoadResource.DISK)]
        found = imbalance(loads, LoadResource.BYTES_IN)
        assert found == LoadImbalance(2, 60.0, 30.0)
        assert found.ratio == 2.0

    def test_is_unknown_if_one_broker_is(self):
        """It may be the one with most."""
        assert imbalance([load(1, 20.0), load(2, None)], LoadResource.BYTES_IN) is None
        assert imbalance([], LoadResource.BYTES_IN) is None

    def test_without_load_there_is_none(self):
        """Nothing to divide by."""
        assert imbalance([load(1, 0.0), load(2, 0.0)], LoadResource.BYTES_IN).ratio == 1.0


class TestTable:
    LOADS = (load(1, 1.5, hot=(HotPartition("t", 3, 0.5),)), load(2, None, LoadResource.DISK, hot=None))

    def test_comes_back(self, tmp_path):
        """With unknown figures."""
        lake = Lake.open(str(tmp_path))
        store(lake, "c/1", self.LOADS, {"windowEnd": "x"})
        assert read(lake, "c/1", {"windowEnd": "x"}) == self.LOADS

    @pytest.mark.parametrize("written", [True, False])
    def test_of_another_model_is_not_used(self, tmp_path, written):
        """The job was killed before it wrote the model, or the model is of a version without this table."""
        lake = Lake.open(str(tmp_path))
        if written:
            store(lake, "c1", self.LOADS, {"windowEnd": "later"})
        assert (tmp_path / loads_path("c1")).exists() is written
        assert read(lake, "c1", {"windowEnd": "earlier"}) == ()
