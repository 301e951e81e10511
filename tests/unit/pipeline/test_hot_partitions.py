"""Partitions that alone carry much of a broker's load."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from tests.fakes.load_models import stored

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.pipeline.hot_partitions import hot_partitions

DISK, BYTES_IN, BYTES_OUT, LEADER_BYTES_IN = LoadResource
MODEL = LoadModel("LoadModel", datetime(2026, 3, 1, tzinfo=UTC), {}, "c1")


def model(came, went=None, group=None):
    """Partitions of one topic on broker 1, each followed by broker 2; sizes are a hundred times the rates."""
    sizes = [int(100 * (rate or 0)) for rate in came]
    table = pa.table(
        {
            "topic": pa.array(["t"] * len(came)).dictionary_encode(),
            "partition": pa.array(range(len(came)), pa.int32()),
            "leader": pa.array([1] * len(came), pa.int32()),
            "replica_brokers": pa.array([[1, 2]] * len(came), pa.list_(pa.int32())),
            "replica_bytes": pa.array([[size, size] for size in sizes], pa.list_(pa.int64())),
            "bytes_in_mean": pa.array(came, pa.float64()),
            "bytes_out_mean": pa.array(went or [None] * len(came), pa.float64()),
        }
    )
    return stored(table, MODEL, group)


def found(data, resource, partitions, broker=1):
    hot = hot_partitions(data, {(broker, resource): partitions}).get((broker, resource))
    return None if hot is None else [(each.partition, each.share) for each in hot]


class TestHotPartitions:
    @pytest.mark.parametrize("group", [None, 7])
    def test_carry_a_tenth_and_twice_the_mean(self, group):
        """Of 40 partitions with 1000 in all: 520, 100 and 38 times 10. A tenth is enough, less is not."""
        came = [10] * 19 + [520, 100] + [10] * 19
        data = model(came, group=group)
        for resource in (DISK, BYTES_IN, LEADER_BYTES_IN):
            assert found(data, resource, 40) == [(19, 0.52), (20, 0.1)]
        assert found(model([*came[:19], 521, 99, *came[21:]]), BYTES_IN, 40) == [(19, 0.521)]

    def test_of_few_partitions_not_each_one(self):
        """Of four with equal loads each has a fourth, which is no more than the others have."""
        assert found(model([10, 10, 10, 10]), BYTES_IN, 4) == []
        assert found(model([60, 20, 20, 20]), BYTES_IN, 4) == [(0, 0.5)]

    def test_a_broker_has_ten_at_most(self):
        """Each has a tenth or more."""
        assert len(found(model([100] * 10 + [0] * 90), BYTES_IN, 100)) == 10

    def test_bytes_out_have_what_followers_fetch(self):
        """9 to consumers and 1 to the follower, of 40 in all; the follower sends nothing."""
        data = model([1] * 31, [9] + [0] * 30)
        assert found(data, BYTES_OUT, 31) == [(0, 0.25)]
        assert found(data, BYTES_OUT, 0, broker=2) == []

    def test_nothing_carries_nothing(self):
        """Idle partitions are not hot."""
        assert found(model([0] * 20), BYTES_IN, 20) == []

    def test_unknown_loads_have_no_shares(self):
        """If one partition is unknown, or is not in the model: of the rest the share would be too large."""
        assert found(model([100, None, 1, 1, 1]), BYTES_IN, 5) is None
        assert found(model([100, 1, 1, 1, 1]), BYTES_OUT, 5) is None
        assert found(model([100, 1, 1, 1, 1]), BYTES_IN, 6) is None
