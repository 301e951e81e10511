"""What is sent for all rebalances of a cluster together: ceilings over all of them, and which goes first."""

import pytest
from tests.unit.execution.scheduling import (
    ELECTION,
    NO_CEILINGS,
    cluster_of,
    copying,
    flying,
    limits,
    names,
    sent,
    share,
)

from kafka_rebalance.execution.limits import Ceilings
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.schedule import schedule


class TestCeilings:
    """The throttle resource's ``limits``: KIP-435's cluster-wide values."""

    def test_partitions_of_all_rebalances_together(self):
        """Partitions in flight of both rebalances count."""
        first = share({"t-0": flying(10), "t-1": copying(11)})
        second = share({"u-0": flying(12), "u-1": copying(13)})
        assert [names(each) for each in sent(first, second, ceilings=Ceilings(3))] == [["t-1"], []]

    def test_leader_movements_of_all_rebalances_together(self):
        """Here too, others pass leader movements that are held back."""
        first = share({"t-0": flying(10, leads=True)})
        second = share({"u-0": copying(11, leads=True), "u-1": copying(12), "u-2": ELECTION})
        orders = sent(first, second, ceilings=Ceilings(parallel_leader_movements=1))[1]
        assert (names(orders), orders.elections) == (["u-1"], ())

    def test_copies_of_all_rebalances_together(self):
        """The ceiling counts replicas, not partitions."""
        first = share({"t-0": flying(10, 11)})
        second = share({"u-0": copying(12), "u-1": copying(13)})
        ceilings = Ceilings(max_concurrent_replicas=3)
        assert len(sent(first, second, ceilings=ceilings)[1].alters) == 1

    def test_in_flight_and_in_no_share_counts(self):
        """A rebalance that sends nothing now counts against the ceilings, but not against another one's caps."""
        absent, part = share({"t-0": flying(10)}), share({"u-0": copying(11)}, limits(p=1, copies=1))
        cluster = cluster_of(absent, part)
        assert schedule([part], cluster, NO_CEILINGS)[0].alters
        assert not schedule([part], cluster, Ceilings(parallel_partitions=1))[0].alters
        assert not schedule([part], cluster, Ceilings(max_concurrent_replicas=1))[0].alters


class TestPrecedence:
    def test_who_comes_first_takes_first_and_the_next_gets_the_rest(self):
        """The order of the shares is the order of precedence."""
        statuses = [{f"{name}-{i}": copying(10 + i) for i in range(3)} for name in "tu"]
        orders = sent(*map(share, statuses), ceilings=Ceilings(parallel_partitions=4))
        assert [len(each.alters) for each in orders] == [3, 1]

    def test_a_small_one_ahead_leaves_the_rest_to_others(self):
        """It is limited by its own caps, which do not limit others."""
        first = share({f"t-{i}": copying(10 + i) for i in range(9)}, limits(p=1))
        second = share({f"u-{i}": copying(20 + i) for i in range(9)})
        orders = sent(first, second, ceilings=Ceilings(parallel_partitions=5))
        assert [len(each.alters) for each in orders] == [1, 4]

    @pytest.mark.parametrize("phase", [MovePhase.SKIPPED, MovePhase.WAITING])
    def test_a_copy_counts_against_the_one_that_makes_it(self, phase):
        """Not against one ahead whose plan has the partition too, and that leaves it alone or lets the other go on."""
        first = share({"t-0": PartitionStatus(phase), "u-0": copying(12)}, limits(copies=1))
        second = share({"t-0": flying(10), "t-1": copying(11)}, limits(copies=1))
        assert [names(each) for each in sent(first, second)] == [["u-0"], []]

    def test_a_brokers_cap_counts_the_copies_of_all(self):
        """Each submits under its own cap; copies in flight count, also those of the other rebalance."""
        first = share({f"t-{i}": copying(10, source=i) for i in range(3)}, limits(to=2))
        second = share({f"u-{i}": copying(10, source=5 + i) for i in range(3)}, limits(to=3))
        third = share({"v-0": copying(10, source=9)}, limits(to=1))
        assert [len(each.alters) for each in sent(first, second, third)] == [2, 1, 0]

    def test_bytes_of_the_first_are_seen_by_the_second(self):
        """It uses the destination that the first leaves idle."""
        first = share({"t-0": copying(10, source=1)}, sizes={"t-0": 100})
        second = share({"u-0": copying(10, source=2), "u-1": copying(11, source=3)}, limits(p=1), {"u-0": 9})
        assert names(sent(first, second)[1]) == ["u-1"]
