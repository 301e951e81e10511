"""What is sent for a rebalance: the choice among ready partitions, under all caps at once."""

from dataclasses import replace

import pytest
from tests.unit.execution.scheduling import (
    CANCEL,
    DROP,
    ELECTION,
    by_name,
    chosen,
    copying,
    flying,
    limits,
    names,
    sent,
    share,
    stuck,
    tps,
)

from kafka_rebalance.execution import schedule
from kafka_rebalance.execution.limits import Ceilings
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.schedule import Orders
from kafka_rebalance.model.topology import BrokerId, replicas_of


class TestLimits:
    @pytest.mark.parametrize(("p", "expected"), [(0, 0), (1, 1), (3, 3), (9, 5)])
    def test_never_more_than_p_partitions(self, p, expected):
        """KIP-435's P."""
        assert len(chosen({f"t-{i}": copying(10) for i in range(5)}, p=p).alters) == expected

    def test_what_is_in_flight_and_what_is_cancelled_count_towards_p(self):
        """A slot is free only when Kafka has finished with the partition."""
        orders = chosen({"t-0": flying(10), "t-1": CANCEL, "t-2": copying(10), "t-3": copying(10)}, p=3)
        assert names(orders) == ["t-2"]

    def test_never_more_calls_than_a_round_sends(self, monkeypatch):
        """In the same order as without this limit, and each rebalance has its own: P is reached over several rounds."""
        statuses = {f"t-{i}": copying(10 + i % 3) for i in range(6)} | {"t-6": DROP, "t-7": ELECTION}
        every = chosen(statuses, p=100)
        monkeypatch.setattr(schedule, "MOST_CALLS", 4)
        found = chosen(statuses, p=100)
        assert (names(every)[:3], every.more) == (names(found), False)
        assert (found.elections, found.more) == (every.elections, True)
        first, second = share(statuses, limits(p=100)), share({"u-1": copying(10)}, limits(p=100))
        assert [len(orders.alters) for orders in sent(first, second)] == [3, 1]

    def test_cancels_are_no_calls_of_this_number(self, monkeypatch):
        """None waits."""
        monkeypatch.setattr(schedule, "MOST_CALLS", 2)
        orders = chosen({**{f"t-{i}": CANCEL for i in range(5)}, "t-5": copying(10)}, p=100)
        assert (len(orders.cancels), names(orders), orders.more) == (5, ["t-5"], False)

    @pytest.mark.parametrize(("ours", "expected"), [(True, []), (False, ["t-1"])])
    def test_ours_that_cannot_be_cancelled_takes_a_slot_and_a_foreign_one_none(self, ours, expected):
        """P counts everything that the rebalance has in flight, and nothing of others."""
        assert names(chosen({"t-0": stuck(10, ours=ours), "t-1": copying(11)}, p=1)) == expected

    def test_a_lowered_p_stops_new_ones_only(self):
        """If P is lowered below the number of partitions in flight, nothing is sent until enough has drained."""
        assert chosen({"t-0": flying(10), "t-1": flying(11), "t-2": copying(12)}, p=1) == Orders()

    def test_never_more_than_l_leader_movements(self):
        """KIP-435's L includes those in flight, elections and copies alike."""
        statuses = {"t-0": flying(10, leads=True), "t-1": ELECTION, "t-2": copying(11, leads=True)}
        orders = chosen({**statuses, "t-3": copying(12, leads=True)}, leaders=3)
        assert orders.elections == tuple(tps("t-1"))
        assert names(orders) == ["t-2"]

    def test_a_partition_held_by_l_is_passed_by_others(self):
        """L holds back leader movements, not those behind them; a partition that is not sent takes no slot of P."""
        orders = chosen({"t-0": copying(10, leads=True), "t-1": ELECTION, "t-2": copying(10)}, leaders=0, p=1)
        assert names(orders) == ["t-2"]
        assert orders.elections == ()

    def test_never_more_copies_than_the_cap(self):
        """reassignment.max.concurrent.replica.movements counts replicas, including those in flight."""
        statuses = {"t-0": flying(10, 11), "t-1": copying(12, 13), "t-2": copying(14, 15), "t-3": copying(16)}
        assert len(chosen(statuses, copies=4).alters) == 1
        assert sorted(names(chosen(statuses, copies=5))) in (["t-1", "t-3"], ["t-2", "t-3"])

    def test_a_smaller_step_passes_a_larger_one_that_does_not_fit(self):
        """Between the same brokers, too: the rest of the cap is used."""
        statuses = {"t-0": flying(12), "t-1": copying(10, 11), "t-2": copying(10)}
        assert names(chosen(statuses, copies=2, sizes={"t-1": 9, "t-2": 1})) == ["t-2"]

    def test_calls_without_a_copy_pass_a_full_cap(self):
        """A drop frees a replica: blocking it would block everything, also when the cap was lowered meanwhile."""
        orders = chosen({"t-0": DROP, "t-1": ELECTION, "t-2": copying(10), "t-3": flying(10, 11)}, copies=1)
        assert names(orders) == ["t-0"]
        assert orders.elections == tuple(tps("t-1"))

    def test_a_step_larger_than_the_cap_passes_alone(self):
        """R may exceed the cap; otherwise such a step would never be sent."""
        assert names(chosen({"t-0": copying(10, 11, 12), "t-1": copying(13, 14, 15)}, copies=2)) == ["t-0"]
        assert not chosen({"t-0": copying(10, 11, 12), "t-1": flying(13)}, copies=2).alters

    def test_cancels_are_never_held_back(self):
        """No limit prevents cancelling."""
        part = share({f"t-{i}": CANCEL for i in range(5)}, limits(p=0, leaders=0, copies=0))
        assert sent(part, ceilings=Ceilings(0, 0, 0))[0].cancels == tuple(tps(*(f"t-{i}" for i in range(5))))

    @pytest.mark.parametrize("phase", [MovePhase.DONE, MovePhase.WAITING, MovePhase.SKIPPED, MovePhase.IN_FLIGHT])
    def test_only_what_is_ready_is_sent(self, phase):
        """A partition in any other phase sends nothing, even if it has a step."""
        assert chosen({"t-0": PartitionStatus(phase, step=replicas_of(1, 2))}) == Orders()


class TestPerBroker:
    """The design's ``maxPerBroker``: copies into a broker, and out of the leader that sends them."""

    @pytest.mark.parametrize(("cap", "expected"), [(1, 1), (2, 2), (None, 4)])
    def test_never_more_copies_into_a_broker(self, cap, expected):
        """The destination's cap."""
        statuses = {f"t-{i}": copying(10, source=i) for i in range(4)}
        assert len(chosen(statuses, to=cap).alters) == expected

    @pytest.mark.parametrize(("cap", "expected"), [(1, 1), (2, 2), (None, 4)])
    def test_never_more_copies_out_of_a_broker(self, cap, expected):
        """The leader is the source of every copy."""
        statuses = {f"t-{i}": copying(10 + i) for i in range(4)}
        assert len(chosen(statuses, out=cap).alters) == expected

    def test_what_is_in_flight_counts_on_both_sides(self):
        """At the destinations that it adds, and at its leader."""
        statuses = {"t-0": flying(10, source=1), "t-1": copying(10, source=2), "t-2": copying(11, source=1)}
        assert names(chosen(statuses, to=1)) == ["t-2"]
        assert names(chosen(statuses, out=1)) == ["t-1"]

    def test_a_foreign_reassignment_loads_a_broker_too(self):
        """Bytes count, also those of reassignments that other tools submitted."""
        assert not chosen({"t-0": stuck(10, ours=False), "t-1": copying(10, source=2)}, to=1).alters

    def test_every_destination_of_a_step_must_have_room(self):
        """Not only the first one."""
        statuses = {"t-0": flying(11, source=2), "t-1": copying(10, 11), "t-2": copying(10, 12)}
        assert names(chosen(statuses, to=1)) == ["t-2"]

    def test_every_copy_of_a_step_counts_at_its_source(self):
        """R copies at once count R times at the leader."""
        statuses = {"t-0": copying(10, 11), "t-1": copying(12, 13), "t-2": copying(14)}
        assert len(chosen(statuses, out=3).alters) == 2

    def test_a_step_that_alone_exceeds_a_cap_passes_alone(self):
        """R above ``out``: sent when nothing else leaves the broker, and then alone."""
        statuses = {"t-0": copying(10, 11, 12), "t-1": copying(13)}
        assert len(chosen(statuses, out=1).alters) == 1
        assert names(chosen({"t-0": copying(10, 11, 12)}, out=1)) == ["t-0"]
        assert not chosen({"t-0": copying(10, 11, 12), "t-1": flying(13)}, out=1).alters

    @pytest.mark.parametrize("within", [{"to": 0}, {"out": 0}, {"copies": 0}])
    def test_not_even_a_cap_of_nothing_stops_everything(self, within):
        """At least one at a time: a cap slows down, only a suspend stops."""
        assert names(chosen({"t-0": copying(10), "t-1": copying(10)}, **within)) == ["t-0"]

    def test_calls_without_a_copy_load_no_broker(self):
        """Drops, reorders and elections are sent to full brokers, too."""
        orders = chosen({"t-0": flying(10), "t-1": DROP, "t-2": ELECTION}, to=1, out=1)
        assert names(orders) == ["t-1"]
        assert orders.elections == tuple(tps("t-2"))


class TestDisk:
    """Old and new copies coexist, so a new copy must fit beside everything still to be copied."""

    def test_a_copy_that_does_not_fit_is_held_back_and_its_broker_named(self):
        """DiskFull names the broker."""
        part = share({"t-0": copying(10), "t-1": copying(11)}, sizes={"t-0": 101, "t-1": 100})
        orders = sent(part, free_bytes={BrokerId(10): 100, BrokerId(11): 100})[0]
        assert names(orders) == ["t-1"]
        assert orders.no_room == by_name({"t-0": BrokerId(10)})

    def test_what_was_just_chosen_counts(self):
        """Two that fit individually do not fit together; a smaller one passes."""
        part = share({f"t-{i}": copying(10) for i in range(3)}, sizes={"t-0": 60, "t-1": 50, "t-2": 40})
        orders = sent(part, free_bytes={BrokerId(10): 100})[0]
        assert names(orders) == ["t-0", "t-2"]
        assert orders.no_room == by_name({"t-1": BrokerId(10)})

    @pytest.mark.parametrize(("on_disk", "fits"), [(0, False), (29, False), (30, True)])
    def test_what_copies_in_flight_still_lack_counts(self, on_disk, fits):
        """The rest of 60 bytes will still use the 100 free ones; a copy of 70 must fit beside it."""
        part = share({"t-0": flying(10), "t-1": copying(10)}, sizes={"t-0": 60, "t-1": 70})
        present = {(tps("t-0")[0], BrokerId(10)): on_disk}
        orders = sent(part, free_bytes={BrokerId(10): 100}, replica_bytes=present)[0]
        assert bool(orders.alters) is fits

    def test_every_destination_of_a_step_must_have_room(self):
        """Not only the first one."""
        part = share({"t-0": copying(10, 11)}, sizes={"t-0": 50})
        orders = sent(part, free_bytes={BrokerId(10): 100, BrokerId(11): 49})[0]
        assert orders == Orders(no_room=by_name({"t-0": BrokerId(11)}))

    def test_who_is_held_back_by_a_cap_as_well_is_not_named(self):
        """More disk would not help: DiskFull is reported only where it would."""
        part = share({"t-0": flying(11, source=2), "t-1": copying(10, 11)}, limits(to=1), {"t-1": 50})
        assert sent(part, free_bytes={BrokerId(10): 49})[0] == Orders()

    def test_a_broker_that_does_not_tell_holds_nothing_back(self):
        """Unknown is not full."""
        part = share({"t-0": copying(10)}, sizes={"t-0": 10**15})
        assert sent(part, free_bytes={BrokerId(11): 0})[0].alters

    def test_nothing_passes_a_full_disk_alone(self):
        """Caps let a step that is too large pass alone; a disk does not."""
        part = share({"t-0": copying(10)}, sizes={"t-0": 2})
        assert not sent(part, free_bytes={BrokerId(10): 1})[0].alters

    def test_what_has_to_come_first_has_its_room_kept(self):
        """Two brokers swap partitions, and a third one sends to one of them: it would take the room for the swap."""
        part = share(
            {"t-0": copying(10, source=11), "t-1": copying(11, source=10), "t-2": copying(10, source=12)},
            sizes={"t-0": 50, "t-1": 50, "t-2": 60},
        )
        goals = {tp: status.call.until_in_sync for tp, status in part.statuses.items()}
        free = {BrokerId(10): 60, BrokerId(11): 0, BrokerId(12): 0}
        assert names(sent(part, free_bytes=free)[0]) == ["t-2"]
        orders = sent(replace(part, goals=goals), free_bytes=free)[0]
        assert names(orders) == ["t-0"]
        assert orders.no_room == by_name({"t-1": BrokerId(11), "t-2": BrokerId(10)})

    def test_a_rebalance_may_leave_more_free(self):
        """Its own copies do, those of others need not."""
        first = replace(
            share({"t-0": copying(10), "t-1": copying(11)}, sizes={"t-0": 61, "t-1": 61}), kept_free={10: 40}
        )
        second = share({"u-0": copying(10)}, sizes={"u-0": 61})
        orders = sent(first, second, free_bytes={BrokerId(10): 100, BrokerId(11): 100})
        assert [names(each) for each in orders] == [["t-1"], ["u-0"]]

    def test_the_same_disk_is_shared_by_all_rebalances(self):
        """The second one gets what the first leaves free."""
        first = share({"t-0": copying(10)}, sizes={"t-0": 60})
        second = share({"u-0": copying(10), "u-1": copying(10)}, sizes={"u-0": 60, "u-1": 40})
        orders = sent(first, second, free_bytes={BrokerId(10): 100})
        assert [names(each) for each in orders] == [["t-0"], ["u-1"]]


class TestClasses:
    def test_begun_ones_first_internal_last_then_the_largest(self):
        """The longest copy does not start last, and no begun partition waits behind a new one."""
        statuses = {
            "__consumer_offsets-0": copying(10),
            "small-0": copying(10),
            "large-0": copying(10),
            "begun-0": copying(10, started=True),
        }
        sizes = {"__consumer_offsets-0": 10**9, "small-0": 1, "large-0": 10**6, "begun-0": 0}
        assert names(chosen(statuses, sizes=sizes)) == ["begun-0", "large-0", "small-0", "__consumer_offsets-0"]

    def test_at_most_l_leader_movements_first_then_others(self):
        """KIP-435's order within a batch."""
        statuses = {"t-0": copying(10), "t-1": copying(10, leads=True), "t-2": copying(10, leads=True)}
        assert names(chosen(statuses, leaders=1, p=2, sizes={"t-0": 9, "t-2": 1})) == ["t-2", "t-0"]

    def test_internal_leaders_move_one_at_a_time_over_all_rebalances(self):
        """Regardless of L; other calls for internal topics continue."""
        first = share({"__a-0": copying(10, leads=True), "__a-1": copying(11, leads=True), "__a-2": copying(12)})
        second = share({"__b-0": copying(13, leads=True), "b-0": copying(14, leads=True)})
        assert [names(each) for each in sent(first, second)] == [["__a-0", "__a-2"], ["b-0"]]

    def test_an_internal_leader_in_flight_holds_the_next_one(self):
        """One at a time, not one per round."""
        part = share({"__a-0": flying(10, leads=True)})
        assert not sent(part, share({"__b-0": copying(11, leads=True)}))[1].alters

    def test_what_copies_nothing_goes_before_copies(self):
        """It completes at once, and often frees resources."""
        assert names(chosen({"a-0": copying(10, started=True), "b-0": DROP})) == ["b-0", "a-0"]

    def test_of_calls_that_copy_nothing_the_largest_partitions_go_first(self):
        """Under L, the leaders of the largest partitions move first."""
        sizes = {"t-0": 1, "t-1": 3, "t-2": 2}
        orders = chosen(dict.fromkeys(sizes, ELECTION), leaders=2, sizes=sizes)
        assert orders.elections == tuple(tps("t-1", "t-2"))

    def test_equal_ones_go_by_name_whatever_order_they_were_listed_in(self):
        """The same cluster gives the same calls."""
        listed = ["a-2", "b-0", "a-10"]
        for order in (listed, listed[::-1]):
            assert names(chosen({name: copying(10) for name in order})) == ["a-2", "a-10", "b-0"]


class TestWithoutCopies:
    def test_copies_hold_nothing_back(self):
        """They are chosen once these calls have ended, which takes no time."""
        part = share({"a-0": copying(10, started=True, leads=True), "b-0": DROP}, limits(p=1))
        assert [names(sent(part, copying=also)[0]) for also in (True, False)] == [["a-0"], ["b-0"]]

    def test_what_is_in_flight_counts(self):
        """The limits are the same."""
        part = share({"a-0": flying(10), "b-0": DROP}, limits(p=1))
        assert not sent(part, copying=False)[0].alters


class TestPipes:
    """Balanced by bytes per source and destination: every pipe is busy, and no broker is overloaded."""

    def test_destinations_take_turns(self):
        """Three slots, three destinations: one each, although the largest all go to the first."""
        statuses = {f"t-{i}": copying(10 + i // 3, source=i) for i in range(9)}
        sizes = {f"t-{i}": 100 - i for i in range(9)}
        assert names(chosen(statuses, p=3, sizes=sizes)) == ["t-0", "t-3", "t-6"]

    def test_sources_take_turns(self):
        """The source leaders are spread as well."""
        statuses = {f"t-{i}": copying(10 + i, source=i // 3) for i in range(9)}
        sizes = {f"t-{i}": 100 - i for i in range(9)}
        assert names(chosen(statuses, p=3, sizes=sizes)) == ["t-0", "t-3", "t-6"]

    def test_with_one_source_the_destinations_still_take_turns(self):
        """The busier end decides first, the other end breaks ties."""
        statuses = {"t-0": copying(10), "t-1": copying(10), "t-2": copying(11)}
        assert names(chosen(statuses, p=2, sizes={"t-0": 100, "t-1": 99, "t-2": 1})) == ["t-0", "t-2"]

    def test_the_busier_end_decides(self):
        """An idle destination does not compensate for a busy source leader."""
        statuses = {"t-0": flying(20, source=1), "t-1": flying(11, source=5), "t-2": copying(10, source=1)}
        part = share({**statuses, "t-3": copying(11, source=2)}, limits(p=3), {"t-0": 100, "t-1": 50, "t-2": 9})
        assert names(sent(part)[0]) == ["t-3"]

    def test_between_pipes_that_are_equally_busy_the_largest_goes_first(self):
        """One slot and nothing in flight: the longest copy does not start last here either."""
        statuses = {"t-0": copying(10, source=1), "t-1": copying(11, source=2)}
        assert names(chosen(statuses, p=1, sizes={"t-0": 1, "t-1": 2})) == ["t-1"]

    def test_bytes_count_not_copies(self):
        """Small copies go where a second large one would accumulate."""
        statuses = {"a-0": copying(10, source=1), "b-0": copying(11, source=2)}
        statuses |= {f"b-{i}": copying(11, source=2) for i in range(1, 4)} | {"a-1": copying(10, source=1)}
        sizes = {"a-0": 100, "a-1": 100, **{f"b-{i}": 10 for i in range(4)}}
        assert names(chosen(statuses, p=5, sizes=sizes)) == ["a-0", "b-0", "b-1", "b-2", "b-3"]

    def test_what_is_under_way_already_counts_by_what_is_still_to_come(self):
        """A copy that is almost complete no longer keeps its pipe busy."""
        statuses = {"t-0": flying(10, source=1), "t-1": flying(11, source=2)}
        statuses |= {"t-2": copying(10, source=1), "t-3": copying(11, source=2)}
        part = share(statuses, limits(p=3), {"t-0": 100, "t-1": 50, "t-2": 9, "t-3": 9})
        assert names(sent(part)[0]) == ["t-3"]
        nearly = {(tps("t-0")[0], BrokerId(10)): 99}
        assert names(sent(part, replica_bytes=nearly)[0]) == ["t-2"]

    def test_copies_of_unknown_size_are_spread_too(self):
        """Without sizes, the number of copies counts."""
        statuses = {f"t-{i}": copying(10 + i // 3, source=i) for i in range(9)}
        assert names(chosen(statuses, p=3)) == ["t-0", "t-3", "t-6"]

    def test_the_largest_first_within_a_pipe(self):
        """So that the longest copy does not start last."""
        statuses = {f"t-{i}": copying(10) for i in range(3)}
        assert names(chosen(statuses, sizes={"t-0": 1, "t-1": 3, "t-2": 2})) == ["t-1", "t-2", "t-0"]

    def test_every_destination_of_what_was_just_chosen_is_busy(self):
        """Also destinations later in the list of a step."""
        statuses = {"t-0": copying(10, 11), "t-1": copying(12, 11, source=2), "t-2": copying(13, 14, source=3)}
        assert names(chosen(statuses, p=2, sizes={"t-0": 9, "t-1": 8, "t-2": 1})) == ["t-0", "t-2"]

    def test_a_step_is_as_busy_as_its_busiest_destination(self):
        """A busy broker holds back the whole step, wherever it is in the step's list."""
        statuses = {"t-0": flying(11, source=5), "t-1": copying(10, 11, source=2), "t-2": copying(12, 13, source=3)}
        part = share(statuses, limits(p=2), {"t-0": 50, "t-1": 9, "t-2": 1})
        assert names(sent(part)[0]) == ["t-2"]
