"""How close the choice of steps comes to the least possible time, with the network as a fluid in virtual time.

python -m benchmarks.schedule [--only WORD ...] [--write docs/benchmarks-schedule.md]

The engine's own functions judge the partitions and choose the calls. The network gives each copy its fair share of the
rates of both ends. The bound is the highest of: the bytes into or out of a broker over its rate; the longest chain of
copies of one partition under R; the chains of all partitions over P; the copies with leader movements over L.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.results_page import publish

BEGIN, END = "<!-- schedule -->", "<!-- end of schedule -->"
HEAD = [
    "change", "brokers", "partitions that move", "GB to copy", "sizes", "R, P, L", "bound, s", "from", "operator",
    "everything at once", "batches", "fixed caps", "CPU s",
]  # fmt: skip
RATE = 50 * 2**20
"""Bytes per second and side: the operator's default."""
_MEAN = 2**30
_MOST = 50 * 2**30


@dataclass(frozen=True)
class Row:
    """``sizes``: equal, zipf. ``r`` 0: as many as the partition has replicas."""

    what: str
    brokers: int
    partitions: int
    sizes: str
    r: int
    p: int = 100
    leaders: int = 20


ROWS = [
    *(Row(what, 10, 1_000, sizes, r) for what in ("add", "remove") for sizes in ("equal", "zipf") for r in (1, 2, 0)),
    *(
        Row(what, 100, 10_000, sizes, r, 1_000, 1_000)
        for what in ("add", "remove", "replace", "drift", "mixed")
        for sizes in ("equal", "zipf")
        for r in (1, 2, 0)
    ),
    *(Row(what, 100, 10_000, "zipf", 1) for what in ("add", "remove", "replace", "drift", "mixed")),
    *(
        Row(what, 1_000, 20_000, "zipf", r, 2_000, 2_000)
        for what in ("add", "remove", "replace", "drift")
        for r in (1, 2, 0)
    ),
]


def sizes_of(count: int, kind: str) -> list[int]:
    """Bytes of each partition, one GiB on average: all equal, or the nth largest of 1/n, at most 50 GiB."""
    if kind == "equal":
        return [_MEAN] * count
    weights = 1 / np.arange(1, count + 1)
    sizes = np.minimum(weights * (_MEAN * count / weights.sum()), _MOST)
    return [int(size) for size in np.random.default_rng(1).permutation(sizes)]


def measured(row: Row) -> dict[str, Any]:
    """Plan the change, and carry it out in each way."""
    from benchmarks.clusters import cluster
    from benchmarks.schedule_runs import Move, Problem, by_the_engine, everything_at_once, in_batches, with_fixed_caps
    from kafka_rebalance.execution.limits import Limits
    from kafka_rebalance.model.topology import TopicPartition, replicas_of
    from kafka_rebalance.planning.planner import solve_instance
    from kafka_rebalance.planning.problem.request import Goals

    given = cluster(row.what, row.partitions, row.brokers)
    after = solve_instance(given.instance(), Goals()).lists.tolist()
    before, at, moves = given.lists.tolist(), 0, list[Move]()
    sizes = sizes_of(row.partitions, row.sizes)
    for number, rf in enumerate(given.rf.tolist()):
        origin, target = replicas_of(*before[at : at + rf]), replicas_of(*after[at : at + rf])
        at += rf
        if origin != target:
            moves.append(Move(TopicPartition(f"topic-{number // 50:05d}", number % 50), origin, target, sizes[number]))
    r = row.r or int(given.rf.max())
    limits = Limits(r, row.p, row.leaders, None)
    problem = Problem(len(given.racks), moves, RATE, limits)
    bounds = problem.bounds
    began = time.process_time()
    ours = by_the_engine(problem)
    spent = time.process_time() - began
    return {
        "moves": len(moves),
        "bytes": sum(len(set(move.target) - set(move.origin)) * move.size for move in moves),
        "bound": problem.bound,
        "from": max(bounds, key=lambda name: bounds[name]),
        "bounds": bounds,
        "operator": ours,
        "at once": everything_at_once(problem),
        "batches": in_batches(problem),
        "caps": with_fixed_caps(problem),
        "cpu": spent,
        "load": os.getloadavg()[0],
    }


def row_of(row: Row, found: dict[str, Any]) -> list[str]:
    """The cells of a line."""
    ratios = [f"{found[name] / found['bound']:.2f}" for name in ("operator", "at once", "batches", "caps")]
    return [
        row.what, f"{row.brokers:,}", f"{found['moves']:,}", f"{found['bytes'] / 1e9:,.0f}", row.sizes,
        f"{row.r or 'RF'}, {row.p}, {row.leaders}", f"{found['bound']:,.0f}", found["from"], *ratios,
        f"{found['cpu']:.1f}",
    ]  # fmt: skip


def main() -> None:
    """Measure the rows, each in its own process; print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="rows whose change, sizes or number of brokers this is")
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row is not None:
        print(json.dumps(measured(ROWS[options.row])))
        return
    lines = [f"Computed on: {measured_on(machine())}.", "", line(HEAD), line(["---"] * len(HEAD))]
    print("\n".join(lines), flush=True)
    for number, row in enumerate(ROWS):
        if not set(options.only) <= {row.what, row.sizes, str(row.brokers), f"R{row.r}"}:
            continue
        argv = [sys.executable, "-m", "benchmarks.schedule", "--row", str(number)]
        answer = subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout
        lines.append(line(row_of(row, json.loads(answer))))
        print(lines[-1], flush=True)
    if options.write is not None:
        publish("\n".join(lines), options.write, BEGIN, END)


if __name__ == "__main__":
    main()
