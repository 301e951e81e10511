"""Says how complete the samples of a cluster are, and how sure its load model. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kafka_rebalance.cli.tables.broker_load_lines import known_broker_loads, unknown_broker_loads
from kafka_rebalance.cli.tables.size_forecast_lines import known_forecasts, unknown_forecasts
from kafka_rebalance.printable_text import printable
from kafka_rebalance.units import format_duration

if TYPE_CHECKING:
    from kafka_rebalance.pipeline.quality import QualityReport


def quality_lines(found: "QualityReport") -> Iterator[str]:
    """What `pipeline quality` prints of one cluster. The lake has names of others: of files, clusters and topics."""
    return map(printable, _lines(found))


def _lines(found: "QualityReport") -> Iterator[str]:
    times = f"{time_text(found.start)} to {time_text(found.end)}"
    interval = f", one each {format_duration(found.interval.total_seconds())}" if found.interval else ""
    yield f"cluster {found.cluster_id}"
    yield f"  samples    {found.samples}, {times}{interval}; {found.coverage:.1%} of the time covered"
    for gap in found.gaps:
        yield f"  gap        {time_text(gap.start)} to {time_text(gap.end)}: run the sampler without a break"
    for run, count in found.runs.items():
        left_out = f", {found.left_out[run]} left out beside another sampler" if run in found.left_out else ""
        yield f"  sampler    {run or 'schema version 1'}: {count} samples{left_out}"
    for run in sorted(found.left_out.keys() - found.runs.keys()):
        yield f"  sampler    {run}: left out beside another sampler; run one sampler for each cluster"
    for moment in found.clock_breaks:
        yield f"  clock      {time_text(moment)}: a run began before the previous one ended; no rate across it"
    for broker, count in found.silent.items():
        yield f"  broker     {broker} did not answer in {count} samples"
    if found.silent_more:
        yield f"  brokers    up to {found.silent_more} others did not answer in a sample"
    hint = "" if found.with_groups or found.reported else ": bytes out are unknown; permit Describe on all groups"
    yield f"  groups     {found.with_groups} of {found.samples} samples have what consumer groups committed{hint}"
    if found.reported:
        yield f"  metrics    Prometheus was read for {found.reported:.1%} of the time"
    for file in found.skipped:
        yield f"  skipped    {file.name}: {file.why}"
    if found.model is None:
        yield "  model      none; run `kafka-rebalance pipeline load-model`"
        return
    for method, count in sorted(found.model.methods.items()):
        yield f"  method     {method}: {count} of {found.model.partitions} partitions"
    for method, count in sorted(found.model.methods_out.items()):
        yield f"  bytes out  {method}: {count} of {found.model.partitions} partitions"
    for line in (*known_forecasts(found.model), *unknown_forecasts(found.model)):
        yield f"  forecast   {line}"
    for line in (*known_broker_loads(found.model), *unknown_broker_loads(found.model)):
        yield f"  brokers    {line}"


def time_text(moment: datetime | None) -> str:
    """The moment in UTC, or a dash."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ") if moment else "-"
