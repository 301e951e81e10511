"""Alerts and dashboard of the chart: they use metrics that exist, and each alert has a section in the runbook.

`e2e/test_metrics.py` evaluates all of them with a real Prometheus.
"""

import re

import pytest
import yaml
from tests.arch.metrics_table import rows
from tests.arch.test_docs import anchors
from tests.chart.dashboard import FILE, queries, rendered_dashboard
from tests.chart.rendering import CHART, ROOT, of_kind, rendered

ALERTS = yaml.safe_load((CHART / "files" / "monitoring" / "alerts.yaml").read_text(encoding="utf-8"))
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
_SUFFIXES = ("_bucket", "_sum", "_count")
_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
_SELECTED = re.compile(r"\b((?:kafka_rebalance|process)_\w+)(?:\{([^}]*)\})?")


def families() -> dict[str, set[str]]:
    """The labels of each metric, with those of histograms and summaries."""
    found = {name: set(labels) for name, _, labels, _ in rows()} | {name: set() for name in _PROCESS}
    return found | {name + suffix: labels | {"le"} for name, labels in found.items() for suffix in _SUFFIXES}


@pytest.mark.parametrize(
    "query", [rule["expr"] for rule in RULES] + [query for _, query in queries()], ids=lambda query: query[:60]
)
def test_metrics_and_labels_exist(query: str) -> None:
    """A renamed metric would leave an alert that never fires, and an empty panel."""
    selected = _SELECTED.findall(query)
    assert selected
    for name, matchers in selected:
        labels = set(re.findall(r"(\w+)\s*=~?", matchers))
        assert labels <= families()[name], (name, labels)


class TestAlerts:
    def test_each_has_a_section_in_the_runbook(self) -> None:
        found = anchors(ROOT / "docs" / "runbook.md")
        for rule in RULES:
            assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
            assert rule["alert"].lower() in found, rule["alert"]

    def test_each_is_tested(self) -> None:
        """By `tests/chart/alerts_test.yaml`, which promtool runs; at least once it fires."""
        cases = yaml.safe_load((ROOT / "tests" / "chart" / "alerts_test.yaml").read_text(encoding="utf-8"))["tests"]
        firing = {case["alertname"] for group in cases for case in group["alert_rule_test"] if case["exp_alerts"]}
        assert firing == {rule["alert"] for rule in RULES}

    def test_as_a_prometheus_rule(self) -> None:
        """The same rules; the links lead to where the user publishes the runbook."""
        found = of_kind(rendered("production"), "PrometheusRule")["spec"]
        text = yaml.safe_dump(found).replace("https://wiki.example.com/kafka-rebalance#", "docs/runbook.md#")
        assert yaml.safe_load(text) == ALERTS
        assert "https://wiki.example.com/kafka-rebalance#" in yaml.safe_dump(found)


class TestDashboard:
    def test_up_to_date(self) -> None:
        """`make chart` writes it."""
        assert FILE.read_text(encoding="utf-8") == rendered_dashboard()

    def test_in_a_config_map(self) -> None:
        """Unchanged: braces in it are Grafana's, not helm's."""
        found = of_kind(rendered("production"), "ConfigMap", "-dashboard")
        assert found["data"]["kafka-rebalances.json"] == rendered_dashboard().strip()
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"

    def test_nothing_by_default(self) -> None:
        kinds = {manifest["kind"] for manifest in rendered("default")}
        assert not kinds & {"PrometheusRule", "PodMonitor"}
        names = [m["metadata"]["name"] for m in rendered("default")]
        assert not [name for name in names if name.endswith("-dashboard")]
