"""The table of docs/metrics.md, from the families in the code; `make docs-diagrams` writes it."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from kafka_rebalance.telemetry.kafka_call_metrics import KafkaCallMetrics
from kafka_rebalance.telemetry.metric_families import FAMILIES, PREFIX

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
_BEGIN, _END = "<!-- metrics: begin -->", "<!-- metrics: end -->"


def rows() -> list[tuple[str, str, tuple[str, ...], str]]:
    """Name, type, labels and help of each family."""
    found = [(PREFIX + f.name, f.kind.value, f.labels, f.help) for f in FAMILIES.values()]
    registry = CollectorRegistry()
    metrics = KafkaCallMetrics(registry)
    metrics.ended("c", "call", "ok", 1.0)
    metrics.answered("c", "call", ["OK"])
    for family in registry.collect():
        labels = tuple(label for label in family.samples[0].labels if label != "le")
        suffix = "_total" if family.type == "counter" else ""
        found.append((family.name + suffix, family.type, labels, family.documentation))
    return found


def written(page: str) -> str:
    """The page with its table up to date."""
    lines = ["| Metric | Type | Labels | Meaning |", "| --- | --- | --- | --- |"]
    for name, kind, labels, text in rows():
        listed = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {kind} | {listed} | {text} |")
    table = "\n".join([_BEGIN, *lines, _END])
    return re.sub(f"{_BEGIN}.*?{_END}", lambda _: table, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
