"""Cost of file I/O: reads a cluster as JSON and writes Kafka's JSON, without the planning in between. CPU time on one
core.

python -m benchmarks.files [--partitions 1000000] [--brokers 1000] [--runs 3] [--write docs/benchmarks.md]

Each row runs in its own process, so that other load on the machine does not count; it is the median of its runs. MB is
the peak memory of the process. The table ends with the whole command, startup included.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.planning_row import status

HEAD = ["what", "seconds", "MB"]
ROWS = {
    "json.loads": "Python's parser alone, for comparison",
    "decode": "the parser in use alone",
    "read": "reading: JSON to checked values",
    "collector": "the same with Python's search for cycles",
    "write": "the plan as Kafka's JSON",
    "command": "`kafka-rebalance plan -o json`, start-up to end",
}
BEGIN, END = "<!-- files -->\n", "<!-- end of files -->\n"


def write_cluster(path: Path, partitions: int, brokers: int) -> None:
    """A balanced cluster in five racks that has just got 10 % more brokers."""
    from benchmarks.clusters import cluster

    given = cluster("add", partitions, brokers)
    document = {
        "brokers": [{"id": b, "rack": f"rack-{rack}"} for b, rack in enumerate(given.racks.tolist())],
        "partitions": [
            {"topic": f"topic-{p // 64}", "partition": p % 64, "replicas": replicas}
            for p, replicas in enumerate(given.lists.reshape(partitions, -1).tolist())
        ],
    }
    path.write_text(json.dumps(document))


def measured(what: str, path: Path) -> dict[str, float]:
    """One row, measured in this process."""
    from kafka_rebalance.cli.commands.plan_command import _document
    from kafka_rebalance.model import cluster_file, json_shapes
    from kafka_rebalance.model.bulk import without_collector

    if what == "command":
        return command(path)
    data = path.read_bytes()
    if what == "json.loads":
        json_shapes.from_json = lambda data, **_: json.loads(data)
    if what in {"json.loads", "decode"}:
        work = json_shapes.decode_object
    elif what == "write":
        data = moved(cluster_file.parse_cluster(data).partitions)
        work = lambda made: json.dumps(_document(made, made.partitions, {}, 0.0))  # noqa: E731
    else:
        work = cluster_file.parse_cluster
    started = time.process_time()
    if what == "collector":
        work(data)
    else:
        with without_collector():
            work(data)
    return {"seconds": time.process_time() - started, "MB": status("VmHWM")}


def moved(partitions):
    """A plan that moves one replica of each partition: twice as much output as most plans."""
    from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition

    changed = tuple(PlannedPartition(p.tp, p.replicas, (*p.replicas[1:], 5000)) for p in sorted(partitions, key=_tp))
    return Plan(changed, Certificate(len(changed), optimal=True))


def _tp(partition):
    return partition.tp


def command(path: Path) -> dict[str, float]:
    """The command as a user runs it."""
    argv = [sys.executable, "-c", "from kafka_rebalance.cli.main import main; main()"]
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen([*argv, "plan", "--cluster", str(path), "-o", "json"], stdout=nowhere)
        _, code, used = os.wait4(process.pid, 0)
    if code:
        raise AssertionError(f"the command failed: {code}")
    return {"seconds": used.ru_utime + used.ru_stime, "MB": used.ru_maxrss / 1024}


def report(partitions: int, brokers: int, runs: int) -> str:
    """The table; each row is printed when it is measured."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.json"
        write_cluster(path, partitions, brokers)
        size = path.stat().st_size / 1e6
        about = f"{partitions:,} partitions on {brokers} brokers, RF 3, {size:.0f} MB of JSON."
        about = f"{about} Measured on: {measured_on(machine())}."
        lines = [about, "", line(HEAD), line(["---"] * len(HEAD))]
        print("\n".join(lines), flush=True)
        for what, meaning in ROWS.items():
            argv = [sys.executable, "-m", "benchmarks.files", "--row", what, str(path)]
            found = [json.loads(subprocess.run(argv, check=True, capture_output=True).stdout) for _ in range(runs)]
            seconds, memory = (statistics.median(run[key] for run in found) for key in ("seconds", "MB"))
            lines.append(line([meaning, f"{seconds:.2f}", f"{memory:.0f}"]))
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if options.row:
        print(json.dumps(measured(options.row[0], Path(options.row[1]))))
        return
    table = report(options.partitions, options.brokers, options.runs)
    if options.write:
        text = options.write.read_text()
        options.write.write_text(text[: text.index(BEGIN) + len(BEGIN)] + table + text[text.index(END) :])


if __name__ == "__main__":
    main()
