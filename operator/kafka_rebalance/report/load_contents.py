"""What a plan by load does, as the figures, risks and charts of a report. Pure."""

from collections.abc import Mapping

from kafka_rebalance.api.resource_status import LoadStatus
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.report.report_contents import BeforeAfter, Fact
from kafka_rebalance.units import format_bytes

_NAMED = 5


def load_facts(found: LoadOutcome) -> list[Fact]:
    """The highest use of each resource before and after, and the bytes with their bound."""
    facts = [
        _peaks(row.resource, round(row.peak_before), round(row.peak_after), row.outside_before, row.outside_after)
        for row in found.resources
    ]
    return [*facts, _bound(f"{found.gap:.2f}", found.data_lower_bound)]


def load_facts_of_status(found: LoadStatus) -> list[Fact]:
    """The same from a status."""
    facts = [
        _peaks(row.resource, row.peak_before, row.peak_after, row.outside_before, row.outside_after)
        for row in found.resources
    ]
    return [*facts, _bound(found.gap, found.data_lower_bound)]


def measured_facts(found: LoadStatus) -> list[Fact]:
    """What was measured at the end of the run, to compare with the plan."""
    return [
        Fact(f"{row.resource}: highest use, measured at the end", f"{row.peak_measured}% of its share")
        for row in found.resources
        if row.peak_measured is not None
    ]


def load_risks(found: LoadOutcome) -> list[str]:
    """The brokers that stay above a band."""
    risks = [
        f"Broker {left.broker} stays above the band of {left.resource}: {left.reason}."
        for left in found.outside[:_NAMED]
    ]
    more = sum(row.outside_after for row in found.resources) - len(risks)
    return [*risks, f"{more} more brokers stay above a band."] if more > 0 else risks


def rates_of(found: LoadOutcome) -> dict[str, Mapping[BrokerId, BeforeAfter]]:
    """Bytes per second of each broker by resource. `Disk` is left out: every report has the data of each broker."""
    return {
        row.resource.value: {
            broker: BeforeAfter(*pair) for broker, *pair in zip(found.brokers, row.before, row.after, strict=True)
        }
        for row in found.resources
        if row.resource is not LoadResource.DISK
    }


def _peaks(resource: str, before: int, after: int, outside_before: int, outside_after: int) -> Fact:
    outside = f"brokers above the band: {outside_before} before, {outside_after} after"
    return Fact(f"{resource}: highest use of a broker", f"{before}% of its share before, {after}% after; {outside}")


def _bound(gap: str, bound: int) -> Fact:
    return Fact("Data for the load goals", f"{gap} times the lower bound of {format_bytes(bound)}")
