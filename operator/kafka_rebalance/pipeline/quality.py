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

from kafka_rebalance.pipeline.lake import Lake
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
    """``runs``: samples used by run, ``left_out``: of samplers at the same time; ``silent``: samples lacked, by broker.

    ``clock_breaks``: runs that began before the previous one ended.
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
    skipped: tuple[Skipped, ...]
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
            "skippedFiles": [{"name": file.name, "why": file.why} for file in self.skipped],
            "methods": dict(self.model.methods) if self.model else None,
            "lineage": self.model.header["lineage"] if self.model else None,
        }


def report(lake: Lake, cluster_id: str, window: timedelta, now: datetime) -> QualityReport:
    """Of the last ``window`` before the newest sample."""
    found = inventory(lake, cluster_id, window, now)
    linked = chain(found.batches())
    times = [batch.sampled_at for batch in linked.batches]
    between = [later - earlier for earlier, later in pairwise(times)]
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
        skipped=found.skipped,
        model=summary(lake, cluster_id),
    )
