"""Parsing and formatting of bytes and durations, and a plan's figures and hash."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition, plan_hash
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.units import (
    few,
    format_bytes,
    format_duration,
    format_duration_range,
    format_rate,
    parse_duration,
    parse_quantity,
)


class TestQuantity:
    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ("50Mi", 52428800),
            ("2Ti", 2 * 2**40),
            ("1k", 1000),
            ("3G", 3 * 10**9),
            ("1048576", 1048576),
            ("1.5Gi", 1610612736),
            ("0.5M", 500_000),
            ("1.001Ki", 1025),
            (" 7 ", 7),
            (42, 42),
        ],
    )
    def test_kubernetes_suffixes_are_read(self, text, count):
        """Binary and decimal suffixes, decimals before a suffix, and plain integers."""
        assert parse_quantity(text) == count

    @pytest.mark.parametrize(
        "text", ["", "Mi", "1.5", "1.Gi", ".5Gi", "1.0005Gi", "-5", "50MiB", "50 Mi", "50mi", "1e3", "1K", True]
    )
    def test_anything_else_is_refused(self, text):
        """Fractions of a byte, signs, other units and a YAML true are not byte counts."""
        with pytest.raises(ValueError, match="is not a quantity"):
            parse_quantity(text)

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("50MB", "write 50M (decimal) or 50Mi (binary)"),
            ("50mb/s", "write 50M (decimal) or 50Mi (binary)"),
            ("1K", "write 1k (decimal) or 1Ki (binary)"),
            ("1.5 GiB", "write 1.5Gi"),
            ("50MiBps", "write 50Mi"),
        ],
    )
    def test_the_message_translates_other_units(self, text, meant):
        with pytest.raises(ValueError, match="is not a quantity") as wrong:
            parse_quantity(text)
        assert str(wrong.value).endswith(f": {meant}")


class TestDuration:
    @pytest.mark.parametrize(("text", "seconds"), [("15m", 900), ("1h30m", 5400), ("2d", 172800), ("1d1h1m1s", 90061)])
    def test_days_hours_minutes_seconds(self, text, seconds):
        """In this order, each unit at most once."""
        assert parse_duration(text) == seconds

    @pytest.mark.parametrize("text", ["", "15", "30m1h", "1w", "1.5h", "-1m", "15 m"])
    def test_anything_else_is_refused(self, text):
        """A bare number has no unit, so its meaning is unclear."""
        with pytest.raises(ValueError, match="is not a duration"):
            parse_duration(text)


class TestFormats:
    @pytest.mark.parametrize(
        ("count", "text"),
        [
            (0, "0 B"),
            (1023, "1023 B"),
            (1572864, "1.5 MiB"),
            (50 * 2**20, "50.0 MiB"),
            (500 * 2**30, "500 GiB"),
            (5000 * 2**40, "5000 TiB"),
        ],
    )
    def test_bytes(self, count, text):
        """Binary units; TiB is the largest."""
        assert format_bytes(count) == text

    def test_rate(self):
        """Bytes per second."""
        assert format_rate(52428800) == "50.0 MiB/s"

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (0, "0s"),
            (-3, "0s"),
            (59.6, "1m"),
            (61, "1m1s"),
            (3600, "1h"),
            (3725, "1h2m"),
            (90000, "1d1h"),
            (86460, "1d"),
        ],
    )
    def test_duration(self, seconds, text):
        """The two largest units, never negative."""
        assert format_duration(seconds) == text

    @pytest.mark.parametrize(
        ("shortest", "longest", "text"),
        [
            (725, 1490, "12m-25m"),
            (0, 0, "0s"),
            (0, 42, "0s-40s"),
            (1, 4, "10s"),
            (57, 63, "1m"),
            (3590, 3601, "1h"),
            (3725, 7000, "1h-2h"),
            (4000, 86390, "1h10m-1d"),
            (100000, 200000, "1d4h-2d8h"),
        ],
    )
    def test_a_range_is_coarse(self, shortest, longest, text):
        """Each end is rounded to its magnitude; equal ends are printed once; time above zero is never printed as 0s."""
        assert format_duration_range(shortest, longest) == text

    @given(st.integers(0, 10**7))
    def test_a_duration_is_readable_to_us_up_to_its_smaller_unit(self, seconds):
        """The error is always less than one of the smaller unit."""
        text = format_duration(seconds)
        if "d" in text:
            return
        unit = 60 if "h" in text else 1
        assert 0 <= seconds - parse_duration(text) < unit


def planned(partition, current, target, size=0, topic_id="", topic="t"):
    return PlannedPartition(
        TopicPartition(topic, partition), replicas_of(*current), replicas_of(*target), topic_id, size
    )


ROWS = (
    planned(0, [1, 2, 3], [4, 2, 5], size=100),
    planned(1, [1, 2], [2, 1], size=70),
    planned(2, [1, 2], [1, 2], size=900),
    planned(3, [1, 2], [1], size=50),
)
PLAN = Plan(ROWS, Certificate(2, optimal=True))


class TestPlanNumbers:
    def test_added_in_the_targets_order(self):
        """Brokers that did not hold a replica of the partition."""
        assert ROWS[0].added == (4, 5)
        assert ROWS[1].added == ()

    def test_counts(self):
        """A kept row changes nothing; a reorder moves no replica; a drop copies no bytes."""
        assert PLAN.changed == 3
        assert PLAN.replica_moves == 2
        assert PLAN.leader_moves == 2
        assert PLAN.data_to_move_bytes == 200

    def test_an_empty_plan_is_all_zero(self):
        """The figures of an empty plan are all zero."""
        empty = Plan((), Certificate(0, optimal=True))
        assert (empty.changed, empty.replica_moves, empty.leader_moves, empty.data_to_move_bytes) == (0, 0, 0, 0)


class TestPlanHash:
    def test_no_listing_order_matters(self):
        """The hash depends on what is planned, not on the listing order."""
        assert plan_hash(ROWS) == plan_hash(ROWS[::-1]) == PLAN.hash
        assert PLAN.hash.startswith("sha256:")

    @pytest.mark.parametrize(
        "rows",
        [
            tuple(dataclasses.replace(row, size_bytes=row.size_bytes + 1) for row in ROWS),
            (*ROWS, planned(9, [5, 6], [5, 6])),
            tuple(row for row in ROWS if row.current != row.target),
        ],
        ids=["sizes", "another unchanged partition", "changed ones only"],
    )
    def test_unrelated_changes_do_not_void_an_approval(self, rows):
        """Sizes grow and other partitions come and go while the approval is pending."""
        assert plan_hash(rows) == PLAN.hash

    @pytest.mark.parametrize(
        "row",
        [
            planned(0, [1, 2, 3], [5, 2, 4]),
            planned(0, [2, 1, 3], [4, 2, 5]),
            planned(8, [1, 2, 3], [4, 2, 5]),
            planned(0, [1, 2, 3], [4, 2, 5], topic="u"),
        ],
        ids=["target order", "expected list", "partition", "topic"],
    )
    def test_another_change_is_another_plan(self, row):
        """Targets, the lists they were planned from, and the partition's name are all part of the hash."""
        assert plan_hash((row, *ROWS[1:])) != PLAN.hash


@pytest.mark.parametrize(
    ("things", "text"), [([], ""), ([1, 2, 3], "1, 2, 3"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")]
)
def test_the_first_of_many_names(things, text):
    assert few(things) == text
