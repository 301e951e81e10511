"""The record before each call, and what is left of it when Kafka refuses the call."""

from dataclasses import replace

import pytest
from tests.fakes.found_by_rounds import recorded, remembered
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.lifecycle import Lifecycle
from kafka_rebalance.reconcile.act.origin_records import OriginRecords
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import Stores

TP = TopicPartition("t", 0)
HELD, FIRST, OTHER = replicas_of(1, 2), replicas_of(1, 2, 3), replicas_of(1, 2, 4)
RUN = Run("u-1", "kafka", "r", "c", "run-1", "sha256:0", "sha256:1", NOON, started_at=NOON)
FOUND = Origin(TP, "id", HELD, BrokerId(1), FIRST)


class World:
    """A partition of a run, with its origin on record."""

    def __init__(self, origin):
        kube, self.clock = KubeInMemory(), StoppedClock()
        self.stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        self.records = OriginRecords(Lifecycle(None, self.stores, self.clock, "c"), self.stores)
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1"}
        self.rebalance = Rebalance.of({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka:9092"}}})
        recorded(self.rebalance, run=RUN, origins={TP: origin})
        self.origin = origin

    async def sends(self, call, held=HELD, leader=1, *, refused=False, found=None):
        """Returns the origin on record before the call, or after it is refused; None: there is none.

        ``found``: the replicas as they were read after the record.
        """
        await self.stores.origins.append("u-1", "run-1", [self.origin])
        state = PartitionState(TP, "id", held, frozenset(held), BrokerId(leader))
        orders = Orders(alters={TP: call})
        allowed = await self.records.record(self.rebalance, orders, ClusterState("c", {}, {TP: state}))
        assert allowed == orders
        if refused:
            since = {TP: replace(state, replicas=found, isr=frozenset(found))} if found else None
            await self.records.give_up(self.rebalance, [TP], since)
        stored = await self.stores.origins.load("u-1", "run-1")
        assert stored == self.rebalance.record.origins
        return stored.get(TP)


async def test_another_call_takes_the_place_of_the_first():
    """That one was not carried out. An empty first call would mean that it was."""
    assert await World(FOUND).sends(OTHER) == replace(FOUND, first_call=OTHER)


async def test_what_was_carried_out_is_recorded():
    assert await World(FOUND).sends(OTHER, held=FIRST) == replace(FOUND, first_call=())


class TestRefused:
    @pytest.mark.parametrize("first", [FIRST, OTHER, HELD], ids=["another", "the same", "an election"])
    async def test_nothing_was_changed(self, first):
        assert await World(replace(FOUND, first_call=first)).sends(OTHER, refused=True) is None

    @pytest.mark.parametrize("first", [FIRST, OTHER, HELD], ids=["another", "the same", "an election"])
    async def test_a_leader_that_has_changed_stays_on_record(self, first):
        left = await World(replace(FOUND, first_call=first)).sends(OTHER, leader=2, refused=True)
        assert left.leader == 1
        assert left.first_call in {HELD, OTHER}

    @pytest.mark.parametrize("first", [FIRST, OTHER], ids=["another", "the same"])
    async def test_log_dirs_stay_on_record(self, first):
        """The run has moved a replica between log dirs before."""
        dirs = ((BrokerId(1), "/a"),)
        left = await World(replace(FOUND, first_call=first, log_dirs=dirs)).sends(OTHER, refused=True)
        assert left == replace(FOUND, first_call=HELD, log_dirs=dirs)

    @pytest.mark.parametrize(("first", "left"), [(FIRST, HELD), (OTHER, OTHER), (HELD, HELD)])
    async def test_an_earlier_call_may_be_executed_late(self, first, left):
        """The leader is not certain then. The same call is struck off when it is refused later."""
        world = World(replace(FOUND, first_call=first))
        remembered(world.rebalance, unanswered_at=world.clock.monotonic())
        assert await world.sends(OTHER, refused=True) == replace(FOUND, first_call=left)


class TestNotSent:
    """The partition was read again after the record, and is another one now."""

    @pytest.mark.parametrize("found", [FIRST, OTHER, replicas_of(3, 4)])
    async def test_it_is_of_others(self, found):
        """The call was recorded for the first time now: also what looks like its result was made by others."""
        assert await World(replace(FOUND, first_call=HELD)).sends(FIRST, refused=True, found=found) is None

    async def test_a_first_call_of_an_earlier_round_was_carried_out(self):
        """Metadata that was old then did not show it."""
        assert await World(FOUND).sends(FIRST, refused=True, found=FIRST) == FOUND

    @pytest.mark.parametrize("found", [HELD, OTHER, replicas_of(3, 4)])
    async def test_a_first_call_of_an_earlier_round_was_not(self, found):
        assert await World(FOUND).sends(FIRST, refused=True, found=found) is None
