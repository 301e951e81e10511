"""A report on the samples of a cluster: how complete they are, and what a load model can make of them.

Made from manifests, and from the load model if there is one. Needs no Spark.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.pipeline.broker_loads import LoadImbalance, imbalance
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_tables import METRICS, OFFSETS
from kafka_rebalance.pipeline.metrics_reader import PIECE
from kafka_rebalance.pipeline.model_file import ModelSummary, summary
from kafka_rebalance.pipeline.run_chain import chain
from kafka_rebalance.pipeline.sample_manifests import Skipped, inventory

LONGEST_GAP = timedelta(minutes=10)
"""After a longer time without a sample, the quantiles leave the windows in it out."""


@dataclass(frozen=True, slots=True)
class Gap:
    """No sample between these times."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class QualityReport:
    """The quality of the samples of one cluster.

    ``runs``: samples used by run; ``left_out``: samples of other samplers at the same time; ``silent``: missing samples
    by broker, and ``silent_more``: how many others were missing in one sample at most.

    ``clock_breaks``: runs that began before the previous one ended. ``with_groups``: samples with what all consumer
    groups committed; ``reported``: the share of the time that was read from Prometheus.
    """

    cluster_id: str
    start: datetime | None
    end: datetime | None
    samples: int
    interval: timedelta | None
    gaps: tuple[Gap, ...]
    runs: Mapping[str, int]
    left_out: Mapping[str, int]
    clock_breaks: tuple[datetime, ...]
    silent: Mapping[int, int]
    silent_more: int
    skipped: tuple[Skipped, ...]
    with_groups: int
    reported: float
    model: ModelSummary | None

    @property
    def coverage(self) -> float:
        """The share of the time between the first and the last sample that is not in a gap."""
        if self.start is None or self.end is None or self.end == self.start:
            return 0.0
        missing = sum(((gap.end - gap.start) for gap in self.gaps), timedelta())
        return 1.0 - missing / (self.end - self.start)

    def to_json(self) -> dict[str, Any]:
        """For ``--output json``."""
        return {
            "clusterId": self.cluster_id,
            "windowStart": self.start and self.start.isoformat(),
            "windowEnd": self.end and self.end.isoformat(),
            "samples": self.samples,
            "intervalSeconds": self.interval and self.interval.total_seconds(),
            "coverage": round(self.coverage, 4),
            "gaps": [{"start": gap.start.isoformat(), "end": gap.end.isoformat()} for gap in self.gaps],
            "runs": dict(self.runs),
            "leftOut": dict(self.left_out),
            "clockBreaks": [moment.isoformat() for moment in self.clock_breaks],
            "silentBrokers": {str(broker): count for broker, count in self.silent.items()},
            "silentBrokersMore": self.silent_more,
            "skippedFiles": [{"name": file.name, "why": file.why} for file in self.skipped],
            "samplesOfGroups": self.with_groups,
            "metricsCoverage": round(self.reported, 4),
            "methods": dict(self.model.methods) if self.model else None,
            "bytesOutMethods": dict(self.model.methods_out) if self.model else None,
            "forecasts": _forecasts(self.model) if self.model else None,
            "brokers": [load.to_json() for load in self.model.brokers] if self.model else None,
            "imbalance": _imbalances(self.model) if self.model else None,
            "lineage": self.model.header["lineage"] if self.model else None,
        }


def _forecasts(model: ModelSummary) -> dict[str, dict[str, int]]:
    return {
        f"{days}d": {"partitions": found.partitions, "nowBytes": found.now_bytes, "bytes": found.size_bytes}
        for days, found in model.forecasts.items()
    }


def _imbalances(model: ModelSummary) -> dict[str, dict[str, float] | None]:
    return {resource.value: _shown(imbalance(model.brokers, resource)) for resource in LoadResource}


def _shown(most: LoadImbalance | None) -> dict[str, float] | None:
    if most is None:
        return None
    return {"broker": most.broker, "p95": most.p95, "equalShare": most.equal_share, "ratio": round(most.ratio, 4)}


def report(lake: Lake, cluster_id: str, window: timedelta, now: datetime) -> QualityReport:
    """The quality of the samples in the last ``window`` before the newest one."""
    found = inventory(lake, cluster_id, window, now)
    linked = chain(found.batches())
    times = [batch.sampled_at for batch in linked.batches]
    between = [later - earlier for earlier, later in pairwise(times)]
    groups = inventory(lake, cluster_id, window, now, OFFSETS)
    metrics = inventory(lake, cluster_id, window, now, METRICS)
    used = {(batch.run_id, batch.sequence) for batch in linked.batches}
    silent = Counter(broker for batch in linked.batches for broker in batch.missing_brokers)
    return QualityReport(
        cluster_id=cluster_id,
        start=times[0] if times else None,
        end=times[-1] if times else None,
        samples=len(times),
        interval=timedelta(seconds=median(gap.total_seconds() for gap in between)) if between else None,
        gaps=tuple(Gap(earlier, later) for earlier, later in pairwise(times) if later - earlier > LONGEST_GAP),
        runs=Counter(batch.run_id for batch in linked.batches),
        left_out=Counter(batch.run_id for batch in linked.dropped),
        clock_breaks=linked.breaks,
        silent=dict(sorted(silent.items())),
        silent_more=max((batch.missing_more for batch in linked.batches), default=0),
        skipped=(*found.skipped, *groups.skipped, *metrics.skipped),
        with_groups=len(used.intersection((batch.run_id, batch.sequence) for batch in groups.batches())),
        reported=_reported([batch.sampled_at for batch in metrics.batches() if batch.rows], times),
        model=summary(lake, cluster_id),
    )


def _reported(ends: list[datetime], times: list[datetime]) -> float:
    """The share of the time between the samples that reads with these ends cover; each is of an hour at most."""
    if len(times) < 2:
        return 0.0
    covered, before = timedelta(), times[0]
    for end in sorted(ends):
        until = min(end, times[-1])
        covered += max(until - max(before, end - PIECE), timedelta())
        before = max(before, until)
    return covered / (times[-1] - times[0])
