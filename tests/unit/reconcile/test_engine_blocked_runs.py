"""A run that waits after a problem: its copies go on, and so does everything that concerns their throttle."""

from dataclasses import replace

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, parse_throttle
from kafka_rebalance.errors import Permanent
from kafka_rebalance.reconcile.state.memory import Problem


def block(op):
    """As prepared, with a problem that is not retried."""
    problem, prepared = Problem("prepare", Permanent("StoredStateCorrupt", "no")), op.rebalance.desired.change_key
    memory = replace(op.rebalance.memory, problem=problem, prepared=prepared, retry_at=float("inf"))
    op.rebalance.memory = memory


@pytest.fixture
async def blocked():
    """One copy is in flight at 50 B/s, and the only rebalance waits after a problem, for longer than the test."""
    op = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2]]))
    op.kafka.slow = {3}
    op.assign(("t", 0, [1, 3]), throttle={"leaderRate": 50, "followerRate": 50})
    await op.until_true(lambda: op.kafka.flying)
    block(op)
    await op.round()
    assert op.state == "StoredStateCorrupt"
    assert op.kafka.rates(3) == ("50", "50")
    return op


class TestThrottle:
    async def test_a_patch_of_its_rates_takes_effect(self, blocked):
        """In the next round."""
        blocked.edit(throttle={"leaderRate": 70, "followerRate": 80})
        block(blocked)
        await blocked.round()
        await blocked.round()
        assert [blocked.kafka.rates(b) for b in (1, 2, 3)] == [("70", "80")] * 3

    async def test_so_does_a_throttle_resource(self, blocked):
        """The lowest rate applies, on each side: its own still counts."""
        metadata = {"name": "limits", "namespace": "kafka", "uid": "u-t", "creationTimestamp": NOON.isoformat()}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "leaderRate": 30, "followerRate": 900}
        body = blocked.kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": spec})
        blocked.engine.see_throttles({"u-t": parse_throttle(body)})
        await blocked.round()
        await blocked.round()
        assert blocked.kafka.rates(3) == ("30", "50")

    async def test_its_throttle_goes_when_its_copies_have_arrived(self, blocked):
        """It copies nothing any more, and must not slow down anything else."""
        blocked.kafka.arrive()
        for _ in range(3):
            await blocked.round()
        assert blocked.kafka.values == {}
