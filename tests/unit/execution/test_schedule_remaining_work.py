"""Which copies are chosen if it is known what else the brokers have to copy."""

from dataclasses import replace

import pytest
from tests.unit.execution.scheduling import by_name, cluster_of, copying, flying, limits, names, sent, share

from kafka_rebalance.execution.limits import Ceilings
from kafka_rebalance.execution.schedule import schedule
from kafka_rebalance.model.topology import BrokerId, replicas_of


def knowing(part, into, out_of):
    """The share, with the bytes that are not in flight."""
    into, out_of = ({BrokerId(b): size for b, size in side.items()} for side in (into, out_of))
    return replace(part, waiting=(into, out_of))


class TestShares:
    def test_the_broker_with_the_most_work_gets_the_most_copies(self):
        """The copies of a destination share its rate: a source with three times the work needs three times as many."""
        statuses = {f"a-{i}": copying(10 + i % 2, source=1) for i in range(8)}
        statuses |= {f"b-{i}": copying(10 + i % 2, source=2) for i in range(8)}
        sizes = dict.fromkeys(statuses, 10)
        part = knowing(share(statuses, limits(p=8), sizes), {10: 200, 11: 200}, {1: 300, 2: 100})
        assert [name[0] for name in sorted(names(sent(part)[0]))] == ["a"] * 6 + ["b"] * 2

    def test_of_several_rebalances(self):
        """The work of all counts, or of none if one is not known: then the bytes in flight are balanced."""
        mine = share({"a-0": copying(10, source=1), "a-1": copying(11, source=2)}, limits(p=1), {"a-0": 9, "a-1": 9})
        mine = knowing(mine, {10: 9, 11: 9}, {1: 9, 2: 9})
        other = share({"b-0": flying(20, source=1), "b-1": flying(21, source=2)}, limits(), {"b-0": 9, "b-1": 9})
        assert names(sent(mine, knowing(other, {}, {2: 900}))[0]) == ["a-1"]
        assert names(sent(mine, other)[0]) == ["a-0"]


class TestChains:
    @pytest.mark.parametrize(("size", "others"), [(100, 3), (10, 19), (1, 30)])
    def test_a_long_chain_keeps_its_share_of_a_broker(self, size, others):
        """Partition a-0 has three copies to make, one after the other, while other brokers copy 600 bytes.

        With 20 copies its part would be too small to end by then if it has 30 bytes to go.
        """
        statuses = {"a-0": flying(10, source=1), **{f"b-{i}": copying(10, source=30 + i) for i in range(30)}}
        sizes = {"a-0": size, **{f"b-{i}": 1 for i in range(30)}}
        part = knowing(share(statuses, limits(p=100), sizes), {10: 30, 20: 600}, {5: 30})
        part = replace(part, goals=by_name({**dict.fromkeys(sizes, replicas_of(10)), "a-0": replicas_of(10, 11, 12)}))
        assert len(names(sent(part)[0])) == others

    def test_at_its_source_too(self):
        """The copies of a source share its rate as well."""
        statuses = {"a-0": flying(10, source=1), **{f"b-{i}": copying(11 + i, source=1) for i in range(9)}}
        sizes = {"a-0": 100, **{f"b-{i}": 1 for i in range(9)}}
        part = knowing(share(statuses, limits(p=100), sizes), {20: 600}, {1: 9})
        part = replace(part, goals=by_name({**dict.fromkeys(sizes, replicas_of(20)), "a-0": replicas_of(10, 11, 12)}))
        assert len(names(sent(part)[0])) == 3

    @pytest.mark.parametrize(("parallel_replicas", "others"), [(1, 3), (2, 5), (3, 11)])
    def test_the_replicas_of_one_step_are_copied_in_parallel(self, parallel_replicas, others):
        """The chain of three replicas of 100 bytes is 300 bytes with R=1, 200 with R=2, and 100 with R=3."""
        statuses = {"a-0": flying(10, source=1), **{f"b-{i}": copying(10, source=30 + i) for i in range(30)}}
        sizes = {"a-0": 100, **{f"b-{i}": 1 for i in range(30)}}
        part = share(statuses, limits(p=100, parallel_replicas=parallel_replicas), sizes)
        part = knowing(part, {10: 30, 20: 1200}, {5: 30})
        part = replace(part, goals=by_name({**dict.fromkeys(sizes, replicas_of(10)), "a-0": replicas_of(10, 11, 12)}))
        assert len(names(sent(part)[0])) == others

    def test_equal_partitions_of_one_step_are_not_limited(self):
        """All copies of the broker with the most work may share its rate if they end together."""
        statuses = {f"b-{i}": copying(10, source=30 + i) for i in range(30)}
        part = knowing(share(statuses, limits(p=100), dict.fromkeys(statuses, 100)), {10: 3000}, {5: 30})
        part = replace(part, goals=by_name(dict.fromkeys(statuses, replicas_of(10))))
        assert len(names(sent(part)[0])) == 30

    def test_what_others_copy_takes_no_share(self):
        """Of their copies no size is known: ours do not wait for them."""
        statuses = {**{f"a-{i}": flying(10, source=1) for i in range(9)}, "b-0": copying(10, source=2)}
        part = share({"b-0": statuses["b-0"]}, limits(), {"b-0": 100})
        part = replace(knowing(part, {10: 100}, {2: 100}), goals=by_name({"b-0": replicas_of(10)}))
        seen = cluster_of(share(statuses))
        assert names(schedule([part], seen, Ceilings())[0]) == ["b-0"]
