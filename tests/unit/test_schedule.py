"""What is sent for a rebalance: the choice among what is ready."""

import pytest

from kafka_rebalance.execution.decide import Kind, Verdict
from kafka_rebalance.execution.schedule import Limits, Orders, choose
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of


def copying(copies=1, *, leads=False, started=False):
    call = Alter(replicas_of(1, *range(10, 10 + copies)), until_in_sync=replicas_of(*range(10, 10 + copies)))
    return Verdict(Kind.READY, call=call, leader_movement=leads, started=started)


FLYING = Verdict(Kind.IN_FLIGHT, started=True)
CANCEL = Verdict(Kind.READY, cancel=True, started=True)
ELECTION = Verdict(Kind.READY, call=Elect(BrokerId(1)), leader_movement=True)


def tps(*names):
    """``t-3`` as a topic and a number."""
    return [TopicPartition(name.rsplit("-", 1)[0], int(name.rsplit("-", 1)[1])) for name in names]


def chosen(verdicts, *, p=100, leaders=100, copies=1000, sizes=None, adding=None):
    named = {tps(name)[0]: verdict for name, verdict in verdicts.items()}
    weights = {tps(name)[0]: size for name, size in (sizes or {}).items()}
    flying = {tps(name)[0]: count for name, count in (adding or {}).items()}
    return choose(named, weights, Limits(1, p, leaders, copies), flying)


class TestLimits:
    @pytest.mark.parametrize(("p", "expected"), [(0, 0), (1, 1), (3, 3), (9, 5)])
    def test_never_more_than_p_partitions(self, p, expected):
        """KIP-435's P."""
        assert len(chosen({f"t-{i}": copying() for i in range(5)}, p=p).alters) == expected

    def test_what_is_in_flight_and_what_is_cancelled_count_towards_p(self):
        """A slot is free only when Kafka has let go of it."""
        orders = chosen({"t-0": FLYING, "t-1": CANCEL, "t-2": copying(), "t-3": copying()}, p=3)
        assert list(orders.alters) == tps("t-2")

    def test_a_lowered_p_stops_new_ones_only(self):
        """Patched below what is in flight, nothing is sent until it has drained."""
        assert chosen({"t-0": FLYING, "t-1": FLYING, "t-2": copying()}, p=1) == Orders()

    def test_never_more_than_l_leader_movements(self):
        """KIP-435's L counts those in flight too; elections and copies alike."""
        flying = Verdict(Kind.IN_FLIGHT, leader_movement=True)
        verdicts = {"t-0": flying, "t-1": ELECTION, "t-2": copying(leads=True), "t-3": copying(leads=True)}
        orders = chosen(verdicts, leaders=3)
        assert orders.elections == tuple(tps("t-1"))
        assert list(orders.alters) == tps("t-2")

    def test_a_partition_held_by_l_is_passed_by_others(self):
        """L holds leader movements back, not the queue behind them."""
        orders = chosen({"t-0": copying(leads=True), "t-1": ELECTION, "t-2": copying()}, leaders=0)
        assert list(orders.alters) == tps("t-2")
        assert orders.elections == ()

    def test_a_partition_held_by_l_takes_no_slot_of_p(self):
        """What is not sent counts for nothing."""
        orders = chosen({"t-0": copying(leads=True), "t-1": copying()}, leaders=0, p=1)
        assert list(orders.alters) == tps("t-1")

    def test_never_more_copies_than_the_ceiling(self):
        """reassignment.max.concurrent.replica.movements counts replicas, those in flight included."""
        verdicts = {"t-0": FLYING, "t-1": copying(2), "t-2": copying(2), "t-3": copying(1)}
        assert list(chosen(verdicts, copies=5, adding={"t-0": 2}).alters) == tps("t-1", "t-3")

    def test_calls_without_a_copy_pass_a_full_ceiling(self):
        """A drop frees a replica: holding it back would hold everything."""
        drop = Verdict(Kind.READY, call=Alter(replicas_of(1, 2)))
        verdicts = {"t-0": drop, "t-1": ELECTION, "t-2": copying(), "t-3": FLYING}
        orders = chosen(verdicts, copies=1, adding={"t-3": 1})
        assert list(orders.alters) == tps("t-0")
        assert orders.elections == tuple(tps("t-1"))

    def test_a_step_larger_than_the_ceiling_passes_alone(self):
        """R may be above the ceiling; such a step would never come otherwise."""
        assert list(chosen({"t-0": copying(3), "t-1": copying(3)}, copies=2).alters) == tps("t-0")
        assert not chosen({"t-0": copying(3), "t-1": FLYING}, copies=2, adding={"t-1": 1}).alters

    def test_cancels_are_never_held_back(self):
        """No limit keeps anybody from stopping."""
        orders = chosen({f"t-{i}": CANCEL for i in range(5)}, p=0, leaders=0, copies=0)
        assert orders.cancels == tuple(tps(*(f"t-{i}" for i in range(5))))

    @pytest.mark.parametrize("kind", [Kind.DONE, Kind.WAITING, Kind.SKIPPED, Kind.IN_FLIGHT])
    def test_only_what_is_ready_is_sent(self, kind):
        """A verdict of any other kind sends nothing, whatever step it shows."""
        assert chosen({"t-0": Verdict(kind, step=replicas_of(1, 2))}) == Orders()


class TestOrder:
    def test_begun_ones_first_internal_last_then_the_largest(self):
        """The longest copy does not start last, and nothing half done waits behind something new."""
        verdicts = {
            "__consumer_offsets-0": copying(),
            "small-0": copying(),
            "large-0": copying(),
            "begun-0": copying(started=True),
        }
        sizes = {"__consumer_offsets-0": 10**9, "small-0": 1, "large-0": 10**6, "begun-0": 0}
        expected = tps("begun-0", "large-0", "small-0", "__consumer_offsets-0")
        assert list(chosen(verdicts, sizes=sizes).alters) == expected

    def test_equal_ones_go_by_name_whatever_order_they_were_listed_in(self):
        """The same cluster gives the same orders."""
        names = ["a-2", "b-0", "a-10"]
        for order in (names, names[::-1]):
            assert list(chosen({name: copying() for name in order}).alters) == tps("a-2", "a-10", "b-0")
