"""The metrics in the formats of Prometheus. Nothing here decides what is measured."""

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kafka_rebalance.telemetry.metric_families import FAMILIES, PREFIX, Family, MetricKind, Sample

ReadSamples = Callable[[], Iterable[Sample]]


class SampleCollector(Collector):
    """Asks for the samples at each scrape. A family without samples is left out."""

    def __init__(self, read: ReadSamples) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """The families with samples, in their order."""
        found: dict[str, list[Sample]] = {}
        for sample in (*self._read(), Sample("build_info", (version("kafka-rebalance-operator"),), 1)):
            found.setdefault(sample.family, []).append(sample)
        for name, family in FAMILIES.items():
            if name in found:
                yield _metric(family, found[name])


def _metric(family: Family, found: Iterable[Sample]) -> Metric:
    name = PREFIX + family.name
    match family.kind:
        case MetricKind.GAUGE:
            gauge = GaugeMetricFamily(name, family.help, labels=family.labels)
            for sample in found:
                gauge.add_metric(sample.labels, sample.value)
            return gauge
        case MetricKind.COUNTER:
            counter = CounterMetricFamily(name, family.help, labels=family.labels)
            for sample in found:
                counter.add_metric(sample.labels, sample.value)
            return counter
        case MetricKind.SUMMARY:
            summary = SummaryMetricFamily(name, family.help, labels=family.labels)
            for sample in found:
                summary.add_metric(sample.labels, count_value=sample.count, sum_value=sample.value)
            return summary


def process_registry() -> CollectorRegistry:
    """A registry with the metrics of the process: CPU, memory, files, garbage collection."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


class CollectedMetrics(CollectorRegistry):
    """All metrics of a registry, as they are now."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._families = tuple(registry.collect())

    def collect(self) -> Iterator[Metric]:
        """The families that were collected."""
        yield from self._families


def exposed(metrics: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """All metrics and their content type, in the best format that a client accepts."""
    encode, content_type = choose_encoder(accept)
    return encode(metrics), content_type
