"""What Prometheus gets when it scrapes the operator."""

import socket
import threading
import time

import aiohttp
import pytest
from e2e.bench.ports import release_port, reserve_port
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kafka_rebalance.app import metrics_port
from kafka_rebalance.app.metrics_port import metrics_served
from kafka_rebalance.errors import Permanent
from kafka_rebalance.telemetry.exposition import SampleCollector, process_registry
from kafka_rebalance.telemetry.metric_families import Sample


@pytest.fixture
def port():
    number = reserve_port()
    yield number
    release_port(number)


async def scrape(port, **headers):
    url = f"http://127.0.0.1:{port}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        assert answer.status == 200
        return await answer.text()


def by_name(families):
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


class TestScrape:
    async def test_each_scrape_reads_anew(self, port):
        """The values are those of the moment of the scrape."""
        leads = iter([0, 1])
        registry = process_registry()
        async with metrics_served(port, registry):
            assert "kafka_rebalance_leader" not in await scrape(port)
            registry.register(SampleCollector(lambda: [Sample("leader", (), next(leads, 1))]))
            for value in (0, 1):
                found = by_name(parse_text(await scrape(port)))
                assert found["kafka_rebalance_leader",] == value
        assert ("kafka_rebalance_build_info", ("version", "0.1.0")) in found
        assert found["process_cpu_seconds_total",] > 0

    async def test_many_expensive_scrapes(self, port, monkeypatch):
        """They get the same answer. Every Pod that can connect to the port may send any number of requests."""
        monkeypatch.setattr(metrics_port, "_REST", 10_000.0)
        reads = []

        def read():
            reads.append(1)
            end = time.thread_time() + 2 * metrics_port._CHEAP_SECONDS
            while time.thread_time() < end:
                pass
            return [Sample("leader", (), len(reads))]

        registry = process_registry()
        registry.register(SampleCollector(read))
        reads.clear()  # if the registry has asked for the names
        async with metrics_served(port, registry):
            for _ in range(3):
                assert by_name(parse_text(await scrape(port)))["kafka_rebalance_leader",] == 1

    async def test_the_text_is_written_in_a_thread(self, port, monkeypatch):
        """That of 5,000 resources took 0.3 s of the event loop. The samples are read in it, so they are consistent."""
        threads = {}
        exposed = metrics_port.exposed
        writing = lambda *given: threads.update(writing=threading.current_thread()) or exposed(*given)  # noqa: E731
        monkeypatch.setattr(metrics_port, "exposed", writing)
        registry = process_registry()
        registry.register(SampleCollector(lambda: threads.update(reading=threading.current_thread()) or []))
        async with metrics_served(port, registry):
            await scrape(port)
        assert threads["reading"] is threading.main_thread()
        assert threads["writing"] is not threading.main_thread()

    async def test_openmetrics(self, port):
        """Prometheus asks for it; counters end with _total in both formats, and a summary has sum and count."""
        cluster = ("c",)
        samples = [Sample("throttle_reverts_total", cluster, 3), Sample("round_duration_seconds", cluster, 2.5, 10)]
        registry = process_registry()
        registry.register(SampleCollector(lambda: samples))
        async with metrics_served(port, registry):
            text = await scrape(port, Accept="application/openmetrics-text; version=1.0.0")
            plain = by_name(parse_text(await scrape(port)))
        found = by_name(parse_openmetrics(text))
        for name, value in (
            ("throttle_reverts_total", 3),
            ("round_duration_seconds_sum", 2.5),
            ("round_duration_seconds_count", 10),
        ):
            key = (f"kafka_rebalance_{name}", ("kafka_cluster_id", "c"))
            assert found[key] == plain[key] == value

    async def test_labels_with_any_text(self, port):
        """Text that the operator does not choose is escaped."""
        registry = process_registry()
        registry.register(SampleCollector(lambda: [Sample("brokers", ('a"b\nc\\',), 1)]))
        async with metrics_served(port, registry):
            found = by_name(parse_text(await scrape(port)))
        assert found["kafka_rebalance_brokers", ("kafka_cluster_id", 'a"b\nc\\')] == 1

    async def test_port_taken(self, port):
        with (
            socket.create_server(("", port)),
            pytest.raises(Permanent, match=f"cannot listen on --metrics-port {port}"),
        ):
            async with metrics_served(port, process_registry()):
                pass
