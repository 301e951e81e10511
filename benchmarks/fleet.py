"""Plans a hundred clusters of mixed size in one Spark job, and each alone; compares time and hashes.

python -m benchmarks.fleet [--clusters 100] [--cores 2] [--write docs/benchmarks.md]

"One after the other" plans the same files in one process that has everything imported, so it is the best that a loop
without Spark does. "A command for each" starts `kafka-rebalance plan` anew for a tenth of the clusters, times ten.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.clusters import cluster
from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.results_page import publish
from kafka_rebalance.cli.commands.fleet_command import plan_as_alone

BEGIN, END = "<!-- fleet -->\n", "<!-- end of fleet -->\n"
HEAD = ["clusters", "partitions", "how", "processes", "seconds", "plans a minute", "load"]
_COMMAND = "from kafka_rebalance.cli.main import main; main()"
KINDS = ("add", "mixed", "uneven", "no racks", "rack", "replace", "remove", "drift", "leaders")


def write_snapshots(place: Path, count: int) -> int:
    """Clusters of 100 to 30,000 partitions on 5 to 150 brokers, most of them small; returns the partitions."""
    rng = np.random.default_rng(7)
    total = 0
    for number in range(count):
        partitions = int(np.clip(rng.lognormal(7.3, 1.4), 100, 30_000))
        brokers = max(5, partitions // 200 // 5 * 5)
        made = cluster(KINDS[number % len(KINDS)], partitions, brokers, seed=number)
        starts = np.concatenate([[0], np.cumsum(made.rf)])
        lists, sizes = made.lists.tolist(), rng.lognormal(19, 1.5, partitions).astype(int).tolist()
        document = {
            "brokers": [
                {"id": b, "rack": f"rack-{rack}" if rack >= 0 else None} for b, rack in enumerate(made.racks.tolist())
            ],
            "partitions": [
                {
                    "topic": f"topic-{p % 50}",
                    "partition": p // 50,
                    "replicas": lists[starts[p] : starts[p + 1]],
                    "size": sizes[p],
                }
                for p in range(partitions)
            ],
        }
        (place / f"cluster-{number:03d}.json.gz").write_bytes(gzip.compress(json.dumps(document).encode(), 1))
        total += partitions
    return total


def main() -> None:
    """Print the table, or write it into a page between its marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        partitions = write_snapshots(place, options.clusters)
        table = [line(HEAD), line(["---"] * len(HEAD))]

        def row(how: str, processes: int, seconds: float) -> None:
            rate = f"{60 * options.clusters / seconds:,.0f}"
            cells = [f"{options.clusters}", f"{partitions:,}", how, str(processes), f"{seconds:.1f}", rate]
            table.append(line([*cells, f"{os.getloadavg()[0]:.1f}"]))
            print(table[-1], flush=True)

        files = sorted(place.iterdir())
        make = partial(plan_as_alone, rebalance=None)
        make(files[0].read_bytes())
        began = time.monotonic()
        alone = {file.name.partition(".")[0]: make(file.read_bytes())["summary"]["hash"] for file in files}
        row("one after the other, in one process", 1, time.monotonic() - began)
        began = time.monotonic()
        for file in files[::10]:
            subprocess.run(
                [sys.executable, "-c", _COMMAND, "plan", "-o", "json", "--cluster", str(file)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        row("a command for each, extrapolated from a tenth", 1, 10 * (time.monotonic() - began))
        _in_one_job(place, options.cores, alone, row)
    text = "\n".join([*table, "", measured_on(machine()), ""])
    publish(text, options.write, BEGIN, END)


def _in_one_job(place: Path, cores: int, alone: dict[str, str], row) -> None:
    from kafka_rebalance.pipeline.fleet import find_snapshots, plan_each
    from kafka_rebalance.pipeline.spark_session import spark_session

    with spark_session(f"local[{cores}]") as spark:
        spark.range(1).count()
        for how in ("one Spark job, first in its session", "the second job in the session"):
            began = time.monotonic()
            directory, found = find_snapshots(str(place))
            results = plan_each(spark, directory, found, partial(plan_as_alone, rebalance=None))
            row(how, cores, time.monotonic() - began)
            hashes = {r.cluster: r.document["summary"]["hash"] if r.document else r.error for r in results}
            assert hashes == alone, {name for name in alone if hashes.get(name) != alone[name]}


if __name__ == "__main__":
    main()
