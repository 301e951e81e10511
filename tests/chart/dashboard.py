"""The Grafana dashboard of the chart, `files/monitoring/dashboard.json`; `make chart` writes it.

A panel is one question that somebody has while a rebalance runs; its title is the short form, its description says how
to read it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.chart.rendering import CHART

FILE = CHART / "files" / "monitoring" / "dashboard.json"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_ONE = 'kafka_cluster_id=~"$cluster",resource_namespace=~"$namespace",resource_name=~"$rebalance"'
_CLUSTER = 'kafka_cluster_id=~"$cluster"'
_NAME = "{{resource_namespace}}/{{resource_name}}"
_RESOURCE = "kafka_cluster_id, resource_namespace, resource_name"


@dataclass(frozen=True)
class Panel:
    """``queries``: legend and PromQL of each. ``width``: of 24 columns."""

    title: str
    description: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False


PANELS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Rebalances",
        (
            Panel(
                "State",
                "The state of each rebalance, as in kubectl get.",
                ((f"{_NAME}: {{{{state}}}}", f"kafka_rebalance_state{{{_ONE}}}"),),
                kind="stat",
                width=12,
            ),
            Panel(
                "Copied",
                "The share of the bytes of the open run that has been copied.",
                (
                    (
                        _NAME,
                        f"kafka_rebalance_copied_bytes{{{_ONE}}} / (kafka_rebalance_copy_bytes{{{_ONE}}} > 0)",
                    ),
                ),
                unit="percentunit",
                kind="bargauge",
                width=6,
            ),
            Panel(
                "Time left",
                "At the throttle, and at the recent rate.",
                ((f"{_NAME} {{{{bound}}}}", f"kafka_rebalance_eta_seconds{{{_ONE}}}"),),
                unit="s",
                kind="stat",
                width=6,
            ),
            Panel(
                "Rate and throttle",
                "Bytes per second of all copies of a run, and what the throttle lets through on each of its brokers.",
                (
                    (f"{_NAME} copies", f"kafka_rebalance_copy_rate_bytes_per_second{{{_ONE}}}"),
                    (f"{_NAME} {{{{side}}}} throttle", f"kafka_rebalance_throttle_bytes_per_second{{{_ONE}}}"),
                ),
                unit="Bps",
            ),
            Panel(
                "Bytes left",
                "A flat line while copies are in flight: see the alert KafkaRebalanceNoProgress.",
                ((_NAME, f"kafka_rebalance_remaining_bytes{{{_ONE}}}"),),
                unit="bytes",
            ),
            Panel(
                "Partitions",
                "Of the open runs, by phase.",
                (("{{phase}}", f"sum by (phase) (kafka_rebalance_partitions{{{_ONE}}})"),),
                stacked=True,
            ),
            Panel(
                "Why no step starts",
                "Windows, queues, approvals, the health gate.",
                ((f"{_NAME}: {{{{reason}}}}", f"kafka_rebalance_step_block{{{_ONE}}}"),),
            ),
            Panel(
                "Why partitions wait",
                "Partitions that wait, or are skipped, for a reason of their own.",
                (("{{phase}}: {{reason}}", f"sum by (phase, reason) (kafka_rebalance_held_partitions{{{_ONE}}})"),),
                stacked=True,
            ),
            Panel(
                "Since the last progress",
                "Of the runs with copies in flight.",
                (
                    (
                        _NAME,
                        (
                            f"time() - kafka_rebalance_last_progress_timestamp_seconds{{{_ONE}}} and on ({_RESOURCE}) "
                            f'kafka_rebalance_partitions{{{_ONE},phase="InFlight"}} > 0'
                        ),
                    ),
                ),
                unit="s",
            ),
        ),
    ),
    (
        "Kafka",
        (
            Panel(
                "To restore",
                "Rates, lists and cordons in the throttle ledger. Zero when nothing moves.",
                (("{{kafka_cluster_id}} {{kind}}", f"kafka_rebalance_throttle_ledger_entries{{{_CLUSTER}}}"),),
            ),
            Panel(
                "Calls",
                "Calls per second by outcome.",
                (
                    (
                        "{{call}}: {{outcome}}",
                        (
                            "sum by (call, outcome) "
                            f"(rate(kafka_rebalance_kafka_calls_total{{{_CLUSTER}}}[$__rate_interval]))"
                        ),
                    ),
                ),
                unit="reqps",
            ),
            Panel(
                "Duration of calls",
                "95 of 100 calls are faster.",
                (
                    (
                        "{{call}}",
                        (
                            "histogram_quantile(0.95, sum by (call, le) "
                            f"(rate(kafka_rebalance_kafka_call_duration_seconds_bucket{{{_CLUSTER}}}[$__rate_interval])))"
                        ),
                    ),
                ),
                unit="s",
            ),
            Panel(
                "Changes",
                "Changes that the operator sent, by Kafka's answer: partitions, replicas, brokers or topics.",
                (
                    (
                        "{{call}}: {{answer}}",
                        (
                            "sum by (call, answer) "
                            f"(increase(kafka_rebalance_kafka_changes_total{{{_CLUSTER}}}[$__rate_interval]))"
                        ),
                    ),
                ),
            ),
            Panel(
                "Trouble",
                "Problems of rounds, missing permissions, reverted throttles, reassignments of other tools.",
                (
                    ("{{kafka_cluster_id}} {{reason}}", f"kafka_rebalance_round_problem{{{_CLUSTER}}}"),
                    (
                        "{{kafka_cluster_id}} missing permissions",
                        f"kafka_rebalance_missing_permissions{{{_CLUSTER}}} > 0",
                    ),
                    (
                        "{{kafka_cluster_id}} reverted throttles",
                        f"increase(kafka_rebalance_throttle_reverts_total{{{_CLUSTER}}}[$__rate_interval]) > 0",
                    ),
                    (
                        "{{kafka_cluster_id}} reassignments of others",
                        f"kafka_rebalance_foreign_reassignments{{{_CLUSTER}}} > 0",
                    ),
                ),
                width=16,
            ),
        ),
    ),
    (
        "Operator",
        (
            Panel(
                "Leader",
                "One operator leads; the others are on standby.",
                (("{{instance}}", "kafka_rebalance_leader"),),
                kind="stat",
            ),
            Panel(
                "Rounds",
                "Mean duration of a round, and its CPU time.",
                (
                    (
                        "{{kafka_cluster_id}} duration",
                        (
                            f"rate(kafka_rebalance_round_duration_seconds_sum{{{_CLUSTER}}}[$__rate_interval]) "
                            f"/ rate(kafka_rebalance_round_duration_seconds_count{{{_CLUSTER}}}[$__rate_interval])"
                        ),
                    ),
                    (
                        "{{kafka_cluster_id}} CPU",
                        (
                            f"rate(kafka_rebalance_round_cpu_seconds_total{{{_CLUSTER}}}[$__rate_interval]) "
                            f"/ rate(kafka_rebalance_round_duration_seconds_count{{{_CLUSTER}}}[$__rate_interval])"
                        ),
                    ),
                ),
                unit="s",
            ),
            Panel(
                "Rounds by outcome",
                "Rounds per second.",
                (
                    (
                        "{{kafka_cluster_id}} {{outcome}}",
                        f"rate(kafka_rebalance_rounds_total{{{_CLUSTER}}}[$__rate_interval])",
                    ),
                ),
                unit="ops",
            ),
            Panel(
                "CPU",
                "Of the processes that serve the metrics of an operator.",
                (
                    (
                        "{{instance}}",
                        (
                            "rate(process_cpu_seconds_total[$__rate_interval]) "
                            "and on (job, instance) kafka_rebalance_leader"
                        ),
                    ),
                ),
                unit="short",
                width=12,
            ),
            Panel(
                "Memory",
                "Resident memory of the same processes.",
                (
                    (
                        "{{instance}}",
                        "process_resident_memory_bytes and on (job, instance) kafka_rebalance_leader",
                    ),
                ),
                unit="bytes",
                width=12,
            ),
        ),
    ),
)
SOMETIMES = {"Why no step starts", "Why partitions wait", "Trouble"}
"""Panels that are empty while all is well."""


def queries() -> list[tuple[str, str]]:
    """Title and PromQL of every panel, and the queries of the variables."""
    found = [(panel.title, query) for _, panels in PANELS for panel in panels for _, query in panel.queries]
    return found + [(f"${name}", f"kafka_rebalance_state{{{matchers}}}") for name, _, matchers in _VARIABLES]


_VARIABLES = (
    ("cluster", "kafka_cluster_id", ""),
    ("namespace", "resource_namespace", _CLUSTER),
    ("rebalance", "resource_name", f'{_CLUSTER},resource_namespace=~"$namespace"'),
)


def rendered_dashboard() -> str:
    """The file."""
    document = {
        "title": "Kafka rebalances",
        "uid": "kafka-rebalances",
        "tags": ["kafka"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }
    return json.dumps(document, indent=1) + "\n"


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    for name, label, matchers in _VARIABLES:
        query = f"label_values(kafka_rebalance_state{{{matchers}}}, {label})"
        yield {
            "name": name,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for row, panels in PANELS:
        number += 1
        yield {"id": number, "type": "row", "title": row, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}, "panels": []}
        x, y = 0, y + 1
        for panel in panels:
            if x + panel.width > 24:
                x, y = 0, y + 8
            number += 1
            yield _panel(number, panel, {"x": x, "y": y, "w": panel.width, "h": 8})
            x += panel.width
        y += 8


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    custom = {"stacking": {"mode": "normal"}, "fillOpacity": 30} if panel.stacked else {}
    options: dict[str, Any] = {}
    if panel.kind != "timeseries":
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "value_and_name"}
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "custom": custom}
    if panel.unit == "percentunit":
        defaults["max"] = 1
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": _SOURCE,
                "expr": query,
                "legendFormat": legend,
                "instant": panel.kind != "timeseries",
                "range": panel.kind == "timeseries",
            }
            for at, (legend, query) in enumerate(panel.queries)
        ],
    }
