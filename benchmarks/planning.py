"""Times the planner: arrays in, arrays out, on one core, certificate included; and a whole file, JSON in, JSON out.

python -m benchmarks.planning [--quick] [--write docs/benchmarks-planning.md]

Every row is a process of its own: seconds are the median of its runs, memory is the peak above what it had when the
input was there. Every plan is judged by counting before its row is printed.
"""

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = ["partitions", "brokers", "what", "seconds", "MB", "moves", "bound", "gap", "leaders", "leader changes", "pairs"]
ROWS = [
    *((10_000, 100, what) for what in ("add", "remove", "rack", "drift", "flow", "planned")),
    *((100_000, 300, what) for what in ("add", "remove", "rack", "drift", "planned")),
    *((200_000, 1000, what) for what in ("add", "remove", "rack", "drift", "planned")),
    *((1_000_000, 1000, what) for what in ("add", "remove", "rack", "drift", "planned", "file")),
]
QUICK = [row for row in ROWS if row[0] <= 10_000]


def status(field: str) -> float:
    """A line of /proc/self/status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def row(partitions: int, brokers: int, what: str) -> dict[str, object]:
    """One row, measured in this process."""
    import numpy as np

    from benchmarks.clusters import cluster
    from kafka_rebalance.planning import sets
    from kafka_rebalance.planning.instance import encode
    from kafka_rebalance.planning.planner import solve
    from kafka_rebalance.planning.request import Goals, RackAwareness

    given = cluster({"flow": "drift", "planned": "add"}.get(what, what), partitions, brokers)
    racks = [f"rack-{rack}" for rack in given.racks]
    rf = np.full(partitions, given.lists.shape[1], dtype=np.int64)

    def instance(lists):
        return encode(racks, given.targets, rf, lists.ravel(), RackAwareness.ENFORCED)

    lists = given.lists
    if what == "planned":  # a plan of the planned state has nothing to do, and has to find that out
        lists = solve(instance(lists), Goals()).lists.reshape(partitions, -1)
    if what == "flow":
        sets.SMALL = len(rf) * 3
    solve(encode(racks[:10], given.targets[:10], np.full(9, 1), np.arange(9), RackAwareness.ENFORCED), Goals())
    Path("/proc/self/clear_refs").write_text("5")
    before, seconds = status("VmRSS"), []
    for _ in range(1 if what == "flow" else 5):
        fresh = instance(lists)
        started = time.perf_counter()
        found = solve(fresh, Goals())
        seconds.append(time.perf_counter() - started)
    peak = status("VmHWM")
    return {
        "seconds": statistics.median(seconds),
        "MB": peak - before,
        "moves": found.moves,
        "bound": found.lower_bound,
        **judge(given, lists, found.lists.reshape(partitions, -1), found.moves),
    }


def judge(given, before, after, moves: int) -> dict[str, object]:
    """Counts everything anew; raises where a rule is broken."""
    import numpy as np

    racks = np.sort(given.racks[after], axis=1)
    spread = np.bincount(after.ravel(), minlength=len(given.racks))[given.targets]
    led = np.bincount(after[:, 0], minlength=len(given.racks))[given.targets]
    pairs = np.unique(after[:, 0] * len(given.racks) + after[:, 1], return_counts=True)[1]
    if (racks[:, 1:] == racks[:, :-1]).any() or not given.targets[after].all() or np.ptp(spread) > 1:
        raise AssertionError("a rule is broken")
    if moves != (~(after[:, :, None] == before[:, None, :]).any(axis=2)).sum():
        raise AssertionError("the moves are counted wrongly")
    changes = int((after[:, 0] != before[:, 0]).sum())
    return {"leaders": f"±{np.ptp(led)}", "leader changes": changes, "pairs": f"≤ {pairs.max()}"}


def file(partitions: int, brokers: int) -> dict[str, object]:
    """The command, from a file to a file: start-up, reading, planning and writing."""
    from benchmarks.clusters import cluster

    given = cluster("add", partitions, brokers)
    document = {
        "brokers": [{"id": b, "rack": f"rack-{rack}"} for b, rack in enumerate(given.racks.tolist())],
        "partitions": [
            {"topic": f"topic-{p // 64}", "partition": p % 64, "replicas": replicas}
            for p, replicas in enumerate(given.lists.tolist())
        ],
    }
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.json.gz"
        path.write_bytes(gzip.compress(json.dumps(document).encode(), 1))
        script = "from kafka_rebalance.cli.main import main; main()"
        command = [sys.executable, "-c", script, "plan", "--cluster", str(path), "-o", "json"]
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        printed = process.stdout.read()
        _, code, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    if code:
        raise AssertionError(f"the command failed: {code}")
    summary = json.loads(printed)["summary"]
    moves, bound, changes = summary["replicaMoves"], summary["lowerBound"], summary["leaderMoves"]
    found = {"seconds": seconds, "MB": used.ru_maxrss / 1024, "moves": moves, "bound": bound}
    return found | {"leaders": "", "leader changes": changes, "pairs": ""}


def machine() -> str:
    """What the figures were measured on."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), ":")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{cpu.split(':')[1].strip()}, {os.cpu_count()} cores of which one is used, "
        f"Python {platform.python_version()}, load average at the start {load}"
    )


def line(cells: list[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def report(rows: list[tuple[int, int, str]]) -> str:
    """The table, printed as it grows."""
    lines = [f"Measured on: {machine()}.", "", line(HEAD), line(["---"] * len(HEAD))]
    print("\n".join(lines), flush=True)
    for partitions, brokers, what in rows:
        command = [sys.executable, "-m", "benchmarks.planning", "--row", str(partitions), str(brokers), what]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        gap = found["moves"] - found["bound"]
        cells = [f"{partitions:,}", brokers, what, f"{found['seconds']:.2f}", f"{found['MB']:.0f}"]
        cells += [f"{found['moves']:,}", f"{found['bound']:,}", gap, found["leaders"]]
        lines.append(line([*cells, f"{found['leader changes']:,}", found["pairs"]]))
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def write(path: Path, table: str) -> None:
    """Put the table in the place of the one that the file has."""
    begin, end = "<!-- table -->\n", "<!-- end of table -->\n"
    text = path.read_text()
    path.write_text(text[: text.index(begin) + len(begin)] + table + text[text.index(end) :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 partitions only")
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if options.row:
        partitions, brokers, what = int(options.row[0]), int(options.row[1]), options.row[2]
        print(json.dumps(file(partitions, brokers) if what == "file" else row(partitions, brokers, what)))
        return
    table = report(QUICK if options.quick else ROWS)
    if options.write:
        write(options.write, table)


if __name__ == "__main__":
    main()
