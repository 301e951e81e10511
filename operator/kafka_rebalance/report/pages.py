"""The report as one HTML page, and as Markdown for a pull request."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.report import svg_charts as charts
from kafka_rebalance.report.packed_partitions import PackedPartitions, packed
from kafka_rebalance.report.report_contents import BeforeAfter, BrokerRow, PartitionRow, Report
from kafka_rebalance.units import format_bytes, format_rate

MOST_BYTES = 1_500_000 - 1_000
"""Of a web page; the rest is for what the number of its partitions adds."""
_MOST_BROKERS = _MOST_FLOWS = 40
_MOST_PARTITIONS = 100
Pack = Callable[[Sequence[PartitionRow], int], PackedPartitions]
"""Pack the first rows into at most this many characters, as `packed`."""
_MARKUP = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]|<>&~"} | dict.fromkeys("\n\r\v\f\x85\u2028\u2029", " "))
"""Names and messages come from Kafka, and are text in Markdown too: no link, no image, no markup, no other cell."""
_REFERENCE = re.compile(r"[@#!](?=\w)|:(?=//)|(?<![a-z0-9])(?:www(?=\.)|gh(?=-\d))", re.IGNORECASE)
"""Where a bare address, a mention or the number of an issue begins. GitHub links these in the page that it has made of
the Markdown, where escapes have no effect any more."""
_WORD_JOINER = "\u2060"
"""A character without width, at which no line breaks."""
_CODE = re.compile(r"[\w.:-]+")
"""Text that can be in a code span, which has no escapes."""


def html_page(report: Report, reload_seconds: int = 0, pack: Pack = packed) -> str:
    """Self-contained: no request leaves the page. At most 1.5 MB, whatever the size of the cluster.

    ``reload_seconds``: the page reloads itself after this time; 0: never. ``pack`` may remember what it has packed.
    """
    course = report.course
    record = course.record if course is not None else None
    flow, flow_by = charts.flow_matrix(report.flows, report.brokers)
    drawn = {
        "phases": charts.phase_bar(course.phases.items()) if course is not None else "",
        "columns": _columns(report),
        "flow": flow,
        "curve": charts.balance_curve(report.curve, report.curve[-1].moves) if report.curve else "",
        "rates": charts.copy_rates(record) if record is not None else "",
        "lanes": charts.step_lanes(record) if record is not None else "",
    }
    template = _environment().get_template("report.html.j2")

    def page(partitions: PackedPartitions | None) -> str:
        return template.render(
            report=report,
            reload_seconds=reload_seconds,
            charts=drawn,
            flow_by=flow_by,
            leaving=any(not row.target for row in report.brokers),
            shown_steps=min(charts.MOST_LANES, len(record.steps)) if record is not None else 0,
            partitions=partitions,
            script=files("kafka_rebalance.report").joinpath("templates/partitions.js").read_text(encoding="utf-8"),
        )

    if not report.partitions:
        return page(None)
    without = page(PackedPartitions("", 0, len(report.partitions)))
    return page(pack(report.partitions, MOST_BYTES - len(without.encode())))


def markdown_page(report: Report) -> str:
    """With the brokers that change most, and the largest copies."""
    brokers = sorted(report.brokers, key=lambda r: -abs(r.size_bytes.after - r.size_bytes.before))
    kept = {row.broker for row in brokers[:_MOST_BROKERS]}
    flows = sorted(report.flows, key=lambda f: (-f.size_bytes, -f.replicas))
    return (
        _environment()
        .get_template("report.md.j2")
        .render(
            report=report,
            brokers=[row for row in report.brokers if row.broker in kept],
            more_brokers=len(report.brokers) - len(kept),
            flows=flows[:_MOST_FLOWS],
            more_flows=max(0, len(flows) - _MOST_FLOWS),
            partitions=(report.partitions or ())[:_MOST_PARTITIONS],
        )
    )


def _columns(report: Report) -> list[tuple[str, str]]:
    found = [
        ("Replicas", charts.broker_columns(report.brokers, lambda r: r.replicas, charts.counted, "Replicas")),
        ("Preferred leaders", charts.broker_columns(report.brokers, lambda r: r.leaders, charts.counted, "Leaders")),
        ("Data", charts.broker_columns(report.brokers, lambda r: r.size_bytes, format_bytes, "Data")),
    ]
    for resource, rates in report.rates.items():
        chart = charts.broker_columns(report.brokers, _of(rates), format_rate, resource)
        found.append((f"{resource}, as the plan predicts", chart))
    return [(name, chart) for name, chart in found if chart]


def _of(rates: Mapping[BrokerId, BeforeAfter]) -> Callable[[BrokerRow], BeforeAfter]:
    return lambda row: rates.get(row.broker, BeforeAfter(0, 0))


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kafka_rebalance.report"),
        autoescape=select_autoescape(["html.j2", "html"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals |= {"arrow": _arrow, "format_bytes": format_bytes, "added": _added}
    environment.filters |= {"md": _text, "code": _code}
    return environment


def _text(text: object) -> str:
    """In Markdown, as plain text."""
    return _REFERENCE.sub(lambda found: found[0] + _WORD_JOINER, str(text)).translate(_MARKUP)


def _code(text: str) -> str:
    """In Markdown, in a code span if that is safe."""
    return f"`{text}`" if _CODE.fullmatch(text) else _text(text)


def _arrow(figures: BeforeAfter, *, bytes: bool = False) -> str:  # noqa: A002 - the word of the templates
    before, after = (format_bytes(value) if bytes else f"{value:,}" for value in figures)
    return before if before == after else f"{before} → {after}"


def _added(row: PartitionRow) -> int:
    return sum(broker not in row.current for broker in row.target)
