"""A resource that leaves the engine in the middle of a round: nothing more is sent for it there."""

import pytest
from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.cordoning import Cordons
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.origin_records import OriginRecords
from kafka_rebalance.reconcile.rounds import Rounds
from kafka_rebalance.reconcile.throttle.cluster_throttle import ClusterThrottle


def migrated(world):
    """To a KafkaConnection for the same cluster, as docs/connections.md describes."""
    world.connection()
    world.edit(REBALANCES, "a", "r", kafka=REF)


def deleted(world):
    """Without its finalizer, which somebody has removed."""
    world.gone(REBALANCES, "a", "r")


@pytest.mark.parametrize("leaves", [migrated, deleted])
@pytest.mark.parametrize(
    ("room", "call"),
    [
        (Cordons, "keep"),
        (Lifecycle, "record_start"),
        (ClusterThrottle, "look"),
        (ClusterThrottle, "apply_claims"),
        (OriginRecords, "record"),
    ],
)
async def test_nothing_is_sent_for_it(world, monkeypatch, leaves, room, call):
    """It leaves while the round waits for a server. Its copies would have no throttle, and would not be undone."""
    answered, ended, late = [], [], []
    real, next_round, alter = getattr(room, call), Rounds.next_round, world.real.alter_reassignments

    async def meanwhile(self, *arguments, **options):
        answer = await real(self, *arguments, **options)
        if not answered and world.runs.get("a", "none") is None:
            answered.append(call)
            leaves(world)
        return answer

    async def to_its_end(self):
        try:
            return await next_round(self)
        finally:
            ended.extend(answered)

    async def alter_reassignments(orders):
        if answered and not ended:
            late.append(orders)
        return await alter(orders)

    monkeypatch.setattr(room, call, meanwhile)
    monkeypatch.setattr(Rounds, "next_round", to_its_end)
    monkeypatch.setattr(world.real, "alter_reassignments", alter_reassignments)
    world.real.slow = {BrokerId(4)}
    world.create("a", brokers={"decommission": [1]}, throttle={"leaderRate": "1Mi", "followerRate": "1Mi"})
    world.see("a")
    await world.until(lambda: ended)
    assert late == []
