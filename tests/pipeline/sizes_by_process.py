"""Sizes of logs over months, made by what makes them: bytes that come in, segments, and retention.

Independent of the forecasts: nothing here knows trends or quantiles. Each day's bytes follow a random walk with a
weekday's rhythm and noise, some with bursts; a segment is deleted as a whole when its last byte is older than the
retention.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests.pipeline.clusters_by_hand import CLUSTER, RUN, START

from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow

RECORD = 1000


@dataclass
class Log:
    """One partition. ``size``, ``start`` and ``end`` offset by day; before it was created the size is None."""

    name: str
    retention: float
    """Days; infinite: nothing is deleted."""
    size: list[int | None] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)


def logs(count: int, days: int, seed: int) -> list[Log]:
    """Half with retention, two in five without, one in ten idle; one in five is created on the way."""
    rng = random.Random(seed)
    return [_log(f"t{number}", days, rng) for number in range(count)]


def write(lake: Path, of: list[Log], days: range) -> None:
    """A sample on each of these days, at the same time of day."""
    for day in days:
        moment = START + timedelta(days=day)
        rows = tuple(
            SampleRow(
                sampled_at=moment,
                run_id=RUN,
                sequence=day,
                cluster_id=CLUSTER,
                topic=log.name,
                topic_id="a",
                partition=0,
                broker=1,
                leader=1,
                leader_epoch=1,
                size_bytes=log.size[day],
                size_at=moment,
                log_start_offset=log.start[day],
                log_end_offset=log.end[day],
                offsets_at=moment,
                whole_log=True,
            )
            for log in of
            if log.size[day] is not None
        )
        write_batch(str(lake), SampleBatch(moment, CLUSTER, rows, (), RUN, day))


def _log(name: str, days: int, rng: random.Random) -> Log:
    kind = rng.random()
    retention = math.inf if kind < 0.4 else float(rng.choice((1, 2, 3, 7, 7, 7, 14, 14, 30, 60)))
    idle = kind > 0.9
    born = rng.randrange(days // 2) if rng.random() < 0.2 else 0
    rate = 0.0 if idle else 10 ** rng.uniform(6, 10)
    bursts = rng.random() < 0.15
    quiet_weekend, walk, noise = rng.uniform(0.3, 1.0), rng.uniform(0, 0.03), rng.uniform(0.01, 0.25)
    segment = rng.choice((2**27, 2**30))
    found = Log(name, retention)
    warm = 0 if retention is math.inf or born else math.ceil(min(retention, 60)) + 3
    segments: list[list[float]] = [[0.0, 0.0]]  # bytes, and when its last byte came
    if idle or (retention is math.inf and not born):
        segments[0][0] = 10 ** rng.uniform(6, 11)
    gone = 0.0
    for day in range(born - warm, days):
        rate *= math.exp(rng.gauss(0, walk))
        came = rate * math.exp(rng.gauss(0, noise)) * (quiet_weekend if day % 7 > 4 else 1.0)
        came *= 3 if bursts and rng.random() < 0.05 else 1
        hourly = came / 24
        for hour in range(24):
            segments[-1][0] += hourly
            if hourly:
                segments[-1][1] = day + hour / 24
            if segments[-1][0] >= segment or day + hour / 24 - (segments[-1][1] if not hourly else 1e9) > 7:
                segments.append([0.0, day + hour / 24])
        while len(segments) > 1 and day + 1 - segments[0][1] > retention and not idle:
            gone += segments.pop(0)[0]
        if day >= born:
            held = sum(bytes_ for bytes_, _ in segments)
            found.size.append(round(held))
            found.start.append(round(gone / RECORD))
            found.end.append(round((gone + held) / RECORD))
    found.size[:0] = [None] * born
    found.start[:0] = [0] * born
    found.end[:0] = [0] * born
    return found
