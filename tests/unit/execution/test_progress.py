"""A run's progress, its rate, and when it counts as stalled."""

import dataclasses

import pytest
from tests.unit.execution.test_bottleneck import throttled

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.progress import (
    Progress,
    lost_moves,
    moves_to_lose,
    produce_rates,
    seconds_at_throttle,
    seconds_left,
    seconds_left_range,
    start_pace,
)
from kafka_rebalance.execution.reassignment_throttle import Rates
from kafka_rebalance.execution.tally import Tally
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

TP = TopicPartition("t", 0)
MOVE = PartitionMove(TP, "", replicas_of(1, 2), replicas_of(1, 2), replicas_of(3, 4), size_bytes=1000)
NONE = Progress(
    partitions_total=4,
    partitions_completed=0,
    partitions_in_flight=0,
    partitions_waiting=4,
    partitions_skipped=0,
    replicas_total=4,
    replicas_completed=0,
    bytes_total=1000,
    bytes_moved=0,
    above_replication_factor=0,
)


def measured(*ids, isr, adding=(), on_disk=None, direction=Direction.FORWARD, phase=MovePhase.IN_FLIGHT):
    state = PartitionState(TP, "", replicas_of(*ids), frozenset(isr), isr[0], replicas_of(*adding))
    on_disk = {(TP, BrokerId(b)): count for b, count in (on_disk or {}).items()}
    return Tally.of([MOVE], {TP: PartitionStatus(phase)}, {TP: state}, direction, 1).progress({phase: 1}, on_disk)[0]


class TestMeasure:
    def test_a_copy_counts_by_its_bytes_until_it_is_in_sync(self):
        """In-sync replicas come from the ISR; other copies count by the bytes on the destination's disk."""
        found = measured(3, 1, 2, 4, isr=[1, 2, 3], adding=(3, 4), on_disk={4: 250})
        assert (found.bytes_total, found.bytes_moved) == (2000, 1250)
        assert (found.replicas_total, found.replicas_completed) == (2, 1)

    def test_a_copy_never_counts_for_more_than_its_size(self):
        """A partition that grows while it is copied is not done until it is in sync."""
        found = measured(3, 1, 2, isr=[1, 2], adding=(3,), on_disk={3: 5000})
        assert found.bytes_moved == 1000
        assert found.replicas_completed == 0

    def test_a_replica_in_sync_counts_whole_though_it_is_smaller(self):
        """Retention may have deleted some of the bytes that were planned to be copied."""
        assert measured(3, 1, 2, isr=[1, 2, 3], on_disk={3: 10}).bytes_moved == 1000

    def test_bytes_of_a_stray_copy_do_not_count(self):
        """Bytes on the disk of a broker that is not a replica do not count."""
        assert measured(1, 2, isr=[1, 2], on_disk={3: 900}).bytes_moved == 0

    def test_a_rollback_counts_the_copies_at_the_origin(self):
        """In a rollback, the bytes to fetch are those of the original replicas that the target lacks."""
        found = measured(4, 1, 2, isr=[4, 2], adding=(1,), on_disk={1: 300}, direction=Direction.ROLLBACK)
        assert (found.replicas_total, found.replicas_completed, found.bytes_moved) == (2, 1, 1300)

    @pytest.mark.parametrize(("ids", "adding", "above"), [((3, 1, 2), (), 1), ((1, 3), (), 0), ((3, 1, 2), (3,), 0)])
    def test_only_a_partition_at_rest_is_above_its_replication_factor(self, ids, adding, above):
        """An extra copy is normal in flight; only a partition left at rest with one is reported."""
        assert measured(*ids, isr=[1], adding=adding).above_replication_factor == above

    @pytest.mark.parametrize(
        ("phase", "counted"),
        [
            (MovePhase.DONE, "partitions_completed"),
            (MovePhase.IN_FLIGHT, "partitions_in_flight"),
            (MovePhase.READY, "partitions_waiting"),
            (MovePhase.WAITING, "partitions_waiting"),
            (MovePhase.SKIPPED, "partitions_skipped"),
        ],
    )
    def test_each_partition_is_counted_once(self, phase, counted):
        """Ready but not sent counts as waiting."""
        found = measured(1, 2, isr=[1, 2], phase=phase)
        names = ("completed", "in_flight", "waiting", "skipped")
        counts = {f"partitions_{name}": getattr(found, f"partitions_{name}") for name in names}
        assert {name for name, count in counts.items() if count} == {counted}

    def test_of_a_partition_left_alone_only_what_has_arrived_counts(self):
        """The rest will never arrive; counting it would falsify the percentage and the time left."""
        found = measured(3, 1, 2, isr=[1, 2, 3], phase=MovePhase.SKIPPED)
        assert (found.bytes_total, found.bytes_moved) == (1000, 1000)

    def test_a_partition_that_no_broker_told_about_is_not_forgotten(self):
        """Its bytes stay in the total."""
        statuses = {TP: PartitionStatus(MovePhase.WAITING)}
        found, _ = Tally.of([MOVE], statuses, {}, Direction.FORWARD, 1).progress({}, {})
        assert (found.bytes_total, found.bytes_moved, found.partitions_total) == (2000, 0, 1)


class TestPercent:
    @pytest.mark.parametrize(
        ("changes", "percent"),
        [
            ({}, 0),
            ({"bytes_moved": 379}, 37),
            ({"bytes_moved": 1000, "partitions_completed": 3}, 99),
            ({"bytes_moved": 0, "partitions_completed": 3, "partitions_skipped": 1}, 100),
            ({"bytes_total": 0, "partitions_completed": 1}, 25),
            ({"partitions_total": 0}, 100),
        ],
    )
    def test_by_bytes_else_by_partitions_and_100_only_at_the_end(self, changes, percent):
        """99 until the last partition is done or skipped, even if all bytes are copied."""
        assert dataclasses.replace(NONE, **changes).percent == percent


class TestPace:
    def test_the_rate_is_bytes_per_second_and_smoothed(self):
        """The first reading sets the rate, later readings adjust it."""
        pace = start_pace(NONE, 100.0)
        assert pace.rate == 0.0
        pace = pace.follow(dataclasses.replace(NONE, bytes_moved=200), 120.0)
        assert pace.rate == pytest.approx(10.0)
        pace = pace.follow(dataclasses.replace(NONE, bytes_moved=600), 140.0)
        assert 10.0 < pace.rate < 20.0

    def test_readings_close_together_do_not_bend_the_rate(self):
        """Disk sizes are read periodically: a short interval may show none or all of a change; the next counts it."""
        pace = start_pace(NONE, 0.0).follow(dataclasses.replace(NONE, bytes_moved=150), 0.5)
        assert (pace.rate, pace.at) == (0.0, 0.0)
        assert pace.follow(dataclasses.replace(NONE, bytes_moved=200), 20.0).rate == pytest.approx(10.0)

    @pytest.mark.parametrize("change", [{"bytes_moved": 1}, {"replicas_completed": 1}, {"partitions_completed": 1}])
    @pytest.mark.parametrize("now", [0.5, 60.0])
    def test_bytes_copies_or_partitions_are_an_advance(self, change, now):
        """Any of the three counts as progress, immediately."""
        assert start_pace(NONE, 0.0).follow(dataclasses.replace(NONE, **change), now).advanced_at == now

    def test_more_in_flight_is_no_advance(self):
        """Submitting is not progress: a stall is measured from the last byte."""
        pace = start_pace(NONE, 0.0)
        for now in (1.0, 2.0, 900.0):
            pace = pace.follow(dataclasses.replace(NONE, partitions_in_flight=int(now)), now)
        assert pace.advanced_at == 0.0

    def test_the_rate_is_never_negative(self):
        """A copy that restarts loses bytes."""
        pace = start_pace(dataclasses.replace(NONE, bytes_moved=500), 0.0).follow(NONE, 10.0)
        assert pace.rate == 0.0

    def test_the_steady_rate_is_the_mean_of_the_first_minutes(self):
        """Batches begin and end: the end of one must not make the rate jump."""
        pace = start_pace(NONE, 0.0)
        for now, moved in ((10.0, 1000), (20.0, 1000), (30.0, 1000), (40.0, 2000)):
            pace = pace.follow(dataclasses.replace(NONE, bytes_moved=moved), now)
        assert pace.steady == pytest.approx(50.0)
        assert pace.steady < pace.rate

    def test_later_it_follows_within_minutes(self):
        """Half an hour at 10 bytes per second, then 100: after five minutes most of the change is visible."""
        pace, moved = start_pace(NONE, 0.0), 0
        for now in range(10, 2110, 10):
            moved += 100 if now <= 1800 else 1000
            pace = pace.follow(dataclasses.replace(NONE, bytes_moved=moved), float(now))
            if now == 1800:
                assert pace.steady == pytest.approx(10.0)
        assert 60.0 < pace.steady < 80.0

    def test_how_often_it_is_read_does_not_matter(self):
        """The operator reads more often while copies are in flight."""
        often, seldom = start_pace(NONE, 0.0), start_pace(NONE, 0.0)
        for now in range(5, 1205, 5):
            found = dataclasses.replace(NONE, bytes_moved=now * (10 if now <= 600 else 20))
            often = often.follow(found, float(now))
            seldom = seldom.follow(found, float(now)) if now % 20 == 0 else seldom
        assert often.steady == pytest.approx(seldom.steady, rel=0.02)

    def test_a_burst_at_the_start_is_no_fastest_pace(self):
        """Small partitions complete at once; the later readings show the real rate."""
        pace = start_pace(NONE, 0.0).follow(dataclasses.replace(NONE, bytes_moved=900), 3.0)
        for now in range(10, 200, 10):
            pace = pace.follow(dataclasses.replace(NONE, bytes_moved=900 + now), float(now))
        assert pace.fastest < 20.0

    def test_the_fastest_pace_is_remembered(self):
        """Half as fast now, but it may speed up again."""
        pace, moved = start_pace(NONE, 0.0), 0
        for now in range(10, 3000, 10):
            moved += 100 if now <= 900 else 50
            pace = pace.follow(dataclasses.replace(NONE, bytes_moved=moved), float(now))
        assert pace.fastest == pytest.approx(10.0)
        assert pace.steady == pytest.approx(5.0, rel=0.01)


def paced(steady, fastest=None):
    return dataclasses.replace(start_pace(NONE, 0.0), rate=1e9, steady=steady, fastest=fastest or steady)


class TestRangeOfTimeLeft:
    def test_from_what_the_throttle_allows_to_what_is_seen(self):
        """The throttle may allow more than the pauses between steps leave."""
        assert seconds_left_range(NONE, paced(10.0, fastest=50.0), 40.0) == (40.0, 100.0)

    def test_unthrottled_from_the_fastest_pace_seen(self):
        """There is no other bound."""
        assert seconds_left_range(NONE, paced(10.0, fastest=50.0), None) == (20.0, 100.0)

    def test_the_longest_is_never_below_the_shortest(self):
        """The throttle was lowered just now: the rate measured before no longer applies."""
        assert seconds_left_range(NONE, paced(10.0), 400.0) == (400.0, 400.0)

    @pytest.mark.parametrize("at_throttle", [366 * 86400.0, 1e12, 1e15])
    def test_more_than_a_year_is_no_estimate(self, at_throttle):
        """With a throttle of a byte per second, the end would be later than the last date that can be represented."""
        assert seconds_left_range(NONE, paced(10.0), at_throttle) is None

    @pytest.mark.parametrize("pace", [None, paced(0.0), paced(1e-9)])
    @pytest.mark.parametrize("at_throttle", [None, 40.0])
    def test_nothing_is_promised_while_nothing_moves(self, pace, at_throttle):
        """The throttle is no estimate while nothing moves."""
        assert seconds_left_range(NONE, pace, at_throttle) is None

    def test_nothing_left_takes_no_time(self):
        """Also when no rate was ever measured."""
        assert seconds_left_range(dataclasses.replace(NONE, bytes_moved=1000), None, None) == (0.0, 0.0)


class TestBytesLeft:
    def left(self, *ids, isr, on_disk=None, direction=Direction.FORWARD, phase=MovePhase.IN_FLIGHT, leader=1):
        state = PartitionState(TP, "", replicas_of(*ids), frozenset(isr), leader)
        on_disk = {(TP, BrokerId(b)): count for b, count in (on_disk or {}).items()}
        return Tally.of([MOVE], {TP: PartitionStatus(phase)}, {TP: state}, direction, 1).bytes_left(on_disk)

    def test_into_each_destination_and_out_of_the_leader(self):
        """3 has a quarter of its copy, 4 has nothing yet; both fetch from the leader."""
        assert self.left(1, 2, 3, isr=[1, 2], on_disk={3: 250}) == ({3: 750, 4: 1000}, {1: 1750})

    def test_what_is_in_sync_lacks_nothing(self):
        """Later fetches are no longer throttled."""
        assert self.left(1, 2, 3, isr=[1, 2, 3], on_disk={3: 1}) == ({4: 1000}, {1: 1000})

    def test_a_rollback_goes_the_other_way(self):
        """The bytes of the original replicas that the target lacks."""
        assert self.left(4, 3, isr=[3, 4], direction=Direction.ROLLBACK, leader=4) == ({1: 1000, 2: 1000}, {4: 2000})

    @pytest.mark.parametrize("phase", [MovePhase.SKIPPED, MovePhase.DONE])
    def test_nothing_comes_of_what_is_left_alone(self, phase):
        """Nor from what is done."""
        assert self.left(1, 2, isr=[1, 2], phase=phase) == ({}, {})

    def test_without_a_leader_it_counts_at_its_destinations(self):
        """The source of the copy is unknown."""
        assert self.left(1, 2, isr=[1, 2], leader=None) == ({3: 1000, 4: 1000}, {})


class TestLostMoves:
    """How much of the plan changes by others have made void."""

    LOST = PartitionStatus(MovePhase.SKIPPED, "Drifted")

    def rows(self):
        """Two copies, a reorder, an election, and a partition that the plan does not change."""
        lists = [((1, 2, 3), (4, 5, 3)), ((1, 2, 3), (2, 1, 3)), ((1, 2, 3), (1, 2, 3)), ((1, 2, 3), (1, 2, 3))]
        return [
            PartitionMove(
                TopicPartition("t", n), "id-1", replicas_of(*was), replicas_of(*was), replicas_of(*to), elects=n == 2
            )
            for n, (was, to) in enumerate(lists)
        ]

    @pytest.mark.parametrize(("number", "lost"), [(0, 2), (1, 1), (2, 1), (3, 0)])
    def test_each_counts_for_what_it_was(self, number, lost):
        """Of four: a partition that the plan does not change does not count."""
        rows = {move.tp: move for move in self.rows()}
        assert lost_moves(rows, {TopicPartition("t", number): self.LOST}) == lost
        assert sum(map(moves_to_lose, rows.values())) == 4


class TestProduceRates:
    def test_growth_over_time(self):
        """Retention may delete more than is produced; a partition read only once has no rate."""
        before = {TopicPartition("t", 0): 100, TopicPartition("t", 1): 100, TopicPartition("t", 2): 5}
        after = {TopicPartition("t", 0): 400, TopicPartition("t", 1): 50, TopicPartition("t", 3): 5}
        assert produce_rates(before, after, 10.0) == {TopicPartition("t", 0): 30.0, TopicPartition("t", 1): 0.0}

    @pytest.mark.parametrize("seconds", [0.0, -1.0])
    def test_no_time_between_the_readings(self, seconds):
        """No rate can be computed."""
        assert produce_rates({TP: 1}, {TP: 2}, seconds) == {}


class TestTimeLeft:
    @pytest.mark.parametrize(("moved", "rate", "seconds"), [(0, 10, 100), (1000, 0, 0), (500, 10, 50)])
    def test_at_this_rate(self, moved, rate, seconds):
        """Bytes left divided by the rate; nothing left takes no time."""
        assert seconds_left(dataclasses.replace(NONE, bytes_moved=moved), rate) == seconds

    def test_nothing_is_promised_while_nothing_moves(self):
        """None, not infinity and not zero."""
        assert seconds_left(NONE, 0.0) is None

    def test_the_fullest_pipe_at_the_throttle_is_the_bound(self):
        """Rates are per broker: the busiest broker decides, on the slower side."""
        into, out = {BrokerId(1): 1000, BrokerId(2): 300}, {BrokerId(3): 900}
        assert seconds_at_throttle(into, out, throttled(100, 100)) == 10
        assert seconds_at_throttle(into, out, throttled(50, 100)) == 18
        assert seconds_at_throttle(into, out, throttled(None, 500)) == 2
        assert seconds_at_throttle(into, out, throttled()) is None
        assert seconds_at_throttle({}, {}, throttled(100, 100)) == 0

    def test_a_broker_with_rates_of_its_own_counts_with_those(self):
        """Slower or faster than the others; an unlimited broker is no bound."""
        into = {BrokerId(1): 1000, BrokerId(2): 300}
        assert seconds_at_throttle(into, {}, throttled(100, 100, b2=Rates(10, 10))) == 30
        assert seconds_at_throttle(into, {}, throttled(100, 100, b1=Rates(500, 500))) == 3
        assert seconds_at_throttle(into, {}, throttled(b2=Rates(10, 10))) == 30
        assert seconds_at_throttle(into, {}, throttled(100, 100, b1=Rates())) == 3
