"""Messy samples of many partitions, and the numbers of each, worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.pipeline.clusters_by_hand import CLUSTER, START, Samples

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_tables import METRICS
from kafka_rebalance.pipeline.metrics_schema import MetricRow
from kafka_rebalance.pipeline.sample_manifests import StoredBatch, write_rows

DAY = timedelta(days=1)
END = 1800
NOW = START + timedelta(seconds=END + 60)
MB = 1_000_000
GIB = 2**30


class Expected(NamedTuple):
    """What a model says of a partition; rates in bytes per second, None: unknown."""

    method: str
    mean: float | None
    p95: float | None = None
    covered: float = END
    tolerance: float = 0.01


def _burst(at: float) -> float:
    """Bytes until then: 20 MB/s in the first ten seconds of each minute, then 1 MB/s."""
    minutes, rest = divmod(at, 60)
    return minutes * 250 * MB + min(rest, 10) * 20 * MB + max(0, rest - 10) * MB


def dirty_samples() -> Samples:
    """Every minute for half an hour, some topics every ten seconds for ten minutes."""
    s = Samples()
    for at in range(END - 600, END + 1, 10):
        # The answers are read half a second or 8.5 seconds after the sample began.
        late = 8.5 if at % 20 else 0.5
        s.leader(at, "late-answers", 0, (at + late) * 1000, (at + late) * MB, late=late)
        s.leader(at, "bursts-10", 0, _burst(at) / 1000, _burst(at))
    for minute in range(31):
        at = 60 * minute
        s.leader(at, "bursts-60", 0, _burst(at) / 1000, _burst(at))
        s.leader(at, "steady", 0, at * 1000, at * MB)
        s.follower(at, "steady", at * MB + 7)
        # The offsets are read a minute after the size: of other records, and the growth is exact all the same.
        s.leader(at, "offsets-later", 0, min(at + 60, END) * 10, at * 1000)
        # 1, 2, ... 6 kB/s in the six windows.
        done = sum(min(max(at - 300 * window, 0), 300) * 1000 * (window + 1) for window in range(6))
        s.leader(at, "ramp", 0, done / 100, done)
        s.leader(at, "idle", 5, 10, 500)
        # A segment of 10 000 records of 500 bytes is deleted in the tenth minute; new records have 100 bytes.
        gone = minute >= 10
        s.leader(at, "segment-deleted", 10_000 * gone, 20_000 + at * 10, 10 * MB - 5 * MB * gone + at * 1000)
        # The start is read after the size: the deletion is in the size only one sample later.
        seen = 10 * MB - 50_000 * (minute > 10) + at * 1000
        s.leader(at, "deleted-between-answers", 100 * gone, 20_000 + at * 10, seen)
        # 10 GB of records of 10 kB are held; 10 000 records of 100 bytes come each second, and retention never rests.
        s.leader(at, "small-after-big", minute * 10_000, MB + at * 10_000, 10_000 * MB - minute * 100 * MB + at * MB)
        # Records of one size, retention in every minute.
        s.leader(at, "rolling", at * 10, 50_000 + at * 10, 5 * MB)
        # The cleaner takes away in every other minute what the last one brought: 1000 records of 100 bytes a second.
        cleaned = MB + minute % 2 * 6 * MB
        s.leader(at, "compacted", 0, 10**7 + at * 1000, cleaned, whole=False)
        s.leader(at, "looks-compacted", 0, 10**7 + at * 1000, cleaned, whole=None)
        # Tiered: the local log stays at 1 GB.
        s.leader(at, "tiered", 0, 10**9 + at * 1000, 10**9, whole=False)
        s.leader(at, "looks-tiered", 0, 10**9 + at * 1000, 10**9, whole=None)
        # Another leader after a third of the time; it was preferred before, and its log is the same to the byte.
        led = 2 if minute > 10 else 1
        s.leader(at, "another-leader", 0, at * 10, at * 1000, broker=led, epoch=4 + led)
        # The controller raises the epoch of the same leader.
        s.leader(at, "next-epoch", 0, at * 10, at * 1000, epoch=5 + (minute > 10))
        # An unclean election cuts the log, and in the same minute it grows beyond where it was.
        cut = 500 * (minute > 10)
        s.leader(
            at,
            "cut-and-overtaken",
            0,
            at * 10 - cut + 1000,
            at * 1000 - cut * 100 + 100_000,
            epoch=5 + 2 * (minute > 10),
        )
        # The end goes back: brokers without epochs and ids, and the topic was created again.
        again = at - 600 if minute > 10 else at
        s.leader(at, "went-back", 0, again * 10, again * 1000, topic_id="", epoch=None)
        s.leader(at, "again", 0, again * 10, again * 1000, topic_id="new" if minute > 10 else "old", epoch=0)
        if minute < 6 or minute > 25:
            s.leader(at, "gap", 0, at * 10, at * 1000)
        if minute < 5:
            s.leader(at, "gone", 0, at * MB, at * 10**9)
        if minute in (0, 30):
            s.leader(
                at, "cut-in-the-only-pair", 0, 1000 + minute * 10 // 3, 100_000 + minute * 1000 // 3, epoch=5 + minute
            )
        _consumed(s, minute, done)
        _measured(s, minute)
    s.leader(END, "once", 0, 7, 700)
    s.leader(END, "old-schema", 0, 10**6, 10**8)
    s.follower(END, "leaderless", 280, broker=1, leader=None)
    s.follower(END, "leaderless", 290, broker=2, leader=None)
    # Broker 7 leads and is silent in the newest sample; a new replica is small.
    s.leader(END - 10, "leader-silent", 0, 1000, 100 * GIB, broker=7)
    s.follower(END - 10, "leader-silent", GIB // 2, broker=3, leader=7)
    s.leader(END, "leader-silent", 0, 1000, None, broker=7)
    s.follower(END, "leader-silent", GIB, broker=3, leader=7)
    return s


def _consumed(s: Samples, minute: int, ramp: float) -> None:
    """Topics with ten records of 100 bytes a second, unless they say otherwise, and what groups have read of them."""
    at = 60 * minute
    end, size, gone = at * 10, at * 1000, 3000 * (minute > 4)
    s.leader(at, "read", 0, end, size, groups={"g": end})
    s.leader(at, "read-by-two", 0, end, size, groups={"g": end, "slow": end / 2})
    s.leader(at, "read-by-nobody", 0, end, size, groups={})
    # Ten records a second of 100, 200, ... 600 bytes.
    s.leader(at, "read-ramp", 0, end, ramp, groups={"g": end})
    # Kafka takes any number from every client that may commit.
    impossible = dict.fromkeys(("h", "i"), 2**63 - 1 if minute > 14 else 0)
    s.leader(at, "read-and-set-far-ahead", 0, end, size, groups={"g": end} | impossible)
    # One group could not be read in the seventh minute, so there is no row.
    s.leader(at, "read-but-once-unknown", 0, end, size, groups=None if minute == 7 else {"g": end})
    s.leader(at, "read-and-set-back", 0, end, size, groups={"g": end - 3000 * (minute > 14)})
    s.leader(at, "read-from-a-moment-on", 0, end, size, groups={"g": end} if minute > 14 else {})
    # The next records of the group were deleted; in the tenth minute it continues at the end.
    s.leader(at, "read-after-deletion", gone, end, size - 100 * gone, groups={"g": end if minute > 9 else 0})
    # The log has 10 000 records of 10 kB, and a group reads two of them a second; new ones have 100 bytes.
    s.leader(at, "read-from-the-begin", 0, 10_000 + end, 100 * MB + size, groups={"g": 2 * at})
    big = minute * 10_000, MB + at * 10_000, 10_000 * MB - minute * 100 * MB + at * MB
    s.leader(at, "read-small-after-big", *big, groups={"g": big[1]})
    compacted = 0, 10**7 + at * 1000, MB + minute % 2 * 6 * MB
    s.leader(at, "read-compacted", *compacted, whole=False, groups={"g": compacted[1]})
    s.leader(at, "read-compacted-from-the-begin", *compacted, whole=False, groups={"g": at * 100})


def reported(lake: Path) -> None:
    """What brokers say of their topics in the six windows, as `_sent` expects it; the last one was read twice."""
    rows: list[MetricRow] = []
    for window in range(6):
        start = START + timedelta(minutes=5 * window)

        def says(
            topic: str, broker: int, came: float | None, went: float | None, read: int = 0, start: datetime = start
        ) -> None:
            rows.append(MetricRow(CLUSTER, topic, broker, start, came, went, START + timedelta(seconds=read)))

        says("reported", 1, 3000, 600 * (window + 1))
        says("reported", 2, 3000, 900)
        says("reported-of-a-moved-leader", 1, 3000, 900)
        says("reported-of-a-moved-leader", 2, None, 600 if window > 2 else 0)
        says("reported-nothing-out", 1, 1000, None)
        says("reported-by-a-follower", 1, 1000, 500)
        says("reported-by-a-follower", 2, None, 500)
        says("reported-now-and-then", 1, 1000, 700 if window != 3 else None)
        says("reported-in-one-window", 1, *((1000, 700) if window == 3 else (None, None)))
        if window == 5:
            says("reported", 1, 3000, 1e9, read=-1)
    stored = StoredBatch(START + timedelta(minutes=30), "metrics", 0, len(rows))
    write_rows(Lake.open(str(lake)), CLUSTER, rows, stored, METRICS)


def _measured(s: Samples, minute: int) -> None:
    """Topics whose bytes out brokers report."""
    at = 60 * minute
    # Broker 1 leads two partitions with 1000 and 2000 bytes a second, broker 2 one with 3000.
    for partition, broker, rate in ((0, 1, 1000), (1, 1, 2000), (2, 2, 3000)):
        s.leader(at, "reported", 0, at * 10, at * rate, broker=broker, partition=partition, groups={"g": 0})
    # Two partitions have 1000 and 2000 bytes a second, and the second gets another leader in the third window.
    s.leader(at, "reported-of-a-moved-leader", 0, at * 10, at * 1000)
    led = 2 if minute > 12 else 1
    s.leader(at, "reported-of-a-moved-leader", 0, at * 10, at * 2000, broker=led, epoch=4 + led, partition=1)
    s.leader(at, "reported-nothing-out", 0, at * 10, at * 1000)
    s.leader(at, "reported-by-a-follower", 0, at * 10, at * 1000)
    s.leader(at, "reported-now-and-then", 0, at * 10, at * 1000)
    s.leader(at, "reported-in-one-window", 0, at * 10, at * 1000, groups={"g": at * 10})


BURSTS = 25 * MB / 6  # (10 s x 20 MB + 50 s x 1 MB) / 60 s

EXPECTED = {
    "late-answers": Expected("Exact", MB, MB, 600),
    "bursts-10": Expected("Exact", BURSTS, BURSTS, 600),
    "bursts-60": Expected("Exact", BURSTS, BURSTS),
    "steady": Expected("Exact", MB, MB),
    "offsets-later": Expected("Exact", 1000, 1000),
    "ramp": Expected("Exact", 3500, 6000),
    "idle": Expected("Exact", 0, 0),
    "segment-deleted": Expected("Marginal", 1000, 1000),
    "deleted-between-answers": Expected("Marginal", 1000, 1000),
    "small-after-big": Expected("HeldMean", MB, MB, tolerance=0.1),
    "rolling": Expected("HeldMean", 1000, 1000),
    "compacted": Expected("Marginal", 100_000, 100_000),
    "looks-compacted": Expected("Marginal", 100_000, 100_000),
    "tiered": Expected("Unknown", None, None, 0),
    "looks-tiered": Expected("Unknown", None, None, 0),
    "another-leader": Expected("Exact", 1000, 1000, END - 60),
    "next-epoch": Expected("Exact", 1000, 1000),
    "cut-and-overtaken": Expected("Exact", 1000, 1000, END - 60),
    "cut-in-the-only-pair": Expected("Unknown", None, None, 0),
    "went-back": Expected("Exact", 1000, 1000, END - 60),
    "again": Expected("Exact", 1000, 1000, END - 660),
    "gap": Expected("Exact", 1000, 1000),
    "once": Expected("Unknown", None, None, 0),
    "leaderless": Expected("Unknown", None, None, 0),
    "leader-silent": Expected("Exact", 0, 0, 10),
    "old-schema": Expected("Exact", 1000, 1000, 600),
}

# What consumer groups read, and brokers sent.
EXPECTED_OUT = {
    "read": Expected("Marginal", 1000, 1000),
    "read-by-two": Expected("Marginal", 1500, 1500),
    "read-by-nobody": Expected("Marginal", 0, 0),
    "read-ramp": Expected("Marginal", 3500, 6000),
    "read-but-once-unknown": Expected("Marginal", 1000, 1000),
    "read-and-set-back": Expected("Marginal", 1000, 1000, END - 60),
    "read-and-set-far-ahead": Expected("Marginal", 1000, 1000),
    "read-from-a-moment-on": Expected("Marginal", 1000 * 900 / 1740, 1000, END - 60),
    "read-after-deletion": Expected("Marginal", 1000 * 1200 / 1740, 1000, END - 60),
    "read-from-the-begin": Expected("HeldMean", 20_000, 20_000),
    "read-small-after-big": Expected("HeldMean", MB, MB, tolerance=0.1),
    "read-compacted": Expected("Marginal", 100_000, 100_000),
    "read-compacted-from-the-begin": Expected("Unknown", None, None, 0),
    "steady": Expected("Unknown", None, None, 0),
    "reported": Expected("Metric", 700, 1200),
    "reported-1": Expected("Metric", 1400, 2400),
    "reported-2": Expected("Metric", 900, 900),
    "reported-of-a-moved-leader": Expected("Metric", (2 * 300 + 3 * 900) / 5, 900, END - 300),
    "reported-of-a-moved-leader-1": Expected("Metric", 600, 600, END - 300),
    "reported-nothing-out": Expected("Metric", 0, 0),
    "reported-by-a-follower": Expected("Unknown", None, None, 0),
    "reported-now-and-then": Expected("Metric", 700 * 5 / 6, 700),
    "reported-in-one-window": Expected("Marginal", 1000, 1000),
}

SIZES = {
    "steady": (END * MB, [1, 2], [END * MB, END * MB + 7]),
    "leader-silent": (100 * GIB, [3, 7], [GIB, 100 * GIB]),
    "leaderless": (290, [1, 2], [280, 290]),
    "once": (700, [1], [700]),
}
