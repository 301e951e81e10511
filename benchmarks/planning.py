"""Times the planner and the baselines on the same clusters; writes the page, its plots and all values.

python -m benchmarks.planning [--quick | --render]

Each row runs in its own process on one core: seconds are the median of up to five runs, memory is the peak of the
process. Every plan is checked by counting before its row is printed. ``--quick`` stops at 10,000 partitions and writes
nothing; ``--render`` measures nothing and rewrites the page from the values of the last run.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.clusters import SCENARIOS
from benchmarks.planning_report import page, printed

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "planning.json"
PAGE = ROOT / "docs" / "benchmarks-planning.md"

Row = tuple[int, int, str, str]
"""Partitions, brokers, scenario and planner."""

SIZES = {1_000: 30, 10_000: 100, 20_000: 150, 100_000: 300, 200_000: 1000, 1_000_000: 1000}
COMPARED = ("add", "remove", "drift")
UP_TO = {"generate": 1_000_000, "greedy": 200_000, "flow": 20_000, "mip": 1_000}
"""The largest cluster, in partitions, for each baseline."""


def rows(most: int) -> list[Row]:
    """The rows of the planner, then those of the baselines, up to this number of partitions."""
    some = ("add", "remove", "rack", "drift", "mixed", "planned")
    ours = [
        (10_000, [*SCENARIOS, "planned", "flow"]),
        (100_000, some),
        (200_000, some),
        (1_000_000, [*some, "file"]),
        *((partitions, COMPARED) for partitions in (1_000, 20_000)),
    ]
    found = [(0, 0, "goldens", "planner")]
    found += [(partitions, SIZES[partitions], what, "planner") for partitions, whats in ours for what in whats]
    for tool, largest in UP_TO.items():
        found += [(p, b, what, tool) for p, b in SIZES.items() if p <= largest for what in COMPARED]
    return [row for row in found if row[0] <= most]


def machine() -> dict[str, Any]:
    """The machine under measurement."""
    cpu = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(int(line.split()[1]) * 1024 for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    return {
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memoryGB": round(memory / 1e9),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "ortools": version("ortools"),
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def measured(row: Row) -> dict[str, Any]:
    """Measure a row in its own process."""
    command = [sys.executable, "-m", "benchmarks.planning_row", *map(str, row)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{row} failed:\n{done.stderr}")
    found = dict(zip(("partitions", "brokers", "what", "tool"), row, strict=True))
    return {**found, **json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 partitions at most; nothing is written")
    parser.add_argument("--render", action="store_true", help="no measuring: the page from the last run's values")
    options = parser.parse_args()
    if not options.render:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        began, facts, found = time.perf_counter(), machine(), []
        for row in rows(10_000 if options.quick else max(SIZES)):
            found.append(measured(row))
            print(printed(found[-1]), flush=True)
        print(f"{time.perf_counter() - began:.0f} s in all")
        if options.quick:
            return
        RESULTS.write_text(json.dumps({"machine": facts, "rows": found}, indent=1) + "\n")
    from benchmarks.planning_plots import draw

    values = json.loads(RESULTS.read_text())
    draw(values["rows"], PAGE.parent / "plots")
    PAGE.write_text(page(values["machine"], values["rows"]))


if __name__ == "__main__":
    main()
