"""What a report shows of a plan by load."""

from dataclasses import replace

import pytest
from tests.unit.report.report_values import KIB, LOAD, NOW, PLAN, report

from kafka_rebalance.api.resource_status import LoadStatus, ResourceLoadRow
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.report.load_contents import (
    load_facts,
    load_facts_of_status,
    load_risks,
    measured_facts,
    rates_of,
)
from kafka_rebalance.report.pages import html_page, markdown_page
from kafka_rebalance.report.plan_contents import plan_facts_of, risks_of
from kafka_rebalance.report.resource_contents import contents_of

PEAK = "highest use of a broker"
BY_LOAD = replace(PLAN, load=LOAD)
STATUS = LoadStatus(
    resources=(
        ResourceLoadRow(
            resource="Disk", peak_before=120, peak_after=104, peak_measured=106, outside_before=1, outside_after=0
        ),
        ResourceLoadRow(resource="BytesIn", peak_before=180, peak_after=140, outside_before=1, outside_after=1),
    ),
    data_lower_bound=5 << 20,
    gap="1.20",
)


class TestFigures:
    def test_of_a_plan(self):
        assert [(fact.label, fact.text) for fact in load_facts(LOAD)] == [
            (f"Disk: {PEAK}", "120% of its share before, 104% after; brokers above the band: 1 before, 0 after"),
            (f"BytesIn: {PEAK}", "180% of its share before, 140% after; brokers above the band: 1 before, 1 after"),
            ("Data for the load goals", "1.20 times the lower bound of 5.0 MiB"),
        ]
        assert set(load_facts(LOAD)) <= set(plan_facts_of(BY_LOAD))

    def test_of_a_status(self):
        """The same, without the plan."""
        assert load_facts_of_status(STATUS) == load_facts(LOAD)

    def test_what_was_measured(self):
        """Only what the operator has measured: rates take time."""
        (fact,) = measured_facts(STATUS)
        assert (fact.label, fact.text) == ("Disk: highest use, measured at the end", "106% of its share")


class TestRisks:
    def test_a_broker_that_stays_above(self):
        assert load_risks(LOAD) == ["Broker 1 stays above the band of BytesIn: PartitionTooLarge."]
        assert load_risks(LOAD)[0] in risks_of(BY_LOAD, (), {}, 0)

    def test_more_than_are_named(self):
        many = tuple(replace(LOAD.outside[0], broker=BrokerId(n)) for n in range(9))
        resources = (LOAD.resources[0], replace(LOAD.resources[1], outside_after=9))
        risks = load_risks(replace(LOAD, outside=many, resources=resources))
        assert (len(risks), risks[-1]) == (6, "4 more brokers stay above a band.")


class TestCharts:
    def test_rates_of_each_broker(self):
        """The page has the data of each broker in any case, so `Disk` has no chart of its own."""
        assert rates_of(LOAD) == {"BytesIn": {1: (90 * KIB, 70 * KIB), 3: (10 * KIB, 30 * KIB)}}
        page = html_page(report(rates=contents_of(BY_LOAD).rates))
        assert "<h3>BytesIn, as the plan predicts</h3>" in page
        assert "broker 1: 90.0 KiB/s before, 70.0 KiB/s after" in page
        assert "as the plan predicts" not in html_page(report())


@pytest.mark.parametrize("draw", [html_page, markdown_page])
def test_both_pages_have_the_figures(draw):
    page = draw(report(made_at=NOW, facts=plan_facts_of(BY_LOAD), risks=risks_of(BY_LOAD, (), {}, 0)))
    assert "180% of its share before, 140% after" in page
    assert "Broker 1 stays above the band of BytesIn: PartitionTooLarge." in page
