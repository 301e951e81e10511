"""The pipeline against DuckDB and Polars on the same samples: time, CPU, rows per second of CPU, memory.

python -m benchmarks.pipeline [--samples 167 267 667] [--partitions 10000] [--write docs/benchmarks.md]

Each engine runs in a process of its own on one thread. DuckDB and Polars are installed for the benchmark only
(`make bench-pipeline`); they compute the same windows with the same rules, on samples without deleted topics or silent
brokers, and the sum of their rates is compared with the product's. "start" is from the start of Python
until the Spark session has answered, "first" the first run in that session, and "cold" both together.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.pipeline_samples import CLUSTER, write_lake
from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.results_page import publish

WINDOW = timedelta(days=8)
NOW = datetime(2026, 3, 9, tzinfo=UTC)
ENGINES = ("Spark", "DuckDB", "Polars")
HEAD = ["rows", "engine", "run", "seconds", "CPU seconds", "rows per second of CPU", "MB", "load"]
BEGIN, END = "<!-- pipeline -->\n", "<!-- end of pipeline -->\n"
_TICKS = os.sysconf("SC_CLK_TCK")

DUCKDB = """
WITH led AS (
  SELECT hash(topic_id, topic, partition) k, epoch_us(sampled_at) a, epoch_us(size_at) t, epoch_us(offsets_at) o,
    log_start_offset s, log_end_offset e, size_bytes z, leader_epoch::BIGINT * 4294967296 + broker l
  FROM read_parquet(?) WHERE broker = leader AND log_end_offset IS NOT NULL),
paired AS (
  SELECT *, lag(t) OVER w t0, lag(o) OVER w o0, lag(s) OVER w s0, lag(s, 2) OVER w s00, lag(e) OVER w e0,
    lag(z) OVER w z0, lag(l) OVER w l0 FROM led WINDOW w AS (PARTITION BY k ORDER BY a)),
pairs AS (
  SELECT k, t0, t, (e - e0) * ((t - t0) / (o - o0)) r, z - z0 g,
    s = s0 AND coalesce(s00, s0) = s0 AND z >= z0 x
  FROM paired WHERE l - l0 IN (0, 4294967296) AND e >= e0 AND s >= s0 AND t > t0 AND o > o0),
spread AS (
  SELECT *, least(t, (w + 1) * 300000000) - greatest(t0, w * 300000000) m, m / (t - t0) f
  FROM (SELECT *, unnest(range(t0 // 300000000, (t - 1) // 300000000 + 1)) w FROM pairs)),
five_minutes AS (
  SELECT k, w, sum(m) m, sum(CASE WHEN x THEN g * f ELSE 0 END) g, sum(CASE WHEN x THEN r * f ELSE 0 END) gr,
    sum(CASE WHEN x THEN 0 ELSE r * f END) nr FROM spread GROUP BY k, w),
summed AS (
  SELECT *, sum(g) OVER (PARTITION BY k) kg, sum(gr) OVER (PARTITION BY k) kr FROM five_minutes),
rated AS (
  SELECT k, m, CASE WHEN nr = 0 THEN g ELSE g + nr * CASE WHEN gr > 0 THEN g / gr WHEN kr > 0 THEN kg / kr END END b
  FROM summed)
SELECT k, sum(b) / (sum(m) / 1e6) mean, quantile_disc(b / (m / 1e6), [0.5, 0.95, 0.99, 1.0]) FILTER (m >= 150000000) q
FROM rated WHERE b IS NOT NULL GROUP BY k
"""


def polars_rates(paths: list[str]) -> float:
    """The same with Polars; the sum of the means."""
    import polars as pl

    c = pl.col
    size = 300_000_000
    led = (
        pl.scan_parquet(paths)
        .filter((c("broker") == c("leader")) & c("log_end_offset").is_not_null())
        .select(
            pl.struct("topic_id", "topic", "partition").hash().alias("k"),
            a=c("sampled_at").to_physical(),
            t=c("size_at").to_physical(),
            o=c("offsets_at").to_physical(),
            s="log_start_offset",
            e="log_end_offset",
            z="size_bytes",
            l=c("leader_epoch").cast(pl.Int64) * 2**32 + c("broker"),
        )
        .sort("k", "a")
    )
    same, same2 = c("k") == c("k").shift(1), c("k") == c("k").shift(2)
    before = {f"{name}0": pl.when(same).then(c(name).shift(1)) for name in "toszel"}
    pairs = (
        led.with_columns(**before, s00=pl.when(same2).then(c("s").shift(2)))
        .filter(
            (c("l") - c("l0")).is_in([0, 2**32])
            & (c("e") >= c("e0"))
            & (c("s") >= c("s0"))
            & (c("t") > c("t0"))
            & (c("o") > c("o0"))
        )
        .with_columns(
            r=(c("e") - c("e0")) * ((c("t") - c("t0")) / (c("o") - c("o0"))),
            g=c("z") - c("z0"),
            x=(c("s") == c("s0")) & (c("s00").fill_null(c("s0")) == c("s0")) & (c("z") >= c("z0")),
        )
    )
    grown, other = pl.when("x").then(1.0).otherwise(0.0), pl.when("x").then(0.0).otherwise(1.0)
    windows = (
        pairs.with_columns(w=pl.int_ranges(c("t0") // size, (c("t") - 1) // size + 1))
        .explode("w")
        .with_columns(m=pl.min_horizontal("t", (c("w") + 1) * size) - pl.max_horizontal("t0", c("w") * size))
        .with_columns(f=c("m") / (c("t") - c("t0")))
        .group_by("k", "w")
        .agg(
            m=c("m").sum(),
            g=(c("g") * c("f") * grown).sum(),
            gr=(c("r") * c("f") * grown).sum(),
            nr=(c("r") * c("f") * other).sum(),
        )
        .with_columns(kg=c("g").sum().over("k"), kr=c("gr").sum().over("k"))
        .with_columns(
            b=pl.when(c("nr") == 0)
            .then("g")
            .otherwise(
                c("g")
                + c("nr")
                * pl.when(c("gr") > 0).then(c("g") / c("gr")).otherwise(pl.when(c("kr") > 0).then(c("kg") / c("kr")))
            )
        )
        .filter(c("b").is_not_null())
    )
    valid = (c("b") / (c("m") / 1e6)).filter(c("m") >= size // 2)
    loads = windows.group_by("k").agg(
        (c("b").sum() / (c("m").sum() / 1e6)).alias("mean"),
        *(valid.quantile(share, "higher").alias(f"q{share}") for share in (0.5, 0.95, 0.99, 1.0)),
    )
    return float(loads.collect()["mean"].sum())


def duckdb_rates(paths: list[str]) -> float:
    """The same with DuckDB; the sum of the means."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"CREATE TABLE loads AS {DUCKDB}", [paths])
    (total,) = connection.execute("SELECT sum(mean) FROM loads").fetchone() or (0.0,)
    return float(total)


def run(engine: str, place: str, runs: int) -> None:
    """One engine in this process; prints a row of JSON for each run."""
    paths = [str(path) for path in sorted(Path(place).glob("samples/*/*/*.parquet"))]
    if engine == "Spark":
        _run_spark(place, runs)
        return
    compute = {"DuckDB": duckdb_rates, "Polars": polars_rates}[engine]
    for number in range(runs):
        _measured(engine, number, lambda: compute(paths), _cpu_seconds)


def _run_spark(place: str, runs: int) -> None:
    from kafka_rebalance.pipeline import job, spark_session

    with spark_session.spark_session("local[1]") as spark:
        spark.range(1).count()
        _report("Spark", 0, time.time() - _started_at(), _cpu_seconds())
        for number in range(runs):
            _measured(
                "Spark",
                number,
                lambda: job.build(spark, place, CLUSTER, WINDOW, NOW).model.bytes_in_per_second,
                _cpu_seconds,
            )


def _started_at() -> float:
    """When this process was started, in seconds since 1970."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / _TICKS


def _measured(engine: str, number: int, compute: Callable[[], float], cpu: Callable[[], float]) -> None:
    began, before = time.monotonic(), cpu()
    total = compute()
    _report(engine, number + 1, time.monotonic() - began, cpu() - before, total)


def _report(engine: str, number: int, seconds: float, used: float, total: float | None = None) -> None:
    row = {
        "engine": engine,
        "run": number,
        "seconds": seconds,
        "cpu": used,
        "driver_mb": _peak_mb(os.getpid()),
        "mb": sum(map(_peak_mb, [os.getpid(), *_children()])),
        "load": os.getloadavg()[0],
        "total": total,
    }
    print(json.dumps(row), flush=True)


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def _cpu_seconds() -> float:
    """Of this process and its children (Spark's JVM, and the one that starts it)."""
    ticks = 0
    for pid in (os.getpid(), *_children()):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def _peak_mb(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def measure(engine: str, place: Path, runs: int) -> list[dict[str, float]]:
    """The rows of one engine, from a process of its own."""
    one_thread = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pipeline", "--engine", engine, "--lake", str(place), "--runs", str(runs)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | one_thread,
    )
    return [json.loads(row) for row in done.stdout.splitlines() if row.startswith("{")]


def _named(engine: str, found: list[dict[str, float]]) -> list[tuple[str, dict[str, float]]]:
    """The rows of the table, with the names of their runs. "cold" is the sum of the start and the first run."""
    if engine != "Spark":
        return [("", row) for row in found]
    start, first, *more = found
    cold = first | {key: start[key] + first[key] for key in ("seconds", "cpu")}
    last = [("warm", more[-1])] if more else []
    return [("start", start), ("first", first), ("cold", cold), *last]


def _cells(rows: int, engine: str, row: dict[str, float]) -> list[str]:
    speed = "" if row["total"] is None else f"{rows / row['cpu']:,.0f}"
    memory = f"{row['mb']:,.0f}" + (f" (driver {row['driver_mb']:,.0f})" if engine == "Spark" else "")
    return [f"{row['seconds']:.1f}", f"{row['cpu']:.1f}", speed, memory, f"{row['load']:.1f}"]


def main() -> None:
    """Print the table, or write it into a page between its marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[167, 267, 667])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--lake", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        run(options.engine, options.lake, options.runs)
        return
    table = [line(HEAD), line(["---"] * len(HEAD))]
    for samples in options.samples:
        rows = options.partitions * 3 * samples
        with tempfile.TemporaryDirectory() as directory:
            write_lake(Path(directory), options.partitions, samples)
            totals = {}
            for engine in ENGINES:
                found = measure(engine, Path(directory), options.runs if engine == "Spark" else 1)
                totals[engine] = found[-1]["total"]
                for name, row in _named(engine, found):
                    table.append(line([f"{rows:,}", engine, name, *_cells(rows, engine, row)]))
                    print(table[-1], flush=True)
            for engine, total in totals.items():
                assert abs(total / totals["Spark"] - 1) < 1e-6, f"{engine} and Spark disagree: {totals}"
    text = "\n".join([*table, "", measured_on(machine()), ""])
    publish(text, options.write, BEGIN, END)


if __name__ == "__main__":
    main()
