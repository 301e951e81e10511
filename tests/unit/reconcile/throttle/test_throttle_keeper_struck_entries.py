"""Entries of throttled lists that were taken out while the topic is still throttled: then others may set them."""

from typing import ClassVar

import pytest
from tests.fakes.throttled_cluster import ALIVE, LATE_TICKS, Cluster, claim, sides

from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, LEADER_LIST, Claim, Rates
from kafka_rebalance.reasons import Reason


@pytest.fixture
def cluster():
    return Cluster()


class TestEntriesTakenOut:
    """Partition 0 has arrived; partition 1 of the same topic is copied for hours."""

    LONG: ClassVar = {"b": Claim(Rates(50, 40), frozenset(ALIVE), sides({"1:1"}, {"1:2"}))}

    @pytest.fixture
    def arrived(self, cluster):
        cluster.ticks(claim() | self.LONG)
        cluster.ticks(self.LONG, count=LATE_TICKS)
        assert cluster.kafka.lists("t") == ({"1:1"}, {"1:2"})
        return cluster

    @pytest.mark.parametrize("restarted", [False, True])
    def test_what_others_add_later_is_theirs(self, arrived, restarted):
        """They reassign partition 0 under a throttle of their own."""
        for name, entry in ((LEADER_LIST, "0:1"), (FOLLOWER_LIST, "0:2")):
            arrived.kafka.values["t", name] += "," + entry
        arrived.ticks(self.LONG)
        if restarted:
            arrived.restart()
        arrived.ticks(self.LONG, count=LATE_TICKS)
        assert arrived.kafka.lists("t") == ({"0:1", "1:1"}, {"0:2", "1:2"})
        arrived.ticks({}, count=LATE_TICKS)
        assert arrived.kafka.lists("t") == ({"0:1"}, {"0:2"})

    def test_the_ledger_is_stored_without_them_once(self, arrived, monkeypatch):
        """Further rounds write nothing."""
        stored = ledger_from_json(arrived.records.kept)
        assert (stored.listed("t", LEADER_LIST), stored.listed("t", FOLLOWER_LIST)) == ({"1:1"}, {"1:2"})

        async def save(_cluster_id, _ledger):
            raise AssertionError("nothing has changed")

        monkeypatch.setattr(arrived.records, "save", save)
        arrived.ticks(self.LONG, count=LATE_TICKS)

    def test_it_is_stored_later_if_the_write_fails(self, cluster, monkeypatch):
        cluster.ticks(claim() | self.LONG)

        async def save(_cluster_id, _ledger):
            raise Transient(Reason.API_SERVER_UNREACHABLE, "no answer")

        with monkeypatch.context() as patched:
            patched.setattr(cluster.records, "save", save)
            failed = 0
            for _ in range(LATE_TICKS):
                try:
                    cluster.tick(self.LONG)
                except Transient:
                    failed += 1
        assert failed
        cluster.tick(self.LONG)
        assert ledger_from_json(cluster.records.kept).listed("t", LEADER_LIST) == {"1:1"}
