"""How often the reassignments of other tools are listed."""

import pytest

from kafka_rebalance.kafka.ports import Reassignment
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reconcile.observe import foreign_reassignments
from kafka_rebalance.reconcile.observe.foreign_reassignments import ForeignReassignments

OURS, THEIRS = TopicPartition("ours", 0), TopicPartition("theirs", 0)
ROW = Reassignment(replicas_of(1, 2), replicas_of(2), ())


class Controller:
    """Lists reassignments, and counts the listings. Without a limit, no other method is called."""

    def __init__(self):
        self.listings, self.time, self.flying = 0, 0.0, {OURS: ROW, THEIRS: ROW}

    async def list_reassignments(self):
        self.listings += 1
        return dict(self.flying)


@pytest.fixture
def controller(monkeypatch):
    monkeypatch.setattr(foreign_reassignments, "_MANY", 1)
    return Controller()


@pytest.fixture
def others(controller):
    return ForeignReassignments(controller, lambda: controller.time)


class TestWhileMuchMoves:
    async def test_every_few_seconds(self, controller, others):
        """No limit applies to them. The listing only prevents raising a rate where they copy."""
        for controller.time in (0.0, 1.0, 4.9):
            await others.look({OURS}, limited=False)
            assert (controller.listings, others.unaccounted) == (1, {THEIRS: ROW.replicas})
        del controller.flying[THEIRS]
        controller.time = 5.0
        await others.look({OURS}, limited=False)
        assert (controller.listings, others.unaccounted) == (2, {})

    async def test_by_the_listing_of_a_reading_if_there_is_one(self, controller, others):
        """It was made in the same round, so it is newer than the own one would be."""
        await others.look({OURS}, limited=False)
        for controller.time, seen in ((1.0, {}), (9.0, {OURS: ROW, THEIRS: ROW})):
            await others.look({OURS}, seen, limited=False)
            assert (controller.listings, others.unaccounted.keys()) == (1, seen.keys() - {OURS})

    async def test_completed_reassignments_of_ours_are_not_foreign(self, others):
        """The reassignment has completed since the listing."""
        await others.look({OURS}, limited=False)
        await others.look({TopicPartition("ours", 1)}, limited=False)
        assert others.unaccounted == {THEIRS: ROW.replicas}

    async def test_newly_planned_partitions_are_not_foreign(self, others):
        """Its resource has been seen since the listing."""
        await others.look({OURS}, limited=False)
        await others.look({OURS, THEIRS}, limited=False)
        assert others.unaccounted == {}


async def test_in_each_round_while_little_moves(controller, others, monkeypatch):
    """One more request does not matter then."""
    monkeypatch.setattr(foreign_reassignments, "_MANY", 2)
    await others.look({OURS}, limited=False)
    await others.look({OURS}, {OURS: ROW}, limited=False)
    assert controller.listings == 2
