"""A real Prometheus between an exporter and the lake: what is stored is what the brokers reported."""

import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow.parquet
import pytest

from e2e.bench.kafka import KafkaCluster
from e2e.bench.prometheus_server import PASSWORD, USER, prometheus_server
from kafka_rebalance.errors import Permanent
from kafka_rebalance.model.topology import Broker, BrokerId
from kafka_rebalance.pipeline.metrics_reader import MetricQueries, read_pieces
from kafka_rebalance.pipeline.prometheus import BYTES_IN, BYTES_OUT, PrometheusServer, default_query

pytestmark = pytest.mark.campaign

BROKERS = {
    BrokerId(number): Broker(BrokerId(number), None, f"kafka-{number}.kafka.prod.svc", 9092) for number in (0, 1, 2)
}
QUERIES = MetricQueries(default_query(BYTES_IN, "instance"), default_query(BYTES_OUT, "instance"), "instance")
LOGIN = f"Basic {b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
END = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SCRAPES = 15
COMMAND = Path(sys.executable).with_name("kafka-rebalance")


def out_rate(topic: str, broker: int, at: datetime) -> int:
    """Bytes per second that were sent: broker 1 sends three times as much from half past eleven on."""
    busy = 3 if broker == 1 and at >= END - timedelta(minutes=30) else 1
    return busy * (1000 if topic == "orders" else 50) * (broker + 1)


def history() -> str:
    """Two hours of counters, scraped every 15 seconds, as the JMX exporter names them; a broker restarts at eleven."""
    lines = []
    for metric, factor in ((BYTES_IN, 2), (BYTES_OUT, 1)):
        lines.append(f"# TYPE {metric.removesuffix('_total')} counter")
        for topic in ("orders", "audit"):
            for broker in (0, 1):
                total = 10**6
                for second in range(-7200, 1, SCRAPES):
                    at = END + timedelta(seconds=second)
                    total += factor * out_rate(topic, broker, at - timedelta(seconds=1)) * SCRAPES
                    if broker == 0 and second == -3600:
                        total = 0  # the counter begins again
                    labels = f'topic="{topic}",instance="kafka-{broker}.kafka.prod.svc:9404"'
                    lines.append(f"{metric}{{{labels}}} {total} {at.timestamp():.0f}")
        for broker in (0, 1):  # of all topics: there is no such label
            labels = f'instance="kafka-{broker}.kafka.prod.svc:9404"'
            lines += [f"{metric}{{{labels}}} {10**9 + at} {END.timestamp() + at:.0f}" for at in range(-7200, 1, 60)]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="class")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with prometheus_server(tmp_path_factory.mktemp("prometheus"), history()) as url:
        yield PrometheusServer(url, LOGIN)


class TestHistory:
    async def test_each_window_is_what_was_sent_in_it(self, server: PrometheusServer) -> None:
        """Within one percent, across a restart of a broker, without what brokers say of all topics together."""
        begin = END - timedelta(hours=1, minutes=50)
        pieces = [piece async for piece in read_pieces(server, QUERIES, "c1", BROKERS, begin, END)]
        rows = [row for piece in pieces for row in piece.rows]
        assert len(rows) == 22 * 2 * 2
        assert {frozenset()} == {piece.others for piece in pieces}
        for row in rows:
            busy = out_rate(row.topic, row.broker, row.window_start)
            restart = row.broker == 0 and row.window_start + timedelta(minutes=5) == END - timedelta(hours=1)
            # The scrape that the restart lost is one of twenty.
            assert row.bytes_out == pytest.approx(busy, rel=0.06 if restart else 0.01), row
            assert row.bytes_in == pytest.approx(2 * busy, rel=0.06 if restart else 0.01), row

    async def test_series_of_no_broker_of_the_cluster(self, server: PrometheusServer) -> None:
        """Refused, with the values that the label has."""
        strangers = {BrokerId(7): Broker(BrokerId(7), None, "other-7", 9092)}
        with pytest.raises(Permanent, match=r"label instance .*values like 'kafka-.*name another label"):
            async for _ in read_pieces(server, QUERIES, "c1", strangers, END - timedelta(minutes=5), END):
                pass

    async def test_wrong_credentials(self, server: PrometheusServer) -> None:
        """The error message does not contain them."""
        wrong = PrometheusServer(server.url, f"Basic {b64encode(b'bench:hunter2').decode()}")
        with pytest.raises(Permanent, match="HTTP status 401: name a file with valid credentials") as refused:
            await wrong.query_range("up", END, END, timedelta(minutes=5))
        assert "hunter2" not in repr(refused.value)
        assert "Basic" not in repr(wrong)

    async def test_wrong_query(self, server: PrometheusServer) -> None:
        """The error message of Prometheus, with the position of the error, is passed on."""
        with pytest.raises(Permanent, match=r"HTTP status 400: .*parse error"):
            await server.query_range("rate(x[5m", END, END, timedelta(minutes=5))


@contextmanager
def exporter(rate: int) -> Iterator[int]:
    """Serves a counter that grows by ``rate`` a second, as the JMX exporter does; yields the port."""
    begin = time.time()

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = (time.time() - begin) * rate
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(f'# TYPE {BYTES_OUT} counter\n{BYTES_OUT}{{topic="orders",}} {sent}\n'.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served.server_port
        served.shutdown()


class TestScraping:
    async def test_an_exporter_is_scraped(self, tmp_path: Path) -> None:
        """The label that Prometheus makes by itself names the broker by its host."""
        with exporter(5000) as port, prometheus_server(tmp_path, scraped=port) as url:
            server = PrometheusServer(url, LOGIN)
            query = default_query(BYTES_OUT, "instance").replace("[5m]", "[10s]")

            async def found() -> float:
                now = datetime.now(UTC)
                series = await server.query_range(query, now, now, timedelta(minutes=5))
                assert {labels["instance"] for labels, _ in series} <= {f"127.0.0.1:{port}"}
                return max((value for _, points in series for value in points.values()), default=0)

            deadline = time.monotonic() + 120
            while (rate := await found()) != pytest.approx(5000, rel=0.05):
                assert time.monotonic() < deadline, rate


RATES = {1: (3000, 9000), 2: (500, 0)}
"""Bytes per second in and out, by broker."""


def recent_history() -> str:
    """An hour of counters until now; the label is the broker's id."""
    now, lines = datetime.now(UTC), []
    for metric, at in ((BYTES_IN, 0), (BYTES_OUT, 1)):
        lines.append(f"# TYPE {metric.removesuffix('_total')} counter")
        for broker, rates in RATES.items():
            lines += [
                f'{metric}{{topic="orders",broker="{broker}"}} {rates[at] * (3600 + second)} '
                f"{now.timestamp() + second:.0f}"
                for second in range(-3600, 1, SCRAPES)
            ]
    return "\n".join([*lines, "# EOF", ""])


@pytest.mark.brokers
class TestCommand:
    """`kafka-rebalance pipeline metrics`, with real brokers."""

    def test_what_it_stores(self, kafka: KafkaCluster, tmp_path: Path) -> None:
        """The last two windows, under the id of the cluster; when it runs again, only what it has not read yet."""
        login, lake = tmp_path / "login", tmp_path / "lake"
        login.write_text(f"{USER}:{PASSWORD}\n")

        def stored() -> list[dict[str, object]]:
            (found,) = lake.glob("metrics/cluster=*")
            assert found.name == f"cluster={kafka.cluster_id}"
            files = sorted(found.rglob("*.parquet"))
            return [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]

        with prometheus_server(tmp_path, recent_history()) as url:
            command = [str(COMMAND), "pipeline", "metrics", "--bootstrap-servers", kafka.bootstrap_servers]
            command += ["--lake", str(lake), "--prometheus", url, "--basic-auth-file", str(login)]
            command += ["--broker-label", "broker", "--window", "10m"]
            first = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
            rows = stored()
            again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert first.stdout.startswith(f"cluster {kafka.cluster_id}: 2 windows until ")
        assert PASSWORD not in first.stdout + first.stderr
        assert sorted((row["topic"], row["broker"]) for row in rows) == [("orders", b) for b in (1, 1, 2, 2)]
        for row in rows:
            came, went = RATES[row["broker"]]
            assert row["bytes_in"] == pytest.approx(came, rel=0.01)
            assert row["bytes_out"] == pytest.approx(went, rel=0.01)
        windows = int(again.stdout.partition(": ")[2].partition(" ")[0])
        assert windows <= 1  # the time of a window may have passed meanwhile
        times = [(row["broker"], row["window_start"]) for row in stored()]
        assert len(times) == len(set(times)) == 4 + 2 * windows
