"""A real Prometheus scrapes the operator during a rebalance: all alerts and all panels of the dashboard work."""

import json
import re
import shutil
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart.dashboard import SOMETIMES, queries
from tests.chart.rendering import CHART
from tests.docs.pages import blocks

from e2e.bench.operator import OperatorProcess
from e2e.bench.prometheus_server import PASSWORD, USER, prometheus_server, promtool
from e2e.bench.waiting import wait_until
from e2e.rebalance import NAMESPACE
from e2e.world import BIG, FAST, World

ALERTS = CHART / "files" / "monitoring" / "alerts.yaml"
ALERT_TESTS = Path(__file__).parents[1] / "tests" / "chart" / "alerts_test.yaml"


@pytest.mark.campaign
class TestRules:
    """promtool's own checks."""

    def test_alerts(self, tmp_path: Path) -> None:
        """Valid, and each fires when it is meant to and only then."""
        for file in (ALERTS, ALERT_TESTS):
            shutil.copy(file, tmp_path)
        promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS.name, at=tmp_path)
        promtool("test", "rules", ALERT_TESTS.name, at=tmp_path)

    def test_the_documented_scrape_configuration(self, tmp_path: Path) -> None:
        """Prometheus accepts the block of docs/metrics.md. Debian's is built without the discovery of Pods."""
        (shown,) = [block for block in blocks("yaml") if block.text.startswith("scrape_configs:")]
        config = yaml.safe_load(shown.text)
        assert config["scrape_configs"][0].pop("kubernetes_sd_configs")
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        promtool("check", "config", "--syntax-only", "prometheus.yml", at=tmp_path)


class _Prometheus:
    """Its HTTP API."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._login = f"Basic {b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"

    def get(self, path: str, **parameters: str) -> Any:
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        request = urllib.request.Request(url, headers={"Authorization": self._login})
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def instant(self, query: str) -> list[Any]:
        """The series of a query now."""
        return list(self.get("query", query=query)["result"])

    def panel(self, query: str) -> list[Any]:
        """As Grafana asks for a panel, with all values of the variables."""
        query = re.sub(r"\$(cluster|namespace|rebalance)\b", ".*", query).replace("$__rate_interval", "20s")
        assert "$" not in query
        return self.instant(query)


@pytest.mark.brokers
@pytest.mark.apiserver
@pytest.mark.campaign
class TestScraped:
    """During one rebalance."""

    @pytest.fixture
    def prometheus(self, operator: OperatorProcess, tmp_path: Path) -> Iterator[_Prometheus]:
        with prometheus_server(tmp_path, scraped=operator.metrics_port, rules=ALERTS) as url:
            yield _Prometheus(url)

    def test_every_query(
        self, world: World, operator: OperatorProcess, prometheus: _Prometheus, tmp_path: Path
    ) -> None:
        topic = world.skewed("scraped", *[BIG] * 6)
        rebalance = world.rebalance("scraped", topic)
        rebalance.until("copies are in flight", lambda status: status.get("currentBatchSize"))
        one = f'{{resource_name="{rebalance.name}"}}'

        def empty() -> list[str]:
            return [title for title, query in queries() if title not in SOMETIMES and not prometheus.panel(query)]

        wait_until("every panel has data", lambda: not empty())
        for _, query in queries():
            prometheus.panel(query)  # the others, which may be empty, are valid
        promtool("check", "metrics", at=tmp_path, standard_input=operator.metrics())

        # The same as kubectl shows.
        (found,) = prometheus.instant(f"kafka_rebalance_copy_bytes{one}")
        assert int(found["value"][1]) == rebalance.status["progress"]["bytes"]["total"]
        assert found["metric"]["resource_namespace"] == NAMESPACE
        assert found["metric"]["kafka_cluster_id"] == rebalance.status["clusterId"]

        rebalance.patch(execution={"suspend": True})
        blocked = f'kafka_rebalance_step_block{{resource_name="{rebalance.name}",reason="Suspended"}}'
        wait_until("the step block is scraped", lambda: prometheus.instant(blocked))
        rebalance.patch(execution={"suspend": False}, throttle=FAST)
        rebalance.wait_for("Succeeded")
        ended = f'kafka_rebalance_state{{resource_name="{rebalance.name}",state="Succeeded"}}'
        wait_until("the end is scraped", lambda: prometheus.instant(ended))
        left = "sum(kafka_rebalance_throttle_ledger_entries)"
        wait_until("the ledger is empty", lambda: prometheus.instant(left)[0]["value"][1] == "0")

        groups = prometheus.get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) == len(ALERTS.read_text().split("- alert: ")) - 1
        assert {rule["name"]: rule.get("lastError", "") for rule in rules if rule["health"] != "ok"} == {}
        assert not [rule["name"] for rule in rules if rule["state"] == "firing"]

    def test_a_leader_is_down(self, operator: OperatorProcess, prometheus: _Prometheus) -> None:
        """The alert is pending as soon as no operator leads."""
        pending = 'ALERTS{alertname="KafkaRebalanceOperatorDown"}'
        wait_until("a leader is scraped", lambda: prometheus.instant("kafka_rebalance_leader == 1"))
        operator.stop()
        try:
            wait_until("the alert is pending", lambda: prometheus.instant(pending))
        finally:
            operator.start()
        wait_until("it is resolved", lambda: not prometheus.instant(pending))
