"""One row of the planning benchmark, measured in its own process; prints the result as JSON.

python -m benchmarks.planning_row PARTITIONS BROKERS WHAT TOOL
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clusters import Cluster, cluster
from benchmarks.planning_judge import assert_rules, worth
from kafka_rebalance.planning.planner import Solution, solve_instance
from kafka_rebalance.planning.problem.request import Goals

RUNS = 5
ENOUGH_SECONDS = 12.0
"""No further run of a row starts after this time."""


def status(field: str) -> float:
    """A field of /proc/self/status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1000 * 1.024


def repeated(run: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """The last result, and the duration of each run; memory is the peak of the whole process from now on."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak to the current size
    before, seconds, own = status("VmRSS"), [], []
    while not seconds or (len(seconds) < RUNS and sum(seconds) < ENOUGH_SECONDS):
        began, used = time.perf_counter(), time.process_time()
        found = run()
        seconds.append(time.perf_counter() - began)
        own.append(time.process_time() - used)
    peak = status("VmHWM")
    return found, {"seconds": seconds, "cpuSeconds": own, "peakMB": peak, "addedMB": peak - before}


def ours(given: Cluster, run: Callable[[Cluster], Solution]) -> dict[str, Any]:
    """The planner, from arrays to arrays, including encoding, certificate, leaders and order."""
    run(cluster("add", 1_000, 30))  # run lazy imports before the measurement
    found, spent = repeated(lambda: run(given))
    assert_rules(given, found.lists)
    counted = worth(given, given.lists, found.lists)
    proof = found.certificate
    if proof.optimal != (counted["moves"] == proof.lower_bound):
        raise AssertionError("the moves are counted wrongly")
    return {**spent, **counted, "bound": proof.lower_bound}


def planner(given: Cluster) -> Solution:
    """Plans as the command and the operator do."""
    return solve_instance(given.instance(), Goals())


def planned(given: Cluster) -> dict[str, Any]:
    """Plan the planned state again: the planner has to find that nothing is left to do."""
    lists = planner(given).lists.astype(np.int64)
    found = ours(Cluster(given.rf, lists, given.racks, given.targets), planner)
    if found["moves"] or found["leaderChanges"]:
        raise AssertionError("a plan of the planned state is not empty")
    return found


def baseline(given: Cluster, run: Callable[[Cluster], np.ndarray | None]) -> dict[str, Any]:
    """A baseline on the same cluster; only its times if it found no solution."""
    after, spent = repeated(lambda: run(given))
    return spent if after is None else {**spent, **worth(given, given.lists, after)}


def file(given: Cluster) -> dict[str, Any]:
    """The command, from file to file: startup, reading, planning and writing."""
    lists = given.lists.reshape(len(given.rf), -1).tolist()
    document = {
        "brokers": [{"id": b, "rack": f"rack-{rack}"} for b, rack in enumerate(given.racks.tolist())],
        "partitions": [
            {"topic": f"topic-{p // 64}", "partition": p % 64, "replicas": replicas} for p, replicas in enumerate(lists)
        ],
    }
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.json"
        path.write_text(json.dumps(document))
        script = "from kafka_rebalance.cli.main import main; main()"
        command = [sys.executable, "-c", script, "plan", "--cluster", str(path), "-o", "json"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        printed = process.stdout.read()
        _, code, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    if code:
        raise AssertionError(f"the command failed: {code}")
    summary = json.loads(printed)["summary"]
    return {
        "seconds": [seconds],
        "cpuSeconds": [used.ru_utime + used.ru_stime],
        "peakMB": used.ru_maxrss / 1000 * 1.024,
        "moves": summary["replicaMoves"],
        "bound": summary["lowerBound"],
        "leaderChanges": summary["leaderMoves"],
    }


def row(partitions: int, brokers: int, what: str, tool: str) -> dict[str, Any]:
    """Measure ``tool`` on a cluster after the change ``what``.

    Imports only what the row needs, because its memory is reported.
    """
    if what == "goldens":
        from benchmarks import goldens

        return goldens.measured()
    given = cluster({"planned": "add", "file": "add", "flow": "drift"}.get(what, what), partitions, brokers)
    if what == "file":
        return file(given)
    if what == "planned":
        return planned(given)
    if what == "flow":
        from benchmarks.baselines.flow import sets_by_flow

        return ours(given, sets_by_flow)
    if tool == "planner":
        return ours(given, planner)
    if tool == "generate":
        from benchmarks.baselines import generate

        return generate.measured(given)
    return baseline(given, importlib.import_module(f"benchmarks.baselines.{tool}").plan)


if __name__ == "__main__":
    load = os.getloadavg()[0]
    found = row(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
    print(json.dumps({**found, "load": [load, os.getloadavg()[0]]}))
