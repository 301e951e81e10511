"""The charts are well-formed, bounded in size, and show what they are given."""

import xml.etree.ElementTree as ET

import pytest
from tests.unit.report.report_values import PLAN, ROWS, course, record

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.report.plan_contents import copy_flows
from kafka_rebalance.report.report_contents import BalancePoint, BeforeAfter, BrokerRow, CopyFlow
from kafka_rebalance.report.svg_charts import (
    balance_curve,
    broker_columns,
    copy_rates,
    counted,
    flow_matrix,
    phase_bar,
    step_lanes,
)

FLOWS = copy_flows(PLAN.partitions)
NAME = '<i>&"'


def many(brokers, racks):
    pair = BeforeAfter(100, 50)
    rows = [BrokerRow(BrokerId(n), f"r{n % racks}", True, pair, pair, pair) for n in range(brokers)]
    return sorted(rows, key=lambda row: (row.rack, row.broker))


def texts(chart):
    return [element.text for element in ET.fromstring(chart).iter() if element.text]


class TestColumns:
    def test_brokers_and_racks_have_labels(self):
        """With a tooltip for each broker; one that is emptied says so."""
        found = texts(broker_columns(ROWS, lambda row: row.replicas, counted, "Replicas"))
        assert {"1", "2", "3", "4", "rack a", "rack b"} <= set(found)
        assert "broker 3: 0 before, 2 after" in found
        assert "broker 4, leaves: 1 before, 1 after" in found

    def test_a_thousand_brokers(self):
        """Two paths, and only racks have labels."""
        chart = broker_columns(many(1000, 5), lambda row: row.replicas, counted, "Replicas")
        assert len(chart) < 50_000
        assert [text for text in texts(chart) if text.startswith("rack")] == [f"rack r{n}" for n in range(5)]

    def test_a_rack_for_each_broker(self):
        """Still inside of the picture."""
        chart = broker_columns(many(1000, 1000), lambda row: row.replicas, counted, "Replicas")
        assert "M-" not in chart

    def test_names_are_escaped(self):
        rows = [BrokerRow(BrokerId(1), rack, True, *[BeforeAfter(1, 2)] * 3) for rack in (NAME, "b")]
        assert f"rack {NAME}" in texts(broker_columns(rows, lambda row: row.replicas, counted, NAME))

    def test_nothing_to_show(self):
        """Sizes that are not known make no empty picture."""
        rows = [BrokerRow(BrokerId(1), None, True, *[BeforeAfter(0, 0)] * 3)]
        assert broker_columns(rows, lambda row: row.size_bytes, counted, "Data") == ""


class TestFlows:
    def test_single_brokers(self):
        chart, by = flow_matrix(FLOWS, ROWS)
        assert by == "brokers"
        assert {"1 to 3: 1.0 MiB", "2 to 3: 5.0 MiB"} <= set(texts(chart))

    @pytest.mark.parametrize(("racks", "by"), [(5, "racks"), (1, "ranges of broker ids")])
    def test_many_brokers(self, racks, by):
        """By rack, or by ranges of ids if there are none: the picture stays readable."""
        flows = [CopyFlow(BrokerId(n), BrokerId(n + 1), 1, 10) for n in range(999)]
        chart, grouped = flow_matrix(flows, many(1000, racks))
        assert grouped == by
        assert len(chart) < 60_000

    def test_unknown_sizes(self):
        """Then replicas are counted."""
        chart, _ = flow_matrix([CopyFlow(BrokerId(1), BrokerId(3), 7, 0)], ROWS)
        assert "1 to 3: 7" in texts(chart)

    def test_no_copies(self):
        assert flow_matrix([], ROWS) == ("", "")


class TestCourse:
    def test_rates(self):
        """The area under the line is what was copied: here 6 MiB in 90 seconds, thrice."""
        assert {"2026-03-01 11:50:00 UTC", "2026-03-01 12:00:00 UTC"} <= set(texts(copy_rates(record())))
        assert 'class="limit"' in copy_rates(record())

    def test_steps(self):
        """Of many, some are shown; each with its partition, its destinations and its duration."""
        assert "orders-0 to 3: 6.0 MiB in 90 s" in texts(step_lanes(record()))
        assert len(step_lanes(record(10_000))) < 60_000

    def test_a_run_without_copies(self):
        assert copy_rates(record(0)) == step_lanes(record(0)) == ""

    def test_phases(self):
        assert "1 in flight" in texts(phase_bar(course().phases.items()))
        assert phase_bar([("completed", 0)]) == ""


class TestCurve:
    def test_points(self):
        points = [BalancePoint(0, 0, 10, 0), BalancePoint(5, 3, 7, 1 << 20), BalancePoint(9, 5, 5, 1 << 30)]
        found = texts(balance_curve(points, 9))
        assert "5 moves, 1.0 MiB: 3 to 7 replicas per broker" in found
        assert "this plan: 9 moves" in found

    def test_nothing_to_choose(self):
        assert balance_curve([BalancePoint(0, 5, 5, 0)], 0) == ""
