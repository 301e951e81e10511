"""Times plans by load, and a greedy planner on the same clusters; writes docs/benchmarks-load.md and all values.

python -m benchmarks.load [--quick | --render]

One core; seconds are CPU seconds of one run, after a small one that compiles. ``--quick``: two small clusters, and
nothing is written.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.load_clusters import GIB, load_request
from benchmarks.load_greedy import Greedy
from benchmarks.planning import machine
from kafka_rebalance.planning import PlanRequest, plan
from kafka_rebalance.planning.load.load_problem import LoadProblem, load_problem, use_of
from kafka_rebalance.planning.problem.encoding import build
from kafka_rebalance.planning.problem.instance import Indices

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "load.json"
PAGE = ROOT / "docs" / "benchmarks-load.md"
CASES: dict[str, dict[str, Any]] = {
    "10,000 on 100, 10 %": {"partitions": 10_000, "brokers": 100},
    "10,000 on 100, mixed capacities, 10 %": {"partitions": 10_000, "brokers": 100, "mixed": True},
    "100,000 on 300, 10 %": {"partitions": 100_000, "brokers": 300},
    "100,000 on 300, 5 %": {"partitions": 100_000, "brokers": 300, "band": 5},
    "100,000 on 300, mixed capacities, 10 %": {"partitions": 100_000, "brokers": 300, "mixed": True},
    "1,000,000 on 1,000, 5 %": {"partitions": 1_000_000, "brokers": 1000, "band": 5},
}
HEAD = (
    "| partitions, brokers, band | planner | CPU s | outside | excess | moved | of all data | bound | ratio | load |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def worth(problem: LoadProblem, lists: Indices, whole: int) -> dict[str, Any]:
    """Recounted from the lists: broker and resource pairs above a band, their excess in shares, bytes of new copies."""
    a = problem.arrays
    above = np.maximum(use_of(problem, a.start, lists) * a.inverse - a.band * (1 + 1e-9), 0)
    brokers = len(a.eligible)
    owner = a.partition.astype(np.int64)
    if len(np.unique(owner * (a.group.max() + 1) + a.group[lists])) != len(lists):
        raise AssertionError("two copies of a partition are in one rack")
    new = ~np.isin(owner * brokers + lists, owner * brokers + a.homes)
    data = int(a.size[owner[new]].sum())
    return {"outside": int((above > 0).sum()), "excess": float(above.sum()), "bytes": data, "part": data / whole}


def measured(request: PlanRequest) -> list[dict[str, Any]]:
    encoded = build(request)
    problem = load_problem(request, encoded)
    whole = sum(p.size_bytes * len(p.replicas) for p in request.partitions)
    before = encoded.instance.broker_of_slot.astype(np.int32)
    rows = [{"planner": "before", "seconds": 0.0, **worth(problem, before, whole)}]
    began, load = time.process_time(), os.getloadavg()[0]
    made = plan(request)
    seconds = time.process_time() - began
    assert made.load is not None
    lists = encoded.flat({p.tp: p.target for p in made.partitions})
    bound = {"bound": made.load.data_lower_bound, "load": round(load, 1)}
    rows.append({"planner": "search", "seconds": seconds, **worth(problem, lists, whole), **bound})
    assert rows[-1]["bytes"] == made.load.data
    began, load = time.process_time(), os.getloadavg()[0]
    lists = Greedy(problem, before).run()
    seconds = time.process_time() - began
    rows.append({"planner": "greedy", "seconds": seconds, **worth(problem, lists, whole), "load": round(load, 1)})
    return rows


def printed(name: str, row: dict[str, Any]) -> str:
    bound, data = row.get("bound"), row["bytes"]
    cells = [
        name,
        row["planner"],
        f"{row['seconds']:.1f}" if row["seconds"] else "",
        str(row["outside"]),
        f"{row['excess']:.3f}",
        f"{data / GIB:,.0f} GiB" if data else "",
        f"{100 * row['part']:.2f} %" if data else "",
        f"{bound / GIB:,.0f} GiB" if bound else "",
        f"{data / bound:.2f}" if bound else "",
        str(row.get("load", "")),
    ]
    return f"| {' | '.join(cells)} |"


def page(facts: dict[str, Any], found: dict[str, list[dict[str, Any]]]) -> str:
    rows = "\n".join(printed(name, row) for name, each in found.items() for row in each)
    return f"""# Plans by load

`make bench-load` writes this page and [every value](../benchmarks/results/load.json). Replication factor 3, five racks,
even counts at the start, four resources, lognormal sizes (sigma 1.5), one seed. Every row is recounted from the lists.
*outside* counts pairs of a broker and a resource above the band, *excess* sums what is above, in shares of a broker.
*bound* is a lower bound on the bytes of plans with as even counts and no more excess than the search leaves; *ratio* is
moved divided by bound. CPU seconds of one run on one core, without compiling once; *load* is the load
average of the machine before the run, which slows a row down. *search* is `plan()`: it
includes checking and encoding the request, the count plan and the bound.

*greedy* is our own simple implementation of goals one after the other, as Cruise Control has them, and makes no whole
plan. It has more freedom: counts may be 10 % above the mean, whereas the search keeps them even.

The aims are 2 s and 1.35 times the bound for 100,000 partitions on 300 brokers, and 15 s for a million on 1,000. The
table shows which are met.

Measured on: {facts["cpu"]}, {facts["cores"]} cores of which one is used, {facts["memoryGB"]} GB, Python \
{facts["python"]}, numpy {facts["numpy"]}.

{HEAD}
{rows}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    if not options.render:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        plan(load_request(1_000, 20))  # compiles
        found: dict[str, list[dict[str, Any]]] = {}
        facts = machine()
        print(HEAD)
        for name, case in list(CASES.items())[: 2 if options.quick else None]:
            found[name] = measured(load_request(**case))
            for row in found[name]:
                print(printed(name, row), flush=True)
            if not options.quick:
                RESULTS.write_text(json.dumps({"machine": facts, "cases": found}, indent=1) + "\n")
        if options.quick:
            return
    values = json.loads(RESULTS.read_text())
    PAGE.write_text(page(values["machine"], values["cases"]))


if __name__ == "__main__":
    main()
